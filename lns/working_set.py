"""A compact copy of (some of) the examples for the searches that try thousands of single moves.

Labels and sample weights are folded into the data, everything is single precision, and each column is stored
densely or as a list of its non-zero entries, whichever is faster to walk. With r_s = √c_s the arrays are

    u_s = r_s (1 - m_s),   z_si = r_s y_s x_si,   top_s = c_s (1 - q_s)²,

so that the loss of an example is min(max(u_s, 0)², top_s) and a change d of weight i moves u by -d z_i.
What comes out of a search here is a proposal: its objective is always taken from the problem itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numba import njit
from numpy.typing import NDArray

from lns.kernels import FAST

if TYPE_CHECKING:
    from lns.problem import QLossProblem

DENSE_ABOVE = 0.25  # share of non-zero entries from which a dense column is faster to walk
SEGMENT_WORK = 50_000_000  # moves x rows between two looks at the clock
REFRESH = 4096  # accepted moves after which u is rebuilt, so that rounding does not pile up
PARTNERS = 6  # correlated weights remembered for each weight
RUN = 512  # single-precision sums are at most this long before they go on in double precision


class WorkingSet:
    """Columns of a problem in single precision, signs and sample weights folded in."""

    def __init__(self, problem: QLossProblem) -> None:
        self.problem = problem
        rows, n = problem.matrix.shape
        self.root = np.sqrt(problem.share * rows)
        self.top = (np.square(self.root) * np.minimum(problem.cap, 1e30)).astype(np.float32)
        sign = (self.root * problem.y).astype(np.float32)
        self.slot = np.full(n + 1, -1, dtype=np.int64)  # column of `dense`, or -1 for a sparse one
        indptr = [0]
        indices: list[NDArray] = [np.empty(0, dtype=np.int32)]
        values: list[NDArray] = [np.empty(0, dtype=np.float32)]
        dense: list[NDArray] = []
        for i in range(n):
            where, x = problem.matrix.column(i)
            if len(where) > DENSE_ABOVE * rows:
                self.slot[i] = len(dense)
                column = np.zeros(rows, dtype=np.float32)
                column[where] = x
                dense.append(column * sign)
            else:
                indices.append(where.astype(np.int32))
                values.append(x.astype(np.float32) * sign[where])
            indptr.append(indptr[-1] + (0 if self.slot[i] >= 0 else len(where)))
        self.slot[n] = len(dense)
        dense.append(sign)  # the bias
        indptr.append(indptr[-1])
        self.indptr = np.array(indptr, dtype=np.int64)
        self.indices, self.values = np.concatenate(indices), np.concatenate(values)
        self.dense = np.array(dense)

    def set_partners(self, margins: NDArray[np.float64]) -> None:
        """Learn which weights can make up for each other, from the curvature at these margins.

        Moving weight i by one level is best balanced by -H_ij / H_jj levels of weight j.
        """
        problem = self.problem
        n = problem.num_features + 1
        active = (margins < 1) & (margins > problem.q)
        bend = problem.share * np.where(active, 1.0, 0.01)  # the rest may become active
        hessian, _ = problem.matrix.moments(np.arange(n), bend, bend)
        hessian *= np.outer(problem.steps, problem.steps)
        size = np.sqrt(np.diag(hessian)) + 1e-150  # a feature may be absent from a sample
        likeness = np.abs(hessian) / np.outer(size, size)
        np.fill_diagonal(likeness, -1.0)
        order = np.argsort(-likeness, axis=1, kind="stable")
        self.partner = np.ascontiguousarray(order[:, : min(PARTNERS, n - 1)])
        each = np.arange(n)[:, None]
        self.ratio = np.clip(-hessian[each, self.partner] / np.square(size)[self.partner], -1e3, 1e3)

    def anneal(
        self, codes: NDArray[np.int32], hot: float, cold: float, moves: int, seed: int,
        pairs: float = 0.3, expired: Callable[[], bool] = lambda: False,
    ) -> NDArray[np.int32]:  # fmt: skip
        """The best codes that a walk of so many moves from `codes` comes across.

        Temperatures are changes of F. The walk is cut into segments of fixed length, before each of which it
        asks whether its time has `expired`, and then ends early.
        """
        problem, walk, best, energy, lowest = self.problem, codes.copy(), codes, 0.0, 0.0
        length = max(200, SEGMENT_WORK // (len(self.root) + 500))  # a move costs something on few rows, too
        bounds = [*range(0, moves, length), moves]
        root = self.root.astype(np.float32)
        for start, stop in itertools.pairwise(bounds):
            if expired():
                break
            w, b = problem.values(walk)
            ends = [hot * (cold / hot) ** (at / moves) for at in (start, stop)]
            found, low, end = anneal(
                *self.arrays, root, walk, np.append(w, b), problem.steps, problem.tops, problem.lam,
                self.partner, self.ratio, pairs, *ends, stop - start, (seed + start) % 2**32,
            )  # fmt: skip
            if energy + low < lowest - 1e-9:
                best, lowest = found, energy + low
            energy += end
        return best

    @property
    def seconds_per_move(self) -> float:
        """What a move of the walk should cost, from the lengths of the columns alone."""
        dense = np.count_nonzero(self.slot >= 0) * len(self.root)
        return 1e-7 + (4e-10 * dense + 2.5e-9 * len(self.indices)) / len(self.slot)

    @property
    def arrays(self) -> tuple[NDArray, ...]:
        """What the kernels take."""
        return self.slot, self.dense, self.indptr, self.indices, self.values, self.top


@njit(inline="always", **FAST)
def _loss(u, top):  # type: ignore[no-untyped-def]
    up = max(u, np.float32(0.0))
    return min(up * up, top)


@njit(**FAST)
def change_of_loss(slot, dense, indptr, indices, values, top, u, i, d):  # type: ignore[no-untyped-def]
    """Sum of the change of all losses when weight i moves by d."""
    total = 0.0
    d32 = np.float32(d)
    k = slot[i]
    if k >= 0:
        column = dense[k]
        rows = u.shape[0]
        for s0 in range(0, rows, RUN):
            part = np.float32(0.0)
            for s in range(s0, min(rows, s0 + RUN)):
                part += _loss(u[s] - d32 * column[s], top[s]) - _loss(u[s], top[s])
            total += part
    else:
        for j in range(indptr[i], indptr[i + 1]):
            s = indices[j]
            total += _loss(u[s] - d32 * values[j], top[s]) - _loss(u[s], top[s])
    return total


@njit(**FAST)
def move(slot, dense, indptr, indices, values, u, i, d):  # type: ignore[no-untyped-def]
    """Move weight i by d."""
    d32 = np.float32(d)
    k = slot[i]
    if k >= 0:
        column = dense[k]
        for s in range(u.shape[0]):
            u[s] -= d32 * column[s]
    else:
        for j in range(indptr[i], indptr[i + 1]):
            u[indices[j]] -= d32 * values[j]


@njit(**FAST)
def rebuild(slot, dense, indptr, indices, values, u, root, w):  # type: ignore[no-untyped-def]
    """u from the weights, without the rounding history of many moves."""
    for s in range(u.shape[0]):  # a slice assignment would compile numba's shape errors, for seconds
        u[s] = root[s]
    for i in range(w.shape[0]):
        if w[i] != 0.0:
            move(slot, dense, indptr, indices, values, u, i, w[i])


@njit(**FAST)
def total_loss(u, top):  # type: ignore[no-untyped-def]
    """Sum of all losses."""
    total = 0.0
    for s0 in range(0, u.shape[0], RUN):
        part = np.float32(0.0)
        for s in range(s0, min(u.shape[0], s0 + RUN)):
            part += _loss(u[s], top[s])
        total += part
    return total


@njit(**FAST)
def anneal(  # type: ignore[no-untyped-def]
    slot, dense, indptr, indices, values, top, root, codes, w, steps, tops, lam, partner, ratio, pairs,
    hot, cold, moves, seed,
):  # fmt: skip
    """Simulated annealing on the collapsed objective; temperatures fall geometrically from hot to cold.

    A move takes one weight to another level. With probability `pairs` a correlated weight moves along to
    make up for it (`partner`, `ratio`: how many of its levels balance one level of the first). Walks `codes`
    and `w` in place; returns the best codes and the objective there and at the end, relative to the start.
    """
    np.random.seed(seed)
    rows, n = root.shape[0], codes.shape[0]
    scale = 1.0 / rows
    u = np.empty(rows, dtype=np.float32)
    rebuild(slot, dense, indptr, indices, values, u, root, w)
    start = total_loss(u, top)
    energy = 0.0
    best = 0.0
    best_codes = codes.copy()
    cooling = (cold / hot) ** (1.0 / max(moves - 1, 1))
    temperature = hot
    accepted = 0
    reg0 = 0.0
    for i in range(n - 1):
        reg0 += lam * w[i] * w[i]
    for _ in range(moves):
        temperature *= cooling
        i = np.random.randint(n)
        kind = np.random.random()
        if kind < 0.4:
            new = codes[i] + 1
        elif kind < 0.8:
            new = codes[i] - 1
        elif kind < 0.9:  # any level
            new = np.random.randint(tops[i] + 1)
        else:  # mostly short jumps, for grids of many levels
            reach = 2
            while reach < tops[i] and np.random.random() < 0.6:
                reach *= 2
            new = codes[i] + np.random.randint(-reach, reach + 1)
        if new == codes[i] or new < 0 or new > tops[i]:
            continue
        d = (new - codes[i]) * steps[i]
        j, new_j, e = -1, 0, 0.0
        if np.random.random() < pairs:
            c = np.random.randint(partner.shape[1])
            j = partner[i, c]
            new_j = codes[j] + int(np.floor(ratio[i, c] * (new - codes[i]) + np.random.random()))
            e = (new_j - codes[j]) * steps[j]
            if new_j == codes[j] or new_j < 0 or new_j > tops[j]:
                continue
        delta = scale * change_of_loss(slot, dense, indptr, indices, values, top, u, i, d)
        if i < n - 1:
            delta += lam * d * (2.0 * w[i] + d)
        if j >= 0:
            move(slot, dense, indptr, indices, values, u, i, d)
            delta += scale * change_of_loss(slot, dense, indptr, indices, values, top, u, j, e)
            if j < n - 1:
                delta += lam * e * (2.0 * w[j] + e)
        if delta <= 0.0 or np.random.random() < np.exp(-delta / temperature):
            if j >= 0:
                move(slot, dense, indptr, indices, values, u, j, e)
                codes[j] = new_j
                w[j] += e
            else:
                move(slot, dense, indptr, indices, values, u, i, d)
            codes[i] = new
            w[i] += d
            energy += delta
            accepted += 1
            if accepted % REFRESH == 0:
                rebuild(slot, dense, indptr, indices, values, u, root, w)
                reg = 0.0
                for k in range(n - 1):
                    reg += lam * w[k] * w[k]
                energy = scale * (total_loss(u, top) - start) + reg - reg0
            if energy < best - 1e-9:
                best = energy
                for k in range(n):
                    best_codes[k] = codes[k]
        elif j >= 0:
            move(slot, dense, indptr, indices, values, u, i, -d)
    return best_codes, best, energy
