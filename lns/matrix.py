"""The data matrix behind a problem: dense in either memory order, or compressed columns.

Both kinds offer the same few operations, so that nothing above this module asks which one it has. Dense
arrays are used where they lie, never copied; column-major ones are faster to walk. Sparse data is kept in
compressed columns and never made dense.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lns import kernels
from lns.errors import InvalidInput

CHUNK = 1 << 16  # rows per task; fixed, so that sums do not depend on the number of threads
THREADS_FROM = 1 << 22  # numbers
MOMENT_ROWS = 2048  # of a product in double precision
MOMENT_CHUNK = 4 * MOMENT_ROWS  # rows per task where each of them costs as much as a square of the features
_CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
T = TypeVar("T")
LossSums = Callable[[int, int], NDArray]
ROWS_AT_ONCE = 4096  # rows of a batch evaluation whose candidate margins stay in cache


def use_cores(count: int) -> None:
    """How many threads a pass over many numbers may use in this process (default: all cores)."""
    global _CORES
    _CORES = count


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_CORES, thread_name_prefix="lns-rows")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork


def over_rows(task: Callable[[int, int], T], rows: int, width: int = 4, chunk: int = CHUNK) -> list[T]:
    """Run ``task(start, stop)`` on fixed chunks of rows and return the results in order.

    Passes over many numbers (`rows` times the `width` read in each) use all cores; handing work to threads
    costs more than a short pass.
    """
    chunks = [(start, min(start + chunk, rows)) for start in range(0, rows, chunk)]
    if _CORES == 1 or len(chunks) == 1 or rows * width < THREADS_FROM:
        return [task(*chunk) for chunk in chunks]
    lanes = min(_CORES, len(chunks))
    jobs = _pool().map(lambda lane: [task(*chunk) for chunk in chunks[lane::lanes]], range(lanes))
    order = [k for lane in range(lanes) for k in range(lane, len(chunks), lanes)]
    results = dict(zip(order, chain(*jobs), strict=True))
    return [results[k] for k in range(len(chunks))]


def _losses_of_scores(
    scores: Callable[[slice], NDArray], vectors: tuple[NDArray, ...], start: int, stop: int
) -> NDArray:
    """Losses of candidates from the changes of their scores, without a margin matrix of full length."""
    y, m, cap, p = vectors
    totals: Any = 0.0
    for a in range(start, stop, ROWS_AT_ONCE):
        rows = slice(a, min(a + ROWS_AT_ONCE, stop))
        totals += kernels.loss_sums(scores(rows) * y[rows, None] + m[rows, None], cap, p, a)
    return totals


class DenseMatrix:
    """A float32 or float64 array of shape (S, N)."""

    def __init__(self, X: NDArray) -> None:
        self.X = X
        self.shape = X.shape
        by_columns = X.flags.f_contiguous
        self._margins = kernels.margins_by_columns if by_columns else kernels.margins_by_rows
        self._slopes = (
            kernels.loss_and_gradient_by_columns if by_columns else kernels.loss_and_gradient_by_rows
        )

    def __reduce__(self) -> tuple[type[DenseMatrix], tuple[NDArray]]:
        return DenseMatrix, (self.X,)  # pickled by value, compiled loops would be compiled again

    def margins(self, w: NDArray, b: float, y: NDArray) -> NDArray[np.float64]:
        """y_s (w·x_s + b) of every example, accumulated in double precision."""
        out = np.empty(self.shape[0])
        over_rows(lambda a, z: self._margins(self.X, w, b, y, out, a, z), *self.shape)
        return out

    def loss_and_gradient(
        self, w: NDArray, b: float, y: NDArray, q: NDArray, shift: float, width: float, p: NDArray
    ) -> tuple[float, NDArray[np.float64]]:
        """Σ p_s L as in `lns.kernels.slopes`, and its gradient, bias last: one pass, in double precision."""
        arrays = (self.X, w, b, y, q, shift, width, p)
        sums = np.sum(over_rows(lambda a, z: self._slopes(*arrays, a, z), *self.shape), axis=0)
        return float(sums[0]), sums[1:]

    def column(self, i: int) -> tuple[NDArray, NDArray]:
        """Rows and values of the non-zero entries of column i."""
        where = np.flatnonzero(self.X[:, i])
        return where, self.X[where, i]

    def take(self, rows: NDArray) -> DenseMatrix:
        """Some of the rows, copied column-major."""
        out = np.empty((len(rows), self.shape[1]), dtype=self.X.dtype, order="F")
        for i in range(self.shape[1]):
            np.take(self.X[:, i], rows, out=out[:, i])
        return DenseMatrix(out)

    def candidate_losses(
        self, columns: NDArray, changes: NDArray, shifts: NDArray, vectors: tuple[NDArray, ...]
    ) -> LossSums:
        """A function ``(start, stop)``: Σ p_s L over those rows for every candidate.

        Candidate k changes the weights of some `columns` by the k-th row of `changes` and the bias by its
        shift; `vectors` are y, m, cap and p.
        """
        if self.X.flags.f_contiguous:
            arrays = (self.X, columns, np.ascontiguousarray(changes), shifts, *vectors)
            return lambda start, stop: kernels.candidate_losses(*arrays, start, stop)
        scores = lambda rows: self.X[rows][:, columns].astype(np.float64) @ changes.T + shifts  # noqa: E731
        return lambda start, stop: _losses_of_scores(scores, vectors, start, stop)

    def block(self, rows: NDArray, columns: NDArray) -> NDArray[np.float64]:
        """Chosen rows and columns as a dense float64 array; column N is the constant 1 of the bias."""
        out = np.ones((len(rows), len(columns)))
        real = columns < self.shape[1]
        out[:, real] = self.X[np.ix_(rows, columns[real])]
        return out

    def moments(self, columns: NDArray, h: NDArray, g: NDArray) -> tuple[NDArray, NDArray]:
        """Σ_s h_s x_s x_sᵀ and Σ_s g_s x_s over chosen columns, all different; column N is the constant 1."""
        real = columns < self.shape[1]
        wanted = columns[real]
        rows = np.flatnonzero((h != 0) | (g != 0))  # often few: most examples are beyond the edges

        def part(start: int, stop: int) -> tuple[NDArray, NDArray]:
            second, first = np.zeros((len(columns),) * 2), np.zeros(len(columns))
            for a in range(start, stop, MOMENT_ROWS):
                some = rows[a : min(a + MOMENT_ROWS, stop)]
                block = np.ones((len(some), len(columns)))
                block[:, real] = self.X[np.ix_(some, wanted)]
                first += g[some] @ block
                block *= np.sqrt(np.abs(h[some]))[:, None]
                second += block.T @ block  # BLAS sees that this is symmetric
                below = block[h[some] < 0]
                if len(below):
                    second -= 2.0 * (below.T @ below)
            return second, first

        sums = over_rows(part, len(rows), len(columns) ** 2, MOMENT_CHUNK) or [part(0, 0)]
        seconds, firsts = zip(*sums, strict=True)
        return np.sum(seconds, axis=0), np.sum(firsts, axis=0)

    def transposed_dot(self, r: NDArray) -> NDArray:
        """Xᵀ r."""
        return self.X.T @ r.astype(self.X.dtype, copy=False)

    def dot(self, w: NDArray) -> NDArray:
        """X w in the precision of the data: for gradients, not for objectives."""
        return self.X @ w.astype(self.X.dtype, copy=False)

    def squared_column_means(self, p: NDArray) -> NDArray[np.float64]:
        """Σ_s p_s x_si² for every column."""
        parts = over_rows(lambda a, z: np.einsum("s,si,si->i", p[a:z], self.X[a:z], self.X[a:z]), *self.shape)
        return np.sum(parts, axis=0, dtype=np.float64)


class SparseMatrix:
    """Compressed sparse columns with float32 or float64 values."""

    def __init__(self, X: sparse.csc_array, by_rows: sparse.csr_array | None = None) -> None:
        self.X = X
        self.shape = X.shape
        if by_rows is not None:
            self.by_rows = by_rows

    @cached_property
    def by_rows(self) -> sparse.csr_array:
        """The same numbers in compressed rows, made when somebody first asks for some of the rows."""
        return self.X.tocsr()

    def _some(self, rows: NDArray, columns: NDArray) -> sparse.csr_array:
        """Chosen rows and columns."""
        chosen = self.by_rows[rows]
        return chosen if np.array_equal(columns, np.arange(self.shape[1])) else chosen[:, columns]

    @property
    def _width(self) -> int:
        return self.X.nnz // self.shape[0] + 4

    @property
    def _parts(self) -> tuple[NDArray, NDArray, NDArray]:
        return self.X.indptr, self.X.indices, self.X.data

    def margins(self, w: NDArray, b: float, y: NDArray) -> NDArray[np.float64]:
        out, X = np.empty(self.shape[0]), self.by_rows
        arrays = (X.indptr, X.indices, X.data, w, b, y, out)
        over_rows(lambda a, z: kernels.margins_of_sparse_rows(*arrays, a, z), self.shape[0], self._width)
        return out

    def loss_and_gradient(
        self, w: NDArray, b: float, y: NDArray, q: NDArray, shift: float, width: float, p: NDArray
    ) -> tuple[float, NDArray[np.float64]]:
        slope, gradient = np.empty(self.shape[0]), np.zeros(self.shape[1] + 1)
        arrays = (self.margins(w, b, y), y, q, shift, width, p, slope)
        loss = sum(over_rows(lambda a, z: kernels.slopes_of_rows(*arrays, a, z), self.shape[0]))
        self._by_columns(kernels.transposed_sparse, slope, gradient)
        gradient[-1] = slope.sum()
        return float(loss), gradient

    def _by_columns(self, kernel: Callable[..., None], vector: NDArray, out: NDArray) -> None:
        """Run a kernel on all columns, in parts that begin among so many entries."""
        starts = self.X.indptr[:-1]

        def some(first: int, last: int) -> None:
            kernel(*self._parts, vector, out, *np.searchsorted(starts, (first, last)))

        over_rows(some, self.X.nnz, 1)

    def column(self, i: int) -> tuple[NDArray, NDArray]:
        part = slice(self.X.indptr[i], self.X.indptr[i + 1])
        return self.X.indices[part], self.X.data[part]

    def take(self, rows: NDArray) -> SparseMatrix:
        some = self.by_rows[rows]
        return SparseMatrix(some.tocsc(), some)

    def candidate_losses(
        self, columns: NDArray, changes: NDArray, shifts: NDArray, vectors: tuple[NDArray, ...]
    ) -> LossSums:
        chosen, by_columns = self.by_rows, np.ascontiguousarray(changes.T)
        if 4 * np.diff(self.X.indptr)[columns].sum() < self.X.nnz:
            chosen = self.X[:, columns].tocsr()
        else:  # that would be a copy of much of the data
            by_columns = np.zeros((self.shape[1], len(changes)))
            by_columns[columns] = changes.T
        scores = lambda rows: chosen[rows] @ by_columns + shifts  # noqa: E731
        return lambda start, stop: _losses_of_scores(scores, vectors, start, stop)

    def block(self, rows: NDArray, columns: NDArray) -> NDArray[np.float64]:
        out = np.ones((len(rows), len(columns)))
        real = columns < self.shape[1]
        out[:, real] = self._some(rows, columns[real]).toarray()
        return out

    def moments(self, columns: NDArray, h: NDArray, g: NDArray) -> tuple[NDArray, NDArray]:
        place = np.full(self.shape[1] + 1, -1)
        place[columns] = np.arange(len(columns))
        second, first = np.zeros((len(columns),) * 2), np.zeros(len(columns))
        rows, X = np.flatnonzero((h != 0) | (g != 0)), self.by_rows
        kernels.moments_sparse(X.indptr, X.indices, X.data, rows, place[:-1], place[-1], h, g, second, first)
        second += second.T
        second[np.diag_indices_from(second)] *= 0.5
        return second, first

    def transposed_dot(self, r: NDArray) -> NDArray:
        return self.X.T @ r.astype(self.X.dtype, copy=False)

    def dot(self, w: NDArray) -> NDArray:
        return self.X @ w.astype(self.X.dtype, copy=False)

    def squared_column_means(self, p: NDArray) -> NDArray[np.float64]:
        out = np.zeros(self.shape[1])
        self._by_columns(kernels.squares_sparse, p, out)
        return out


Matrix = DenseMatrix | SparseMatrix


def as_matrix(X: Any) -> Matrix:
    """Check the data and wrap it: ndarray (no copy), or anything of scipy.sparse, by rows and by columns.

    What is compressed already, in either way, is used as it is.
    """
    is_sparse: bool = sparse.issparse(X)
    if is_sparse:
        _check_dtype(X.dtype)
        _check_shape(X.shape)
        usable = X.format == "csr" and X.dtype in (np.float32, np.float64) and X.has_canonical_format
        by_rows = sparse.csr_array(X) if usable else None
        matrix = sparse.csc_array(X)
        if matrix.dtype not in (np.float32, np.float64):
            matrix = matrix.astype(np.float64)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()  # sorting works in place, and the caller's arrays stay as they are
            matrix.sum_duplicates()
        _check_finite(matrix.data)
        return SparseMatrix(matrix, by_rows)
    if isinstance(X, np.ma.MaskedArray):
        raise InvalidInput("X must have no missing entries. Got a masked array: drop or fill them first.")
    try:
        X = np.asarray(X)
    except ValueError:
        raise InvalidInput(
            "X must be a rectangular array of numbers. Got rows of different lengths."
        ) from None
    _check_dtype(X.dtype)
    _check_shape(X.shape)
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    if not (X.flags.f_contiguous or X.flags.c_contiguous):
        X = np.asfortranarray(X)
    _check_finite(X)
    return DenseMatrix(X)


def _check_dtype(dtype: np.dtype) -> None:
    if dtype.kind not in "fiub" or dtype.itemsize > 8:
        raise InvalidInput(f"X must hold real numbers (float32 or float64). Got dtype {dtype}.")


def numbers_per_row(matrix: Matrix) -> float:
    """How many features of an example are stored, on the average."""
    return matrix.X.nnz / matrix.shape[0] if isinstance(matrix, SparseMatrix) else float(matrix.shape[1])


def _check_shape(shape: tuple[int, ...]) -> None:
    if len(shape) != 2:
        raise InvalidInput(f"X must have two dimensions, examples by features. Got shape {shape}.")
    if 0 in shape:
        raise InvalidInput(f"X must have at least one example and one feature. Got shape {shape}.")


def _check_finite(values: NDArray) -> None:
    # In chunks, so that the mask never has the size of the data.
    flat = values.ravel(order="K")
    parts = over_rows(lambda a, z: np.isfinite(flat[a:z]).all(), len(flat), 1)
    if not all(parts):
        raise InvalidInput("X must be finite. Got NaN or infinity: drop or fill those entries first.")
