"""One neighbourhood, from choice to proposal: a walk, or a sub-QUBO that is built, solved and ranked.

Everything here is a function of the examples, a `Task` and a seed, so that it gives the same proposal wherever
and whenever it runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lns import neighbourhood as nb
from lns import subproblem
from lns.descent import descend
from lns.grid import Grid, unpack_bits
from lns.matrix import numbers_per_row
from lns.rounding import Settled, settle
from lns.walk import Walker, partners

if TYPE_CHECKING:
    from lns.problem import QLossProblem
    from lns.solvers import Solver
    from lns.state import State

NO_EXAMPLES = np.empty(0, dtype=np.intp)
COLD = 0.04  # temperature at which a walk ends, in units of an average example's loss
WALK_BITS, WALK_REACH = 10, 4.0  # levels of a walk off the grid, and its reach in terms of the interval
PASSES = 10  # over the data that a sub-QUBO round costs, about
BIT_PAIR = 60.0  # nanoseconds that a solver needs for each pair of variables, about


class Part:
    """The examples that neighbourhoods look at: all of them, or a sample of very large data.

    What is proposed is judged on all examples afterwards, so a sample costs no exactness.
    """

    def __init__(
        self, problem: QLossProblem, rows: int, seed: int, w: NDArray[np.float64], b: float
    ) -> None:
        self.rows, self.point = min(rows, problem.max_sample_rows), (w, b)
        if self.rows < problem.num_examples:
            order = np.random.default_rng(seed).permutation(problem.num_examples)  # samples are nested
            self.row_numbers = np.sort(order[: self.rows])
            self.problem = problem.subset(self.row_numbers)
        else:
            self.row_numbers = np.arange(self.rows)
            self.problem = problem.subset(None)

    @cached_property
    def partners(self) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Which weights can make up for each other, and how much of them it takes."""
        return partners(self.problem, self.problem.matrix.margins(*self.point, self.problem.y))

    @cached_property
    def walker(self) -> Walker:
        """The examples in the form in which walks are fast."""
        return Walker(self.problem, *self.partners)

    def on(self, grids: tuple[Grid, Grid]) -> QLossProblem:
        """The examples on some levels."""
        return self.problem.on_levels(*grids)


@dataclass(frozen=True)
class Choice:
    """What a selector decided about one neighbourhood.

    Parameters
    ----------
    kind
        ``"window"``: neighbouring levels of some weights; ``"rounding"``: the level below or above where
        they lie once all of them have left the grid and settled; ``"fusion"``: one bit per weight, its level
        now or that of another solution; ``"stored"``: the paper's bits; ``"walk"``: no sub-QUBO.
    weights
        Indices of the weights that get bits (N is the bias).
    background
        ``"curvature"`` or ``"pinned"``.
    width
        Smoothing width of the curvature, in margins.
    examples
        How many examples get target bits, at most.
    heat
        Temperature at which a walk begins, in units of an average example's loss.
    other
        Weights and, last, the bias of another solution, for fusion.
    max_bits
        Largest number of weight bits.
    """

    kind: str
    weights: NDArray[np.intp]
    background: str = "curvature"
    width: float = 0.0
    examples: int = 0
    heat: float = 0.0
    other: NDArray[np.float64] | None = None
    max_bits: int = 64


@dataclass(frozen=True)
class Task:
    """A neighbourhood to run: from which codes on which levels, how, how long a walk, which seed.

    `level` is the objective by which temperatures are measured; with `follow` a walk leaves the grid, and
    ends at a minimum of the continuous problem.
    """

    codes: NDArray[np.int32]
    grids: tuple[Grid, Grid]
    choice: Choice
    moves: int
    seed: np.random.SeedSequence
    level: float = 1.0
    follow: bool = False


@dataclass(frozen=True)
class Proposal:
    """What came of a task: a solution worth merging, what was asked for it, how long each step took.

    A solution is given by its `codes` or, off the grid, by its `point`: weights and, last, the bias.
    """

    codes: NDArray[np.int32]
    choice: Choice
    batch: NDArray[np.intp]
    num_variables: int
    num_couplers: int
    reads: int
    timings: dict[str, float] = field(default_factory=dict)
    chip: list[dict[str, Any]] = field(default_factory=list)  # what each call of an annealer says of itself
    point: NDArray[np.float64] | None = None
    retries: int = 0  # how often it had to be run once more, on a cluster
    moved_bytes: int = 0  # from and to where it was run


