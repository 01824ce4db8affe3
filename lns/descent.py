"""The continuous problem: descents without a grid, and the path from the convex loss to the wanted q.

With q = -∞ the loss is the squared hinge and its minimum is unique. Raising q in stages, each started from the
minimum of the one before, lands near a good basin of the non-convex problem. The loss is quadratic wherever no
example comes to an edge of it, so that Newton's method needs few steps; where features are too many for a
square matrix of them, L-BFGS takes its place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

if TYPE_CHECKING:
    from lns.problem import QLossProblem

Point = tuple[NDArray[np.float64], float]  # weights and bias
Box = tuple[NDArray[np.float64], NDArray[np.float64]]  # lowest and highest weights, bias last

# How far below the wanted q each stage truncates the loss.
STAGES = (np.inf, 4.0, 2.0, 1.0, 0.5, 0.25, 0.1, 0.0)
PATH_ROWS = 50_000  # the path runs on at most so many rows; the last stage then runs on all of them
NEWTON_FEATURES = 640  # above that a Hessian costs more than the steps it saves
STEPS = 20  # of Newton's method, at most
ENOUGH = 1e-6  # of the objective: a step that gains less is the last
LEAST_DAMPING, MOST_DAMPING = 1e-9, 1e3  # in terms of the curvature of all examples


def descend(
    problem: QLossProblem,
    w: NDArray[np.float64],
    b: float,
    *,
    shift: float = 0.0,
    box: Box | None = None,
    free: NDArray[np.intp] | None = None,
    steps: int = STEPS,
    enough: float = ENOUGH,
    deadline: float = math.inf,
) -> Point:
    """A local minimum of the continuous objective, never above where it begins.

    Parameters
    ----------
    problem
        The training problem; its grids play no part.
    w, b
        Where to begin.
    shift
        By how much q is lowered.
    box
        Limits of the weights and, last, of the bias.
    free
        The weights that may move (N is the bias); by default all.
    steps, enough
        At most so many steps; one that gains less than this share of the objective is the last.
    deadline
        Of `time.perf_counter`; past it no further step is made.
    """
    n = problem.num_features
    low, high = box or (np.full(n + 1, -np.inf), np.full(n + 1, np.inf))
    free = np.arange(n + 1) if free is None else free
    at = np.clip(np.append(w, b), low, high)
    if len(free) <= NEWTON_FEATURES:
        at = _newton(problem, at, shift, low, high, free, steps, enough, deadline)
    else:
        at = _quasi_newton(problem, at, shift, low, high, free, steps, enough, deadline)
    return at[:-1], float(at[-1])


def _newton(
    problem: QLossProblem, at: NDArray, shift: float, low: NDArray, high: NDArray, free: NDArray,
    steps: int, enough: float, deadline: float,
) -> NDArray[np.float64]:  # fmt: skip
    """Damped Newton steps, cut off at the box: a step that does not help is tried again with more damping."""
    penalty = np.append(np.full(problem.num_features, problem.lam), 0.0)
    size = 2.0 * np.append(problem.squared_means(), 1.0)[free] + 1e-300
    damping, value = LEAST_DAMPING, math.inf

    def objective_at(point: NDArray) -> tuple[NDArray, float]:
        point = np.clip(point, low, high)
        loss = problem.mean_loss_at(point[:-1], float(point[-1]), shift)
        return point, loss + problem.lam * float(point[:-1] @ point[:-1])

    for _ in range(steps):
        if perf_counter() > deadline:
            break
        loss, gradient, hessian = problem.second_order(at[:-1], at[-1], free, shift)
        value = loss + problem.lam * float(at[:-1] @ at[:-1])
        gradient = gradient + 2 * (penalty * at)[free]
        hessian[np.diag_indices_from(hessian)] += 2 * penalty[free]
        here = at[free]
        stuck = ((here <= low[free]) & (gradient > 0)) | ((here >= high[free]) & (gradient < 0))
        loose, calm, there, reached = np.flatnonzero(~stuck), 0.1, at, value
        while len(loose) and reached >= value and damping < MOST_DAMPING:
            matrix = hessian[np.ix_(loose, loose)] + np.diag(damping * size[loose])
            step = np.zeros(len(at))
            step[free[loose]] = -_solved(matrix, gradient[loose])
            there, reached = objective_at(at + step)
            if reached >= value:
                damping, calm = 30.0 * damping, 1.0
        if reached >= value:
            break
        while True:  # the loss stops growing: what has helped often helps more
            step *= 2.0
            further, lower = objective_at(at + step)
            if lower >= reached:
                break
            there, reached = further, lower
        at, damping = there, max(calm * damping, LEAST_DAMPING)
        if value - reached <= enough * value:
            break
    return at


def _solved(matrix: NDArray, right: NDArray) -> NDArray[np.float64]:
    try:
        return solve(matrix, right, assume_a="pos")
    except np.linalg.LinAlgError:  # repeated columns, to rounding
        return np.linalg.lstsq(matrix, right)[0]


def _quasi_newton(
    problem: QLossProblem, at: NDArray, shift: float, low: NDArray, high: NDArray, free: NDArray,
    steps: int, enough: float, deadline: float,
) -> NDArray[np.float64]:  # fmt: skip
    """L-BFGS within the box, each weight in units in which its curvature is one."""
    size = np.append(problem.squared_means(), 1.0)
    unit = np.sqrt(2.0 * (size + problem.lam) + 1e-12 * size.max())[free]
    start = at.copy()

    def value_and_gradient(z: NDArray) -> tuple[float, NDArray]:
        point = start.copy()
        point[free] = z / unit
        w, b = point[:-1], float(point[-1])
        loss, gradient = problem.loss_and_gradient(w, b, shift)
        gradient[:-1] += 2 * problem.lam * w
        return loss + problem.lam * float(w @ w), gradient[free] / unit

    def look_at_the_clock(intermediate_result: Any) -> None:
        if perf_counter() > deadline:
            raise StopIteration

    bounds = None
    if np.isfinite(low).any() or np.isfinite(high).any():
        bounds = list(zip(low[free] * unit, high[free] * unit, strict=True))
    options: Any = {"maxiter": 3 * steps, "maxfun": 6 * steps, "ftol": enough, "gtol": 0.0}
    found = minimize(
        value_and_gradient, start[free] * unit, jac=True, method="L-BFGS-B", bounds=bounds, options=options,
        callback=look_at_the_clock,
    )  # fmt: skip
    start[free] = found.x / unit
    return np.clip(start, low, high)


def continuous_path(
    problem: QLossProblem,
    box: Box | None = None,
    stages: Sequence[float] = STAGES,
    seed: int = 0,
    deadline: float = math.inf,
) -> Point:
    """Follow the minimum from the convex loss to the wanted q; large data on a sample, then on all rows."""
    rows = problem.num_examples
    few, chosen = min(PATH_ROWS, problem.max_sample_rows), None
    if rows > few:
        chosen = np.sort(np.random.default_rng(seed).choice(rows, few, replace=False))
    part = problem.subset(chosen)
    w, b = np.zeros(problem.num_features), 0.0
    # Many small BLAS calls: threads would wait for each other and change roundings.
    with threadpool_limits(1, user_api="blas"):
        for shift in stages:
            w, b = descend(part, w, b, shift=shift, box=box, deadline=deadline)
        if chosen is not None:
            w, b = descend(problem, w, b, box=box, steps=6, deadline=deadline)
    return w, b
