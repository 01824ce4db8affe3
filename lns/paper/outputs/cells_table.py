"""``cells.csv``: one row for every cell of a run, with the paper's numbers where it has them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lns.paper import printed
from lns.paper.outputs.cells import SETTING, Run
from lns.paper.run_files import write_table

HEAD = (
    "dataset", "noise_percent", "protocol", "method", "test_error_percent", "std", "folds", *SETTING,
    "train_rows", "printed_error_percent", "printed_std",
)  # fmt: skip


def write_cells(run: Run, path: Path) -> None:
    """Write the table, by data set and noise level."""
    write_table(path, HEAD, cell_rows(run))


def cell_rows(run: Run) -> Iterator[dict[str, Any]]:
    """Mean errors, rounded to four decimals; a single error has no standard deviation."""
    order = list(printed.DATASETS)
    keys = sorted(run.cells, key=lambda key: (order.index(key[0]), key[1]))
    for dataset, noise, protocol, method in keys:
        cell = run.cells[dataset, noise, protocol, method]
        row: dict[str, Any] = {
            "dataset": dataset, "noise_percent": noise, "protocol": protocol, "method": method,
            "test_error_percent": round(cell.mean, 4), "folds": len(cell.errors), **cell.setting,
            "train_rows": cell.train_rows,
        }  # fmt: skip
        if len(cell.errors) > 1:
            row["std"] = round(cell.std, 4)
        # The paper has printed nothing that was chosen honestly.
        theirs = printed.errors().get((dataset, method, noise)) if protocol == "paper" else None
        if theirs is not None:
            row["printed_error_percent"], row["printed_std"] = theirs
        yield row