def work_of(part: Part, task: Task) -> float:
    """What a task should cost, in what takes about a nanosecond: counted, so that a run can be repeated."""
    if task.choice.kind == "walk":
        return task.moves * part.walker.move_work
    numbers = part.rows * (numbers_per_row(part.problem.matrix) + 4)
    bits = min(2 * len(task.choice.weights), task.choice.max_bits)
    variables = bits + task.choice.examples * part.problem.target_bits
    return PASSES * numbers + BIT_PAIR * variables**2


def make_neighbourhood(
    problem: QLossProblem, codes: NDArray[np.int32], choice: Choice, rng: np.random.Generator
) -> nb.Neighbourhood:
    """The bits of a choice of any kind but ``"rounding"``."""
    if choice.kind == "window":
        low = rng.integers(-3, 1, len(choice.weights))
        return nb.window(codes, problem.tops, choice.weights, 2, low)
    if choice.kind == "stored":
        depth = np.log2(problem.tops[choice.weights] + 1).round().astype(int)
        chosen = np.array([(i, k) for i, d in zip(choice.weights, depth, strict=True) for k in range(d)])
        return nb.stored_bits(codes, rng.permutation(chosen)[: choice.max_bits])
    assert choice.other is not None
    other = problem.codes(choice.other[:-1], choice.other[-1])
    each = np.repeat(codes[None, :], len(choice.weights), axis=0)
    each[np.arange(len(each)), choice.weights] = other[choice.weights]
    return nb.fusion(codes, each)


def choose_examples(
    problem: QLossProblem, place: subproblem.Place, neighbourhood: nb.Neighbourhood, count: int
) -> NDArray[np.intp]:
    """Examples that get exact target bits: at most `count` whose case can change in this neighbourhood.

    The reach of an example is the furthest its margin can move here. One that stays on its side of m = q and
    of m = 1 is exactly quadratic in the background already. Of the others those nearest to an edge are taken,
    measured by their reach.
    """
    if count == 0:
        return NO_EXAMPLES
    edge = np.minimum(np.abs(place.margins - problem.q), np.abs(place.margins - 1.0))
    pool = min(8 * count, len(edge))
    near = np.argpartition(edge, pool - 1)[:pool]
    moved = problem.steps[neighbourhood.weights] * np.abs(neighbourhood.directions)
    reach = np.abs(problem.matrix.block(near, neighbourhood.weights)) @ (moved.T @ neighbourhood.reach)
    can_change = edge[near] < reach
    near, score = near[can_change], (edge[near] / np.maximum(reach, 1e-300))[can_change]
    return np.sort(near[np.argsort(score, kind="stable")][:count])


