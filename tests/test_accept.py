"""Tests of acceptance: which candidate becomes the current solution."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lns.accept import ACCEPT, TOLERANCE, Outcome, RecordToRecord, greedy

BEST, CURR = 1.0, 1.5
RULES = [greedy, RecordToRecord(0.1)]


class Luck:
    """A generator whose random() is known."""

    def __init__(self, value):
        self.value = value

    def random(self):
        return self.value


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("cand", "outcome"),
    [
        (BEST - 2 * TOLERANCE, Outcome.BEST),
        (BEST, Outcome.BETTER),
        (CURR - 2 * TOLERANCE, Outcome.BETTER),
    ],
)
def test_improvements_are_always_taken(rule, cand, outcome):
    """Tests below the best and below the current one, on both sides of each edge."""
    assert rule(BEST, CURR, cand, Luck(0.999)) is outcome


@pytest.mark.parametrize("rule", RULES)
def test_the_same_objective_is_not_an_improvement(rule):
    """Tests that a candidate equal to the current solution changes nothing."""
    assert rule(BEST, CURR, CURR, Luck(0.0)) is Outcome.REJECT
    assert rule(BEST, BEST, BEST, Luck(0.0)) is Outcome.REJECT


@pytest.mark.parametrize("rule", RULES)
def test_rounding_is_not_an_improvement(rule):
    """Tests that less than the tolerance below the best is no new best."""
    assert rule(BEST, BEST, BEST - TOLERANCE / 4, Luck(0.999)) not in (Outcome.BEST, Outcome.BETTER)


@given(st.floats(0.1, 10), st.floats(0, 10), st.floats(0, 5))
def test_greedy_never_gets_worse(best, above, further):
    """Tests that greedy refuses everything at or above the current solution."""
    curr = best + above
    assert greedy(best, curr, curr + further, Luck(0.0)) is Outcome.REJECT


@pytest.mark.parametrize(("cand", "outcome"), [(1.1 - 1e-9, Outcome.ACCEPT), (1.1 + 1e-9, Outcome.REJECT)])
def test_record_to_record_accepts_up_to_its_deviation(cand, outcome):
    """Tests both sides of best · (1 + deviation)."""
    assert RecordToRecord(0.1)(BEST, 1.05, cand, Luck(0.5)) is outcome


def test_record_to_record_looks_at_the_record_not_at_the_current_solution():
    """Tests that a small step up from a bad current solution is refused."""
    assert RecordToRecord(0.1)(BEST, 2.0, 2.0 + 1e-6, Luck(0.5)) is Outcome.REJECT


def test_rules_have_names():
    """Tests that each name makes a rule that can be called."""
    assert set(ACCEPT) == {"greedy", "record"}
    for make in ACCEPT.values():
        assert make()(BEST, CURR, 0.5, Luck(0.5)) is Outcome.BEST


def test_outcomes_read_as_words():
    """Tests that records can hold plain text."""
    assert [outcome.value for outcome in Outcome] == ["best", "better", "accept", "reject"]
