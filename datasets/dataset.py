"""A data set in memory: a matrix of features in columns and a sign for every row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy import sparse

from lns.datasets.checks import check_signs
from lns.errors import InvalidInput

if TYPE_CHECKING:
    from lns.datasets.scaling import Scaling

__all__ = ["Dataset", "Matrix"]

Matrix: TypeAlias = "np.ndarray | sparse.csr_matrix"


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Examples with two classes, ready for training.

    Parameters
    ----------
    name
        A known name, or the file's name.
    X
        One row per example. Dense sets are float32 arrays in column-major (Fortran) order, because the
        search changes one weight, hence reads one column, at a time; sparse sets are float32 CSR matrices.
    y
        One label per example, -1 or +1, kept as int8.
    scaling
        How raw columns became those of ``X``; ``None`` if they were not changed. Apply it to further rows.
    classes
        The values in the source that became -1 and +1.
    feature_names
        Names of the columns, if the source has them.

    Raises
    ------
    InvalidInput
        If the shapes do not fit or a label is not -1 or +1.

    Examples
    --------
    >>> import numpy as np
    >>> Dataset("two points", np.array([[0.0, 1.0], [1.0, 0.5]]), np.array([-1, 1]))
    Dataset('two points', 2 rows x 2 features, dense)
    """

    name: str
    X: Matrix
    y: np.ndarray
    scaling: Scaling | None = None
    classes: tuple[object, object] = (-1, 1)
    feature_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        X: Matrix
        if sparse.issparse(self.X):
            X = sparse.csr_matrix(self.X, dtype=np.float32)
        else:
            X = np.asarray(self.X, dtype=np.float32, order="F")
        y = check_signs(np.asarray(self.y)).astype(np.int8, copy=False)
        if X.ndim != 2:
            raise InvalidInput(f"X must have two dimensions. Got an array of shape {X.shape} instead.")
        if X.shape[0] != y.shape[0]:
            raise InvalidInput(f"X has {X.shape[0]} rows but y has {y.shape[0]}.")
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "y", y)

    def __repr__(self) -> str:
        kind = "sparse" if self.is_sparse else "dense"
        return f"Dataset({self.name!r}, {self.num_examples} rows x {self.num_features} features, {kind})"

    def __len__(self) -> int:
        return self.num_examples

    @property
    def num_examples(self) -> int:
        """The number of rows."""
        return int(self.X.shape[0])

    @property
    def num_features(self) -> int:
        """The number of columns."""
        return int(self.X.shape[1])

    @property
    def is_sparse(self) -> bool:
        """Whether ``X`` is a CSR matrix."""
        return bool(sparse.issparse(self.X))

    def take(self, rows: np.ndarray) -> Dataset:
        """Return the data set of the given rows, in the given order and in the same storage."""
        # Taking columns of the transposed view keeps the column-major order without a second copy.
        X = self.X.T.take(rows, axis=1).T if isinstance(self.X, np.ndarray) else self.X[rows]
        return Dataset(self.name, X, self.y[rows], self.scaling, self.classes, self.feature_names)
