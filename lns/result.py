"""What a search leaves behind: the solution and a record of every round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from lns.grid import Grid
    from lns.rounds import Proposal


@dataclass(frozen=True, slots=True)
class NeighbourhoodRecord:
    """One neighbourhood of a round: what was chosen, its size, and what it brought on its own."""

    kind: str
    background: str
    heat: float
    weights: NDArray[np.intp]
    examples: NDArray[np.intp]
    num_variables: int
    num_couplers: int
    reads: int
    timings: dict[str, float]
    chip: list[dict[str, Any]]
    objective: float

    @classmethod
    def of(cls, proposal: Proposal, objective: float) -> NeighbourhoodRecord:
        """The record of a proposal."""
        choice = proposal.choice
        return cls(
            choice.kind, choice.background, choice.heat, choice.weights, proposal.batch,
            proposal.num_variables, proposal.num_couplers, proposal.reads, proposal.timings, proposal.chip,
            objective,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class RoundRecord:
    """One round: its neighbourhoods, its outcome, and where its time went."""

    round: int
    rows: int
    outcome: str
    objective: float
    best: float
    seconds: float
    select_time: float
    solve_time: float
    merge_time: float
    neighbourhoods: tuple[NeighbourhoodRecord, ...]
    retries: int = 0  # neighbourhoods run once more because a worker, a node or their time was lost
    rebuilt: int = 0  # shards of the data that were lost and read again
    moved_bytes: int = 0  # sent to workers and shards and back, besides the data, which is sent once

    @classmethod
    def of(
        cls, proposals: Sequence[Proposal], values: NDArray, laps: Mapping[str, float], *,
        moved_bytes: int, **facts: Any,
    ) -> RoundRecord:  # fmt: skip
        """The record of a round from its proposals, the objective of each, and the laps of its clock."""
        return cls(
            **facts,
            select_time=laps["select"],
            solve_time=laps["solve"],
            merge_time=laps["merge"],
            neighbourhoods=tuple(map(NeighbourhoodRecord.of, proposals, map(float, values))),
            retries=sum(one.retries for one in proposals),
            moved_bytes=moved_bytes + sum(one.moved_bytes for one in proposals),
        )


@dataclass(frozen=True)
class Result:
    """The best solution of a run and the story of how it was found."""

    objective: float
    weights: NDArray[np.float64]
    bias: float
    codes: NDArray[np.int32]
    flagged: NDArray[np.bool_]
    rounds: list[RoundRecord]
    stop_reason: str
    wall_time: float
    start_objective: float
    start_time: float
    solver: str
    seed: int
    grids: tuple[Grid, Grid] | None = None  # the levels of the weights and of the bias that `codes` belong to

    @property
    def accepted(self) -> int:
        """Rounds whose candidate became the current solution."""
        return sum(record.outcome != "reject" for record in self.rounds)

    @property
    def retries(self) -> int:
        """How often a neighbourhood was run once more after a fault of a cluster."""
        return sum(record.retries for record in self.rounds)

    @property
    def rebuilt(self) -> int:
        """How often a shard of the data was lost and read again."""
        return sum(record.rebuilt for record in self.rounds)

    def gains(self) -> dict[str, float]:
        """By how much rounds of each kind have lowered the best objective."""
        total: dict[str, float] = {}
        before = self.start_objective
        for record in self.rounds:
            kind = record.neighbourhoods[0].kind
            total[kind] = total.get(kind, 0.0) + before - record.best
            before = record.best
        return total

    def times(self) -> dict[str, float]:
        """Seconds spent in each step, summed over neighbourhoods that may have run side by side."""
        total: dict[str, float] = {}
        for record in self.rounds:
            for name, value in (("select", record.select_time), ("merge", record.merge_time)):
                total[name] = total.get(name, 0.0) + value
            for one in record.neighbourhoods:
                for name, value in one.timings.items():
                    total[name] = total.get(name, 0.0) + value
        return total

    @property
    def overhead(self) -> float:
        """Share of the rounds' time that went neither to solvers, descents and walks nor to the objective.

        That is choosing, building and merging; the passes of the objective within a merge are counted as
        overhead, too. Neighbourhoods that run side by side share the time of their round.
        """
        lost, whole = 0.0, 0.0
        for record in self.rounds:
            laps = [one.timings for one in record.neighbourhoods]
            building = sum(lap.get("build", 0.0) for lap in laps)
            busy = sum(sum(lap.values()) for lap in laps) or 1.0
            around = record.select_time + record.merge_time
            lost += around + record.solve_time * building / busy
            whole += around + record.solve_time
        return lost / whole if whole else 0.0

    def chip(self) -> dict[str, float]:
        """What the rounds did on an annealer's chip, emulated or real; empty if there was none.

        ``calls`` answered sub-QUBOs and ``fallbacks`` were answered by tabu search instead; ``num_qubits``,
        ``mean_chain`` and ``broken`` (fraction of broken chains) are means over the former; ``retries`` and
        ``qpu_time`` (seconds) are sums.
        """
        met = [call for record in self.rounds for one in record.neighbourhoods for call in one.chip]
        if not met:
            return {}
        answered = [call for call in met if not call["fallbacks"]]
        total: dict[str, float] = {"calls": len(answered)}
        for name in ("fallbacks", "retries", "qpu_time"):
            total[name] = sum(call[name] for call in met)
        for name in ("num_qubits", "mean_chain", "broken"):
            total[name] = float(np.mean([call[name] for call in answered])) if answered else 0.0
        return total

    def summary(self) -> str:
        """A few lines for people."""
        share = 100 * self.flagged.mean()
        times = self.times()
        whole = sum(times.values()) or 1.0
        shares = ", ".join(f"{name} {100 * value / whole:.0f} %" for name, value in sorted(times.items()))
        lines = [
            f"objective    {self.objective:.6f}  (start {self.start_objective:.6f})",
            f"flagged      {int(self.flagged.sum()):,} of {len(self.flagged):,} examples ({share:.1f} %)",
            f"rounds       {len(self.rounds):,}, {self.accepted:,} accepted; stop: {self.stop_reason}",
            f"time         {self.wall_time:.1f} s  ({shares})",
        ]
        if gains := {kind: gain for kind, gain in self.gains().items() if gain > 0}:
            each = ", ".join(
                f"{kind} {gain:.2g}" for kind, gain in sorted(gains.items(), key=lambda one: -one[1])
            )
            lines.insert(1, f"lowered by   {each}")
        if chip := self.chip():
            lines.append(
                f"chip         {chip['calls']:,} sub-QUBOs on {chip['num_qubits']:.0f} qubits, chains of "
                f"{chip['mean_chain']:.1f} ({100 * chip['broken']:.1f} % broken), "
                f"{chip['qpu_time']:.2f} s of QPU time, {chip['fallbacks']:,} by tabu search instead"
            )
        if self.retries:
            lines.append(f"faults       {self.retries:,} neighbourhoods were run again, elsewhere")
        if self.rebuilt:
            lines.append(f"faults       {self.rebuilt:,} shards were lost and read again")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()
