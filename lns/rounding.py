"""From a point between the levels to the grid, so that the errors of rounding cancel.

Rounding every weight to its nearest level throws much of a continuous minimum away. *Compensated* rounding
takes one weight after the other; after each, all weights not yet rounded move to make up for it, as far as a
quadratic model of the loss knows (Babai's nearest plane; the idea behind GPTQ and optimal brain surgeon).
Whether heavy weights come first or last, and how far around the point the model should look, depends on the
data: all are tried, and the objective itself decides. On data that can be separated rounding pushes examples
over the edges of the loss; there it pays to round half of the weights, let the others settle anew, and so on.
Sweeps come last: each weight in turn takes the level that is best where all others are, as the loss itself
says. They need no model, and are all there is for thousands of weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.linalg import cholesky

from lns.descent import FEW_ROWS, NEWTON_FEATURES, Box, descend
from lns.grid import unique_codes
from lns.kernels import FAST
from lns.subproblem import WIDTH
from lns.walk import Walker, change_of_loss, move, subtract_scores

if TYPE_CHECKING:
    from lns.problem import QLossProblem
    from lns.state import State

DAMPING = 0.1  # of the diagonal, for averaged curvature
LEAST_CURVATURE = 1e-6  # in any direction, in terms of that of single weights
SWEEPS = 5  # after the first; each brings a fraction of the one before


def round_compensated(
    problem: QLossProblem, w: NDArray[np.float64], b: float, deadline: float = math.inf
) -> NDArray[np.int32]:
    """Codes near a continuous minimum with the lowest objective of all that were tried.

    Never worse than the nearest levels, which are among them.
    """
    levels = levels_of(problem, w, b)
    nearest = np.rint(levels).astype(np.int32)
    if np.abs(levels - nearest).max() < 1e-6:
        return nearest
    state = problem.state(nearest)
    tried = [nearest]
    if problem.num_features < NEWTON_FEATURES:
        tried.extend(_candidates(problem, levels, nearest, deadline))
        if perf_counter() < deadline:
            tried.append(_by_halves(problem, levels, deadline))
    best = _best(state, tried)
    return _best(state, [best, *_by_sweeps(problem, (levels, best), deadline)])


def _best(state: State, tried: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    different = unique_codes(np.stack(tried))[0]
    return different[np.argmin(state.evaluate(different))]


def levels_of(problem: QLossProblem, w: NDArray[np.float64], b: float) -> NDArray[np.float64]:
    """Weights and, last, the bias as codes that need not be whole, within the ends of the grid."""
    low, _ = box_of(problem)
    return np.clip((np.append(w, b) - low) / problem.steps, 0, problem.tops)


def box_of(problem: QLossProblem) -> Box:
    """The lowest and the highest level of every weight and, last, of the bias."""
    weights, bias = problem.grids
    return np.append(weights.lo, bias.lo), np.append(weights.hi, bias.hi)


def _candidates(
    problem: QLossProblem, levels: NDArray[np.float64], nearest: NDArray[np.int32], deadline: float
) -> Iterator[NDArray[np.int32]]:
    """Codes by compensated rounding, for every model of the loss and every order."""
    free = np.flatnonzero(np.abs(levels - nearest) > 1e-9)  # what lies on a level has no error to make up for
    for width in (0.0, WIDTH):
        if perf_counter() > deadline:
            return
        hessian = hessian_in_levels(problem, levels, free, width)
        for order in (
            np.argsort(-np.diag(hessian), kind="stable"),
            np.argsort(np.diag(hessian), kind="stable"),
        ):
            codes = nearest.copy()
            codes[free] = nearest_plane(hessian, levels[free], problem.tops[free], order)
            yield codes


def hessian_in_levels(
    problem: QLossProblem, levels: NDArray[np.float64], free: NDArray[np.intp], width: float
) -> NDArray[np.float64]:
    """Curvature of the objective in units of levels, positive definite; of large data that of a sample."""
    w, b = problem.values(levels)
    steps, few = problem.steps[free], problem.sample(FEW_ROWS)
    hessian = few.hessian(w, float(b), free, width=width)
    hessian[np.diag_indices_from(hessian)] += 2 * np.append(np.full(len(w), problem.lam), 0.0)[free]
    hessian *= np.outer(steps, steps)
    size = np.append(few.squared_means(), 1.0)[free] * np.square(steps)
    own = np.maximum(np.diag(hessian), 1e-3 * size)
    own[own == 0.0] = 1.0  # no example has this feature
    # Features may be repeated.
    hessian[np.diag_indices_from(hessian)] += ((DAMPING if width else 0.0) + LEAST_CURVATURE) * own
    return hessian


def nearest_plane(
    hessian: NDArray[np.float64],
    levels: NDArray[np.float64],
    tops: NDArray[np.integer],
    order: NDArray[np.intp],
) -> NDArray[np.int32]:
    """Whole levels near `levels`, rounded in this `order`, each making up for those before it.

    With H = RᵀR and the first to be rounded last in R, the best place of weight k, given those rounded
    before, is its own less the errors of these weighted by the entries of row k of R.
    """
    last_first = order[::-1]
    root = cholesky(hessian[np.ix_(last_first, last_first)])
    target, top = levels[last_first], tops[last_first]
    rounded = np.empty(len(order))
    error = np.zeros(len(order))
    for k in range(len(order) - 1, -1, -1):
        wanted = target[k] - root[k, k + 1 :] @ error[k + 1 :] / root[k, k]
        rounded[k] = min(max(round(wanted), 0.0), top[k])
        error[k] = rounded[k] - target[k]
    codes = np.empty(len(order), dtype=np.int32)
    codes[last_first] = rounded
    return codes


def _by_halves(problem: QLossProblem, levels: NDArray[np.float64], deadline: float) -> NDArray[np.int32]:
    """Codes for which half of the weights are rounded at a time, and the others settle around them."""
    problem = problem.sample(FEW_ROWS).on_levels(*problem.grids)
    levels, left, box = levels.copy(), np.arange(len(levels)), box_of(problem)
    while len(left):
        hessian = hessian_in_levels(problem, levels, left, WIDTH)
        order = np.argsort(-np.diag(hessian), kind="stable")
        codes = nearest_plane(hessian, levels[left], problem.tops[left], order)
        way = np.abs(codes - levels[left])
        now = np.argsort(way, kind="stable")[: (len(left) + 1) // 2]
        levels[left[now]] = codes[now]
        left = np.delete(left, now)
        if len(left) and perf_counter() < deadline:
            w, b = problem.values(levels)
            w, b = descend(problem, w, float(b), box=box, free=left, steps=5, deadline=deadline)
            levels[left] = levels_of(problem, w, b)[left]
    return levels.astype(np.int32)


def _by_sweeps(
    problem: QLossProblem, starts: tuple[NDArray, NDArray], deadline: float
) -> Iterator[NDArray[np.int32]]:
    """Codes for which one weight after the other takes its best level, given where all others are now.

    From where the weights are between the levels, and from the best levels so far: either may end lower. A
    sample does not know all of very many features.
    """
    rows = FEW_ROWS if problem.num_features < NEWTON_FEATURES else problem.max_sample_rows
    if perf_counter() > deadline:
        return
    part = problem.sample(rows).on_levels(*problem.grids)
    no_partners = np.empty((len(problem.tops), 0), dtype=np.intp), np.empty((len(problem.tops), 0))
    walker = Walker(part, *no_partners)
    order = np.argsort(-np.append(part.squared_means(), 1.0) * np.square(part.steps), kind="stable")
    for start in starts:
        if perf_counter() < deadline:
            yield sweep(walker, part, start, order, deadline)


def sweep(
    walker: Walker,
    problem: QLossProblem,
    levels: NDArray,
    order: NDArray[np.intp],
    deadline: float = math.inf,
) -> NDArray[np.int32]:
    """Whole levels near `levels`: each weight in turn goes where the objective is lowest.

    The first sweep takes the level below or above, all others look one level further.
    """
    codes = np.rint(levels).astype(np.int32)
    low = np.append(*problem.values(np.zeros_like(codes)))
    w, u = low + levels * problem.steps, walker.root.copy()
    subtract_scores(walker.columns, w, u)
    for reach in (0, *[1] * SWEEPS):
        if reach and perf_counter() > deadline:
            break
        grid = codes, w, low, problem.steps, problem.tops
        to_levels(walker.columns, walker.top, u, *grid, problem.lam, order, reach)
    return codes


@njit(**FAST)
def to_levels(columns, top, u, codes, w, low, steps, tops, lam, order, reach):  # type: ignore[no-untyped-def]
    """Each weight in turn goes to the best of the levels around it, and of `reach` more to either side."""
    scale = 1.0 / u.shape[0]
    for i in order:
        at = (w[i] - low[i]) / steps[i]
        nearest = np.rint(at)
        whole = abs(at - nearest) < 1e-9
        first = int(nearest if whole else np.floor(at)) - reach
        last = int(nearest if whole else np.ceil(at)) + reach
        best, way, lowest = codes[i], 0.0, np.inf
        for code in range(max(first, 0), min(last, tops[i]) + 1):
            d = low[i] + code * steps[i] - w[i]
            change = 0.0
            if not whole or code != codes[i]:
                change = scale * change_of_loss(columns, top, u, i, d)
                if i < w.shape[0] - 1:
                    change += lam * d * (2.0 * w[i] + d)
            if change < lowest:
                best, way, lowest = code, d, change
        if way != 0.0:
            move(columns, u, i, way)
            w[i] += way
        codes[i] = best
