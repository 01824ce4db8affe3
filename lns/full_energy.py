"""Searching the energy of the full QUBO over its weights alone, every target at its best level.

The full QUBO has its targets on a grid with ends. Where margins leave it, or lie between its levels, the
energy is above the objective of the problem, sometimes far above, and its best weights are others. Whoever
wants low energies of the model itself has to look at them: this is for `lns.LNSSampler`.
"""

from __future__ import annotations

import math
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from numba import njit
from numpy.typing import NDArray

from lns.kernels import FAST
from lns.subproblem import pinned

if TYPE_CHECKING:
    from lns.problem import QLossProblem

HOT, COLD = 1.0, 1e-5  # temperatures of a walk, as energies; all weights at zero have about 1
SEGMENTS = 20  # of a walk, between which it asks for the time
REACH = 8  # levels up and down that the descent tries


class FullEnergy:
    """The energy of `QLossProblem.to_bqm` as a function of codes."""

    def __init__(self, problem: QLossProblem) -> None:
        self.problem = problem
        rows = np.arange(problem.num_examples)
        features = problem.matrix.block(rows, np.arange(problem.num_features))
        # What one level of each weight adds to every margin, one weight after the other.
        self.columns = np.ascontiguousarray((np.column_stack([features, np.ones(len(rows))])).T)
        self.columns *= problem.y * problem.steps[:, None]
        free = np.append(problem.weight_grid.lo / problem.weight_grid.step, 0.0)
        self.lows, self.penalty = free, np.append(problem.lam * problem.weight_grid.step**2, 0.0)
        grid = problem.target_grid
        self.grid = (float(grid.lo[0]), float(grid.step[0]), float(grid.top))

    def __call__(self, codes: NDArray[np.int32], targets: NDArray[np.int32] | None = None) -> float:
        """The energy of codes with these target codes, or with the best."""
        w, b = self.problem.values(codes)
        m = self.problem.margins(w, b)
        return float(pinned(self.problem, m, targets).value.sum() + self.problem.lam * (w @ w))

    def anneal(
        self, codes: NDArray[np.int32], moves: int, seed: int, deadline: float = math.inf
    ) -> NDArray[np.int32]:
        """The best codes that a walk of so many moves comes across, settled; a deadline ends it early."""
        walk, best = codes.copy(), codes
        lowest = self(codes)
        ladder = np.geomspace(HOT, COLD, SEGMENTS + 1)
        for k in range(SEGMENTS):
            if perf_counter() > deadline:
                break
            found = anneal(
                *self._arrays(walk), walk, self.problem.tops, ladder[k], ladder[k + 1], moves // SEGMENTS,
                (seed + k) % 2**32,
            )  # fmt: skip
            if (energy := self(found)) < lowest:
                best, lowest = found, energy
        return self.settle(best)

    def settle(self, codes: NDArray[np.int32]) -> NDArray[np.int32]:
        """Go down, one weight at a time, until no level nearby is better."""
        codes = codes.copy()
        settle(*self._arrays(codes), codes, self.problem.tops)
        return codes

    def _arrays(self, codes: NDArray[np.int32]) -> tuple:
        """What the loops take: a fresh vector of margins, and the problem."""
        problem = self.problem
        margins = problem.margins(*problem.values(codes))
        return margins, self.columns, problem.cap, problem.share, self.grid, self.lows, self.penalty


@njit(inline="always", **FAST)
def _loss(m, cap, lo, step, top):  # type: ignore[no-untyped-def]
    """(m - t)² + [t below 1] (1 - q)² with the best t of the grid."""
    half = 0.5 * (top + 1.0)
    at = (m - lo) / step
    above = m - (lo + step * np.floor(min(max(at, half), top) + 0.5))
    below = m - (lo + step * np.floor(min(max(at, 0.0), half - 1.0) + 0.5))
    return min(above * above, below * below + cap)


@njit(**FAST)
def change(m, column, cap, p, grid, d):  # type: ignore[no-untyped-def]
    """Change of the energy of all examples when a weight moves by d levels."""
    lo, step, top = grid
    total = 0.0
    for s in range(m.shape[0]):
        if column[s] != 0.0:
            moved = _loss(m[s] + d * column[s], cap[s], lo, step, top)
            total += p[s] * (moved - _loss(m[s], cap[s], lo, step, top))
    return total


@njit(**FAST)
def anneal(m, columns, cap, p, grid, lows, penalty, codes, tops, hot, cold, moves, seed):  # type: ignore[no-untyped-def]
    """Walks `codes` in place, temperatures falling from hot to cold; returns the best codes."""
    np.random.seed(seed)
    best_codes = codes.copy()
    energy = 0.0
    best = 0.0
    temperature = hot
    cooling = (cold / hot) ** (1.0 / max(moves, 1))
    for _ in range(moves):
        temperature *= cooling
        i = np.random.randint(codes.shape[0])
        reach = 1
        while reach < tops[i] and np.random.random() < 0.4:
            reach *= 2
        d = np.random.randint(-reach, reach + 1)
        if d == 0 or codes[i] + d < 0 or codes[i] + d > tops[i]:
            continue
        delta = change(m, columns[i], cap, p, grid, d) + penalty[i] * d * (2.0 * (lows[i] + codes[i]) + d)
        if delta <= 0.0 or np.random.random() < np.exp(-delta / temperature):
            for s in range(m.shape[0]):
                m[s] += d * columns[i, s]
            codes[i] += d
            energy += delta
            if energy < best - 1e-12:
                best = energy
                for k in range(codes.shape[0]):
                    best_codes[k] = codes[k]
    return best_codes


@njit(**FAST)
def settle(m, columns, cap, p, grid, lows, penalty, codes, tops):  # type: ignore[no-untyped-def]
    """Takes `codes` to where no weight has a better level nearby."""
    settled = False
    while not settled:
        settled = True
        for i in range(codes.shape[0]):
            best = -1e-12
            step = 0
            for d in range(max(-REACH, -codes[i]), min(REACH, tops[i] - codes[i]) + 1):
                delta = change(m, columns[i], cap, p, grid, d)
                delta += penalty[i] * d * (2.0 * (lows[i] + codes[i]) + d)
                if delta < best:
                    best, step = delta, d
            if step != 0:
                for s in range(m.shape[0]):
                    m[s] += step * columns[i, s]
                codes[i] += step
                settled = False