class Clock:
    """Seconds between one lap and the next, by name."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = perf_counter()

    def lap(self, name: str) -> None:
        """What came since the last lap was `name`."""
        now = perf_counter()
        self.laps[name] = self.laps.get(name, 0.0) + now - self._last
        self._last = now


class Turns:
    """When each of several tasks has to end that take turns on a few workers until a deadline."""

    def __init__(self, tasks: int, workers: int, deadline: float) -> None:
        self.workers, self.began = workers, perf_counter()
        self.span = (deadline - self.began) / math.ceil(tasks / workers)

    def end(self, k: int) -> float:
        """By the clock of `perf_counter`."""
        return self.began + self.span * (k // self.workers + 1)


def time_until(end: float) -> Callable[[], float]:
    """A function that tells which share of the time from now to `end` (of `perf_counter`) has passed."""
    now = perf_counter()
    span = end - now
    return lambda: (perf_counter() - now) / span if span > 0 else 1.0


def propose(part: Part, solver: Solver, task: Task, used: Callable[[], float] = lambda: 0.0) -> Proposal:
    """Run one neighbourhood on a part of the data; once all of its time is `used`, only what is cheap."""
    rng = np.random.default_rng(task.seed)
    if used() >= 1.0:
        return Proposal(task.codes, task.choice, NO_EXAMPLES, 0, 0, 0)
    if task.choice.kind == "walk":
        return walk(part, task, int(rng.integers(2**31)), used)
    return ask(part, solver, task, rng, lambda: used() >= 1.0)


def walk(part: Part, task: Task, seed: int, used: Callable[[], float]) -> Proposal:
    """A walk on the grid, or off it and down to the minimum below its end."""
    clock, problem, codes = Clock(), part.on(task.grids), task.codes
    unit = max(task.level, 1e-300) / part.rows
    heat = task.choice.heat
    if task.follow:
        w, b = problem.values(codes)
        problem = part.on(fine_grids(problem))
        codes = problem.codes(w, float(b))
    codes = part.walker.walk(problem, codes, heat * unit, min(COLD, heat) * unit, task.moves, seed, used)
    clock.lap("walk")
    if not task.follow:
        return Proposal(codes, task.choice, NO_EXAMPLES, 0, 0, 0, clock.laps)
    w, b = problem.values(codes)
    w, b = descend(problem, w, float(b), box=problem.given_box())
    clock.lap("descent")
    return Proposal(
        task.codes, task.choice, NO_EXAMPLES, 0, 0, 0, clock.laps, point=np.append(w, b)
    )


def fine_grids(problem: QLossProblem) -> tuple[Grid, Grid]:
    """Many levels around the present intervals, for walks that need not end on the grid."""
    weights, bias = problem.grids
    middle, reach = 0.5 * (weights.lo + weights.hi), 0.5 * WALK_REACH * (weights.hi - weights.lo)
    fine = Grid.make(middle - reach, middle + reach, WALK_BITS, weights.size, "weight_range")
    if problem.has_given_bias:
        return fine, bias
    middle, reach = 0.5 * (bias.lo + bias.hi), 0.5 * WALK_REACH * (bias.hi - bias.lo)
    return fine, Grid.make(middle - reach, middle + reach, WALK_BITS, 1, "bias_range")


def ask(
    part: Part, solver: Solver, task: Task, rng: np.random.Generator, expired: Callable[[], bool]
) -> Proposal:
    """The best codes that a solver has for the sub-QUBO of a choice."""
    clock, choice, problem = Clock(), task.choice, part.on(task.grids)
    state = problem.state(task.codes)
    clock.lap("objective")
    place: State | Settled = state
    if choice.kind == "rounding":
        place = settle(problem, task.codes, choice.weights)
        clock.lap("settle")
    sub, neighbourhood, batch = build(problem, place, choice, rng)
    start = start_bits(problem, place, neighbourhood, batch)
    clock.lap("build")
    waits = {"expired": expired} if getattr(solver, "interruptible", False) else {}
    samples = solver(sub, start, int(rng.integers(2**31)), **waits)
    clock.lap("solve")
    codes = best_read(state, neighbourhood, samples)[0]
    clock.lap("rank")
    info = getattr(solver, "info", None)
    chip = [] if info is None else [info.to_dict()]
    sizes = sub.num_variables, sub.num_couplers, len(samples)
    return Proposal(codes, choice, part.row_numbers[batch], *sizes, clock.laps, chip)


def build(
    problem: QLossProblem, place: subproblem.Place, choice: Choice, rng: np.random.Generator
) -> tuple[subproblem.SubQubo, nb.Neighbourhood, NDArray[np.intp]]:
    """The sub-QUBO of a choice, its neighbourhood, and the examples that got target bits.

    The place of a rounding is where its weights have settled, of any other choice the current state.
    """
    if isinstance(place, Settled):
        neighbourhood = nb.rounding(place.codes, place.levels, problem.tops, choice.weights, place.rounded)
        away = (place.codes - place.levels)[neighbourhood.weights]
        around = replace(neighbourhood, base=neighbourhood.base + away)
    else:
        around = neighbourhood = make_neighbourhood(problem, place.codes, choice, rng)
    batch = choose_examples(problem, place, around, choice.examples)
    if choice.background == "pinned":
        background = subproblem.pinned(problem, place.margins)
    else:
        background = subproblem.curvature(problem, place.margins, choice.width)
    return subproblem.build(problem, place, around, batch, background), neighbourhood, batch


def start_bits(
    problem: QLossProblem, place: subproblem.Place, neighbourhood: nb.Neighbourhood, batch: NDArray[np.intp]
) -> NDArray[np.int8]:
    """The bits at which a solver begins, the batch's targets at their best.

    They leave everything as it is; those of a rounding are the compensated ones.
    """
    targets = problem.best_target_codes(place.margins[batch], batch)
    return np.append(neighbourhood.start, unpack_bits(targets, problem.target_bits).ravel())


def best_read(
    state: State, neighbourhood: nb.Neighbourhood, samples: NDArray[np.integer]
) -> tuple[NDArray[np.int32], float]:
    """The best codes among all reads other than the current ones, if there are any, and their objective."""
    reads = np.unique(samples[:, : neighbourhood.num_bits], axis=0)
    candidates = neighbourhood.codes(state.codes, reads, state.problem.tops)
    candidates = candidates[(candidates != state.codes).any(axis=1)]
    if not len(candidates):
        return state.codes, state.objective
    values = state.evaluate(candidates)
    best = int(np.argmin(values))
    return candidates[best], float(values[best])
