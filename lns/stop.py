"""When to stop: each rule returns the reason, or None to go on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lns.errors import InvalidInput


@dataclass(frozen=True)
class Progress:
    """What a stop rule may look at."""

    seconds: float
    rounds: int
    since_best: int  # rounds since the best solution was found
    objective: float


Stop = Callable[[Progress], str | None]


def time_limit(limit: float) -> Stop:
    """After so many seconds."""
    _check("time_limit", limit, limit > 0)
    return lambda progress: "time_limit" if progress.seconds >= limit else None


def max_rounds(limit: int) -> Stop:
    """After so many rounds."""
    _check("max_rounds", limit, limit >= 0)
    return lambda progress: "max_rounds" if progress.rounds >= limit else None


def target(value: float) -> Stop:
    """Once the objective is at most this."""
    _check("target", value, value == value)
    return lambda progress: "target" if progress.objective <= value else None


def no_improvement(limit: int) -> Stop:
    """After so many rounds without a new best solution."""
    _check("no_improvement", limit, limit >= 1)
    return lambda progress: "no_improvement" if progress.since_best >= limit else None


def first_of(rules: Sequence[Stop]) -> Stop:
    """The first rule that holds."""
    return lambda progress: next((reason for rule in rules if (reason := rule(progress))), None)


def _check(name: str, value: float, ok: bool) -> None:
    if not ok:
        raise InvalidInput(f"{name} is out of range. Got {value}.")
