"""What the classifier trains on: distinct examples, scaled, with their weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lns.datasets.scaling import Scaling, fit_scaling


@dataclass(frozen=True)
class TrainingSet:
    """Distinct examples with scaled columns, the codes of their classes, their weights, and the scaling."""

    X: Any
    codes: NDArray[np.intp]
    weight: NDArray[np.float64]
    scaling: Scaling

    @classmethod
    def prepare(cls, X: Any, codes: NDArray[np.intp], weight: NDArray[np.float64]) -> TrainingSet:
        """Merge equal rows of equal class, and scale."""
        if not isinstance(X, np.ndarray):
            X = sparse.csr_matrix(X, copy=True)  # what follows works in place
            X.sum_duplicates()
            X.eliminate_zeros()
        rows, group = distinct_rows(X, codes)
        X = X[rows]
        scaling = fit_scaling(X)
        total = np.bincount(group, weights=weight).astype(np.float64)
        return cls(scaling.apply(X), codes[rows], total, scaling)

    def signs(self, positive: int) -> NDArray[np.int8]:
        """+1 for examples of one class, -1 for all others."""
        return np.where(self.codes == positive, 1, -1).astype(np.int8)


def distinct_rows(X: Any, labels: NDArray[np.integer]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """One row for every distinct pair of features and label, and which of them each row is.

    The order of the distinct rows depends on their content alone. So a model trained on them does not depend
    on the order of the data, and a row that is given twice is one row of twice the weight.

    Parameters
    ----------
    X
        A dense array, or a CSR matrix without repeated or explicit zero entries.
    labels
        A whole number for every row.

    Examples
    --------
    >>> rows, group = distinct_rows(np.array([[1.0], [2.0], [1.0]]), np.array([0, 0, 0]))
    >>> len(rows), bool(group[0] == group[2])
    (2, True)
    """
    digests = b"".join(
        blake2b(row, digest_size=8, key=int(label).to_bytes(8, "little", signed=True)).digest()
        for row, label in zip(_rows_as_bytes(X), labels, strict=True)
    )
    _, rows, group = np.unique(np.frombuffer(digests, dtype="<u8"), return_index=True, return_inverse=True)
    return rows, group


def _rows_as_bytes(X: Any) -> Iterator[bytes]:
    if isinstance(X, np.ndarray):
        return ((row + 0.0).tobytes() for row in X)  # -0.0 and 0.0 are one number
    return (X.indices[a:z].tobytes() + X.data[a:z].tobytes() for a, z in pairwise(X.indptr))
