"""The search: rounds of large neighbourhoods, in episodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lns.accept import Accept, Outcome
from lns.errors import EnergyMismatchError, InvalidInput
from lns.matrix import numbers_per_row
from lns.merge import merge
from lns.result import NeighbourhoodRecord, RoundRecord
from lns.rounds import Choice, Clock, Part, Proposal, Task, seconds_to_begin, seconds_to_walk, time_until
from lns.select import REWARDS, AdaptiveSelector
from lns.stop import Progress, Stop

if TYPE_CHECKING:
    from lns.problem import QLossProblem
    from lns.state import State

Backend = Callable[[Part, Sequence[Task], float], list[Proposal]]

PAID = 1e-4  # share of the objective: an episode on a sample that lowers it by more is followed by another
LATER = 2  # times the length of the first episode's walks: those of the others
HOT = 5.0  # from here on, a walk forgets where it began
HOT_ROWS = 20_000  # examples; the more there are, the less each counts, and the hotter a walk has to begin
TYPICAL = 3.0  # times the average: up to here, the loss of those who have one asks for no more heat
CLOSING_NUMBERS = 100_000_000  # that the walk at the end looks at, at most
CLOSING_SHARE = 0.25  # of the time limit that is kept for it, at most
CLOSING_HEAT = 0.3  # at which it begins: it is to stay where it is


@dataclass(frozen=True, kw_only=True)
class EngineParams:
    """How the search is run.

    Parameters
    ----------
    neighbourhoods
        Neighbourhoods proposed side by side in every round. Not the number of workers: the same search runs
        on one or on many.
    polish
        Moves of the polish, per weight; a fusion spends as much on the few weights that may move.
    walks
        Walks that open an episode side by side; the best goes on.
    opening_share, reopening_share, opening
        Each of them may take this share of the time limit, in the first episode and in later ones, as far as
        the size of the data tells, and at most the work of so many moves per weight with all examples in the
        first episode, twice as many in later ones. (An estimate of the work, not of this machine's speed: the
        same arguments give the same search.)
    heats
        Temperatures at which those walks begin, taken in turn, in units of an average example's loss. Hot
        ones, from 5 on, begin at the start, and hotter where `heat_needed` says so; after the first episode
        the others begin at an elite.
    patience, least_gain
        After so many rounds in which this episode gained less, in units of an average example's loss, a new
        one begins.
    elites
        Solutions remembered, for fusion and for opening episodes: ends of walks, and the best of each
        episode.
    relax
        Let some rounds take their weights off the grid first (see `lns.relax`).
    fuse
        Combine the proposals of a round; without it the best one is taken.
    sample_rows, most_rows
        Rounds look at this many examples of larger data, twice as many whenever an episode no longer helps,
        up to the second number: what a round costs has an end. What it proposes is judged on all examples.
    """

    neighbourhoods: int = 2
    polish: int = 300
    walks: int = 8
    opening_share: float = 0.35
    reopening_share: float = 0.2
    opening: int = 2000
    heats: tuple[float, ...] = (6.0, 20.0, 2.0)
    patience: int = 8
    least_gain: float = 0.3
    elites: int = 16
    sample_rows: int = 65_536
    most_rows: int = 1_000_000
    relax: bool = True
    fuse: bool = True

    def __post_init__(self) -> None:
        for name in ("neighbourhoods", "walks", "patience", "elites", "sample_rows", "most_rows"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"{name} must be at least 1. Got {getattr(self, name)}.")
        for name in ("polish", "opening"):
            if getattr(self, name) < 0:
                raise InvalidInput(f"{name} must be at least 0. Got {getattr(self, name)}.")


@dataclass
class Search:
    """What the loop carries from round to round."""

    curr: State
    best: State
    elites: list[tuple[float, NDArray[np.int32]]] = field(default_factory=list)
    rounds: int = 0
    best_round: int = 0
    episode: int = 0
    episode_best: float = math.inf
    before_episode: float = math.inf  # the best objective when it began
    stalled: int = 0
    opening: bool = True  # whether the next round opens an episode
    sample_rows: int = 0  # how many examples rounds look at,
    sample_codes: NDArray[np.int32] | None = None  # and the solution at which those were taken

    @classmethod
    def begin(cls, problem: QLossProblem, start: NDArray[np.int32], params: EngineParams) -> Search:
        """A search that stands at its start."""
        state = problem.state(start)
        search = cls(curr=state, best=state, sample_rows=params.sample_rows, sample_codes=state.codes)
        search.remember(state.codes, state.objective, params.elites)
        return search

    def progress(self, seconds: float) -> Progress:
        """What stop rules look at."""
        return Progress(seconds, self.rounds, self.rounds - self.best_round, self.best.objective)

    @property
    def elite_codes(self) -> list[NDArray[np.int32]]:
        """Codes of the elites, best first."""
        return [codes for _, codes in self.elites]

    def adopt(self, cand: NDArray[np.int32], value: float, outcome: Outcome, params: EngineParams) -> None:
        """Go to the candidate unless it was rejected; an episode goes on while it gets better."""
        if outcome is not Outcome.REJECT:
            self.curr = self.curr.problem.state(cand)
            if abs(self.curr.objective - value) > 1e-9 * max(1.0, abs(value)):
                raise EnergyMismatchError(self.curr.objective, value, "the merge")
        if outcome is Outcome.BEST:
            self.best, self.best_round = self.curr, self.rounds + 1
        if self.opening and self.episode == 1:  # that a walk is better than the rounded start says nothing
            self.before_episode = self.curr.objective
        before = math.inf if self.opening else self.episode_best
        self.episode_best = min(before, self.curr.objective)
        if self.episode_best < before:  # one place among the elites for an episode: they stay different
            self.elites = [elite for elite in self.elites if elite[0] != before]
            self.remember(self.curr.codes, self.curr.objective, params.elites)
        worth = params.least_gain * self.best.objective / self.curr.problem.num_examples
        self.stalled = 0 if before - self.episode_best > worth else self.stalled + 1
        self.opening = self.stalled >= params.patience

    @property
    def episode_paid(self) -> bool:
        """Whether this episode has lowered the objective enough for another one on the same sample."""
        return self.before_episode - self.best.objective > PAID * self.best.objective

    def sample(self, seed: int) -> Part:
        """The examples that rounds look at."""
        codes = self.curr.codes if self.sample_codes is None else self.sample_codes
        return Part(self.curr.problem, codes, self.sample_rows, seed)

    def remember(self, codes: NDArray[np.int32], objective: float, limit: int) -> None:
        """Keep a solution among the elites, once, best first."""
        if all((codes != elite).any() for _, elite in self.elites):
            self.elites.append((objective, codes.copy()))
            self.elites.sort(key=lambda elite: (elite[0], elite[1].tobytes()))
            del self.elites[limit:]


def run(
    problem: QLossProblem,
    start: NDArray[np.int32],
    select: AdaptiveSelector,
    accept: Accept,
    backend: Backend,
    stop: Stop,
    *,
    params: EngineParams,
    seed: int,
    began: float,
    time_limit: float | None = None,
    deadline: float | None = None,
    search: Search | None = None,
    on_round: Callable[[RoundRecord, Search], None] = lambda record, search: None,
) -> tuple[Search, list[RoundRecord], str]:
    """Search from `start` until a stop rule holds, or Ctrl-C; the search, its new rounds and the reason.

    `search` is one to go on with, with the `time_limit` that it was begun with; its rounds then end by the
    `deadline`. What is passed to `on_round` is all that the next round depends on.
    """
    search = search or Search.begin(problem, start, params)
    part, most_rows = search.sample(seed), min(params.most_rows, problem.max_sample_rows)
    if deadline is None:
        deadline = math.inf if time_limit is None else began + time_limit
    records: list[RoundRecord] = []
    try:
        while not (reason := stop(search.progress(perf_counter() - began))):
            if search.opening and search.episode and part.rows < most_rows and not search.episode_paid:
                # Before episodes on a sample that no longer help, the sample grows.
                search.sample_rows, search.sample_codes = min(2 * part.rows, most_rows), search.curr.codes
                search.stalled, search.opening = 0, False
                part = search.sample(seed)
            clock = Clock()
            rebuilt, moved = problem.rebuilt, problem.moved_bytes
            rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(search.rounds,)))
            base, opening = search.curr, search.opening
            if opening:
                share = params.reopening_share if search.episode else params.opening_share
                moves = opening_moves(part, params, search.episode, share, time_limit)
                hotter = heat_needed(part, search.best.codes)
                tasks = open_episode(search, start, hotter, moves, params, seed, rng)
            else:
                choices = select(part.view(base.codes, search.elite_codes), params.neighbourhoods, rng)
                moves = params.polish * len(start)
                tasks = [
                    Task(base.codes, c, moves, child(seed, search.rounds, k), search.best.objective)
                    for k, c in enumerate(choices)
                ]
            clock.lap("select")
            proposals = backend(part, tasks, opening_deadline(deadline) if opening else deadline)
            clock.lap("solve")

            cand, value, alone = merge(base, np.stack([one.codes for one in proposals]), params.fuse)
            outcome = accept(search.best.objective, math.inf if opening else base.objective, value, rng)
            if opening:  # walks that end elsewhere are worth remembering, too
                for proposal, objective in zip(proposals, alone, strict=True):
                    search.remember(proposal.codes, float(objective), params.elites)
            search.adopt(cand, value, outcome, params)
            if not opening:
                select.update([REWARDS[outcome] if one < base.objective else 0.0 for one in alone])
            clock.lap("merge")

            shards = problem.rebuilt - rebuilt, problem.moved_bytes - moved
            records.append(
                record_of(search, part, outcome, proposals, alone, shards, perf_counter() - began, clock)
            )
            search.rounds += 1
            on_round(records[-1], search)
        return search, records, reason
    except KeyboardInterrupt:  # what has been found is not lost
        return search, records, "interrupted"


def closing_rows(problem: QLossProblem, params: EngineParams, sample_rows: int) -> int:
    """Rows of the walk at the end; 0 if none is due, because rounds look at as many or data is in shards."""
    if problem.specimen is not problem or not params.polish:
        return 0
    most = int(CLOSING_NUMBERS / max(1.0, numbers_per_row(problem.matrix)))
    rows = min(params.most_rows, most, problem.num_examples)
    return rows if rows > sample_rows else 0


def seconds_to_close(problem: QLossProblem, params: EngineParams, rows: int, seconds: float) -> float:
    """How much of the seconds left is kept for that walk: 0 if it could not even begin."""
    begin = seconds_to_begin(problem, rows)
    walk = seconds_to_walk(problem, rows, params.polish * len(problem.tops))
    kept = min(begin + walk, CLOSING_SHARE * seconds)
    return kept if kept > begin else 0.0


def close(search: Search, params: EngineParams, seed: int, deadline: float) -> tuple[State, float]:
    """The best solution after a cool walk on all rows, if rounds have looked at samples, and its seconds.

    The best solution for a sample lies a little beside the best one for all. The walk is no round: the search
    does not go on from what it finds, so that a run can be resumed as if it had never ended.
    """
    best, problem, began = search.best, search.best.problem, perf_counter()
    rows = closing_rows(problem, params, search.sample_rows) if search.rounds else 0
    if not rows or began + seconds_to_begin(problem, rows) > deadline:
        return best, 0.0
    walk_seed = int(np.random.default_rng(child(seed, search.rounds, 0)).integers(2**31))
    moves = params.polish * len(best.codes)
    codes = Part(problem, best.codes, rows, seed).polish(
        best.codes, CLOSING_HEAT, best.objective, moves, walk_seed, time_until(deadline)
    )
    return min(best, problem.state(codes), key=lambda state: state.objective), perf_counter() - began


def record_of(
    search: Search,
    part: Part,
    outcome: Outcome,
    proposals: Sequence[Proposal],
    alone: NDArray[np.float64],
    shards: tuple[int, int],
    seconds: float,
    clock: Clock,
) -> RoundRecord:
    """The record of the round that was just adopted."""
    return RoundRecord(
        round=search.rounds,
        episode=search.episode,
        rows=part.rows,
        outcome=outcome.value,
        objective=search.curr.objective,
        best=search.best.objective,
        seconds=seconds,
        select_time=clock.laps["select"],
        solve_time=clock.laps["solve"],
        merge_time=clock.laps["merge"],
        neighbourhoods=tuple(
            NeighbourhoodRecord.of(proposal, float(value))
            for proposal, value in zip(proposals, alone, strict=True)
        ),
        retries=sum(proposal.retries for proposal in proposals),
        rebuilt=shards[0],
        moved_bytes=sum(proposal.moved_bytes for proposal in proposals) + shards[1],
    )


def opening_deadline(deadline: float) -> float:
    """A walk that is slower than expected ends in time for rounds to cool what it has found."""
    now = perf_counter()
    return now + 0.75 * (deadline - now)


def opening_moves(
    part: Part, params: EngineParams, episode: int, share: float, time_limit: float | None
) -> int:
    """Length of the walks that open an episode."""
    most = params.opening * (LATER if episode else 1) * len(part.problem.tops)
    if time_limit is None:
        return most
    return min(most, int(share * time_limit / part.working.seconds_per_move))


def heat_needed(part: Part, codes: NDArray[np.int32]) -> float:
    """By which factor hot walks begin hotter: where examples are many, or few of them bear all the loss.

    A walk has to be able to give up an example and to win one back. Where most examples are right, those
    that are not have far more than an average loss; half way there, in orders of magnitude, is hot enough.
    """
    losses, objective = part.working.losses(codes)
    typical = float(losses @ losses) / max(float(losses.sum()), 1e-300)
    rare = typical / max(TYPICAL * objective, 1e-300)
    return max(1.0, part.rows / HOT_ROWS) * max(1.0, math.sqrt(rare))


def child(seed: int, round: int, k: int) -> np.random.SeedSequence:
    """The seed of neighbourhood k of a round: no shared stream, so no order of arrival matters."""
    return np.random.SeedSequence(seed, spawn_key=(round, k))


def open_episode(
    search: Search,
    start: NDArray[np.int32],
    hotter: float,
    moves: int,
    params: EngineParams,
    seed: int,
    rng: np.random.Generator,
) -> list[Task]:
    """Walks: hot ones look for other basins from the start, cool ones below an elite each."""
    tasks = []
    for k in range(params.walks):
        heat = params.heats[(search.episode * params.walks + k) % len(params.heats)]
        elite = search.elites[rng.integers(len(search.elites))][1]
        hot = heat >= HOT
        codes = elite if search.episode and not hot else start
        choice = Choice.opening(hotter * heat if hot else heat)
        tasks.append(Task(codes, choice, moves, child(seed, search.rounds, k), search.best.objective))
    search.episode += 1
    search.before_episode = search.best.objective
    return tasks
