"""Whether a candidate becomes the current solution."""

from __future__ import annotations

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


def greedy(best: float, curr: float, cand: float, rng: np.random.Generator) -> Outcome:
    """Only what is better than the current solution."""
    if cand < best - TOLERANCE:
        return Outcome.BEST
    return Outcome.BETTER if cand < curr - TOLERANCE else Outcome.REJECT


def make_accept(accept: str | Accept) -> Accept:
    """An acceptance rule from its name, or the rule itself."""
    if accept == "greedy":
        return greedy
    if not callable(accept):
        raise InvalidInput(f"Unknown acceptance {accept!r}. Choose one of greedy, or give a callable.")
    return accept
