"""Watching a run: callbacks, and the line of progress built on them."""

from __future__ import annotations

import sys
from time import perf_counter
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
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


class ProgressLine(Callbacks):
    """One line on standard error: rewritten in place in a terminal, printed now and then elsewhere."""

    def __init__(
        self, time_limit: float | None = None, max_rounds: int | None = None, stream: TextIO | None = None
    ) -> None:
        self.time_limit, self.max_rounds = time_limit, max_rounds
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
        return f"objective {record.best:.6f}  round {count}  {rate:.1f}/s  accepted {share:.0f} %{left}"

    def on_end(self, result: Result) -> None:
        if self.stream.isatty():
            self._write("")

    def _write(self, text: str) -> None:
        if self.stream.isatty():
            self.stream.write(f"\r\x1b[K{text}")
        elif text:
            self.stream.write(text + "\n")
        self.stream.flush()
