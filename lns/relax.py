"""Where weights would lie if no grid held them.

On a coarse grid one level of a weight can cost more than all that is still to be gained, unless other weights
make up for it: no single step moves it any more, and a walk hardly does. Between the levels the way is free.
A round may therefore let its weights off the grid, follow the loss downhill, and leave it to a sub-QUBO to
bring them back together: one bit for each, the level below or the level above.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lns.subproblem import curvature, derivatives

if TYPE_CHECKING:
    from lns.problem import QLossProblem

STEPS = 15  # of Newton's method, at most
ENOUGH = 1e-6  # of the objective: a step that gains less is the last
DAMPING, MOST_DAMPING = 1e-3, 1e3  # at first, and where it is given up; in terms of all examples' curvature


@dataclass(frozen=True)
class Settled:
    """A point between the levels, with what a sub-QUBO has to know of it."""

    levels: NDArray[np.float64]  # of all weights and, last, of the bias: codes that need not be whole
    weights: NDArray[np.float64]
    margins: NDArray[np.float64]
    objective: float

    @classmethod
    def at(cls, problem: QLossProblem, levels: NDArray) -> Settled:
        """The point at these levels."""
        w, b = problem.values(levels)
        margins = problem.matrix.margins(w, float(b), problem.y)
        return cls(levels, w, margins, problem.mean_loss(margins) + problem.lam * float(w @ w))


def settle(problem: QLossProblem, codes: NDArray[np.int32], free: NDArray[np.integer]) -> Settled:
    """Where a descent from `codes` leads if the `free` weights need not stay on their levels.

    Newton's method within the limits of the grid. The loss is quadratic only as long as no example comes to
    an edge: a step that does not help is tried again with more damping. All other weights stay.
    """
    here, damping = Settled.at(problem, codes.astype(np.float64)), DAMPING
    tops, steps = problem.tops[free], problem.steps[free]
    size = 2.0 * np.append(problem.squared_means(), 1.0)[free] * np.square(steps) + 1e-12 * here.objective
    for _ in range(STEPS):
        first, second = derivatives(problem, here.weights, free, curvature(problem, here.margins))
        slope, bend = first * steps, second * np.outer(steps, steps)
        at = here.levels[free]
        loose = np.flatnonzero(~(((at <= 0) & (slope > 0)) | ((at >= tops) & (slope < 0))))
        there = here
        while len(loose) and there.objective >= here.objective and damping < MOST_DAMPING:
            matrix = bend[np.ix_(loose, loose)] + damping * np.diag(size[loose])
            levels = here.levels.copy()
            levels[free[loose]] -= np.linalg.solve(matrix, slope[loose])
            levels[free] = np.clip(levels[free], 0, tops)
            there = Settled.at(problem, levels)
            damping *= 0.1 if there.objective < here.objective else 10.0
        gain = here.objective - there.objective
        if gain > 0:
            here = there
        if gain <= ENOUGH * here.objective:
            break
    return here
