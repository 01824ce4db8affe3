"""Scaling of columns to [0, 1] that leaves sparse data sparse."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from lns.datasets.dataset import Matrix
from lns.errors import InvalidInput

__all__ = ["Scaling", "column_bounds", "fit_scaling", "scale_columns", "scaling_between"]


@dataclass(frozen=True, eq=False)
class Scaling:
    """The map ``(x - offset) / span``, one pair of numbers per column.

    Parameters
    ----------
    offset
        What is subtracted; zero in every column of sparse data.
    span
        What is divided by; never zero.
    """

    offset: np.ndarray
    span: np.ndarray

    def apply(self, X: Matrix) -> Matrix:
        """Return the scaled copy of ``X``: float32, column-major if dense, CSR if sparse.

        Rows that were not seen when the scaling was fitted may leave [0, 1].

        Raises
        ------
        InvalidInput
            If the number of columns differs, or ``X`` is sparse and a column would have to be shifted,
            which would fill it.
        """
        if X.shape[1] != self.span.shape[0]:
            raise InvalidInput(f"X has {X.shape[1]} columns but the scaling has {self.span.shape[0]}.")
        if isinstance(X, np.ndarray):
            scaled = np.empty(X.shape, dtype=np.float32, order="F")
            for j in range(X.shape[1]):
                scaled[:, j] = (X[:, j].astype(np.float64) - self.offset[j]) / self.span[j]
            return scaled
        if np.any(self.offset):
            raise InvalidInput(
                "A scaling fitted on dense data shifts columns and cannot be applied to sparse X."
            )
        data = (X.data / self.span[X.indices]).astype(np.float32)
        return sparse.csr_matrix((data, X.indices, X.indptr), shape=X.shape)


def column_bounds(X: Matrix) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of each column's interval, those that `scaling_between` takes.

    Dense: the smallest and the largest value. Sparse: zero and the largest absolute value. Bounds of
    several parts of the data combine by minimum and maximum.
    """
    if isinstance(X, np.ndarray):
        return X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
    largest = np.zeros(X.shape[1])
    np.maximum.at(largest, X.indices, np.abs(X.data))
    return np.zeros(X.shape[1]), largest


def scaling_between(lowest: np.ndarray, highest: np.ndarray) -> Scaling:
    """Return the scaling that takes these bounds to 0 and 1; a constant column becomes 0."""
    span = highest - lowest
    return Scaling(lowest, np.where(span > 0, span, 1.0))


def fit_scaling(X: Matrix) -> Scaling:
    """Find the scaling of each column of ``X`` to [0, 1].

    Dense: the smallest value of a column goes to 0 and the largest to 1; a constant column becomes 0.
    Sparse: shifting a column would fill it, so it is only divided by its largest absolute value. Columns
    without negative entries then lie in [0, 1], columns with negative entries in [-1, 1]; a column
    without entries stays as it is.

    Parameters
    ----------
    X
        Finite numbers, dense or CSR.
    """
    return scaling_between(*column_bounds(X))


def scale_columns(X: Matrix) -> Matrix:
    """Return ``X`` with each column scaled to [0, 1], see `fit_scaling`.

    Examples
    --------
    >>> import numpy as np
    >>> scale_columns(np.array([[2.0, -1.0], [4.0, 1.0], [3.0, 0.0]])).tolist()
    [[0.0, 0.0], [1.0, 1.0], [0.5, 0.5]]
    """
    return fit_scaling(X).apply(X)
