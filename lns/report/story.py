"""What happened in a run, read from its folder, while it is going on or afterwards."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lns.accept import TOLERANCE
from lns.errors import DataError
from lns.model import FILENAME as MODEL
from lns.records import calls
from lns.run_folder import EVENTS, MARGINS, read_config, read_json

OUTCOMES = ("best", "better", "accept", "reject")


@dataclass(frozen=True, slots=True)
class Move:
    """One neighbourhood of a round: its kind, what came of it, and its size."""

    kind: str
    outcome: str
    variables: int
    couplers: int


@dataclass(frozen=True, slots=True)
class Round:
    """One round, as far as a report looks at it."""

    number: int
    seconds: float
    objective: float
    best: float
    outcome: str
    test_error: float | None
    moves: tuple[Move, ...]
    timings: dict[str, float]
    chips: tuple[dict[str, Any], ...]


@dataclass
class Story:
    """A run as told by its folder. `read` goes on where it stopped, so that a growing folder costs little."""

    path: Path
    config: dict[str, Any] = field(init=False)
    model: dict[str, Any] | None = field(init=False, default=None)
    margins: dict[str, Any] | None = field(init=False, default=None)
    start: dict[str, Any] | None = field(init=False, default=None)
    end: dict[str, Any] | None = field(init=False, default=None)
    rounds: list[Round] = field(init=False, default_factory=list)
    starts: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.config = read_config(self.path)
        self._offset, self._lines = 0, 0
        self._shift: float | None = 0.0  # of the clock; None until the first round after a start
        self.read()

    @property
    def status(self) -> str:
        """``finished``, ``interrupted``, ``failed``, or ``unfinished``: running, or killed."""
        if self.end is None:
            return "unfinished"
        if "interrupted" in (self.end.get("stop_reason"), self.end.get("error")):
            return "interrupted"
        return "failed" if self.end["event"] == "failed" else "finished"

    @property
    def seconds(self) -> float:
        """How long the run took, as far as it got."""
        last = self.rounds[-1].seconds if self.rounds else 0.0
        return max(last, float((self.end or {}).get("wall_time", 0.0)))

    @property
    def objective(self) -> float | None:
        """Of the classifier at the end, or of the best one so far."""
        if self.end and self.end.get("objective") is not None:
            return float(self.end["objective"])
        return self.rounds[-1].best if self.rounds else None

    @property
    def test_error(self) -> float | None:
        """The last that is known."""
        if self.end and self.end.get("test_error") is not None:
            return float(self.end["test_error"])
        return next((one.test_error for one in reversed(self.rounds) if one.test_error is not None), None)

    def read(self) -> None:
        """Read what is new in the folder."""
        self.model = read_json(self.path / MODEL)
        self.margins = read_json(self.path / MARGINS)
        for event in self._new_events():
            kind = event.get("event")
            if kind == "start":
                self.starts += 1
                self.start, self.end = self.start or event, None
                self._shift = None
            elif kind == "round":
                self._add(event)
            elif kind in ("end", "failed"):
                self.end = event

    def _new_events(self) -> Iterator[dict[str, Any]]:
        try:
            with (self.path / EVENTS).open("rb") as stream:
                stream.seek(self._offset)
                for line in stream:
                    if not line.endswith(b"\n"):
                        return  # being written, or the last words of a run that was killed
                    self._offset += len(line)
                    self._lines += 1
                    event = json.loads(line)
                    if not isinstance(event, dict):
                        raise ValueError("not an object")
                    yield event
        except FileNotFoundError:
            return
        except OSError as error:
            raise DataError(f"{self.path / EVENTS} cannot be read: {error.strerror or error}.") from None
        except ValueError as error:
            raise DataError(f"Line {self._lines} of {self.path / EVENTS} is damaged ({error}).") from None

    def _add(self, event: dict[str, Any]) -> None:
        # A run that goes on from a checkpoint repeats the rounds that were lost with the process.
        while self.rounds and self.rounds[-1].number >= event["round"]:
            self.rounds.pop()
        if self._shift is None:
            last = self.rounds[-1].seconds if self.rounds else 0.0
            self._shift = 0.0 if event["seconds"] >= last else last
        before = self.rounds[-1].objective if self.rounds else (self.start or event)["objective"]
        timings = {"select": event["select"], "merge": event["merge"]}
        for one in event["neighbourhoods"]:
            for name, value in one["timings"].items():
                timings[name] = timings.get(name, 0.0) + value
        self.rounds.append(
            Round(
                event["round"], event["seconds"] + self._shift, event["objective"], event["best"],
                event["outcome"], event.get("test_error"),
                tuple(
                    Move(one["kind"], _outcome(one, event, before), one["variables"], one["couplers"])
                    for one in event["neighbourhoods"]
                ),
                timings,
                tuple(call for one in event["neighbourhoods"] for call in calls(one.get("chip", []))),
            )
        )  # fmt: skip


def _outcome(one: dict[str, Any], event: dict[str, Any], before: float) -> str:
    """What a neighbourhood achieved: the outcome of its round, if it had a part in it."""
    helped = one["objective"] < before - TOLERANCE or one["objective"] <= event["objective"] + TOLERANCE
    return event["outcome"] if helped else "reject"
