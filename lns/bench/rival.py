"""What a sharp user would write in an afternoon instead of using this package.

Simulated annealing on the collapsed objective: one weight at a time to a neighbouring or a random level,
accepted by the exact change of F, margins kept incrementally in double precision, compiled. It gets the
engine's start, all cores, and the best of several temperature ranges.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from numba import njit
from numpy.typing import NDArray

from lns.kernels import FAST
from lns.matrix import SparseMatrix

if TYPE_CHECKING:
    from lns.problem import QLossProblem

# Hot ends of the temperature ranges in units of an average example's loss at the start; the cold end is 0.04.
RANGES = (600.0, 60.0, 6.0, 0.6)
COLD = 0.04


@njit(inline="always", **FAST)
def another_level(codes, tops):  # type: ignore[no-untyped-def]
    """A weight, and a neighbouring level of it or any other."""
    i = np.random.randint(codes.shape[0])
    if np.random.random() < 0.8:
        return i, codes[i] + (1 if np.random.random() < 0.5 else -1)
    return i, np.random.randint(tops[i] + 1)


@njit(inline="always", **FAST)
def loss(u, cap):  # type: ignore[no-untyped-def]
    """What an example with u = √p (1 - m) adds to F, at most cap."""
    up = max(u, 0.0)
    return min(up * up, cap)


@njit(**FAST)
def walk_dense(Z, cap, u, codes, w, steps, tops, lam, temperature, moves, seed):  # type: ignore[no-untyped-def]
    """So many moves at one temperature; returns the change of F of the walk and of its best point."""
    np.random.seed(seed)
    n = codes.shape[0]
    energy, best, best_codes = 0.0, 0.0, codes.copy()
    for _ in range(moves):
        i, new = another_level(codes, tops)
        if new == codes[i] or new < 0 or new > tops[i]:
            continue
        d = (new - codes[i]) * steps[i]
        z = Z[i]
        delta = 0.0
        for s in range(z.shape[0]):
            delta += loss(u[s] - d * z[s], cap[s]) - loss(u[s], cap[s])
        if i < n - 1:
            delta += lam * d * (2.0 * w[i] + d)
        if delta <= 0.0 or np.random.random() < np.exp(-delta / temperature):
            for s in range(z.shape[0]):
                u[s] -= d * z[s]
            codes[i] = new
            w[i] += d
            energy += delta
            if energy < best:
                best = energy
                best_codes[:] = codes
    return energy, best, best_codes


@njit(**FAST)
def walk_sparse(  # type: ignore[no-untyped-def]
    indptr, indices, values, cap, u, codes, w, steps, tops, lam, temperature, moves, seed
):
    """`walk_dense` for compressed columns."""
    np.random.seed(seed)
    n = codes.shape[0]
    energy, best, best_codes = 0.0, 0.0, codes.copy()
    for _ in range(moves):
        i, new = another_level(codes, tops)
        if new == codes[i] or new < 0 or new > tops[i]:
            continue
        d = (new - codes[i]) * steps[i]
        rows, z = indices[indptr[i] : indptr[i + 1]], values[indptr[i] : indptr[i + 1]]
        delta = 0.0
        for k in range(z.shape[0]):
            s = np.uint64(rows[k])  # never negative: no need to look
            delta += loss(u[s] - d * z[k], cap[s]) - loss(u[s], cap[s])
        if i < n - 1:
            delta += lam * d * (2.0 * w[i] + d)
        if delta <= 0.0 or np.random.random() < np.exp(-delta / temperature):
            for k in range(z.shape[0]):
                u[np.uint64(rows[k])] -= d * z[k]
            codes[i] = new
            w[i] += d
            energy += delta
            if energy < best:
                best = energy
                best_codes[:] = codes
    return energy, best, best_codes


class Rival:
    """The annealer, ready to run on a problem."""

    def __init__(self, problem: QLossProblem) -> None:
        self.problem = problem
        matrix = problem.matrix
        rows = problem.num_examples
        # Labels and sample weights are folded into the data; the bias is a column of ones.
        sign = np.sqrt(problem.share) * problem.y
        if isinstance(matrix, SparseMatrix):
            X = matrix.X
            self._walk, self._data = walk_sparse, (
                np.append(X.indptr, X.indptr[-1] + rows).astype(np.int64),
                np.concatenate([X.indices, np.arange(rows, dtype=X.indices.dtype)]),
                np.concatenate([X.data * sign[X.indices], sign]),
            )  # fmt: skip
        else:
            with_bias = np.vstack([np.asarray(matrix.X, dtype=np.float64).T, np.ones(rows)])
            self._walk, self._data = walk_dense, (with_bias * sign,)  # type: ignore[assignment]
        self.walk(problem.codes(*problem.warm_start), 1.0, 0.01, 0)  # compiled before any clock runs

    def walk(
        self, start: NDArray[np.int32], hot: float, seconds: float, seed: int
    ) -> tuple[NDArray[np.int32], int]:
        """Anneal from `hot` to `COLD` in the time given; the best codes and the number of moves."""
        problem = self.problem
        state = problem.state(start)
        u = np.sqrt(problem.share) * (1.0 - state.margins)
        codes, w = state.codes, np.append(state.weights, state.bias)
        arrays = problem.share * problem.cap, u, codes, w, problem.steps, problem.tops, problem.lam
        rng = np.random.default_rng(seed)
        unit = state.objective / problem.num_examples
        best, energy, lowest, moves, chunk = codes.copy(), 0.0, 0.0, 0, 20
        began = perf_counter()
        while (elapsed := perf_counter() - began) < seconds:
            temperature = unit * hot * (COLD / hot) ** (elapsed / seconds)
            change, low, found = self._walk(
                *self._data, *arrays, temperature, chunk, int(rng.integers(2**31))
            )
            if energy + low < lowest:
                best, lowest = found, energy + low
            energy += change
            moves += chunk
            if perf_counter() - began - elapsed < seconds / 500:  # a few hundred temperatures in all
                chunk *= 2
        return best, moves

    def __call__(self, start: NDArray[np.int32], seconds: float, seed: int) -> tuple[float, float]:
        """The best objective of all temperature ranges in the time given, and microseconds per move."""
        cores = min(os.cpu_count() or 1, len(RANGES))
        each = seconds * cores / len(RANGES)
        with ThreadPoolExecutor(cores) as pool:
            walks = list(
                pool.map(lambda k: self.walk(start, RANGES[k], each, 1000 * seed + k), range(len(RANGES)))
            )
        objective = min(self.problem.state(codes).objective for codes, _ in walks)
        return objective, 1e6 * each * len(RANGES) / sum(moves for _, moves in walks)
