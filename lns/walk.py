"""Walks: simulated annealing of the weights, one or two at a time, on a compact copy of the examples.

Labels and sample weights are folded into the data, everything is single precision, and each column is stored
densely or as a list of its non-zero entries, whichever is faster to walk. With r_s = √c_s the arrays are

    u_s = r_s (1 - m_s),   z_si = r_s y_s x_si,   top_s = c_s (1 - q_s)²,

so that the loss of an example is min(max(u_s, 0)², top_s) and a change d of weight i moves u by -d z_i.

What comes out of a walk is a proposal: its objective is always taken from the problem itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse

from lns.descent import FEW_ROWS, NEWTON_FEATURES
from lns.kernels import BLOCK, FAST
from lns.matrix import SparseMatrix

if TYPE_CHECKING:
    from lns.problem import QLossProblem

PARTNERS = 6  # correlated weights remembered for each weight
PAIRS = 0.3  # share of the moves in which a partner moves along

# Work is measured in what takes about a nanosecond: counted, not timed, so that walks can be repeated.
DENSE_ENTRY, SPARSE_ENTRY, ATTEMPT = 0.25, 1.1, 110.0
SEGMENTS = 60  # of a walk, at most: between them steps adapt and the clock is looked at
LONGEST_SEGMENT = 1e8  # a tenth of a second: a walk of any length hears of the time and of Ctrl-C
FROZEN = 1e-3  # times the cold end: the temperature of the last segment

# A weight that takes nearly every step it is offered gets nowhere by steps of one level. From segment to
# segment the steps of a weight become longer or shorter, until it takes about this share of them.
TAKEN = 0.4
FORGET = 0.5  # of what was counted in the segments before


class Columns(NamedTuple):
    """The columns of some examples, as the loops take them."""

    slot: NDArray[np.int64]  # column of `dense`, or -1 for a sparse one
    dense: NDArray[np.float32]
    ends: NDArray[np.int64]  # sparse column i is ends[i, 0] to ends[i, 1] of the following
    indices: NDArray[np.int32]
    values: NDArray[np.float32]

    @property
    def cost(self) -> NDArray[np.float64]:
        """The work of one look at each column."""
        entries = self.ends[:, 1] - self.ends[:, 0]
        return np.where(self.slot >= 0, DENSE_ENTRY * self.dense.shape[1], SPARSE_ENTRY * entries)


class Walker:
    """Walks on the examples of a problem, on whatever levels.

    Parameters
    ----------
    problem
        The examples; its levels play no part.
    partner, ratio
        Which weights can make up for each other, see `partners`.
    """

    def __init__(self, problem: QLossProblem, partner: NDArray[np.intp], ratio: NDArray[np.float64]) -> None:
        rows = problem.num_examples
        root = np.sqrt(problem.share * rows)
        self.root = root.astype(np.float32)
        self.top = (np.square(root) * np.minimum(problem.cap, 1e30)).astype(np.float32)
        sign = (root * problem.y).astype(np.float32)
        self.columns = compact(problem, sign)
        self.cost = self.columns.cost
        self.move_work = ATTEMPT + float(self.cost[self.cost > 0].mean())  # of an average attempt
        # The work of a look at all examples and weights.
        self.look = float(self.cost.sum()) + 4.0 * rows + ATTEMPT * len(self.cost)
        self.partner, self.ratio = partner, ratio

    def walk(
        self, problem: QLossProblem, codes: NDArray[np.int32], hot: float, cold: float, moves: int, seed: int,
        used: Callable[[], float] = lambda: 0.0,
    ) -> NDArray[np.int32]:  # fmt: skip
        """The best codes that a walk from `codes` comes across.

        `problem` has these examples and the levels to walk on. Temperatures are changes of F; they fall from
        `hot` to `cold` while the work of so many `moves` is done, or faster if that takes longer than what
        is left of the time, of which a share is `used`; the last segment only goes down. A walk is cut into
        segments of about as many looks at everything as there are segments: after each there is one more.
        """
        if not moves or (began := used()) >= 1.0:
            return codes
        tops, steps = problem.tops, problem.steps
        pairs = PAIRS if self.partner.shape[1] else 0.0
        ratio = np.clip(self.ratio * steps[:, None] / steps[self.partner], -1e3, 1e3)
        present = np.flatnonzero(self.cost)  # features that no example has stay where they are
        budget = moves * self.move_work
        length = budget / min(SEGMENTS, 2.0 + math.sqrt(budget / self.look))
        length = min(length, max(LONGEST_SEGMENT, self.look))
        best, here = codes, codes.copy()
        w, u, energy = self.place(problem, here)
        lowest = energy
        offered, taken = np.zeros(len(codes)), np.zeros(len(codes))
        stride = np.ones(len(codes))  # levels that a step may have, rounded up
        done, step, count = 0.0, (length + self.look) / budget, 0
        while done < 1.0:
            ends = [hot * (cold / hot) ** at for at in (done, min(1.0, done + step))]
            if done + step >= 1.0:
                ends = [FROZEN * cold] * 2
            anneal(
                self.columns, self.top, u, 1.0 / len(u), here, w, steps, present, tops, problem.lam,
                self.partner, ratio, self.cost, pairs, *ends, length, seed + count, offered, taken, stride,
            )  # fmt: skip
            stride = adapted(stride, offered, taken, tops)
            w, u, energy = self.place(problem, here)  # afresh, before errors of single precision add up
            if energy < lowest:
                best, lowest = here.copy(), energy
            count += 1
            before, in_time = done, (used() - began) / max(1.0 - began, 1e-9)
            done = max(count * (length + self.look) / budget, in_time)
            step = done - before
        return best

    def place(
        self, problem: QLossProblem, codes: NDArray[np.int32]
    ) -> tuple[NDArray[np.float64], NDArray[np.float32], float]:
        """Weights with the bias, u of all examples, and the objective there."""
        w = np.append(*problem.values(codes))
        u = self.root.copy()
        subtract_scores(self.columns, w, u)
        loss = float(np.mean(np.minimum(np.square(np.maximum(u, 0.0)), self.top), dtype=np.float64))
        return w, u, loss + problem.lam * float(w[:-1] @ w[:-1])


def compact(problem: QLossProblem, sign: NDArray[np.float32]) -> Columns:
    """The columns of a problem, each in the form that is fastest to walk; the bias comes last."""
    rows, n = problem.matrix.shape
    slot, ends = np.full(n + 1, -1, dtype=np.int64), np.zeros((n + 1, 2), dtype=np.int64)
    slot[n] = 0
    if isinstance(problem.matrix, SparseMatrix) and n > NEWTON_FEATURES:
        # Many thin columns: as they lie, without a look at each of them.
        X: sparse.csc_array = problem.matrix.X
        ends[:-1, 0], ends[:-1, 1] = X.indptr[:-1], X.indptr[1:]
        signed = sign[X.indices]
        signed *= X.data
        return Columns(slot, sign[None, :], ends, X.indices.astype(np.int32, copy=False), signed)
    indices: list[NDArray] = [np.empty(0, dtype=np.int32)]
    values: list[NDArray] = [np.empty(0, dtype=np.float32)]
    dense, at = [sign], 0
    for i in range(n):
        where, x = problem.matrix.column(i)
        if SPARSE_ENTRY * len(where) > DENSE_ENTRY * rows:
            slot[i] = len(dense)
            column = np.zeros(rows, dtype=np.float32)
            column[where] = x
            dense.append(column * sign)
        else:
            ends[i] = at, at + len(where)
            indices.append(where.astype(np.int32))
            values.append(x.astype(np.float32) * sign[where])
            at += len(where)
    return Columns(slot, np.array(dense), ends, np.concatenate(indices), np.concatenate(values))


def partners(
    problem: QLossProblem, w: NDArray[np.float64], b: float
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Which weights can make up for each other, from the curvature at a point, and how much it takes.

    A change of weight i is best balanced by -H_ij / H_jj as much of weight j. With very many features there
    are none: their correlations would not fit.
    """
    n = problem.num_features + 1
    if n > NEWTON_FEATURES:
        return np.empty((n, 0), dtype=np.intp), np.empty((n, 0))
    few = problem.sample(FEW_ROWS)
    margins = few.matrix.margins(w, b, few.y)
    bend = few.share * np.where((margins < 1) & (margins > few.q), 1.0, 0.01)  # the rest may become active
    hessian, _ = few.matrix.moments(np.arange(n), bend, bend)
    size = np.sqrt(np.diag(hessian)) + 1e-150  # a feature may be absent from a sample
    likeness = np.abs(hessian) / np.outer(size, size)
    np.fill_diagonal(likeness, -1.0)
    order = np.argsort(-likeness, axis=1, kind="stable")
    partner = np.ascontiguousarray(order[:, : min(PARTNERS, n - 1)])
    each = np.arange(n)[:, None]
    return partner, -hessian[each, partner] / np.square(size)[partner]


