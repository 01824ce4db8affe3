"""One neighbourhood, from choice to proposal: a walk, or sub-QUBOs that are built, solved and ranked.

Everything here is a function of the examples, a `Task` and a seed, so that it gives the same proposal
wherever and whenever it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lns import neighbourhood as nb
from lns import subproblem
from lns.clock import Clock
from lns.descent import descend
from lns.grid import Grid, unpack_bits
from lns.matrix import numbers_per_row
from lns.rounding import box_of, levels_of
from lns.start import fine_grids
from lns.walk import Walker, partners

if TYPE_CHECKING:
    from lns.problem import QLossProblem
    from lns.solvers import Solver
    from lns.state import State

NO_WEIGHTS = NO_EXAMPLES = np.empty(0, dtype=np.intp)
COLD = 0.04  # temperature at which a walk ends, in units of an average example's loss
HOP_THROWN = 0.1  # share of the weights that a hop throws to random levels, at most
PASSES = 50  # over the data that a descent costs, about
BIT_PAIR = 200.0  # nanoseconds that a solver needs for each pair of variables, about
STATIONS = 24  # on the way to an answer that are judged, at most


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
    def walker(self) -> Walker:
        """The examples in the form in which walks are fast."""
        return Walker(self.problem, *partners(self.problem, *self.point))

    def on(self, grids: tuple[Grid, Grid]) -> QLossProblem:
        """The examples on some levels."""
        return self.problem.on_levels(*grids)


@dataclass(frozen=True)
class Choice:
    """What a selector decided about one neighbourhood.

    Parameters
    ----------
    kind
        ``"window"``: some weights leave the levels, go where the objective is lowest, and come back by one
        bit each, the level below or above; ``"hop"``: a few other weights are thrown to random levels
        first; ``"fusion"``: one bit per weight, its level now or that of another solution; ``"stored"``: the
        paper's bits; ``"walk"``: no sub-QUBO.
    weights
        Indices of the weights that get bits (N is the bias).
    background
        ``"curvature"`` or ``"pinned"``.
    examples
        How many examples get target bits, at most.
    heat, length
        Temperature at which a walk begins, in units of an average example's loss, and its share of the moves
        of the longest walks.
    thrown
        Weights that a hop throws.
    other
        Weights and, last, the bias of another solution, for fusion.
    max_bits
        Largest number of stored bits.
    """

    kind: str
    weights: NDArray[np.intp]
    background: str = "curvature"
    examples: int = 0
    heat: float = 0.0
    length: float = 1.0
    thrown: NDArray[np.intp] = field(default_factory=lambda: NO_WEIGHTS)
    other: NDArray[np.float64] | None = None
    max_bits: int = 64


@dataclass(frozen=True)
class Task:
    """A neighbourhood to run: from which codes on which levels, how, how long a walk, which seed.

    `level` is the objective by which temperatures are measured; with `follow` whatever is found is followed
    down to a minimum of the continuous problem, and a walk leaves the grid.
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
    bits = min(len(choice.weights), choice.max_bits)
    variables = bits + choice.examples * part.problem.target_bits
    return part.rows * row * (PASSES + min(bits, row)) + BIT_PAIR * variables**2


@dataclass(frozen=True)
class Question:
    """A sub-QUBO, and what its bits stand for: changes of these `codes`."""

    codes: NDArray[np.int32]
    neighbourhood: nb.Neighbourhood
    batch: NDArray[np.intp]  # examples that have target bits
    sub: subproblem.SubQubo
    start: NDArray[np.int8]


def question(
    problem: QLossProblem,
    codes: NDArray[np.int32],
    choice: Choice,
    rng: np.random.Generator,
    *,
    expired: Callable[[], bool] = lambda: False,
    clock: Clock | None = None,
) -> Question:
    """What a choice asks of a solver."""
    clock = clock or Clock()
    levels: NDArray = codes
    if choice.kind in ("window", "hop"):
        codes = codes.copy()
        codes[choice.thrown] = rng.integers(0, problem.tops[choice.thrown] + 1)
        levels = relaxed(problem, codes, choice.weights, expired)
        neighbourhood = nb.window(codes, levels, problem.tops, choice.weights)
        clock.lap("descent")
    elif choice.kind == "stored":
        depth = np.log2(problem.tops[choice.weights] + 1).round().astype(int)
        chosen = np.array([(i, k) for i, d in zip(choice.weights, depth, strict=True) for k in range(d)])
        neighbourhood = nb.stored_bits(codes, rng.permutation(chosen)[: choice.max_bits])
    else:
        assert choice.other is not None
        neighbourhood = nb.towards(codes, problem.codes(choice.other[:-1], choice.other[-1]), choice.weights)
    w, b = problem.values(levels)
    margins = problem.matrix.margins(w, float(b), problem.y)
    clock.lap("objective")
    batch = choose_examples(problem, levels, margins, neighbourhood, choice.examples)
    if choice.background == "pinned":
        background = subproblem.pinned(problem, margins)
    else:
        background = subproblem.curvature(problem, margins, subproblem.WIDTH)
    sub = subproblem.build(problem, levels, margins, neighbourhood, batch, background)
    targets = unpack_bits(problem.best_target_codes(margins[batch], batch), problem.target_bits)
    start = np.append(neighbourhood.start, targets.ravel())
    clock.lap("build")
    return Question(codes, neighbourhood, batch, sub, start)


