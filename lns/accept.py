"""Whether a candidate becomes the current solution."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

import numpy as np

from lns.errors import InvalidInput


class Outcome(StrEnum):
    """What became of a round's candidate."""

    BEST = "best"
    BETTER = "better"
    ACCEPT = "accept"
    REJECT = "reject"


class Accept(Protocol):
    """Decides on objectives: of the best solution, the current one and the candidate."""

    def __call__(self, best: float, curr: float, cand: float, rng: np.random.Generator) -> Outcome: ...


TOLERANCE = 1e-12  # objectives closer than this are the same


def _improvement(best: float, curr: float, cand: float) -> Outcome | None:
    if cand < best - TOLERANCE:
        return Outcome.BEST
    return Outcome.BETTER if cand < curr - TOLERANCE else None


def greedy(best: float, curr: float, cand: float, rng: np.random.Generator) -> Outcome:
    """Only what is better than the current solution."""
    return _improvement(best, curr, cand) or Outcome.REJECT


class RecordToRecord:
    """What is better, and what is at most `deviation` (relative) worse than the best."""

    def __init__(self, deviation: float = 1e-4) -> None:
        self.deviation = deviation

    def __call__(self, best: float, curr: float, cand: float, rng: np.random.Generator) -> Outcome:
        improved = _improvement(best, curr, cand)
        if improved:
            return improved
        return Outcome.ACCEPT if cand != curr and cand <= best * (1 + self.deviation) else Outcome.REJECT


ACCEPT: dict[str, Callable[[], Accept]] = {
    "greedy": lambda: greedy,
    "record": RecordToRecord,
}


def make_accept(accept: str | Accept) -> Accept:
    """An acceptance rule from its name, or the rule itself."""
    if not isinstance(accept, str):
        return accept
    if accept not in ACCEPT:
        raise InvalidInput(f"Unknown acceptance {accept!r}. Choose one of {', '.join(ACCEPT)}.")
    return ACCEPT[accept]()