def adapted(
    stride: NDArray[np.float64],
    offered: NDArray[np.float64],
    taken: NDArray[np.float64],
    tops: NDArray[np.integer],
) -> NDArray[np.float64]:
    """Longer steps for weights that take most of them, shorter ones for those that take few."""
    share = (taken + 2.0 * TAKEN) / (offered + 2.0)
    offered *= FORGET
    taken *= FORGET
    return np.clip(stride * np.exp(share - TAKEN), 1.0, np.maximum(0.5 * tops, 1.0))


@njit(inline="always", **FAST)
def _loss(u, top):  # type: ignore[no-untyped-def]
    up = max(u, np.float32(0.0))
    return min(up * up, top)


# Sums in single precision go on in double after each block. Slices begin at 0 and row numbers are unsigned,
# so that numba vectorises. The two loops that every move calls do not count references to their arrays: that
# took longer than a short column.
UNCOUNTED = {**FAST, "_nrt": False}


@njit(**UNCOUNTED)
def change_of_loss(columns, top, u, i, d):  # type: ignore[no-untyped-def]
    """Sum of the change of all losses when weight i moves by d."""
    total = 0.0
    d32 = np.float32(d)
    k, ends = columns.slot[i], columns.ends[i]
    if k >= 0:
        for s0 in range(0, u.shape[0], BLOCK):
            z, us, tops = columns.dense[k, s0 : s0 + BLOCK], u[s0 : s0 + BLOCK], top[s0 : s0 + BLOCK]
            part = np.float32(0.0)
            for s in range(z.shape[0]):
                part += _loss(us[s] - d32 * z[s], tops[s]) - _loss(us[s], tops[s])
            total += part
    else:
        for j0 in range(ends[0], ends[1], BLOCK):
            j1 = min(j0 + BLOCK, ends[1])
            rows, z = columns.indices[j0:j1], columns.values[j0:j1]
            part = np.float32(0.0)
            for j in range(z.shape[0]):
                s = np.uint64(rows[j])
                part += _loss(u[s] - d32 * z[j], top[s]) - _loss(u[s], top[s])
            total += part
    return total