def relaxed(
    problem: QLossProblem, codes: NDArray[np.int32], free: NDArray[np.intp], expired: Callable[[], bool]
) -> NDArray[np.float64]:
    """Levels, not necessarily whole, at which the objective is lowest if only these weights move."""
    w, b = problem.values(codes)
    box = box_of(problem)
    w, b = descend(problem, w, float(b), box=box, free=free, steps=20, expired=expired)
    levels = codes.astype(np.float64)
    levels[free] = levels_of(problem, w, b)[free]
    return levels


def choose_examples(
    problem: QLossProblem, levels: NDArray, margins: NDArray, neighbourhood: nb.Neighbourhood, count: int
) -> NDArray[np.intp]:
    """Examples that get exact target bits: at most `count` whose case can change in this neighbourhood.

    The reach of an example is the furthest its margin can move here. One that stays on its side of m = q and
    of m = 1 is exactly quadratic in the background already. Of the others those nearest to an edge are taken,
    measured by their reach.
    """
    if count == 0:
        return NO_EXAMPLES
    edge = np.minimum(np.abs(margins - problem.q), np.abs(margins - 1.0))
    pool = min(8 * count, len(edge))
    near = np.argpartition(edge, pool - 1)[:pool]
    way = problem.steps[neighbourhood.weights] * neighbourhood.reach(levels)
    reach = np.abs(problem.matrix.block(near, neighbourhood.weights)) @ way
    can_change = edge[near] < reach
    near, score = near[can_change], (edge[near] / np.maximum(reach, 1e-300))[can_change]
    return np.sort(near[np.argsort(score, kind="stable")][:count])


def propose(part: Part, solver: Solver, task: Task, used: Callable[[], float] = lambda: 0.0) -> Proposal:
    """Run one neighbourhood on a part of the data; once all of its time is `used`, only what is cheap."""
    rng = np.random.default_rng(task.seed)
    if used() >= 1.0:
        return Proposal(task.codes, task.choice, NO_EXAMPLES, 0, 0, 0)
    if task.choice.kind == "walk":
        return walk(part, task, int(rng.integers(2**31)), used)
    clock, problem, choice = Clock(), part.on(task.grids), task.choice
    expired = lambda: used() >= 1.0  # noqa: E731
    asked = question(problem, task.codes, choice, rng, expired=expired, clock=clock)
    sub, waits = asked.sub, {"expired": expired} if getattr(solver, "interruptible", False) else {}
    samples = solver(sub, asked.start, int(rng.integers(2**31)), **waits)
    clock.lap("solve")
    info = getattr(solver, "info", None)
    chip = [] if info is None else [info.to_dict()]
    answers = samples if choice.kind == "stored" else on_the_way(sub, asked.start, samples)
    codes, point = best_read(problem.state(asked.codes), asked.neighbourhood, answers), None
    clock.lap("rank")
    if task.follow:
        point = minimum_below(problem, problem.point(codes), used)
        clock.lap("descent")
    batch, sizes = part.row_numbers[asked.batch], (sub.num_variables, sub.num_couplers)
    return Proposal(codes, choice, batch, *sizes, len(samples), clock.laps, chip, point)


def minimum_below(
    problem: QLossProblem, point: NDArray[np.float64], used: Callable[[], float]
) -> NDArray[np.float64]:
    """Weights and, last, the bias at the end of a descent without a grid."""
    expired = lambda: used() >= 1.0  # noqa: E731
    return np.append(*descend(problem, point[:-1], point[-1], box=problem.given_box(), expired=expired))


def walk(part: Part, task: Task, seed: int, used: Callable[[], float]) -> Proposal:
    """A walk on the grid, or off it and down to the minimum below its end."""
    clock, problem, codes = Clock(), part.on(task.grids), task.codes
    unit, heat = max(task.level, 1e-300) / part.rows, task.choice.heat
    before, point = problem.point(codes), None
    if task.follow:
        problem = part.on(fine_grids(problem))
        codes = problem.codes(before[:-1], before[-1])
    end = part.walker.walk(problem, codes, heat * unit, min(COLD, heat) * unit, task.moves, seed, used)
    clock.lap("walk")
    if task.follow:
        # What did not move stays where it was, exactly: no descent brings back a feature without examples.
        point = minimum_below(problem, np.where(end == codes, before, problem.point(end)), used)
        end = task.codes
        clock.lap("descent")
    return Proposal(end, task.choice, NO_EXAMPLES, 0, 0, 0, clock.laps, point=point)


def on_the_way(
    sub: subproblem.SubQubo, start: NDArray[np.int8], samples: NDArray[np.integer]
) -> NDArray[np.integer]:
    """The answers, and points between the start and that of lowest energy: a line search in bits.

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
        return samples
    kept = np.unique(np.geomspace(1, len(stations), STATIONS).round().astype(int)) - 1
    return np.vstack([samples, np.stack(stations)[kept]])


def best_read(
    state: State, neighbourhood: nb.Neighbourhood, samples: NDArray[np.integer]
) -> NDArray[np.int32]:
    """The best codes among all reads other than the current ones, if there are any."""
    reads = np.unique(samples[:, : neighbourhood.num_bits], axis=0)
    candidates = neighbourhood.codes(state.codes, reads)
    candidates = candidates[(candidates != state.codes).any(axis=1)]
    return candidates[np.argmin(state.evaluate(candidates))] if len(candidates) else state.codes
