"""The search: rounds of large neighbourhoods."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lns.accept import Accept, Outcome
from lns.clock import Clock
from lns.errors import InvalidInput
from lns.merge import merge
from lns.result import RoundRecord
from lns.rounds import Choice, Part, Proposal, Task, work_of
from lns.select import KINDS, Selector, View
from lns.stop import Progress, Stop

if TYPE_CHECKING:
    from lns.problem import QLossProblem
    from lns.state import State

Backend = Callable[[Part, Sequence[Task], float], list[Proposal]]


@dataclass(frozen=True, kw_only=True)
class EngineParams:
    """How the search is run.

    Parameters
    ----------
    kinds
        The kinds of neighbourhoods to draw from, see `lns.rounds.Choice`.
    neighbourhoods
        Neighbourhoods proposed side by side in every round. Not the number of workers: the same search runs
        on one or on many.
    heats
        Temperatures at which walks begin, taken in turn, in units of an average example's loss.
    walk_moves
        Length of walks in moves per weight where there is no time limit, and a twentieth of the most that
        they have otherwise. The first ones are shorter.
    walk_share
        A walk may take this share of the time limit, as far as the size of the data tells. (An estimate of
        the work, not of this machine's speed: the same arguments give the same search.)
    elites
        Solutions remembered, for fusion.
    sample_rows, most_rows
        Walks look at this many examples of larger data; all other neighbourhoods at the second number.
        What they propose is judged on all examples.
    """

    kinds: tuple[str, ...] = KINDS
    neighbourhoods: int = 2
    heats: tuple[float, ...] = (20.0, 6.0)
    walk_share: float = 0.25
    walk_moves: int = 2000
    elites: int = 8
    sample_rows: int = 131_072
    most_rows: int = 1_000_000

    def __post_init__(self) -> None:
        for name in ("neighbourhoods", "elites", "sample_rows", "most_rows"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"{name} must be at least 1. Got {getattr(self, name)}.")
        if self.walk_moves < 0:
            raise InvalidInput(f"walk_moves must be at least 0. Got {self.walk_moves}.")
        known = (*KINDS, "stored")
        for kind in self.kinds:
            if kind not in known:
                raise InvalidInput(f"Unknown kind {kind!r} in kinds. Choose from {', '.join(known)}.")
        if not self.kinds or not self.heats:
            raise InvalidInput("kinds and heats must not be empty.")
        if min(*self.heats, self.walk_share, math.inf) <= 0:
            raise InvalidInput("heats and walk_share must be above 0.")


@dataclass
class Search:
    """What the loop carries from round to round."""

    curr: State
    best: State
    elites: list[tuple[float, NDArray[np.float64]]] = field(
        default_factory=list
    )  # weights and, last, the bias
    rounds: int = 0
    best_round: int = 0

    @classmethod
    def begin(cls, state: State) -> Search:
        """A search that stands at its start."""
        search = cls(curr=state, best=state)
        search.remember(state.objective, state.point, 1)
        return search

    def progress(self, seconds: float) -> Progress:
        """What stop rules look at."""
        return Progress(seconds, self.rounds, self.rounds - self.best_round, self.best.objective)

    def adopt(self, cand: State, outcome: Outcome) -> None:
        """Go to the candidate unless it was rejected."""
        if outcome is not Outcome.REJECT:
            self.curr = cand
        if outcome is Outcome.BEST:
            self.best, self.best_round = cand, self.rounds + 1

    def view(self) -> View:
        """What the selector may look at."""
        problem = self.curr.problem
        others = [point for _, point in self.elites]
        codes = [problem.codes(point[:-1], point[-1]) for point in others]
        return View(self.curr.codes, problem.tops, problem.effects(), others, codes)

    def learn(self, cand: State, proposals: Sequence[Proposal], values: NDArray, limit: int) -> None:
        """Remember what came of a round; walks and hops that end elsewhere are worth it, too."""
        for proposal, value in zip(proposals, values, strict=True):
            if proposal.choice.kind in ("walk", "hop"):
                codes = self.curr.problem.point(proposal.codes)
                self.remember(float(value), codes if proposal.point is None else proposal.point, limit)
        self.remember(cand.objective, cand.point, limit)

    def remember(self, objective: float, point: NDArray[np.float64], limit: int) -> None:
        """Keep a solution among the elites, once, best first."""
        if all((point != other).any() for _, other in self.elites):
            self.elites.append((objective, point))
            self.elites.sort(key=lambda elite: (elite[0], elite[1].tobytes()))
            del self.elites[limit:]


class Parts:
    """The examples that neighbourhoods look at, made when they are first needed."""

    def __init__(
        self, problem: QLossProblem, params: EngineParams, seed: int, at: NDArray[np.float64]
    ) -> None:
        self.problem, self.seed, self.at = problem, seed, at
        self.most, self.few = (
            min(rows, problem.max_sample_rows) for rows in (params.most_rows, params.sample_rows)
        )
        if 2 * self.few > self.most:  # a copy would cost more than it saves
            self.few = self.most
        self._made: dict[int, Part] = {}

    def __call__(self, kind: str) -> Part:
        """Those for neighbourhoods of a kind."""
        rows = self.few if kind == "walk" else self.most
        if rows not in self._made:
            self._made[rows] = Part(self.problem, rows, self.seed, self.at[:-1], float(self.at[-1]))
        return self._made[rows]


def run(
    search: Search,
    start: NDArray[np.float64],
    select: Selector,
    accept: Accept,
    backend: Backend,
    stop: Stop,
    *,
    params: EngineParams,
    seed: int,
    began: float,
    time_limit: float | None = None,
    deadline: float = math.inf,
    follow: bool = False,
    on_round: Callable[[RoundRecord, Search], None] = lambda record, search: None,
) -> tuple[list[RoundRecord], str]:
    """Search until a stop rule holds, or Ctrl-C; the new rounds and the reason.

    `start` is the point at which samples learn which weights make up for each other; with `follow` solutions
    are followed off the grid. What is passed to `on_round` is all that the next round depends on.
    """
    problem = search.curr.problem
    parts = Parts(problem, params, seed, start)
    records: list[RoundRecord] = []
    try:
        while not (reason := stop(search.progress(perf_counter() - began))):
            clock, curr = Clock(), search.curr
            rebuilt, moved = problem.rebuilt, problem.moved_bytes
            rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(search.rounds,)))
            choices = select(search.view(), params.neighbourhoods, rng)
            part = parts(choices[0].kind)
            tasks = [
                Task(
                    curr.codes, curr.problem.grids, choice, moves_of(part, choice, params, time_limit),
                    child(seed, search.rounds, k), search.best.objective, follow,
                )
                for k, choice in enumerate(choices)
            ]  # fmt: skip
            clock.lap("select")
            proposals = backend(part, tasks, deadline)
            clock.lap("solve")
            cand, alone = merge(curr, proposals, deadline)
            search.learn(cand, proposals, alone, params.elites)
            outcome = accept(search.best.objective, curr.objective, cand.objective, rng)
            search.adopt(cand, outcome)
            gain = (curr.objective - cand.objective) / max(curr.objective, 1e-300)
            select.update(choices[0].kind, gain, sum(work_of(part, task) for task in tasks))
            clock.lap("merge")
            records.append(
                RoundRecord.of(
                    proposals, alone, clock.laps, round=search.rounds, rows=part.rows, outcome=outcome.value,
                    objective=search.curr.objective, best=search.best.objective,
                    seconds=perf_counter() - began, rebuilt=problem.rebuilt - rebuilt,
                    moved_bytes=problem.moved_bytes - moved,
                )
            )  # fmt: skip
            search.rounds += 1
            on_round(records[-1], search)
        return records, reason
    except KeyboardInterrupt:  # what has been found is not lost
        return records, "interrupted"


def moves_of(part: Part, choice: Choice, params: EngineParams, time_limit: float | None) -> int:
    """Length of a walk; 0 for all else."""
    if choice.kind != "walk":
        return 0
    most = params.walk_moves * len(part.point[0])
    if time_limit is not None:
        most = min(20 * most, int(1e9 * params.walk_share * time_limit / part.walker.move_work))
    return max(1, int(choice.length * most))


def child(seed: int, round: int, k: int) -> np.random.SeedSequence:
    """The seed of neighbourhood k of a round: no shared stream, so no order of arrival matters."""
    return np.random.SeedSequence(seed, spawn_key=(round, k))
