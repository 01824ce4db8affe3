"""Solutions that the objective cannot tell apart: of those, the one with the fewest errors on true labels.

On large noisy data the lowest objective lies in a flat valley. On covertype, with 40 % of the negatives
flipped and one q = -0.5, solutions whose objectives differ by 0.05 % differ by a point in their errors on
clean labels, and another sample of the same data would move the objective by four times as much.

What noisy labels still tell is the error corrected for the flip rates (`lns.flip_rates`). It is a weighted
error, in which labels of a class that has lost examples to the other one count more. The same weights on the
examples of the problem, at first only a trace of them, lead along the valley to where this error is lower.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from lns.choose_q import error_costs
from lns.clock import time_until
from lns.errors import InvalidInput
from lns.flip_rates import FlipRates, check_rates, estimate_flip_rates
from lns.problem import QLossProblem
from lns.rounds import COLD, Part

if TYPE_CHECKING:
    from lns.result import Result

SHARE = 8e-4  # of the objective: what is nearer counts as equal
RATE_ROWS = 20_000  # that flip rates are estimated from
FEWEST = 100  # of them that have to belong to the smaller class
DISTRUST = 0.15  # where classes overlap, estimated rates are too high by about so much
LEAST_DIFFERENCE = 0.05  # between the rates of the two classes; nearer ones cost both nearly alike
WALK_ROWS = 1_000_000  # that walks look at; what they find is judged on all
FIRST_TILT, LAST_TILT = 0.04, 0.64  # how much of the weights is given: doubled while it is a tie,
STEP_BACK = 0.75  # then taken back by this factor until it is one again
MOVES = 40  # of a walk, for every weight
HEAT = 0.3  # at which it begins, in units of an average example's loss: cool enough to stay in the valley
DOUBTS = 2.0  # standard errors by which an error has to be lower


@dataclass(frozen=True)
class Settled:
    """A result after a tie was settled.

    Attributes
    ----------
    result
        With the solution that was taken.
    lowest
        The lowest objective of all solutions met.
    gain
        By how much the share of errors on true labels is lower than with that objective, as far as noisy
        labels tell; 0 if none was lower beyond doubt.
    """

    result: Result
    lowest: float
    gain: float


def suspected_rates(problem: QLossProblem, seed: int = 0) -> FlipRates:
    """Estimated flip rates of the two classes, less what overlap of the classes can make of them.

    Zeros where there is nothing to go by: too few examples, or about the same rates for both classes. On
    clean data with classes that overlap and differ in size, the smaller one may still be suspected.
    """
    few = _sample(problem, RATE_ROWS, seed)
    if min((few.y < 0).sum(), (few.y > 0).sum()) < FEWEST:
        return FlipRates(0.0, 0.0)
    found = estimate_flip_rates(few.matrix.X, few.y, few.share, seed=seed)
    rates = FlipRates(*(max(0.0, rate - DISTRUST) for rate in found))
    return rates if abs(rates.negative - rates.positive) >= LEAST_DIFFERENCE else FlipRates(0.0, 0.0)


def settle(
    problem: QLossProblem,
    result: Result,
    rates: FlipRates | tuple[float, float],
    share: float = SHARE,
    *,
    seed: int = 0,
    deadline: float = math.inf,
) -> Settled:
    """Take the solution with the lowest noise-corrected error among those with nearly the lowest objective.

    Where no other is better beyond doubt, which is the rule on small or clean data, the lowest objective
    decides as ever.

    Parameters
    ----------
    problem
        The training problem, in this process, on the levels that were searched.
    result
        What a search has found.
    rates
        Flip rates ρ₋ and ρ₊, as known or as `suspected_rates` tells.
    share
        Objectives that are higher than the lowest by at most this share count as equal to it.
    seed
        Of the walks, and of the sample of very large data.
    deadline
        Of `time.perf_counter`; past it, or after Ctrl-C, what has been found counts.

    Examples
    --------
    >>> import lns
    >>> data = lns.load_dataset("long-servedio")
    >>> y, _ = lns.flip_labels(data.y, rate=0.4)
    >>> problem = lns.QLossProblem(data.X, y, q={-1: -1, 1: 0})
    >>> result = lns.solve(problem, max_rounds=5)
    >>> settled = settle(problem, result, suspected_rates(problem))
    >>> settled.gain, settled.result.objective == result.objective
    (0.0, True)
    """
    if not 0 < share < 1:
        raise InvalidInput(f"share must lie between 0 and 1. Got {share}.")
    began, rates = perf_counter(), check_rates(rates)
    if result.grids is not None and problem.grid_follows:
        problem = problem.on_levels(*result.grids)
    if not np.array_equal(problem.values(result.codes)[0], result.weights):
        raise InvalidInput("The result is of another problem, or of the same one on other levels.")
    valley, reason = _Valley(problem, rates, share, result.codes), result.stop_reason
    try:
        with threadpool_limits(1, user_api="blas"):  # sums come out the same on every machine
            _walk_along(valley, rates, seed, deadline)
    except KeyboardInterrupt:
        reason = "interrupted"
    chosen, gain = valley.choose()
    w, b = problem.values(chosen.codes)
    result = replace(
        result, objective=chosen.objective, weights=w, bias=float(b), codes=chosen.codes,
        flagged=problem.flagged(w, b), stop_reason=reason,
        wall_time=result.wall_time + perf_counter() - began,
    )  # fmt: skip
    return Settled(result, valley.lowest.objective, gain)


@dataclass(frozen=True)
class _Solution:
    """What is remembered of a solution; `wrong` are the training examples on the other side."""

    codes: NDArray[np.int32]
    objective: float
    wrong: NDArray[np.bool_]


class _Valley:
    """Solutions met so far, which of them count as equal, and what their errors cost."""

    def __init__(
        self, problem: QLossProblem, rates: FlipRates, share: float, codes: NDArray[np.int32]
    ) -> None:
        self.problem, self.share = problem, share
        self.cost = problem.share * np.where(problem.y < 0, *error_costs(rates))
        self.lowest = self._look(codes)
        self.met = [self.lowest]

    def _look(self, codes: NDArray[np.int32]) -> _Solution:
        state = self.problem.state(codes)
        return _Solution(state.codes, state.objective, state.margins <= 0)

    def meet(self, codes: NDArray[np.int32]) -> bool:
        """Remember a solution; whether its objective counts as equal to the lowest."""
        one = self._look(codes)
        self.met.append(one)
        self.lowest = min(self.lowest, one, key=lambda each: each.objective)
        return self._is_tied(one)

    def _is_tied(self, one: _Solution) -> bool:
        return one.objective <= (1 + self.share) * self.lowest.objective

    def _error(self, one: _Solution) -> float:
        """The corrected error, up to a constant."""
        return float(self.cost[one.wrong].sum())

    def choose(self) -> tuple[_Solution, float]:
        """The solution with the lowest error, if it is lower beyond doubt, and by how much it is."""
        best = min(filter(self._is_tied, self.met), key=self._error)
        gain = self._error(self.lowest) - self._error(best)
        doubt = math.sqrt(float(np.square(self.cost[best.wrong != self.lowest.wrong]).sum()))
        return (best, gain) if gain > DOUBTS * doubt else (self.lowest, 0.0)


def _walk_along(valley: _Valley, rates: FlipRates, seed: int, deadline: float) -> None:
    """Give the examples more and more of the weights, beyond the tie, and come back from there.

    The way back finds more than the way there: a walk stays in the fold of the valley in which it begins.
    """
    few, codes = _sample(valley.problem, WALK_ROWS, seed), valley.lowest.codes
    costs = np.where(few.y < 0, *error_costs(rates))

    def is_time() -> bool:
        return perf_counter() < deadline

    def is_tied_after_walk(tilt: float) -> bool:
        nonlocal codes
        weights = few.share * (1 + tilt * (costs - 1))
        tilted = QLossProblem.assemble(few.model(), few.matrix, few.y, few.q, weights / weights.sum())
        walker = Part(tilted, few.num_examples, seed, *tilted.values(codes)).walker
        unit = valley.lowest.objective / few.num_examples
        moves = MOVES * len(codes)
        codes = walker.walk(tilted, codes, HEAT * unit, COLD * unit, moves, seed, time_until(deadline))
        return valley.meet(codes)

    tilt = FIRST_TILT
    while is_time() and is_tied_after_walk(tilt):
        tilt *= 2
        if tilt > LAST_TILT:
            return
    while is_time() and tilt > FIRST_TILT / 2:
        tilt *= STEP_BACK
        if is_tied_after_walk(tilt):
            return


def _sample(problem: QLossProblem, most: int, seed: int) -> QLossProblem:
    rows = problem.num_examples
    if rows <= most:
        return problem
    return problem.subset(np.sort(np.random.default_rng(seed).choice(rows, most, replace=False)))
