"""Tests of the search state against recomputation."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import slow_reference as slow
from hypothesis import given, settings
from hypothesis import strategies as st

from lns.errors import InvalidInput
from lns.problem import QLossProblem
from lns.state import State


@settings(deadline=None)
@given(slow.problems_with_codes())
def test_objective_and_margins_of_codes(case):
    """Tests a new state against the formula."""
    problem, codes = case
    state = State(problem, codes)
    w, b = problem.values(codes)
    assert state.objective == pytest.approx(slow.objective(problem, w, b), rel=1e-9)
    np.testing.assert_allclose(state.margins, slow.margins(problem, w, b), atol=1e-12)


@settings(deadline=None)
@given(slow.problems_with_codes(), st.data())
def test_evaluate_equals_the_objective_one_by_one(case, data):
    """Tests the batch evaluation against single objectives, unchanged candidates included."""
    problem, codes = case
    others = [[data.draw(st.integers(0, int(top))) for top in problem.tops] for _ in range(3)]
    candidates = np.array([codes, *others])
    expected = [slow.objective(problem, *problem.values(c)) for c in candidates]
    np.testing.assert_allclose(State(problem, codes).evaluate(candidates), expected, rtol=1e-9)


def test_evaluate_of_no_candidates_is_empty(blob_problem):
    """Tests the smallest batch."""
    assert blob_problem.state().evaluate(np.zeros((0, 6), dtype=int)).shape == (0,)


def test_evaluate_does_not_move_the_state(blob_problem):
    """Tests that looking at candidates changes nothing."""
    state = blob_problem.state()
    before = state.codes.copy(), state.margins.copy(), state.objective
    state.evaluate(state.codes[None, :] + 1)
    np.testing.assert_array_equal(state.codes, before[0])
    np.testing.assert_array_equal(state.margins, before[1])
    assert state.objective == before[2]


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ([-1, 0, 0, 0, 0, 0], r"codes\[0\] must lie in \[0, 15\]\. Got -1"),
        ([0, 16, 0, 0, 0, 0], r"codes\[1\] must lie in \[0, 15\]\. Got 16"),
        ([0, 0, 0, 0, 0, 256], r"codes\[5\] must lie in \[0, 255\]\. Got 256"),
        ([2**32, 0, 0, 0, 0, 0], r"codes\[0\] must lie in \[0, 15\]\. Got 4294967296"),
        (np.array([2**63, 0, 0, 0, 0, 0], dtype=np.uint64), r"codes\[0\] must lie in \[0, 15\]"),
        ([2**70, 0, 0, 0, 0, 0], r"codes must be 6 integers, bias last\. Got shape \(6,\), dtype object"),
        ([0.0] * 6, r"codes must be 6 integers, bias last\. Got shape \(6,\), dtype float64"),
        ([0] * 5, r"codes must be 6 integers, bias last\. Got shape \(5,\)"),
        ([[0], [0, 0]], r"codes must be 6 integers, bias last"),
    ],
)
def test_codes_off_the_grid_are_refused(blob_problem, codes, message):
    """Tests that the first wrong code is named, and that integers do not overflow."""
    with pytest.raises(InvalidInput, match="^" + message):
        blob_problem.state(codes)


def test_codes_on_the_edge_of_the_grid_are_accepted(blob_problem):
    """Tests the largest and the smallest codes."""
    for codes in (blob_problem.tops, np.zeros(6, dtype=np.uint8)):
        state = blob_problem.state(codes)
        assert state.objective == pytest.approx(blob_problem.objective(state.weights, state.bias), rel=1e-12)


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        ([[0, 0]], r"candidates must be integer codes of shape \(K, 6\)\. Got \(1, 2\)"),
        ([0] * 6, r"candidates must be integer codes"),
        ([[0.5] * 6], r"candidates must be integer codes"),
        ([[0] * 5 + [256]], r"candidates must lie on the grid"),
        ([[-1] + [0] * 5], r"candidates must lie on the grid"),
    ],
)
def test_candidates_off_the_grid_are_refused(blob_problem, candidates, message):
    """Tests shapes, types and levels of a batch."""
    with pytest.raises(InvalidInput, match="^" + message):
        blob_problem.state().evaluate(np.array(candidates))


@pytest.mark.parametrize("order", ["C", "F"])
def test_problem_and_state_add_at_most_eight_vectors(order):
    """Tests that the data is held once: peak memory stays below 8 vectors of length S and 2 MB."""
    rows = 300_000
    X = np.asarray(np.random.default_rng(0).random((rows, 12), dtype=np.float32), order=order)
    y = np.where(np.arange(rows) % 3, 1.0, -1.0)
    tracemalloc.start()
    problem = QLossProblem(X, y, weight_range=(-1, 1), bias_range=(-1, 1))
    state = problem.state()
    problem.state(state.codes + 1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.shares_memory(problem.matrix.X, X)
    assert peak < 8 * 8 * rows + 2 * 2**20


def test_a_state_is_a_point(blob_problem):
    """Tests weights and, last, the bias, and that codes passed in are not kept by reference."""
    codes = blob_problem.tops // 2
    state = blob_problem.state(codes)
    np.testing.assert_array_equal(state.point, blob_problem.point(codes))
    codes += 1
    assert (state.codes != codes).all()
