"""Where a search stands before its first round: a continuous minimum, brought onto the grid.

With given ranges the grid is the user's, and a point is brought onto it by compensated rounding. Automatic
intervals follow the solution instead: each is laid so that zero and the weight of a continuous minimum are
among its levels, at any number of bits. Nothing is then lost on the grid, and whenever the search finds a
better basin, the intervals are laid anew around it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lns.descent import descend
from lns.errors import InvalidInput
from lns.grid import Grid, weight_bound, weights_around
from lns.rounding import round_compensated

if TYPE_CHECKING:
    from lns.problem import QLossProblem
    from lns.state import State

LEAST_EFFECT = 0.05  # on margins, root mean square: what the interval of a weight near zero reaches at least
FINE_BITS, FINE_REACH = 10, 8.0  # levels of a walk off the grid, and its reach in terms of the interval
LEAST_REACH = 2.0  # of the interval of the bias, to either side


def land(
    problem: QLossProblem, w: NDArray[np.float64], b: float, deadline: float = math.inf, steps: int = 6
) -> State:
    """The search state nearest to a continuous point, on the given levels or on levels laid around it.

    With automatic intervals it descends first, so that the state lies at a minimum.
    """
    if not problem.grid_follows:
        return problem.state(round_compensated(problem, w, b, deadline))
    free, bias = None, problem.given_grids[1]
    if bias is not None:  # the bias takes a level, and the weights make up for it
        b, free = float(bias.values(bias.codes([b]))[0]), np.arange(problem.num_features)
    w, b = descend(problem, w, b, box=problem.given_box(), free=free, steps=steps, deadline=deadline)
    on_grid = problem.on_levels(*grids_around(problem, w, b))
    return on_grid.state(on_grid.codes(w, b))


def automatic_grids(problem: QLossProblem) -> tuple[Grid, Grid]:
    """Levels around the warm start for the ranges that were not given."""
    w, b = problem.warm_start
    if problem.grid_follows and problem.has_given_bias:
        return land(problem, w, b).problem.grids
    return grids_around(problem, w, b)


def grids_around(problem: QLossProblem, w: NDArray[np.float64], b: float) -> tuple[Grid, Grid]:
    """One interval per weight around a continuous solution, and one around its bias; given ones stay."""
    weights, bias = problem.given_grids
    if weights is None:
        sensitivity = np.sqrt(problem.squared_means()) + 1e-12
        floor = np.minimum(LEAST_EFFECT / sensitivity, weight_bound(problem.lam))
        weights = weights_around(w, floor, problem.lam, problem.weight_bits)
    if bias is None:
        below = 2 ** (problem.bias_bits - 1)
        step = max(LEAST_REACH, 0.5 * abs(b)) / below
        bias = Grid.make(b - below * step, b + (below - 1) * step, problem.bias_bits, 1, "bias_range")
    return weights, bias


def fine_grids(problem: QLossProblem) -> tuple[Grid, Grid]:
    """Many levels around the present intervals, for walks that need not end on the grid."""
    weights, bias = problem.grids
    middle, reach = 0.5 * (weights.lo + weights.hi), 0.5 * FINE_REACH * (weights.hi - weights.lo)
    fine = Grid.make(middle - reach, middle + reach, FINE_BITS, weights.size, "weight_range")
    if problem.has_given_bias:
        return fine, bias
    middle, reach = 0.5 * (bias.lo + bias.hi), 0.5 * FINE_REACH * (bias.hi - bias.lo)
    return fine, Grid.make(middle - reach, middle + reach, FINE_BITS, 1, "bias_range")


def starting_state(problem: QLossProblem, initial: object, seed: int, deadline: float = math.inf) -> State:
    """The state at which a search begins: see `initial` of `lns.solve`."""
    named = initial is None or isinstance(initial, str)
    if initial is None or (problem.has_automatic_ranges and (named or not problem.grid_follows)):
        problem.find_warm_start(deadline)  # where the levels come from, if not the start itself
    if initial is None:
        w, b = problem.warm_start
        if problem.grid_follows and not problem.has_given_bias:  # the grids were laid around it
            return problem.state(problem.codes(w, b))
        return land(problem, w, b, deadline)
    if isinstance(initial, str):
        if initial == "zero":
            return problem.state(problem.codes(np.zeros(problem.num_features), 0.0))
        if initial == "random":
            return problem.state(np.random.default_rng(seed).integers(0, problem.tops + 1, dtype=np.int32))
        raise InvalidInput(f'initial must be (weights, bias), "zero" or "random". Got {initial!r}.')
    try:
        w, b = initial  # type: ignore[misc]
    except (TypeError, ValueError):
        raise InvalidInput('initial must be (weights, bias), "zero" or "random".') from None
    w, b = problem.check_solution(w, b)
    if problem.grid_follows:
        problem = problem.on_levels(*grids_around(problem, w, b))
    return problem.state(problem.codes(w, b))
