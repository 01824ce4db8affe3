"""Training with q-loss: quick fits along a continuous path to choose by, the search for those to keep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from lns.cross_fit import NEVER
from lns.driver import solve
from lns.engine import EngineParams
from lns.paper.folds import Part
from lns.paper.plans import LADDER, PER_WEIGHT, POSITIVE, Plan, QSetting, width_of
from lns.problem import QLossProblem
from lns.warm_start import PATH_ROWS, grids_around, minimise, whitening

Solution = tuple[NDArray[np.float64], float]
ITERATIONS, CONVEX_ITERATIONS, LAST_ITERATIONS = 40, 80, 60
BIAS_BITS, LOWEST = 5, -20  # of coarse grids: from 20 half steps below zero to 11 above


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

    def __call__(self, setting: QSetting) -> Solution:
        """Weights and bias at the end of the path of a setting."""
        with threadpool_limits(1, user_api="blas"):
            if setting.detour is None:
                return self._along(setting.q_neg, setting.q_pos)
            start = self._along(setting.detour, 0.0)
            return self._go(setting.q_neg, setting.q_pos, start)

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


def quick_fits(
    part: Part, settings: Sequence[QSetting], plan: Plan, seed: int
) -> Iterator[tuple[QSetting, QLossProblem, Solution]]:
    """A model for every setting, good enough to compare settings by."""
    if plan.by_search:
        for setting in settings:
            yield setting, *train(part, setting, plan, seed)
        return
    by_lam: dict[float, Paths] = {}
    for setting in settings:
        path = by_lam.setdefault(setting.lam, Paths(part.train.X, part.y, setting.lam))
        yield setting, path.problem(setting.q_neg, setting.q_pos), path(setting)


def train(part: Part, setting: QSetting, plan: Plan, seed: int) -> tuple[QLossProblem, Solution]:
    """The best weights found by the search (if there is one), on all rows, at the bit depth of the plan."""
    problem, start = problem_of(part, setting, plan), None
    if setting.interval == PER_WEIGHT:
        start = _continuous(part, problem, setting, seed)
        problem = problem.on_grids(*grids_around(problem, *start))
    rounds = plan.rounds if setting.searched else 0
    result = solve(
        problem, time_limit=None, max_rounds=rounds, initial=start, seed=seed, workers=1,
        params=EngineParams(opening=plan.opening, walks=plan.walks, heats=plan.heats),
    )  # fmt: skip
    return problem, (result.weights, result.bias)


def problem_of(part: Part, setting: QSetting, plan: Plan) -> QLossProblem:
    """The training problem of a setting."""
    return QLossProblem(
        part.train.X, part.y, q={-1: setting.q_neg, 1: setting.q_pos}, lam=setting.lam,
        weight_bits=plan.weight_bits, **_coarse_ranges(setting.interval, plan.weight_bits),
    )  # fmt: skip


def _continuous(part: Part, problem: QLossProblem, setting: QSetting, seed: int) -> Solution:
    """The end of the path, which runs on a sample of large data; its last step is on all rows."""
    few = part.limited(PATH_ROWS, seed)
    paths = Paths(few.train.X, few.y, setting.lam)
    w, b = paths(setting)
    if few is not part:
        with threadpool_limits(1, user_api="blas"):
            w, b = minimise(problem, w, b, paths.transform, 0.0, LAST_ITERATIONS)
    return w, b


def _coarse_ranges(interval: str, bits: int) -> dict[str, Any]:
    """Ranges of the weights and of the bias; none for one interval per weight."""
    if interval == PER_WEIGHT:
        return {}
    kind, width = width_of(interval)
    low = 0.0 if kind == "zero" else -width
    half = (width - low) / (2**bits - 1) / 2
    bias = LOWEST * half, (LOWEST + 2**BIAS_BITS - 1) * half
    return {"weight_range": (low, width), "bias_bits": BIAS_BITS, "bias_range": bias}
