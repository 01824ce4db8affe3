"""Continuous solutions for every q, each from its neighbour."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from lns.cross_fit import NEVER
from lns.problem import QLossProblem
from lns.quick_fit import minimise, whitening

Solution = tuple[NDArray[np.float64], float]
# q of both classes along the path, from nearly convex to 0; a pair raises q of the positives further.
LADDER = (-3.0, -2.0, -1.4, -1.0, -0.7, -0.5, -0.35, -0.2, -0.1, 0.0)
POSITIVE = (-0.5, -0.2, 0.0)
ITERATIONS, CONVEX_ITERATIONS = 40, 80


class Paths:
    """Continuous solutions for every q on one set of rows and one λ.

    Each is started from a neighbour: q of both classes rises along `LADDER`, then that of the positives
    along `POSITIVE`; a detour begins at the end of such a path. Neighbours are kept.
    """

    def __init__(self, X: Any, y: NDArray, lam: float) -> None:
        self.convex = QLossProblem(X, y, q=NEVER, lam=lam)
        self._kept: dict[tuple[float, float], Solution] = {}

    def problem(self, q_neg: float, q_pos: float) -> QLossProblem:
        """The training problem for these q, on the same data."""
        return QLossProblem(self.convex.matrix.X, self.convex.y, q={-1: q_neg, 1: q_pos}, lam=self.convex.lam)

    @cached_property
    def transform(self) -> NDArray[np.float64]:
        """Coordinates in which the problem is round."""
        return whitening(self.convex)

    def __call__(self, q_neg: float, q_pos: float, detour: float | None = None) -> Solution:
        """Weights and bias at the end of the path, which may lead over (detour, 0)."""
        with threadpool_limits(1, user_api="blas"):
            if detour is None:
                return self._along(q_neg, q_pos)
            return self._go(q_neg, q_pos, self._along(detour, 0.0))

    def _go(self, q_neg: float, q_pos: float, start: Solution) -> Solution:
        return minimise(self.problem(q_neg, q_pos), *start, self.transform, 0.0, ITERATIONS)

    def _along(self, q_neg: float, q_pos: float) -> Solution:
        if q_neg == NEVER and (NEVER, NEVER) not in self._kept:
            zero = np.zeros(self.convex.num_features)
            self._kept[NEVER, NEVER] = minimise(
                self.convex, zero, 0.0, self.transform, iterations=CONVEX_ITERATIONS
            )
        if (q_neg, q_pos) not in self._kept:
            if q_pos > q_neg:
                before = q_neg, max([q_neg, *(q for q in POSITIVE if q < q_pos)])
            else:
                below = max([NEVER, *(q for q in LADDER if q < q_neg)])
                before = below, below
            self._kept[q_neg, q_pos] = self._go(q_neg, q_pos, self._along(*before))
        return self._kept[q_neg, q_pos]
