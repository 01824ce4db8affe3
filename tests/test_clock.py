"""Tests of time within a round."""

from __future__ import annotations

import numpy as np
import pytest

import lns.clock
from lns.clock import Clock, Turns, time_until


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is set."""
    now = [100.0]
    monkeypatch.setattr(lns.clock, "perf_counter", lambda: now[0])
    return now


def test_tasks_that_take_turns_share_the_time(clock):
    """Tests five tasks on two workers: three turns of equal length."""
    turns = Turns(5, 2, 130.0)
    assert turns.span == pytest.approx(10.0)
    assert [turns.end(k) for k in range(5)] == pytest.approx([110, 110, 120, 120, 130])


def test_without_a_deadline_turns_have_no_end(clock):
    """Tests that nothing is ever late."""
    assert Turns(5, 2, np.inf).end(4) == np.inf
    used = time_until(np.inf)
    clock[0] = 1e9
    assert used() == 0.0


def test_the_share_of_time_that_is_used(clock):
    """Tests the beginning, the middle, the end and beyond, and a time that is over before it begins."""
    used = time_until(104.0)
    shares = []
    for clock[0] in (100.0, 101.0, 104.0, 106.0):
        shares.append(used())
    assert shares == pytest.approx([0.0, 0.25, 1.0, 1.5])
    assert time_until(106.0)() == time_until(90.0)() == 1.0


def test_laps_of_one_name_add_up(clock):
    """Tests that every moment belongs to one lap, and that a name may come again."""
    stopwatch = Clock()
    for clock[0], name in ((101.0, "build"), (104.0, "solve"), (106.0, "build")):
        stopwatch.lap(name)
    assert stopwatch.laps == pytest.approx({"build": 3.0, "solve": 3.0})
