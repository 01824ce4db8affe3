"""The files that calls add to in the folder of a run: tables, and ``run.json`` about the calls themselves."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lns.errors import DataError
from lns.files import write_text
from lns.paper import printed

# What the page says about a call, and of which kind it is.
CALL: Mapping[str, Any] = {
    "dataset": str, "noise_percent": list, "command": str, "seed": int, "commits": list,
    "wall_seconds": (int, float), "workers": int, "folds": int, "rows_for_choice": int, "quick": bool,
    "estimated_rates": dict, "flipped": dict, "versions": dict,
}  # fmt: skip
REMEDY = "move it away or give another --out; results stay in the cache and are taken from there"


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what is wrong with the content of a file into one sentence.

    Raises
    ------
    DataError
        In the place of every error that a foreign or damaged file can lead to.
    """
    try:
        yield
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror or error}): {REMEDY}.") from None
    except (ValueError, csv.Error) as error:
        raise DataError(f"{path} is damaged ({error}): {REMEDY}.") from None


def read_table(path: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    """The rows of a table; none if it is not there.

    Raises
    ------
    DataError
        If it is not a table with these columns about the paper's data sets.
    """
    rows = []
    with reading(path):
        if not path.exists():
            return []
        with path.open(encoding="utf-8", newline="") as lines:
            reader = csv.DictReader(lines)
            missing = [name for name in columns if name not in (reader.fieldnames or ())]
            if missing:
                raise DataError(
                    f"{path} has no column {missing[0]!r}, so it is not of this version: {REMEDY}."
                )
            for row in reader:
                if None in row or None in row.values():
                    raise ValueError(f"line {reader.line_num} has too many or too few fields")
                _known(row["dataset"])
                rows.append(row)
    return rows


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a table in one step; keys of a row that are no column are left out."""
    text = io.StringIO()
    table = csv.DictWriter(text, columns, lineterminator="\n", extrasaction="ignore")
    table.writeheader()
    table.writerows(rows)
    write_text(path, text.getvalue())


def merge(path: Path, columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> None:
    """Replace the rows of these data sets and noise levels in a table, and keep all others."""
    ours = {(row["dataset"], str(row["noise_percent"])) for row in rows}
    others = (row for row in read_table(path, columns) if (row["dataset"], row["noise_percent"]) not in ours)
    write_table(path, columns, [*others, *rows])


def read_calls(path: Path) -> list[dict[str, Any]]:
    """What earlier calls have noted; nothing if they have not.

    Raises
    ------
    DataError
        If the file is not what calls write.
    """
    with reading(path):
        if not path.exists():
            return []
        content = json.loads(path.read_text(encoding="utf-8"))
        calls = content.get("calls") if isinstance(content, dict) else None
        if not isinstance(calls, list):
            raise ValueError("it has no list 'calls'")
        for call in calls:
            if not isinstance(call, dict):
                raise ValueError("a call is not an object")
            for name, kind in CALL.items():
                if name not in call or not isinstance(call[name], kind):
                    raise ValueError(f"a call has no proper {name!r}")
            _known(call["dataset"])
    return list(calls)


def _known(dataset: str) -> None:
    if dataset not in printed.DATASETS:
        raise ValueError(f"{dataset!r} is no data set of the paper")
