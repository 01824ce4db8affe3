"""One neighbourhood, from choice to proposal: a walk, or sub-QUBOs that are built, solved and ranked.

Everything here is a function of the examples, a `Task` and a seed, so that it gives the same proposal
wherever and whenever it runs.
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
from lns.walk import Walker, partners

if TYPE_CHECKING:
    from lns.problem import QLossProblem
    from lns.solvers import Solver
    from lns.state import State

NO_EXAMPLES = np.empty(0, dtype=np.intp)
COLD = 0.04  # temperature at which a walk ends, in units of an average example's loss
WALK_BITS, WALK_REACH = 10, 4.0  # levels of a walk off the grid, and its reach in terms of the interval
HOP_THROWN = 0.1  # share of the weights that a hop throws to random levels, at most
HOP_WIDTHS, HOP_END = (1.5, 0.7), (0.3, 0.0)  # of margins: first, then until both bring nothing
HOP_ROUNDS = 8  # sub-QUBOs of a hop, about
ROUGHLY = 1e-5  # of the objective: what a descent off the grid takes for the end
HOP_EXAMPLES = 0.25  # share of the examples that a hop off the grid settles on first
PASSES, DESCENT_PASSES = 10, 50  # over the data that a sub-QUBO costs, and a descent, about
BIT_PAIR = 200.0  # nanoseconds that a solver needs for each pair of variables, about
PREFIXES = 24  # points on the way to an answer that are judged, at most


class Part:
    """The examples that neighbourhoods look at: all of them, or a sample of very large data.

    What is proposed is judged on all examples afterwards, so a sample costs no exactness.
    """

    def __init__(self, problem: QLossProblem, rows: int, seed: int, w: NDArray[np.float64], b: float) -> None:
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
        ``"window"``: neighbouring levels of some weights; ``"hop"``: a few weights are thrown to random
        levels and windows lead down from there; where levels follow the solution, to a minimum for a random
        part of the examples and on to one for all; ``"fusion"``: one bit per weight, its level now or that of
        another solution; ``"stored"``: the paper's bits; ``"walk"``: no sub-QUBO.
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
    choice = task.choice
    if choice.kind == "walk":
        return task.moves * part.walker.move_work
    row = numbers_per_row(part.problem.matrix) + 4
    if choice.kind == "hop" and task.follow:
        return part.rows * row * DESCENT_PASSES
    bits = min(nb.WINDOW_BITS * len(choice.weights), choice.max_bits)
    variables = bits + choice.examples * part.problem.target_bits
    one = part.rows * row * (PASSES + min(bits, row)) + BIT_PAIR * variables**2
    return one * HOP_ROUNDS if choice.kind == "hop" else one


def make_neighbourhood(
    problem: QLossProblem, codes: NDArray[np.int32], choice: Choice, rng: np.random.Generator
) -> nb.Neighbourhood:
    """The bits of a choice."""
    if choice.kind in ("window", "hop"):
        bits = min(nb.WINDOW_BITS, choice.max_bits)
        low = rng.integers(1 - 2**bits, 1, len(choice.weights))
        return nb.window(codes, problem.tops, choice.weights, bits, low)
    if choice.kind == "stored":
        depth = np.log2(problem.tops[choice.weights] + 1).round().astype(int)
        chosen = np.array([(i, k) for i, d in zip(choice.weights, depth, strict=True) for k in range(d)])
        return nb.stored_bits(codes, rng.permutation(chosen)[: choice.max_bits])
    assert choice.other is not None
    other = problem.codes(choice.other[:-1], choice.other[-1])
    return nb.towards(codes, other, choice.weights)


def choose_examples(
    problem: QLossProblem, state: State, neighbourhood: nb.Neighbourhood, count: int
) -> NDArray[np.intp]:
    """Examples that get exact target bits: at most `count` whose case can change in this neighbourhood.

    The reach of an example is the furthest its margin can move here. One that stays on its side of m = q and
    of m = 1 is exactly quadratic in the background already. Of the others those nearest to an edge are taken,
    measured by their reach.
    """
    if count == 0:
        return NO_EXAMPLES
    edge = np.minimum(np.abs(state.margins - problem.q), np.abs(state.margins - 1.0))
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
    asking = Asking(solver, task.choice, rng, lambda: used() >= 1.0)
    problem, codes, point = part.on(task.grids), task.codes, None
    if task.follow and task.choice.kind in OFF_THE_GRID:
        point = OFF_THE_GRID[task.choice.kind](problem, codes, asking)
    elif task.choice.kind == "hop":
        codes = hop(problem, codes, asking)
    else:
        codes = asking(problem, codes)[0]
    batch = part.row_numbers[asking.batch]
    return Proposal(
        codes, task.choice, batch, *asking.sizes, asking.reads, asking.clock.laps, asking.chip, point
    )  # fmt: skip


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
    w, b = descend(problem, w, float(b), box=problem.given_box(), expired=lambda: used() >= 1.0)
    clock.lap("descent")
    return Proposal(task.codes, task.choice, NO_EXAMPLES, 0, 0, 0, clock.laps, point=np.append(w, b))


def fine_grids(problem: QLossProblem) -> tuple[Grid, Grid]:
    """Many levels around the present intervals, for walks that need not end on the grid."""
    weights, bias = problem.grids
    middle, reach = 0.5 * (weights.lo + weights.hi), 0.5 * WALK_REACH * (weights.hi - weights.lo)
    fine = Grid.make(middle - reach, middle + reach, WALK_BITS, weights.size, "weight_range")
    if problem.has_given_bias:
        return fine, bias
    middle, reach = 0.5 * (bias.lo + bias.hi), 0.5 * WALK_REACH * (bias.hi - bias.lo)
    return fine, Grid.make(middle - reach, middle + reach, WALK_BITS, 1, "bias_range")


@dataclass
class Asking:
    """Asks a solver for the sub-QUBOs of one choice, and keeps account of it."""

    solver: Solver
    choice: Choice
    rng: np.random.Generator
    expired: Callable[[], bool]
    clock: Clock = field(default_factory=Clock)
    batch: NDArray[np.intp] = field(default_factory=lambda: NO_EXAMPLES)
    sizes: tuple[int, int] = (0, 0)  # variables and couplers
    reads: int = 0
    chip: list[dict[str, Any]] = field(default_factory=list)

    def __call__(
        self, problem: QLossProblem, codes: NDArray[np.int32], width: float | None = None
    ) -> tuple[NDArray[np.int32], float, float]:
        """The best codes that the solver has other than these, their objective, and that of these."""
        choice = self.choice if width is None else replace(self.choice, width=width)
        state = problem.state(codes)
        self.clock.lap("objective")
        sub, neighbourhood, self.batch = build(problem, state, choice, self.rng)
        start = start_bits(problem, state, neighbourhood, self.batch)
        self.clock.lap("build")
        waits = {"expired": self.expired} if getattr(self.solver, "interruptible", False) else {}
        samples = self.solver(sub, start, int(self.rng.integers(2**31)), **waits)
        self.clock.lap("solve")
        answers = (
            samples if choice.kind == "stored" else np.vstack([samples, on_the_way(sub, start, samples)])
        )
        found = best_read(state, neighbourhood, answers)
        self.clock.lap("rank")
        self.sizes, self.reads = (sub.num_variables, sub.num_couplers), self.reads + len(samples)
        info = getattr(self.solver, "info", None)
        self.chip += [] if info is None else [info.to_dict()]
        return *found, state.objective


def hop(problem: QLossProblem, codes: NDArray[np.int32], asking: Asking) -> NDArray[np.int32]:
    """Throw a few weights to random levels and go down from there by sub-QUBOs.

    Curvature is averaged over wide margins at first, so that examples given up are seen from afar.
    """
    rng, codes = asking.rng, codes.copy()
    count = rng.integers(1, max(1, int(HOP_THROWN * len(codes))) + 1)
    thrown = rng.choice(len(codes), count, replace=False)
    codes[thrown] = rng.integers(0, problem.tops[thrown] + 1)
    widths, failed = list(HOP_WIDTHS), 0
    while failed < len(HOP_END) and not asking.expired():
        found, value, before = asking(problem, codes, widths.pop(0) if widths else HOP_END[failed])
        better = value < before
        codes = found if better else codes
        failed = 0 if better or widths else failed + 1
    return codes


def hop_off_the_grid(problem: QLossProblem, codes: NDArray[np.int32], asking: Asking) -> NDArray[np.float64]:
    """Weights and, last, the bias at a minimum for a random part of the examples, then at one for all."""
    chosen = np.where(asking.rng.random(problem.num_examples) < HOP_EXAMPLES, problem.share, 0.0)
    some = problem.reweighted(chosen / chosen.sum()) if chosen.any() else problem  # no copy of the data
    w, b = problem.values(codes)
    for place, steps in ((some, 8), (problem, 20)):
        w, b = descend(
            place, w, float(b), box=problem.given_box(), steps=steps, enough=ROUGHLY, expired=asking.expired
        )
    asking.clock.lap("descent")
    return np.append(w, b)


def fusion_off_the_grid(
    problem: QLossProblem, codes: NDArray[np.int32], asking: Asking
) -> NDArray[np.float64]:
    """The best mixture of the current point and another, and down from there: weights and, last, the bias.

    Both are exactly on levels: for this sub-QUBO each weight has an interval from one to the other.
    """
    here, other = problem.point(codes), asking.choice.other
    assert other is not None
    low, high = np.minimum(here, other), np.maximum(here, other)
    high[np.isclose(low, high)] += 1.0  # an interval needs a length; these weights are not free
    ends = [Grid.make(low[part], high[part], 1, len(low[part])) for part in (slice(-1), slice(-1, None))]
    between = problem.on_levels(*ends)
    w, b = between.values(asking(between, between.codes(here[:-1], here[-1]))[0])
    w, b = descend(problem, w, float(b), box=problem.given_box(), enough=ROUGHLY, expired=asking.expired)
    asking.clock.lap("descent")
    return np.append(w, b)


OFF_THE_GRID = {"hop": hop_off_the_grid, "fusion": fusion_off_the_grid}


def build(
    problem: QLossProblem, state: State, choice: Choice, rng: np.random.Generator
) -> tuple[subproblem.SubQubo, nb.Neighbourhood, NDArray[np.intp]]:
    """The sub-QUBO of a choice, its neighbourhood, and the examples that got target bits."""
    neighbourhood = make_neighbourhood(problem, state.codes, choice, rng)
    batch = choose_examples(problem, state, neighbourhood, choice.examples)
    if choice.background == "pinned":
        background = subproblem.pinned(problem, state.margins)
    else:
        background = subproblem.curvature(problem, state.margins, choice.width)
    return subproblem.build(problem, state, neighbourhood, batch, background), neighbourhood, batch


def start_bits(
    problem: QLossProblem, state: State, neighbourhood: nb.Neighbourhood, batch: NDArray[np.intp]
) -> NDArray[np.int8]:
    """The bits that leave everything as it is, the batch's targets at their best."""
    targets = problem.best_target_codes(state.margins[batch], batch)
    return np.append(neighbourhood.start, unpack_bits(targets, problem.target_bits).ravel())


def on_the_way(
    sub: subproblem.SubQubo, start: NDArray[np.int8], samples: NDArray[np.integer]
) -> NDArray[np.int8]:
    """Points between the start and the answer of lowest energy: a line search in bits.

    The model is good near the start and may be poor where the answer lies. One weight bit after the other
    takes its new value, each time the one that lowers the energy most; of all stations some are returned.
    """
    answer = samples[np.argmin(sub.energies(samples))]
    left = np.flatnonzero(start[: sub.num_weight_bits] != answer[: sub.num_weight_bits])
    here = start.copy()
    here[sub.num_weight_bits :] = answer[sub.num_weight_bits :]
    field, stations = sub.linear + sub.quadratic @ here, []
    while len(left):
        k = int(np.argmin((1 - 2 * here[left]) * field[left]))
        bit, left = left[k], np.delete(left, k)
        field = field + (1 - 2 * here[bit]) * sub.quadratic[bit]
        here[bit] = answer[bit]
        stations.append(here.copy())
    if not stations:
        return start[None, :][:0]
    kept = np.unique(np.geomspace(1, len(stations), PREFIXES).round().astype(int)) - 1
    return np.stack(stations)[kept]


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
