"""Tests of the progress line."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from lns.datasets.dataset import Dataset
from lns.progress import AtNewBests, Callbacks, HeldOutError, ProgressLine
from lns.result import RoundRecord


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


def record(round=3, outcome="best", seconds=2.0):
    """A record of a round at 2 rounds a second."""
    return RoundRecord(
        round=round, rows=10, outcome=outcome, objective=0.5, best=0.25, seconds=seconds,
        select_time=0.0, solve_time=0.0, merge_time=0.0, neighbourhoods=(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("limits", "left"),
    [
        ({}, ""),
        ({"time_limit": 30.0}, "  28 s left"),
        ({"time_limit": 1.0}, "  0 s left"),
        ({"max_rounds": 10}, "  6 rounds left"),
        ({"time_limit": 30.0, "max_rounds": 10}, "  28 s left"),
    ],
)
def test_the_line_tells_objective_rounds_rate_share_and_rest(limits, left):
    """Tests the whole text for each kind of limit."""
    line = ProgressLine(**limits, stream=io.StringIO())
    for outcome in ("best", "reject", "accept", "better"):
        line.on_round(record(outcome=outcome))
    assert line.line(record()) == f"objective 0.250000  round 4  2.0/s  accepted 75 %{left}"


def test_a_round_that_took_no_time_divides_nothing_by_zero():
    """Tests the first round on a coarse clock."""
    assert "round 1" in ProgressLine(stream=io.StringIO()).line(record(round=0, seconds=0.0))


def test_a_stream_that_is_no_terminal_stays_quiet_for_short_runs():
    """Tests that a log file gets nothing from a run of a moment, and no control characters."""
    stream = io.StringIO()
    line = ProgressLine(stream=stream)
    line.on_start(None, 1.0)
    for k in range(50):
        line.on_round(record(round=k))
    line.on_end(None)
    assert stream.getvalue() == ""


def test_a_log_file_gets_whole_lines_now_and_then():
    """Tests that each message on a stream that is no terminal ends with a newline."""
    stream = io.StringIO()
    line = ProgressLine(stream=stream)
    line.on_start(None, 1.0)
    line.every = 0.0
    line.on_round(record())
    line.on_round(record(round=4))
    assert [text.split("  ")[1] for text in stream.getvalue().splitlines()] == ["round 4", "round 5"]
    assert "\r" not in stream.getvalue()
    assert "\x1b" not in stream.getvalue()


def test_a_terminal_line_is_rewritten_in_place_and_cleared_at_the_end():
    """Tests the control characters of a terminal."""
    stream = Terminal()
    line = ProgressLine(stream=stream)
    line.on_start(None, 1.0)
    line.every = 0.0
    line.on_round(record())
    line.on_end(None)
    first, last = stream.getvalue().split("\r")[1:]
    assert first.startswith("\x1b[Kobjective 0.250000")
    assert last == "\x1b[K"


def test_a_terminal_is_not_flooded():
    """Tests that rounds faster than the eye do not each write a line."""
    stream = Terminal()
    line = ProgressLine(stream=stream)
    line.on_start(None, 1.0)
    for k in range(100):
        line.on_round(record(round=k))
    assert stream.getvalue().count("\r") <= 1


def test_a_second_run_counts_from_zero():
    """Tests that a line used twice forgets the acceptances of its first run."""
    line = ProgressLine(stream=io.StringIO())
    line.on_start(None, 1.0)
    line.on_round(record(round=0))
    line.on_start(None, 1.0)
    line.on_round(record(round=0, outcome="reject"))
    assert "accepted 0 %" in line.line(record(round=0))


def test_the_default_stream_is_standard_error():
    """Tests where lines go when nothing is said."""
    assert ProgressLine().stream is sys.stderr


def test_callbacks_do_nothing_unless_overridden():
    """Tests that every method may be left out."""
    nothing = Callbacks()
    assert nothing.on_start(None, 1.0) is None
    assert nothing.on_round(record()) is None
    assert nothing.on_best(record(), [0.0], 0.0) is None
    assert nothing.on_end(None) is None


def test_new_bests_are_looked_at_now_and_then_and_the_last_one_always():
    """Tests that looks keep their distance, that a later round catches up, and that the end waits not."""
    seen = []
    watch = AtNewBests(lambda weights, bias: seen.append(bias), every=1e9)
    for bias in (1.0, 2.0, 3.0):
        watch.on_best(record(), [0.0], bias)
    watch.on_round(record())
    assert seen == [1.0]
    for _ in range(2):
        watch.on_end(SimpleNamespace(weights=[0.0], bias=3.0))
    assert seen == [1.0, 3.0]
    watch.on_end(SimpleNamespace(weights=[0.0], bias=3.5))  # found after the last round
    assert seen == [1.0, 3.0, 3.5]
    del seen[-1]
    eager = AtNewBests(lambda weights, bias: seen.append(bias), every=0.0, share=1e9)
    eager.on_best(record(), [0.0], 4.0)
    eager.on_round(record())
    assert seen == [1.0, 3.0, 4.0]


def test_a_slow_look_is_rare():
    """Tests that the time between looks grows with what they cost."""
    watch = AtNewBests(lambda weights, bias: sum(range(100_000)), every=0.0, share=1e-6)
    watch.on_best(record(), [0.0], 1.0)
    first = watch._next
    watch.on_best(record(), [0.0], 2.0)
    assert watch._waiting is not None
    assert watch._next == first


def test_the_held_out_error_counts_the_wrong_side_and_the_boundary():
    """Tests the share against examples worked out by hand, and that the line shows it."""
    data = Dataset("four", np.array([[1.0], [2.0], [-1.0], [0.0]]), np.array([1, -1, -1, 1]))
    error = HeldOutError(data)
    assert error.value is None
    line = ProgressLine(stream=io.StringIO(), held_out=error)
    assert "test" not in line.line(record())
    error.on_best(record(), np.array([1.0]), 0.0)  # right, wrong, right, on the boundary
    assert error.value == 0.5
    assert error.size == 4
    assert "  test error 50.00 %  " in line.line(record())


def test_a_terminal_line_does_not_wrap():
    """Tests that a long line is cut where the terminal ends, since only one line can be rewritten."""
    stream = Terminal()
    line = ProgressLine(stream=stream)
    line._write("x" * 300)
    assert len(stream.getvalue()) < 85
