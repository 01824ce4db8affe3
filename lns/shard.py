"""The examples of one shard, and the sums over them that a search needs.

A shard answers questions by sums over its own examples, each with its share in the whole mean; adding the
answers of all shards gives the answer for all examples. What it keeps between two questions is only a
shortcut: the same question gets the same answer, bit by bit, from a shard that was read again.
"""

from __future__ import annotations

import hashlib
import os
import reprlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from lns.datasets.dataset import Matrix
from lns.datasets.files import labels_of, read_table
from lns.datasets.labels import to_signs
from lns.datasets.scaling import Scaling, column_bounds
from lns.datasets.table import Table
from lns.errors import DataError, InvalidInput
from lns.matrix import as_matrix
from lns.memory import peak_memory_mb
from lns.problem import QLossProblem, check_q

Source = str | os.PathLike[str] | Callable[[], tuple[Any, ArrayLike]]
KEPT_MARGINS = 2  # where the search is, and where it may go
HASHED_AT_ONCE = 1 << 22  # numbers


@dataclass(frozen=True)
class Outline:
    """What a shard says of itself before it is joined with the others.

    Parameters
    ----------
    name
        Its file, or what else it was read from.
    rows, features
        Its size.
    sparse
        Whether it is kept in compressed form.
    first_index
        What the file calls its first column, if the format does not say how many columns there are.
    labels
        The label values that occur.
    digest
        Of everything that was read.
    """

    name: str
    rows: int
    features: int
    sparse: bool
    first_index: int | None
    labels: tuple[object, ...]
    digest: str


class Shard:
    """Some of the examples of a problem, and their part of every sum.

    Parameters
    ----------
    source
        A file that `lns.datasets.files.read_file` knows, or a function that returns X and y.
    """

    problem: QLossProblem

    def __init__(self, source: Source) -> None:
        self.name = name_of(source)
        self._table = _read(source, self.name)
        self._kept: OrderedDict[bytes, NDArray[np.float64]] = OrderedDict()

    # ---- joining the others: in this order -----------------------------------------------------------------

    def outline(self) -> Outline:
        """What the others have to agree with."""
        table = self._table
        rows, features = table.X.shape
        labels = labels_of(table, self.name)
        return Outline(
            name=self.name,
            rows=rows,
            features=features,
            sparse=not isinstance(table.X, np.ndarray),
            first_index=table.first_index,
            labels=tuple(np.unique(labels).tolist()),
            digest=_digest(table.X, labels),
        )

    def align(self, num_features: int, first_index: int | None) -> tuple[NDArray, NDArray]:
        """Number the columns as all shards do; returns the bounds of each."""
        X, own_first = self._table.X, self._table.first_index
        if own_first is not None and first_index is not None and not isinstance(X, np.ndarray):
            empty_in_front = own_first - first_index
            columns = X.indices + empty_in_front
            X = sparse.csr_matrix((X.data, columns, X.indptr), shape=(X.shape[0], num_features))
            self._table = self._table._replace(X=X, first_index=first_index)
        return column_bounds(X)

    def join(
        self,
        classes: tuple[object, object],
        scaling: Scaling | None,
        model: Mapping[str, Any],
        q: Any,
        share: float | NDArray[np.float64],
    ) -> None:
        """Become part of a problem; what was read is given up for what the sums need."""
        table = self._table
        del self._table
        y = to_signs(labels_of(table, self.name), self.name, classes)[0].astype(np.float64)
        # Arrays from other processes are read-only, for which other loops would have to be compiled.
        shares = np.full(len(y), share) if np.ndim(share) == 0 else np.array(share, dtype=np.float64)
        matrix = as_matrix(table.X if scaling is None else scaling.apply(table.X))
        self.problem = QLossProblem.assemble(model, matrix, y, check_q(q, y), shares)

    # ---- sums at any weights -------------------------------------------------------------------------------

    def loss_at(self, w: NDArray[np.float64], b: float) -> float:
        """Σ p_s L(m_s)."""
        return self.problem.mean_loss_at(np.array(w), b)

    def loss_and_gradient(
        self, w: NDArray[np.float64], b: float, shift: float, width: float
    ) -> tuple[float, NDArray[np.float64]]:
        """The same and its gradient, softened."""
        return self.problem.loss_and_gradient(np.array(w), b, shift, width)

    def losses_near(
        self, w: NDArray[np.float64], b: float, columns: NDArray[np.intp], changes: NDArray, shifts: NDArray
    ) -> NDArray[np.float64]:
        """Σ p_s L of candidates that differ from (w, b) in some weights and in the bias."""
        return self.problem.losses_near(
            self._margins(w, b), *(np.array(one) for one in (columns, changes, shifts))
        )

    def squared_means(self) -> NDArray[np.float64]:
        """Σ p_s x_si² for every feature."""
        return self.problem.squared_means()

    # ---- examples ------------------------------------------------------------------------------------------

    def margins(self, w: NDArray[np.float64], b: float) -> NDArray[np.float64]:
        """Margins of its examples."""
        return self.problem.margins(np.array(w), b)

    def flagged(self, w: NDArray[np.float64], b: float) -> NDArray[np.bool_]:
        """Its examples whose margin is at most q."""
        return self.problem.flagged(np.array(w), b)

    def take(self, rows: NDArray[np.integer]) -> tuple[Any, NDArray, NDArray, NDArray]:
        """Features, labels, q and shares of some of its examples."""
        problem = self.problem
        return problem.matrix.take(rows).X, problem.y[rows], problem.q[rows], problem.share[rows]

    def peak_memory_mb(self) -> float | None:
        """The most memory that the process of this shard has had."""
        return peak_memory_mb()

    def _margins(self, w: NDArray[np.float64], b: float) -> NDArray[np.float64]:
        """Margins at a point, computed anew from it, so that they have no history; the last are kept."""
        key = np.append(w, b).tobytes()
        if key not in self._kept:
            self._kept[key] = self.problem.margins(np.array(w), b)
            if len(self._kept) > KEPT_MARGINS:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]


def name_of(source: Source) -> str:
    """What messages call a source."""
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    return getattr(source, "__name__", None) or reprlib.repr(source)


def _read(source: Source, name: str) -> Table:
    if isinstance(source, (str, os.PathLike)):
        return read_table(Path(source))
    X, y = source()
    try:
        matrix = as_matrix(X).X
    except InvalidInput as error:
        raise DataError(f"{name}: {error}") from None
    labels = np.asarray(y)
    if labels.shape != matrix.shape[:1]:
        raise DataError(f"{name}: X has {matrix.shape[0]} rows but y has the shape {labels.shape}.")
    return Table(sparse.csr_matrix(matrix) if sparse.issparse(matrix) else matrix, labels)


def _digest(X: Matrix, labels: NDArray) -> str:
    """A hash of the content, not of how it is stored in memory."""
    content = hashlib.blake2b(digest_size=16)
    arrays = (X,) if isinstance(X, np.ndarray) else (X.data, X.indices, X.indptr)
    for array in (*arrays, labels.astype(str) if labels.dtype == object else labels):
        content.update(f"{array.dtype.str}{array.shape}".encode())
        rows = max(1, HASHED_AT_ONCE * len(array) // max(1, array.size))
        for start in range(0, len(array), rows):
            content.update(array[start : start + rows].tobytes())
    return content.hexdigest()
