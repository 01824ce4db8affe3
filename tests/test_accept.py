"""Tests of acceptance: which candidate becomes the current solution."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lns.accept import TOLERANCE, Outcome, greedy, make_accept
from lns.errors import InvalidInput

BEST, CURR = 1.0, 1.5


class Luck:
    """A generator whose random() is known."""

    def __init__(self, value):
        self.value = value

    def random(self):
        return self.value


@pytest.mark.parametrize(
    ("cand", "outcome"),
    [
        (BEST - 2 * TOLERANCE, Outcome.BEST),
        (BEST, Outcome.BETTER),
        (CURR - 2 * TOLERANCE, Outcome.BETTER),
    ],
)
def test_improvements_are_always_taken(cand, outcome):
    """Tests below the best and below the current one, on both sides of each edge."""
    assert greedy(BEST, CURR, cand, Luck(0.999)) is outcome


def test_the_same_objective_is_not_an_improvement():
    """Tests that a candidate equal to the current solution changes nothing."""
    assert greedy(BEST, CURR, CURR, Luck(0.0)) is Outcome.REJECT
    assert greedy(BEST, BEST, BEST, Luck(0.0)) is Outcome.REJECT


def test_rounding_is_not_an_improvement():
    """Tests that less than the tolerance below the best is no new best."""
    assert greedy(BEST, BEST, BEST - TOLERANCE / 4, Luck(0.999)) not in (Outcome.BEST, Outcome.BETTER)


@given(st.floats(0.1, 10), st.floats(0, 10), st.floats(0, 5))
def test_greedy_never_gets_worse(best, above, further):
    """Tests that greedy refuses everything at or above the current solution."""
    curr = best + above
    assert greedy(best, curr, curr + further, Luck(0.0)) is Outcome.REJECT


def test_a_rule_is_named_or_given():
    """Tests the one name, a rule of one's own, and what is neither."""
    assert make_accept("greedy") is greedy
    mine = lambda best, curr, cand, rng: Outcome.ACCEPT  # noqa: E731
    assert make_accept(mine) is mine
    with pytest.raises(InvalidInput, match=r"Unknown acceptance 'record'\. Choose one of greedy"):
        make_accept("record")


def test_outcomes_read_as_words():
    """Tests that records can hold plain text."""
    assert [outcome.value for outcome in Outcome] == ["best", "better", "accept", "reject"]