@njit(**UNCOUNTED)
def move(columns, u, i, d):  # type: ignore[no-untyped-def]
    """Move weight i by d."""
    d32 = np.float32(d)
    k, ends = columns.slot[i], columns.ends[i]
    if k >= 0:
        column = columns.dense[k]
        for s in range(u.shape[0]):
            u[s] -= d32 * column[s]
    else:
        rows, z = columns.indices[ends[0] : ends[1]], columns.values[ends[0] : ends[1]]
        for j in range(z.shape[0]):
            u[np.uint64(rows[j])] -= d32 * z[j]


@njit(**FAST)
def subtract_scores(columns, w, u):  # type: ignore[no-untyped-def]
    """Move all weights from zero to w."""
    for i in range(w.shape[0]):
        if w[i] != 0.0:
            move(columns, u, i, w[i])


@njit(inline="always", **FAST)
def draw(state):  # type: ignore[no-untyped-def]
    """The next number in [0, 1): splitmix64, thirty times as fast as numba's own generator."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.float64((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53


@njit(**FAST)
def anneal(  # type: ignore[no-untyped-def]
    columns, top, u, scale, codes, w, steps, present, tops, lam, partner, ratio, cost, pairs, hot, cold,
    budget, seed, offered, taken, stride,
):  # fmt: skip
    """Simulated annealing on the collapsed objective; temperatures fall geometrically from hot to cold.

    A move takes one of the weights `present` to another level, mostly by a step of up to `stride` levels,
    rounded up. With probability `pairs` a correlated weight moves along to make up for it
    (`partner`, `ratio`: how many of its levels balance one level of the first). Walks `codes`, `w` and `u` in
    place until the work of `budget` is done.
    """
    state = np.array([seed], dtype=np.uint64)
    n = codes.shape[0]
    work = 0.0
    fall = np.log(cold / hot) / budget
    while work < budget:
        work += ATTEMPT
        i = present[int(draw(state) * present.shape[0])]
        kind = draw(state)
        if kind < 0.8:
            by = 1 + int(draw(state) * stride[i])
            new = codes[i] + by if kind < 0.4 else codes[i] - by
        elif kind < 0.9:  # any level
            new = int(draw(state) * (tops[i] + 1))
        else:  # mostly short jumps, for grids of many levels
            reach = 2
            while reach < tops[i] and draw(state) < 0.6:
                reach *= 2
            new = codes[i] - reach + int(draw(state) * (2 * reach + 1))
        if new == codes[i] or new < 0 or new > tops[i]:
            continue
        d = (new - codes[i]) * steps[i]
        j, new_j, e = -1, 0, 0.0
        if draw(state) < pairs:
            c = int(draw(state) * partner.shape[1])
            j = partner[i, c]
            new_j = codes[j] + int(np.floor(ratio[i, c] * (new - codes[i]) + draw(state)))
            e = (new_j - codes[j]) * steps[j]
            if new_j == codes[j] or new_j < 0 or new_j > tops[j]:
                continue
        offered[i] += 1.0
        delta = scale * change_of_loss(columns, top, u, i, d)
        work += cost[i]
        if i < n - 1:
            delta += lam * d * (2.0 * w[i] + d)
        if j >= 0:
            move(columns, u, i, d)
            delta += scale * change_of_loss(columns, top, u, j, e)
            work += cost[i] + cost[j]
            if j < n - 1:
                delta += lam * e * (2.0 * w[j] + e)
        if delta <= 0.0 or draw(state) < np.exp(-delta / (hot * np.exp(fall * work))):
            if j >= 0:
                move(columns, u, j, e)
                codes[j] = new_j
                w[j] += e
            else:
                move(columns, u, i, d)
            work += cost[i] if j < 0 else cost[j]
            codes[i] = new
            w[i] += d
            taken[i] += 1.0
        elif j >= 0:
            move(columns, u, i, -d)
            work += cost[i]
