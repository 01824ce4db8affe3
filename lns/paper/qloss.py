"""Training with q-loss: quick fits along a continuous path to choose by, the search for those to keep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from threadpoolctl import threadpool_limits

from lns.driver import solve
from lns.engine import EngineParams
from lns.paper.folds import Part
from lns.paper.paths import Paths, Solution
from lns.paper.plans import PER_WEIGHT, Plan, QSetting, width_of
from lns.problem import QLossProblem
from lns.quick_fit import minimise
from lns.start import grids_around

LAST_ITERATIONS = 60
PATH_ROWS = 50_000  # of the path; its last step is on all rows
BIAS_BITS, LOWEST = 5, -20  # of coarse grids: from 20 half steps below zero to 11 above


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
        yield setting, path.problem(setting.q_neg, setting.q_pos), _end(path, setting)


def train(part: Part, setting: QSetting, plan: Plan, seed: int) -> tuple[QLossProblem, Solution]:
    """The best weights found by the search (if there is one), on all rows, at the bit depth of the plan."""
    problem, start = problem_of(part, setting, plan), None
    if setting.interval == PER_WEIGHT:
        start = _continuous(part, problem, setting, seed)
        problem = problem.on_grids(*grids_around(problem, *start))
    rounds = plan.rounds if setting.searched else 0
    result = solve(
        problem, time_limit=None, max_rounds=rounds, initial=start, seed=seed, workers=1,
        params=EngineParams(walk_moves=plan.walk_moves, heats=plan.heats),
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
    w, b = _end(paths, setting)
    if few is not part:
        with threadpool_limits(1, user_api="blas"):
            w, b = minimise(problem, w, b, paths.transform, 0.0, LAST_ITERATIONS)
    return w, b


def _end(paths: Paths, setting: QSetting) -> Solution:
    return paths(setting.q_neg, setting.q_pos, setting.detour)


def _coarse_ranges(interval: str, bits: int) -> dict[str, Any]:
    """Ranges of the weights and of the bias; none for one interval per weight."""
    if interval == PER_WEIGHT:
        return {}
    kind, width = width_of(interval)
    low = 0.0 if kind == "zero" else -width
    half = (width - low) / (2**bits - 1) / 2
    bias = LOWEST * half, (LOWEST + 2**BIAS_BITS - 1) * half
    return {"weight_range": (low, width), "bias_bits": BIAS_BITS, "bias_range": bias}
