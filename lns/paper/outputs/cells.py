"""The files of a run as cells: one for every data set, noise level, protocol and method."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from lns.paper.run_files import read_calls, read_table, reading

COLUMNS = (
    "dataset", "noise_percent", "protocol", "method", "fold", "test_error_percent", "q_neg", "q_pos", "lam",
    "t", "interval", "objective", "train_rows", "seconds",
)  # fmt: skip
FLIP_COLUMNS = ("dataset", "noise_percent", "method", "injected", "flagged", "both", "train_rows")
RISK_COLUMNS = ("loss", "dataset", "noise_percent", "step", "training_error_percent", "risk")
SETTING = ("q_neg", "q_pos", "lam", "t", "interval")
FIGURES = "figures"  # the folder of the pictures
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


CLEANLAB, CLEANLAB_BEST = "cleanlab", "cleanlab, best of ten"  # its defaults; what the truth would choose


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

    @property
    def noises(self) -> list[int]:
        """The noise levels in %, of whichever data set, from low to high."""
        return sorted({noise for _, noise, _, _ in self.cells})

    def cell(self, dataset: str, noise: int, method: str, protocol: str = "paper") -> Cell | None:
        """One cell, or none if it was not run."""
        return self.cells.get((dataset, noise, protocol, method))

    def mean(self, dataset: str, noise: int, method: str, protocol: str = "paper") -> float | None:
        """The error of one cell, or none if it was not run."""
        cell = self.cell(dataset, noise, method, protocol)
        return None if cell is None else cell.mean


def read(out: Path) -> Run:
    """Read the folder of a run; any of its files may be missing.

    Raises
    ------
    DataError
        If a file is not what a run writes.
    """
    return Run(
        _read_cells(out / "folds.csv"),
        _read_flips(out / "flips.csv"),
        _read_risk(out / "risk.csv"),
        read_calls(out / "run.json"),
    )


def _read_cells(path: Path) -> dict[Key, Cell]:
    groups: dict[Key, list[dict[str, str]]] = {}
    with reading(path):
        for row in read_table(path, COLUMNS):
            key = (row["dataset"], int(row["noise_percent"]), row["protocol"], row["method"])
            groups.setdefault(key, []).append(row)
        return {key: _cell(key, group) for key, group in groups.items()}


def _cell(key: Key, rows: list[dict[str, str]]) -> Cell:
    errors = {row["fold"]: float(row["test_error_percent"]) for row in rows}
    if len(errors) < len(rows):
        raise ValueError(f"{key} has a fold twice")
    return Cell(
        errors,
        {name: rows[0][name] for name in SETTING if rows[0][name]},
        min(int(row["train_rows"]) for row in rows),
        sum(float(row["seconds"] or 0.0) for row in rows),
    )


def _read_flips(path: Path) -> dict[tuple[str, int, str], Flips]:
    with reading(path):
        return {
            (row["dataset"], int(row["noise_percent"]), row["method"]): Flips(
                *(int(row[name]) for name in Flips._fields)
            )
            for row in read_table(path, FLIP_COLUMNS)
        }


def _read_risk(path: Path) -> dict[tuple[str, int, str], list[Step]]:
    risk: dict[tuple[str, int, str], list[Step]] = {}
    with reading(path):
        for row in sorted(read_table(path, RISK_COLUMNS), key=lambda row: int(row["step"])):
            key = (row["dataset"], int(row["noise_percent"]), row["loss"])
            step = Step(float(row["risk"]), float(row["training_error_percent"]))
            risk.setdefault(key, []).append(step)
    return risk
