"""Tests of the stop rules."""

from __future__ import annotations

import pytest

from lns import stop
from lns.errors import InvalidInput
from lns.stop import Progress

HERE = Progress(seconds=2.0, rounds=10, since_best=4, objective=0.5)


@pytest.mark.parametrize(
    ("make", "holds", "not_yet"),
    [
        (stop.time_limit, 2.0, 2.0001),
        (stop.max_rounds, 10, 11),
        (stop.target, 0.5, 0.4999),
        (stop.no_improvement, 4, 5),
    ],
)
def test_each_rule_on_both_sides_of_its_edge(make, holds, not_yet):
    """Tests that a rule gives its own name as the reason on the edge, and None just before it."""
    assert make(holds)(HERE) == make.__name__
    assert make(not_yet)(HERE) is None


@pytest.mark.parametrize(
    ("make", "bad", "edge"),
    [
        (stop.time_limit, 0.0, 1e-9),
        (stop.time_limit, float("nan"), float("inf")),
        (stop.max_rounds, -1, 0),
        (stop.no_improvement, 0, 1),
        (stop.target, float("nan"), float("-inf")),
    ],
)
def test_limits_out_of_range_are_refused(make, bad, edge):
    """Tests just outside and on the edge, and that the message names the rule and the value."""
    with pytest.raises(InvalidInput, match=rf"^{make.__name__} .*Got {bad}\.$"):
        make(bad)
    make(edge)


def test_the_first_rule_that_holds_gives_the_reason():
    """Tests the order of rules, and that none of them means going on."""
    rules = [stop.max_rounds(100), stop.target(0.6), stop.time_limit(1.0)]
    assert stop.first_of(rules)(HERE) == "target"
    assert stop.first_of(rules[::-1])(HERE) == "time_limit"
    assert stop.first_of(rules[:1])(HERE) is None


def test_no_rules_never_stop():
    """Tests the empty list."""
    assert stop.first_of([])(HERE) is None
