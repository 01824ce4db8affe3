"""Time within a round: what its steps took, and which share of it is used."""

from __future__ import annotations

import math
from collections.abc import Callable
from time import perf_counter


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
