"""One neighbourhood, from choice to proposal: build its sub-QUBO, solve it, rank the reads, polish the best.

Everything here is a function of the problem, the current codes, a `Choice` and a seed, so that it gives the
same proposal wherever and whenever it runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lns import neighbourhood as nb
from lns import subproblem
from lns.grid import unpack_bits
from lns.matrix import SparseMatrix, numbers_per_row
from lns.relax import UNDIVIDED, Settled, half_way, settle
from lns.state import State
from lns.working_set import ATTEMPT, DENSE_ENTRY, SPARSE_ENTRY, WorkingSet

if TYPE_CHECKING:
    from lns.problem import QLossProblem
    from lns.solvers import Solver


NO_EXAMPLES = np.empty(0, dtype=np.intp)
COLD = 0.04  # temperature at which a polish ends, in units of an average example's loss


def seconds_to_begin(problem: QLossProblem, rows: int) -> float:
    """What it should cost to make a `Part` of so many rows: a copy of the data, and correlations."""
    each, n = numbers_per_row(problem.matrix), problem.num_features
    return rows * (2e-8 * each + 4.5e-11 * each**2) + 2e-7 * n**2


def seconds_to_walk(problem: QLossProblem, rows: int, moves: int) -> float:
    """What a walk of so many moves on so many rows should cost if all of them take part."""
    entry = SPARSE_ENTRY if isinstance(problem.matrix, SparseMatrix) else DENSE_ENTRY
    column = rows * numbers_per_row(problem.matrix) / problem.num_features
    return 1e-9 * moves * (ATTEMPT + entry * column)


def unit_of_heat(level: float, problem: QLossProblem) -> float:
    """What an average example adds to an objective of `level`."""
    return max(level, 1e-9) / problem.num_examples


class Part:
    """The examples that rounds look at: all of them, or a sample of very large data.

    What a round proposes is judged on all examples afterwards, so a sample costs no exactness.
    """

    def __init__(self, problem: QLossProblem, codes: NDArray[np.int32], rows: int, seed: int) -> None:
        self.rows, self.codes = min(rows, problem.max_sample_rows), codes
        if self.rows < problem.num_examples:
            order = np.random.default_rng(seed).permutation(problem.num_examples)  # samples are nested
            self.row_numbers = np.sort(order[: self.rows])
            problem = problem.subset(self.row_numbers)
        else:
            self.row_numbers = np.arange(self.rows)
            problem = problem.subset(None)
        self.problem = problem
        self.working = WorkingSet(problem)
        self.working.set_partners(problem.state(codes).margins)

    def polish(
        self,
        codes: NDArray[np.int32],
        heat: float,
        level: float,
        moves: int,
        seed: int,
        used: Callable[[], float] = lambda: 0.0,
        other: NDArray[np.int32] | None = None,
    ) -> NDArray[np.int32]:
        """The best codes of a short walk that begins at `heat`.

        Heat is measured by what an average example adds to an objective of `level`: whether losses are large
        or small, the walk takes the same way. With `other` codes the walk stays between the two: as much
        work, for the few weights in which they differ.
        """
        unit = unit_of_heat(level, self.problem)
        return self.working.anneal(
            codes, heat * unit, min(COLD, heat) * unit, moves, seed, used=used, other=other
        )

    def view(self, codes: NDArray[np.int32], elites: list[NDArray[np.int32]]) -> View:
        """What strategies may look at."""
        return View(codes, lambda: self.problem.state(codes).gains(), self.working.partner, elites)


@dataclass(frozen=True)
class View:
    """What a strategy may look at when it chooses weights."""

    codes: NDArray[np.int32]
    gains: Callable[[], NDArray[np.float64]]  # exact gains of all single-level moves, computed on demand
    partner: NDArray[np.integer]  # the most correlated weights of each weight
    elites: list[NDArray[np.int32]]


@dataclass(frozen=True)
class Choice:
    """What a selector decided about one neighbourhood.

    Parameters
    ----------
    kind
        Name of the way the weights were chosen.
    weights
        Indices of the weights that get bits (N is the bias).
    coding
        ``"window"``: neighbouring levels; ``"stored"``: the paper's bits; ``"fusion"``: one bit per weight,
        between its level now and its level in `other`; ``"relaxed"``: one bit per weight, the level below or
        above where it lies once all of them have left the grid and settled.
    background
        ``"curvature"``, ``"pairwise"`` or ``"pinned"``.
    width
        Smoothing width of the curvature, in margins; of a relaxed round, in terms of how far rounding will
        move them.
    batch, examples
        Which examples get target bits (``"ambiguous"`` or ``"random"``), and how many at most.
    heat
        Temperature at which the polish begins, in units of an average example's loss; 0 for no polish.
    other
        Codes of another solution, for fusion.
    """

    kind: str
    weights: NDArray[np.intp]
    coding: str = "window"
    bits: int = 2
    background: str = "curvature"
    width: float = 0.0
    batch: str = "ambiguous"
    examples: int = 0
    heat: float = 2.0
    other: NDArray[np.int32] | None = None

    @classmethod
    def opening(cls, heat: float) -> Choice:
        """No sub-QUBO, only a walk: how an episode begins."""
        return cls("opening", np.empty(0, dtype=np.intp), heat=heat)


@dataclass(frozen=True)
class Proposal:
    """What came of a choice: codes worth merging, what was asked for them, how long each step took."""

    codes: NDArray[np.int32]
    choice: Choice
    batch: NDArray[np.intp]
    num_variables: int
    num_couplers: int
    reads: int
    timings: dict[str, float] = field(default_factory=dict)
    chip: list[dict[str, Any]] = field(default_factory=list)  # what each call of an annealer says of itself
    retries: int = 0  # how often it had to be run once more, on a cluster
    moved_bytes: int = 0  # from and to where it was run


def make_neighbourhood(
    problem: QLossProblem, codes: NDArray[np.int32], choice: Choice, rng: np.random.Generator
) -> nb.Neighbourhood:
    """The bits of a choice."""
    if choice.coding == "window":
        low = rng.integers(1 - 2**choice.bits, 1, len(choice.weights))
        return nb.window(codes, problem.tops, choice.weights, choice.bits, low)
    if choice.coding == "stored":
        depth = [
            problem.bias_bits if i == problem.num_features else problem.weight_bits for i in choice.weights
        ]
        chosen = np.array([(i, k) for i, d in zip(choice.weights, depth, strict=True) for k in range(d)])
        return nb.stored_bits(codes, chosen)
    assert choice.other is not None
    each = np.repeat(codes[None, :], len(choice.weights), axis=0)
    each[np.arange(len(each)), choice.weights] = choice.other[choice.weights]
    return nb.fusion(codes, each)


def choose_examples(
    problem: QLossProblem,
    place: subproblem.Place,
    neighbourhood: nb.Neighbourhood,
    kind: str,
    count: int,
    rng: np.random.Generator,
) -> NDArray[np.intp]:
    """Examples that get exact target bits: at most `count` whose case can change in this neighbourhood.

    The reach of an example is the furthest its margin can move here. One that stays on its side of m = q and
    of m = 1 is exactly quadratic in the background already. Of the others ``"ambiguous"`` takes those nearest
    to an edge, measured by their reach; ``"random"`` any.
    """
    if count == 0:
        return NO_EXAMPLES
    edge = np.minimum(np.abs(place.margins - problem.q), np.abs(place.margins - 1.0))
    pool = min(8 * count, len(edge))
    if kind == "ambiguous":
        near = np.argpartition(edge, pool - 1)[:pool]
    else:
        near = rng.choice(len(edge), pool, replace=False)
    moved = problem.steps[neighbourhood.weights] * np.abs(neighbourhood.directions)
    reach = np.abs(problem.matrix.block(near, neighbourhood.weights)) @ (moved.T @ neighbourhood.reach)
    can_change = edge[near] < reach
    near, score = near[can_change], (edge[near] / np.maximum(reach, 1e-300))[can_change]
    if kind == "ambiguous":
        near = near[np.argsort(score, kind="stable")]
    return np.sort(near[:count])


def pairwise(problem: QLossProblem, state: State, neighbourhood: nb.Neighbourhood) -> subproblem.SubQubo:
    """A sub-QUBO that is exact on all moves of one and of two bits: Q_ij = F(ij) - F(i) - F(j) + F(0).

    F(i) is the objective with bit i flipped from where it is now; at the end flips are turned into bits.
    """
    n, start = neighbourhood.num_bits, neighbourhood.start
    first, second = np.triu_indices(n, 1)
    flips = np.zeros((1 + n + len(first), n), dtype=np.int8)
    flips[1 : n + 1] = np.eye(n, dtype=np.int8)
    at = n + 1 + np.arange(len(first))
    flips[at, first] = flips[at, second] = 1
    values = state.evaluate(neighbourhood.codes(state.codes, flips ^ start, problem.tops))
    zero, single = float(values[0]), values[1 : n + 1]
    slope, bend = single - zero, np.zeros((n, n))
    bend[first, second] = values[n + 1 :] - single[first] - single[second] + zero
    bend += bend.T
    sign = 1.0 - 2.0 * start
    offset = zero + slope @ start + 0.5 * start @ bend @ start
    return subproblem.SubQubo(sign * (slope + bend @ start), bend * np.outer(sign, sign), float(offset), n)


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


@dataclass(frozen=True)
class Task:
    """A neighbourhood to run: from which codes, which choice, how long a polish, which seed.

    `level` is the objective by which temperatures are measured.
    """

    codes: NDArray[np.int32]
    choice: Choice
    polish_moves: int
    seed: np.random.SeedSequence
    level: float = 1.0


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

    def expired() -> bool:
        return used() >= 1.0

    codes, choice, clock, asked = task.codes, task.choice, Clock(), Asked()
    rng = np.random.default_rng(task.seed)
    cand = codes
    if len(choice.weights) and not expired():
        cand = ask(part.problem, solver, task, rng, clock, asked, expired)
    if choice.heat > 0:
        seed = int(rng.integers(2**31))
        other = None if choice.other is None else np.where(cand == codes, choice.other, codes)  # the far end
        cand = part.polish(cand, choice.heat, task.level, task.polish_moves, seed, used, other)
        clock.lap("polish")
    batch = part.row_numbers[asked.batch]
    sizes = (asked.num_variables, asked.num_couplers, asked.reads)
    return Proposal(cand, choice, batch, *sizes, clock.laps, asked.chip)


@dataclass
class Asked:
    """What a solver was asked on behalf of one neighbourhood; sizes and `batch` of the first sub-QUBO."""

    batch: NDArray[np.intp] = field(default_factory=lambda: NO_EXAMPLES)
    num_variables: int = 0
    num_couplers: int = 0
    reads: int = 0
    chip: list[dict[str, Any]] = field(default_factory=list)

    def note(
        self, solver: Solver, sub: subproblem.SubQubo, batch: NDArray[np.intp], samples: NDArray
    ) -> None:
        """Another sub-QUBO, smaller than the first, and its answer."""
        if not self.reads:
            self.batch, self.num_variables, self.num_couplers = batch, sub.num_variables, sub.num_couplers
        self.reads += len(samples)
        if (info := getattr(solver, "info", None)) is not None:
            self.chip.append(info.to_dict())


def ask(
    problem: QLossProblem,
    solver: Solver,
    task: Task,
    rng: np.random.Generator,
    clock: Clock,
    asked: Asked,
    expired: Callable[[], bool],
) -> NDArray[np.int32]:
    """The best codes that a solver has for a choice.

    One sub-QUBO; if its answers are too far up to polish, the current codes. Relaxed weights may need
    several: as long as what comes back is too far up, half of them stay, the others settle anew, and a
    smaller one is asked. What comes of it in the end is a way around that no walk knows of, and is taken.
    """
    choice, left = task.choice, task.choice
    state = problem.state(task.codes)
    clock.lap("objective")
    place: State | Settled = state
    if choice.coding == "relaxed":
        place = settle(problem, task.codes, choice.weights, choice.width, expired=expired)
        clock.lap("settle")
    # A polish has half its temperature to give to each weight: what lies higher is no place to begin.
    limit = 0.5 * choice.heat * unit_of_heat(task.level, problem) * len(choice.weights) or math.inf
    waits = {"expired": expired} if getattr(solver, "interruptible", False) else {}
    while True:
        sub, neighbourhood, batch = build(problem, place, left, rng)
        start = start_bits(problem, place, neighbourhood, batch)
        clock.lap("build")
        samples = solver(sub, start, int(rng.integers(2**31)), **waits)
        clock.lap("solve")
        asked.note(solver, sub, batch, samples)
        cand, value = best_read(state, place.codes, neighbourhood, samples)
        clock.lap("rank")
        far = value - state.objective > limit
        if not isinstance(place, Settled):
            return state.codes if far else cand
        if not far or len(left.weights) <= UNDIVIDED or expired():
            return cand
        best = samples[np.argmin(sub.energies(samples)), : neighbourhood.num_bits]
        place, weights = half_way(problem, place, neighbourhood, best, choice.width, expired)
        left = replace(choice, weights=weights)
        clock.lap("settle")


def build(
    problem: QLossProblem, place: subproblem.Place, choice: Choice, rng: np.random.Generator
) -> tuple[subproblem.SubQubo, nb.Neighbourhood, NDArray[np.intp]]:
    """The sub-QUBO of a choice, its neighbourhood, and the examples that got target bits.

    The place of a relaxed choice is where its weights have settled, of any other the current state.
    """
    width = choice.width
    if isinstance(place, Settled):
        neighbourhood = nb.rounding(place.codes, place.levels, problem.tops, choice.weights)
        away, width = (place.codes - place.levels)[neighbourhood.weights], place.width
        around = replace(neighbourhood, base=neighbourhood.base + away)
    else:
        around = neighbourhood = make_neighbourhood(problem, place.codes, choice, rng)
    if choice.background == "pairwise":
        state = place if isinstance(place, State) else problem.state(place.codes)
        return pairwise(problem, state, neighbourhood), neighbourhood, NO_EXAMPLES
    batch = choose_examples(problem, place, around, choice.batch, choice.examples, rng)
    if choice.background == "pinned":
        background = subproblem.pinned(problem, place.margins)
    else:
        background = subproblem.curvature(problem, place.margins, width)
    return subproblem.build(problem, place, around, batch, background), neighbourhood, batch


def start_bits(
    problem: QLossProblem, place: subproblem.Place, neighbourhood: nb.Neighbourhood, batch: NDArray[np.intp]
) -> NDArray[np.int8]:
    """The bits of a sub-QUBO that leave everything as it is, the batch's targets at their best."""
    targets = problem.best_target_codes(place.margins[batch], batch)
    return np.append(neighbourhood.start, unpack_bits(targets, problem.target_bits).ravel())


def best_read(
    state: State, base: NDArray[np.int32], neighbourhood: nb.Neighbourhood, samples: NDArray[np.integer]
) -> tuple[NDArray[np.int32], float]:
    """The best codes among all reads other than the current ones, if there are any, and their objective.

    A neighbourhood's answers change the codes `base`: those of the state or, while weights come back to the
    grid by halves, those with the first of them at their new levels.
    """
    reads = np.unique(samples[:, : neighbourhood.num_bits], axis=0)
    candidates = neighbourhood.codes(base, reads, state.problem.tops)
    candidates = candidates[(candidates != state.codes).any(axis=1)]
    if not len(candidates):
        return state.codes, state.objective
    values = state.evaluate(candidates)
    best = int(np.argmin(values))
    return candidates[best], float(values[best])
