"""Tests of the merge: proposals made side by side, combined by the true objective."""

from __future__ import annotations

import numpy as np
import pytest
import slow_reference as slow
from hypothesis import given, settings
from hypothesis import strategies as st
from search_cases import random_codes, random_problem, recomputed

from lns.merge import combine
from lns.problem import QLossProblem
from lns.state import State


@st.composite
def merges(draw, most=4):
    """A state of a small problem and some proposals, repeated and unchanged ones among them."""
    problem, codes = draw(slow.problems_with_codes())
    one = st.tuples(*[st.integers(0, int(top)) for top in problem.tops])
    proposals = draw(st.lists(st.one_of(one, st.just(tuple(codes.tolist()))), min_size=1, max_size=most))
    return State(problem, codes), np.array(proposals, dtype=np.int32)


@settings(deadline=None)
@given(merges())
def test_a_merge_is_never_worse_than_any_changed_proposal(case):
    """Tests the objective of the merge, that it is the true one, and that each proposal's own is."""
    state, proposals = case
    codes, value, alone = combine(state, proposals)
    np.testing.assert_allclose(alone, [recomputed(state.problem, p) for p in proposals], rtol=1e-9)
    assert value == pytest.approx(recomputed(state.problem, codes), rel=1e-9)
    changed = (proposals != state.codes).any(axis=1)
    if changed.any():
        assert value <= alone[changed].min() + 1e-12
        assert (codes != state.codes).any()


@settings(deadline=None)
@given(merges(), st.randoms(use_true_random=False))
def test_the_order_of_proposals_changes_nothing(case, random):
    """Tests codes and objective, bit for bit, against a shuffled arrival."""
    state, proposals = case
    order = list(range(len(proposals)))
    random.shuffle(order)
    codes, value, alone = combine(state, proposals)
    codes_again, value_again, alone_again = combine(state, proposals[order])
    np.testing.assert_array_equal(codes_again, codes)
    assert value_again == value
    np.testing.assert_array_equal(alone_again, alone[order])


@settings(deadline=None)
@given(merges())
def test_a_merge_moves_nothing(case):
    """Tests that state and proposals are as they were."""
    state, proposals = case
    before = state.codes.copy(), state.objective, proposals.copy()
    combine(state, proposals)
    np.testing.assert_array_equal(state.codes, before[0])
    assert state.objective == before[1]
    np.testing.assert_array_equal(proposals, before[2])


@settings(deadline=None)
@given(merges(most=2), st.integers(1, 5))
def test_repeated_proposals_count_once(case, copies):
    """Tests that copies of the proposals change neither codes nor objective."""
    state, proposals = case
    codes, value, _ = combine(state, proposals)
    codes_again, value_again, alone = combine(state, np.tile(proposals, (copies, 1)))
    np.testing.assert_array_equal(codes_again, codes)
    assert value_again == pytest.approx(value, rel=1e-12)
    assert len(alone) == copies * len(proposals)


@pytest.mark.parametrize("count", [1, 3])
def test_proposals_that_change_nothing_give_the_current_codes(tiny, count):
    """Tests that there is nothing to merge."""
    state = tiny.state()
    codes, value, alone = combine(state, np.repeat(state.codes[None, :], count, axis=0))
    np.testing.assert_array_equal(codes, state.codes)
    assert value == state.objective
    np.testing.assert_allclose(alone, state.objective)


def two_halves():
    """Two features, each decides half of the examples: either half alone is worth half of the whole.

    Four examples with x = (±2, 0) and (0, ±2), λ = 0, weights 0 or 1: the loss of an example is 1 while its
    weight is 0 and 0 once it is 1 (margin 2).
    """
    X = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 2.0], [0.0, -2.0]])
    ranges = {"weight_bits": 1, "weight_range": (0, 1), "bias_bits": 1, "bias_range": (0, 1)}
    return QLossProblem(X, [1, -1, 1, -1], q=-0.5, lam=0.0, **ranges)


def test_two_proposals_together_beat_each_alone():
    """Tests F = 1 at the start, 0.5 after either proposal and 0 after both."""
    problem = two_halves()
    state = problem.state(np.array([0, 0, 0]))
    codes, value, alone = combine(state, np.array([[1, 0, 0], [0, 1, 0]], dtype=np.int32))
    assert state.objective == 1.0
    np.testing.assert_allclose(alone, [0.5, 0.5])
    np.testing.assert_array_equal(codes, [1, 1, 0])
    assert value == 0.0


def test_a_bad_proposal_is_left_out_of_the_combination():
    """Tests that a third proposal that harms does not spoil the other two."""
    problem = two_halves()
    state = problem.state(np.array([0, 0, 0]))
    codes, value, alone = combine(state, np.array([[1, 0, 0], [0, 0, 1], [0, 1, 0]], dtype=np.int32))
    np.testing.assert_array_equal(codes, [1, 1, 0])
    assert value == 0.0
    assert alone[1] > 0.5


def test_the_best_codes_may_be_worse_than_the_current_ones():
    """Tests that a merge proposes a change even uphill: acceptance decides, not the merge."""
    problem = two_halves()
    state = problem.state(np.array([1, 1, 0]))
    codes, value, _ = combine(state, np.array([[0, 1, 0], [1, 1, 0]], dtype=np.int32))
    np.testing.assert_array_equal(codes, [0, 1, 0])
    assert value == 0.5


def test_opposite_changes_do_not_cancel_into_a_proposal():
    """Tests that one level up and one level down, both worse than staying, are not merged into staying."""
    X = np.array([[1.0], [-1.0]])
    ranges = {"weight_bits": 2, "weight_range": (0, 3), "bias_bits": 1, "bias_range": (0, 1)}
    problem = QLossProblem(X, [1, -1], lam=0.01, **ranges)
    state = problem.state(np.array([1, 0]))  # F = λ: both margins are 1
    codes, value, alone = combine(state, np.array([[2, 0], [0, 0]], dtype=np.int32))
    np.testing.assert_allclose(alone, [0.04, 1.0])
    np.testing.assert_array_equal(codes, [2, 0])
    assert value == pytest.approx(0.04)


@pytest.mark.parametrize("count", [2, 6, 7, 12, 40])
def test_many_proposals_are_merged_too(count):
    """Tests more proposals than all combinations can be tried of."""
    problem = random_problem()
    state = problem.state(random_codes(problem, seed=99))
    proposals = np.stack([random_codes(problem, seed=k) for k in range(count)])
    codes, value, alone = combine(state, proposals)
    assert value <= alone.min() + 1e-12
    assert value == pytest.approx(recomputed(problem, codes), rel=1e-9)
    back, value_back, _ = combine(state, proposals[::-1])
    np.testing.assert_array_equal(back, codes)
    assert value_back == value


@pytest.mark.parametrize("kind", ["dense", "sparse", "mixed"])
def test_merged_codes_stay_on_the_grid(kind):
    """Tests that changes which add up beyond the last level are cut off there."""
    problem = random_problem(kind)
    tops = problem.tops
    state = problem.state(tops - 1)
    proposals = np.stack([tops, tops]).astype(np.int32)
    proposals[0, 0] -= 1
    proposals[1, 1] -= 1
    codes, value, _ = combine(state, proposals)
    assert (codes >= 0).all()
    assert (codes <= tops).all()
    assert value == pytest.approx(recomputed(problem, codes), rel=1e-9)
