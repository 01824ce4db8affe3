"""Watching a run: callbacks, the line of progress built on them, and work that must not slow the run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

if TYPE_CHECKING:
    from lns.datasets.dataset import Dataset
    from lns.problem import QLossProblem
    from lns.result import Result, RoundRecord


class Callbacks:
    """Override what you want to hear of. Everything passed is a value; changing it changes nothing."""

    def on_start(self, problem: QLossProblem, objective: float) -> None:
        """The search begins, at this objective."""

    def on_round(self, record: RoundRecord) -> None:
        """A round is done."""

    def on_best(self, record: RoundRecord, weights: Any, bias: float) -> None:
        """A round found a new best solution."""

    def on_end(self, result: Result) -> None:
        """The search is over."""


class AtNewBests(Callbacks):
    """Look at new best solutions now and then: the last one is never missed, the search hardly slowed.

    Parameters
    ----------
    look
        Called with weights and bias.
    every
        Seconds that lie between two looks at least.
    share
        Looks take at most this share of the time.
    """

    def __init__(
        self, look: Callable[[Any, float], object], *, every: float = 1.0, share: float = 0.02
    ) -> None:
        self.look, self.every, self.share = look, every, share
        self._waiting: tuple[Any, float] | None = None
        self._seen: Any = ()
        self._next = 0.0

    def on_best(self, record: RoundRecord, weights: Any, bias: float) -> None:
        self._waiting = weights, bias
        self._perhaps()

    def on_round(self, record: RoundRecord) -> None:
        self._perhaps()

    def on_end(self, result: Result) -> None:
        # What is returned need not be what a round has found: a walk may have followed.
        if not np.array_equal(self._seen, np.append(result.weights, result.bias)):
            self._waiting = result.weights, result.bias
        self._next = 0.0
        self._perhaps()

    def _perhaps(self) -> None:
        if self._waiting is None or (began := perf_counter()) < self._next:
            return
        weights, bias = self._waiting
        self.look(weights, bias)
        self._waiting, self._seen = None, np.append(weights, bias)
        ended = perf_counter()
        self._next = ended + max(self.every, (ended - began) / self.share)


class HeldOutError(AtNewBests):
    """The share of held-out examples on the wrong side; None before the first look."""

    def __init__(self, data: Dataset) -> None:
        from lns.matrix import as_matrix

        super().__init__(self._look)
        self._matrix, self._y = as_matrix(data.X), data.y.astype(float)
        self.value: float | None = None

    @property
    def size(self) -> int:
        """Number of examples held out."""
        return len(self._y)

    def __call__(self, weights: Any, bias: float) -> float:
        """The error of a solution; an example on the boundary is on the wrong side."""
        return float((self._matrix.margins(weights, bias, self._y) <= 0).mean())

    def _look(self, weights: Any, bias: float) -> None:
        self.value = self(weights, bias)


class ProgressLine(Callbacks):
    """One line on standard error: rewritten in place in a terminal, printed now and then elsewhere.

    Parameters
    ----------
    time_limit, max_rounds
        Those of the run, to say what is left.
    stream
        Where to write; default standard error.
    held_out
        Whose error is shown. It has to be a callback of the run as well, in front of the line.
    """

    def __init__(
        self,
        time_limit: float | None = None,
        max_rounds: int | None = None,
        stream: TextIO | None = None,
        held_out: HeldOutError | None = None,
    ) -> None:
        self.time_limit, self.max_rounds, self.held_out = time_limit, max_rounds, held_out
        self.stream = stream or sys.stderr
        self.every = 0.2 if self.stream.isatty() else 5.0
        self._last = 0.0
        self._accepted = 0

    def on_start(self, problem: QLossProblem, objective: float) -> None:
        self._last, self._accepted = perf_counter(), 0

    def on_round(self, record: RoundRecord) -> None:
        self._accepted += record.outcome != "reject"
        now = perf_counter()
        if now - self._last >= self.every:
            self._last = now
            self._write(self.line(record))

    def line(self, record: RoundRecord) -> str:
        """The text for a round."""
        count = record.round + 1
        left = ""
        if self.time_limit is not None:
            left = f"  {max(0.0, self.time_limit - record.seconds):.0f} s left"
        elif self.max_rounds is not None:
            left = f"  {self.max_rounds - count} rounds left"
        rate, share = count / max(record.seconds, 1e-9), 100 * self._accepted / count
        error = None if self.held_out is None else self.held_out.value
        test = "" if error is None else f"  test error {100 * error:.2f} %"
        return f"objective {record.best:.6f}{test}  round {count}  {rate:.1f}/s  accepted {share:.0f} %{left}"

    def on_end(self, result: Result) -> None:
        if self.stream.isatty():
            self._write("")

    def _width(self) -> int:
        """What fits into one line of the terminal; a line that wraps cannot be rewritten."""
        try:
            columns = os.get_terminal_size(self.stream.fileno()).columns
        except (OSError, ValueError):  # not a terminal of the system's
            columns = 0
        return (columns or 80) - 1

    def _write(self, text: str) -> None:
        if self.stream.isatty():
            self.stream.write(f"\r\x1b[K{text[: self._width()]}")
        elif text:
            self.stream.write(text + "\n")
        self.stream.flush()
