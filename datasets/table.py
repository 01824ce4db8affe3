"""What a file holds before labels become signs and columns are scaled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lns.datasets.dataset import Matrix
from lns.errors import DataError

__all__ = ["LABEL_NAMES", "Table", "check_finite", "label_column"]

LABEL_NAMES = ("label", "y", "target")


class Table(NamedTuple):
    """Features and labels as they stand in a file, and the names of the features if it has them.

    ``first_index`` is the number that the file gives to its first column, in formats that number columns and
    do not say how many there are.
    """

    X: Matrix
    labels: np.ndarray | None
    names: tuple[str, ...] | None = None
    first_index: int | None = None


def label_column(names: Sequence[str]) -> int:
    """Return the place of the column called label, y or target (looked for in this order), else the last."""
    lowered = [name.strip().lower() for name in names]
    return next((lowered.index(name) for name in LABEL_NAMES if name in lowered), len(names) - 1)


def check_finite(X: Matrix, source: str, names: Sequence[str] | None = None) -> None:
    """Refuse missing (NaN) and infinite values.

    Parameters
    ----------
    X
        Dense or CSR.
    source
        The source's name for messages.
    names
        Names of the columns; without them they are counted from 1.

    Raises
    ------
    DataError
        That names the first column with such a value, and the row.
    """
    if X.dtype.kind != "f":
        return
    if isinstance(X, np.ndarray):
        bad = ~np.isfinite(X)
        if not bad.any():
            return
        column = int(bad.any(axis=0).argmax())
        row = int(bad[:, column].argmax())
    else:
        places = np.flatnonzero(~np.isfinite(X.data))
        if not places.size:
            return
        row = int(np.searchsorted(X.indptr, places[0], side="right")) - 1
        column = int(X.indices[places[0]])
    label = repr(names[column]) if names else str(column + 1)
    raise DataError(
        f"Column {label} of {source} has a missing or infinite value in example {row + 1}: "
        "fill in or drop such rows first."
    )
