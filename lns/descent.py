"""The continuous problem: descents without a grid, and the path from the convex loss to the wanted q.

With q = -∞ the loss is the squared hinge and its minimum is unique. Raising q in stages, each started from
the minimum of the one before, lands near a good basin of the non-convex problem. On the way the loss of an
example is averaged over the margins around its own: narrow basins do not catch the path then. How far around
is best depends on the data: two paths are followed, and the lower end is kept. The loss is quadratic wherever
no example comes to an edge of it, so that Newton's method needs few steps; where features are too many for a
square matrix of them, L-BFGS takes its place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from lns.kernels import FAST
from lns.problem import NEVER

if TYPE_CHECKING:
    from lns.problem import QLossProblem

Point = tuple[NDArray[np.float64], float]  # weights and bias
Box = tuple[NDArray[np.float64], NDArray[np.float64]]  # lowest and highest weights, bias last

STAGES = (4.0, 2.0, 1.0, 0.5, 0.25, 0.1, 0.0)  # how far below the wanted q each truncates the loss
PATH_WIDTHS = (0.5, 1.5)  # of the margins over which the loss of each path is averaged on the way
ROUGHLY = 1e-4  # `enough` of all stages but the last
FEW_ROWS = 50_000  # the path runs on at most so many rows, and curvature is that of at most so many
NEWTON_FEATURES = 640  # above that a Hessian costs more than the steps it saves
STEPS = 60  # of Newton's method, at most
ENOUGH = 1e-6  # of the objective: a step that gains less is the last
LEAST_PROMISE = 0.1  # a step that promises less than this share of `enough` is not tried
BOX_STEPS, BOX_ENOUGH = 20, 0.01  # of Newton's method within a box, for a model; what a step adds at least
LEAST_DAMPING = 1e-9  # in terms of the curvature of all examples


def descend(
    problem: QLossProblem,
    w: NDArray[np.float64],
    b: float,
    *,
    shift: float = 0.0,
    width: float = 0.0,
    box: Box | None = None,
    free: NDArray[np.intp] | None = None,
    steps: int = STEPS,
    enough: float = ENOUGH,
    deadline: float = math.inf,
    expired: Callable[[], bool] = lambda: False,
) -> Point:
    """A local minimum of the continuous objective, never above where it begins.

    Parameters
    ----------
    problem
        The training problem; its grids play no part.
    w, b
        Where to begin.
    shift, width
        By how much q is lowered, and over which margins around its own the loss of an example is averaged.
    box
        Limits of the weights and, last, of the bias.
    free
        The weights that may move (N is the bias); by default all.
    steps, enough
        At most so many steps; one that gains less than this share of the objective is the last.
    deadline, expired
        Past a deadline of `time.perf_counter`, or once it has `expired`, no further step is made.
    """
    n = problem.num_features
    low, high = box or (np.full(n + 1, -np.inf), np.full(n + 1, np.inf))
    at = np.clip(np.append(w, b), low, high)
    free = np.arange(n + 1) if free is None else free
    method = _quasi_newton if len(free) > NEWTON_FEATURES else _newton
    over = lambda: perf_counter() > deadline or expired()  # noqa: E731
    at = method(problem, at, (shift, width), low, high, free, steps, enough, over)
    return at[:-1], float(at[-1])


def _newton(
    problem: QLossProblem, at: NDArray, soft: tuple[float, float], low: NDArray, high: NDArray, free: NDArray,
    steps: int, enough: float, over: Callable[[], bool],
) -> NDArray[np.float64]:  # fmt: skip
    """Damped Newton steps, cut off at the box.

    Loss and gradient are those of all examples. The curvature is that of a sample, and costs many gradients:
    it is worked out once, learns from every step (BFGS), and is worked out anew after a step that brings much
    less than it promised; if that was not the reason, there is more damping.
    """
    few = problem.sample(FEW_ROWS)
    penalty = np.append(np.full(problem.num_features, problem.lam), 0.0)
    size = 2.0 * np.append(few.squared_means(), 1.0)[free] + 1e-300
    damping = LEAST_DAMPING

    def look_at(point: NDArray) -> tuple[NDArray, float, NDArray]:
        point = np.clip(point, low, high)
        loss, gradient = problem.loss_and_gradient(point[:-1], float(point[-1]), *soft)
        return point, loss + float(penalty @ np.square(point)), (gradient + 2.0 * penalty * point)[free]

    at, value, gradient = look_at(at)
    exact: NDArray | None = None  # the curvature at this point
    hessian: NDArray | None = None  # the one that steps are taken by
    for _ in range(steps):
        if over():
            break
        fresh = hessian is None
        if hessian is None:
            if exact is None:
                exact = few.hessian(at[:-1], float(at[-1]), free, *soft)
                exact[np.diag_indices_from(exact)] += 2.0 * penalty[free]
            hessian = exact
        step = np.zeros(len(at))
        model = hessian + np.diag(damping * size)
        step[free], promised = _lowest(model, gradient, (low - at)[free], (high - at)[free])
        if promised <= LEAST_PROMISE * enough * value:
            if fresh:
                break
            hessian = None
            continue
        there, reached, slope = look_at(at + step)
        while value - reached > 1.3 * promised:  # flatter than it looked: twice as far is better then
            step *= 2.0
            promised *= 2.0
            further = look_at(at + step)
            if further[1] >= reached:
                break
            there, reached, slope = further
        gain = value - reached
        if gain > 0:
            hessian = _with(hessian, (there - at)[free], slope - gradient) if gain > 0.5 * promised else None
            at, value, gradient, exact = there, reached, slope, None
            damping = max(0.1 * damping, LEAST_DAMPING)
            if gain <= enough * value and fresh:
                break
        elif fresh:
            damping *= 30.0
        else:
            hessian = None
    return at


def _lowest(
    hessian: NDArray, gradient: NDArray, low: NDArray, high: NDArray
) -> tuple[NDArray[np.float64], float]:
    """The step to the lowest point of a quadratic model within a box, nearly, and by how much it lies lower.

    A sweep over single weights tells which of them stop at a limit. Newton's step takes the others to where
    they are best: cut off at the limits or, if that is too much, only until one is stopped; and so on.
    """
    step, slope, gained = np.zeros(len(gradient)), gradient.copy(), 0.0
    for _ in range(BOX_STEPS):
        sweep_box(hessian, slope, step, low, high)
        swept = -0.5 * float(step @ (gradient + slope))
        loose = np.flatnonzero((step > low) & (step < high))
        way = np.zeros(len(step))
        way[loose] = -_solved(hessian[np.ix_(loose, loose)], slope[loose])
        ends = np.clip(step + way, low, high)
        exact = len(loose) == len(step) and bool((ends == step + way).all())
        there = gradient + hessian @ ends
        if -0.5 * float(ends @ (gradient + there)) < swept:
            room = np.where(way > 0, high - step, low - step)[loose]
            share = np.divide(room, way[loose], out=np.ones(len(loose)), where=way[loose] != 0)
            ends = np.clip(step + share.min(initial=1.0) * way, low, high)
            there = gradient + hessian @ ends
        step, slope, before = ends, there, gained
        gained = -0.5 * float(step @ (gradient + slope))
        if exact or gained - before <= BOX_ENOUGH * gained:
            break
    return step, gained


@njit(**FAST)
def sweep_box(hessian, slope, step, low, high):  # type: ignore[no-untyped-def]
    """Each weight in turn goes to where a quadratic model is lowest within its limits."""
    for i in range(len(step)):
        if hessian[i, i] > 0.0:
            there = min(max(step[i] - slope[i] / hessian[i, i], low[i]), high[i])
            if there != step[i]:
                way = there - step[i]
                step[i] = there
                for j in range(len(step)):
                    slope[j] += way * hessian[i, j]


def _with(hessian: NDArray, step: NDArray, change: NDArray) -> NDArray[np.float64]:
    """Curvature by which the `step` changes the gradient as it did; as before where that is not convex."""
    across = float(step @ change)
    seen = hessian @ step
    along = float(step @ seen)
    if not 0.0 < 1e-3 * along < across:
        return hessian
    return hessian + np.outer(change, change / across) - np.outer(seen, seen / along)


def _solved(matrix: NDArray, right: NDArray) -> NDArray[np.float64]:
    try:
        return cho_solve(cho_factor(matrix), right)
    except np.linalg.LinAlgError:  # repeated columns, to rounding
        return np.linalg.lstsq(matrix, right)[0]


def _quasi_newton(
    problem: QLossProblem, at: NDArray, soft: tuple[float, float], low: NDArray, high: NDArray, free: NDArray,
    steps: int, enough: float, over: Callable[[], bool],
) -> NDArray[np.float64]:  # fmt: skip
    """L-BFGS within the box, each weight in units in which its curvature is one.

    Weights of features that no example has stay where they are.
    """
    size = np.append(problem.squared_means(), 1.0)
    free = free[size[free] > 0]
    unit = np.sqrt(2.0 * (size + problem.lam) + 1e-12 * size.max())[free]
    start = at.copy()
    if over() or not len(free):
        return at

    def value_and_gradient(z: NDArray) -> tuple[float, NDArray]:
        point = start.copy()
        point[free] = z / unit
        w, b = point[:-1], float(point[-1])
        loss, gradient = problem.loss_and_gradient(w, b, *soft)
        gradient[:-1] += 2 * problem.lam * w
        return loss + problem.lam * float(w @ w), gradient[free] / unit

    def look_at_the_clock(intermediate_result: Any) -> None:
        if over():
            raise StopIteration

    bounds = None
    if np.isfinite(low).any() or np.isfinite(high).any():
        bounds = list(zip(low[free] * unit, high[free] * unit, strict=True))
    # One of Newton's steps is worth several of these.
    options: Any = {"maxiter": 3 * steps, "maxfun": 6 * steps, "ftol": 10.0 * enough, "gtol": 0.0}
    found = minimize(
        value_and_gradient, start[free] * unit, jac=True, method="L-BFGS-B", bounds=bounds, options=options,
        callback=look_at_the_clock,
    )  # fmt: skip
    start[free] = found.x / unit
    return np.clip(start, low, high)


def continuous_path(problem: QLossProblem, box: Box | None = None, deadline: float = math.inf) -> Point:
    """Follow the minimum from the convex loss to the wanted q; large data on a sample, then on all rows."""
    # Newton's method needs the sample again.
    part = problem.sample(FEW_ROWS, keep=problem.num_features < NEWTON_FEATURES)
    # Many small BLAS calls: threads would wait for each other and change roundings.
    with threadpool_limits(1, user_api="blas"):
        convex = descend(part, np.zeros(problem.num_features), 0.0, shift=NEVER, box=box, deadline=deadline)
        ends = []
        for widest in PATH_WIDTHS:
            w, b = convex
            for shift, width in (*((shift, widest) for shift in STAGES), (0.0, widest / 2)):
                w, b = descend(
                    part, w, b, shift=shift, width=width, box=box, enough=ROUGHLY, deadline=deadline
                )
            ends.append(descend(part, w, b, box=box, deadline=deadline))
        w, b = min(ends, key=lambda end: part.objective(*end))
        if part.num_examples < problem.num_examples:
            w, b = descend(problem, w, b, box=box, steps=6, deadline=deadline)
    return w, b
