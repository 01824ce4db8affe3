"""The files of a run as cells: one for every data set, noise level, protocol and method."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from lns.errors import DataError

COLUMNS = (
    "dataset", "noise_percent", "protocol", "method", "fold", "test_error_percent", "q_neg", "q_pos", "lam",
    "t", "interval", "objective", "train_rows", "seconds",
)  # fmt: skip
Key: TypeAlias = tuple[str, int, str, str]


@dataclass(frozen=True)
class Cell:
    """A method on a data set at a noise level: its errors in %, fold by fold, and its setting."""

    errors: dict[str, float]
    setting: dict[str, str]
    train_rows: int
    seconds: float

    @property
    def mean(self) -> float:
        """Mean error over the folds."""
        return float(np.mean(list(self.errors.values())))

    @property
    def std(self) -> float:
        """Standard deviation over the folds, as the paper computes it: divided by their number."""
        return float(np.std(list(self.errors.values())))


class Flips(NamedTuple):
    """Labels flipped on purpose, labels flagged by a method, and those in both."""

    injected: int
    flagged: int
    both: int
    train_rows: int

    @property
    def recall(self) -> float:
        """Share of the flipped labels that were found."""
        return self.both / self.injected if self.injected else 1.0

    @property
    def precision(self) -> float:
        """Share of the flagged labels that were flipped; if none was flagged, none was flagged wrongly."""
        return self.both / self.flagged if self.flagged else 1.0

    @property
    def f1(self) -> float:
        """Harmonic mean of the two."""
        together = self.injected + self.flagged
        return 2 * self.both / together if together else 1.0


class Step(NamedTuple):
    """A moment of a training: the risk, and the training error there in %."""

    risk: float
    error: float


@dataclass(frozen=True)
class Run:
    """Everything that a run has written."""

    cells: dict[Key, Cell]
    flips: dict[tuple[str, int, str], Flips]
    risk: dict[tuple[str, int, str], list[Step]]
    calls: list[dict[str, Any]]

    def cell(self, dataset: str, noise: int, method: str, protocol: str = "paper") -> Cell | None:
        """One cell, or none if it was not run."""
        return self.cells.get((dataset, noise, protocol, method))

    def mean(self, dataset: str, noise: int, method: str, protocol: str = "paper") -> float | None:
        """The error of one cell, or none if it was not run."""
        cell = self.cell(dataset, noise, method, protocol)
        return None if cell is None else cell.mean


def read(out: Path) -> Run:
    """Read the folder of a run; flips, risks and facts about the run may be missing.

    Raises
    ------
    DataError
        If there are no folds, or a file is not what a run writes.
    """
    rows = _table(out / "folds.csv", COLUMNS)
    if rows is None:
        raise DataError(
            f"There is no folds.csv in {out}: give the folder that 'lns paper --out' has written."
        )
    groups: dict[Key, list[dict[str, str]]] = {}
    try:
        for row in rows:
            key = (row["dataset"], int(row["noise_percent"]), row["protocol"], row["method"])
            groups.setdefault(key, []).append(row)
        cells = {key: _cell(key, group) for key, group in groups.items()}
        flips = {
            (row["dataset"], int(row["noise_percent"]), row["method"]): Flips(
                *(int(row[name]) for name in Flips._fields)
            )
            for row in _table(out / "flips.csv", ("dataset", "noise_percent", "method", *Flips._fields)) or []
        }
        risk: dict[tuple[str, int, str], list[Step]] = {}
        columns = ("loss", "dataset", "noise_percent", "step", "training_error_percent", "risk")
        for row in sorted(_table(out / "risk.csv", columns) or [], key=lambda row: int(row["step"])):
            key_of_risk = (row["dataset"], int(row["noise_percent"]), row["loss"])
            step = Step(float(row["risk"]), float(row["training_error_percent"]))
            risk.setdefault(key_of_risk, []).append(step)
        facts = out / "run.json"
        calls = json.loads(facts.read_text(encoding="utf-8"))["calls"] if facts.exists() else []
    except (KeyError, ValueError) as error:
        raise DataError(f"A file of the run in {out} is damaged: {error}.") from error
    return Run(cells, flips, risk, calls)


def _table(path: Path, columns: tuple[str, ...]) -> list[dict[str, str]] | None:
    if not path.exists():
        return None
    with path.open(encoding="utf-8", newline="") as lines:
        reader = csv.DictReader(lines)
        missing = [name for name in columns if name not in (reader.fieldnames or ())]
        if missing:
            raise DataError(f"{path} has no column {missing[0]!r}: it was not written by this version.")
        return list(reader)


def _cell(key: Key, rows: list[dict[str, str]]) -> Cell:
    names = ("q_neg", "q_pos", "lam", "t", "interval")
    errors = {row["fold"]: float(row["test_error_percent"]) for row in rows}
    if len(errors) < len(rows):
        raise ValueError(f"{key} has a fold twice")
    return Cell(
        errors,
        {name: rows[0][name] for name in names if rows[0][name]},
        min(int(row["train_rows"]) for row in rows),
        sum(float(row["seconds"] or 0.0) for row in rows),
    )
