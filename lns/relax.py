"""Where weights would lie if no grid held them.

On a coarse grid one level of a weight can cost more than all that is still to be gained, unless other weights
make up for it: no single step moves it any more, and a walk hardly does. Between the levels the way is free.
A round may therefore let its weights off the grid, follow the loss downhill, and leave it to a sub-QUBO to
bring them back together: one bit for each, the level below or the level above.

Where data can be separated it is hard to come back. The lowest point between the levels leans on examples, as
a support vector machine does; rounding moves every margin, and those who stand at an edge are pushed over it.
Two things help. Weights settle where the loss is lowest that is to be expected after rounding, a little away
from the edges. And where the answer is too far up they come back by halves: those with the shortest way stay
where the sub-QUBO has put them, the others settle anew around them, and a smaller one is asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lns.subproblem import curvature, derivatives, expected_loss

if TYPE_CHECKING:
    from lns.neighbourhood import Neighbourhood
    from lns.problem import QLossProblem

STEPS = 15  # of Newton's method, at most
ENOUGH = 0.1  # of an average example's loss: a step that gains less is the last
# At first, at least (two features may be the same), and where it is given up; in terms of all examples'
# curvature.
DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-3, 1e-12, 1e3
UNDIVIDED = 8  # weights that come back all at once
VARIANCE = 1.0 / 12.0  # of what a level loses when it becomes a whole number


@dataclass(frozen=True)
class Settled:
    """A point between the levels, with what a sub-QUBO has to know of it."""

    codes: NDArray[np.int32]  # on the grid: where the weights were that have left it
    levels: NDArray[np.float64]  # of all weights and, last, of the bias: codes that need not be whole
    weights: NDArray[np.float64]
    margins: NDArray[np.float64]
    width: float  # that margins are expected to move when weights come back
    objective: float  # that is to be expected then

    @classmethod
    def at(cls, problem: QLossProblem, codes: NDArray[np.int32], levels: NDArray, width: float) -> Settled:
        """The point at these levels."""
        w, b = problem.values(levels)
        margins = problem.matrix.margins(w, float(b), problem.y)
        loss = expected_loss(problem, margins, width) if width > 0 else problem.mean_loss(margins)
        return cls(codes, levels, w, margins, width, loss + problem.lam * float(w @ w))


def squared_moves(problem: QLossProblem, free: NDArray[np.integer]) -> NDArray[np.float64]:
    """By how much one level of each free weight moves margins: squares, averaged over all examples."""
    return np.append(problem.squared_means(), 1.0)[free] * np.square(problem.steps[free])


def rounding_width(problem: QLossProblem, free: NDArray[np.integer]) -> float:
    """How far rounding the free weights will move a margin: a root mean square over all examples."""
    return math.sqrt(VARIANCE * float(squared_moves(problem, free).sum()))


def settle(
    problem: QLossProblem,
    codes: NDArray[np.int32],
    free: NDArray[np.integer],
    caution: float = 0.0,
    levels: NDArray[np.float64] | None = None,
    expired: Callable[[], bool] = lambda: False,
) -> Settled:
    """Where a descent leads if the `free` weights need not stay on their levels.

    Newton's method within the limits of the grid, from `codes` or from the `levels` given. The loss is
    quadratic only as long as no example comes to an edge: a step that does not help is tried again with more
    damping. All other weights stay. `caution` is how much of what rounding will do is expected. Once time has
    `expired` no further step is made.
    """
    width = caution * rounding_width(problem, free)
    here = Settled.at(problem, codes, codes.astype(np.float64) if levels is None else levels, width)
    damping, tops, steps = DAMPING, problem.tops[free], problem.steps[free]
    size = 2.0 * squared_moves(problem, free) + 1e-12 * here.objective + 1e-290  # a feature may be absent
    for _ in range(STEPS):
        if expired():
            break
        first, second = derivatives(problem, here.weights, free, curvature(problem, here.margins, width))
        slope, bend = first * steps, second * np.outer(steps, steps)
        at = here.levels[free]
        loose = np.flatnonzero(~(((at <= 0) & (slope > 0)) | ((at >= tops) & (slope < 0))))
        there, calm = here, 0.1  # a step that helps at once is followed by a bolder one
        while len(loose) and there.objective >= here.objective and damping < MOST_DAMPING:
            matrix = bend[np.ix_(loose, loose)] + damping * np.diag(size[loose])
            levels = here.levels.copy()
            levels[free[loose]] -= np.linalg.solve(matrix, slope[loose])
            levels[free] = np.clip(levels[free], 0, tops)
            there = Settled.at(problem, codes, levels, width)
            if there.objective >= here.objective:
                damping, calm = 10.0 * damping, 1.0
        damping = max(calm * damping, LEAST_DAMPING)
        gain = here.objective - there.objective
        if gain > 0:
            here = there
        if gain <= ENOUGH * here.objective / problem.num_examples:
            break
    return here


def half_way(
    problem: QLossProblem,
    settled: Settled,
    neighbourhood: Neighbourhood,
    bits: NDArray,
    caution: float,
    expired: Callable[[], bool] = lambda: False,
) -> tuple[Settled, NDArray[np.intp]]:
    """Where weights settle after half of them have come back as `bits` say, and which have not.

    Those come back that have the shortest way. What the others have to make up for is then known, and what
    is still to be expected of rounding is less.
    """
    answer = neighbourhood.codes(settled.codes, bits[None, :], problem.tops)[0]
    way = np.abs(answer - settled.levels)[neighbourhood.weights]
    near, far = np.split(neighbourhood.weights[np.argsort(way, kind="stable")], [(len(way) + 1) // 2])
    codes, levels, free = settled.codes.copy(), settled.levels.copy(), np.sort(far)
    codes[near] = levels[near] = answer[near]
    return settle(problem, codes, free, caution, levels, expired), free
