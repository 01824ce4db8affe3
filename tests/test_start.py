"""Tests of the start: automatic intervals around a continuous minimum, and what a search begins with."""

from __future__ import annotations

import numpy as np
import pytest
from search_cases import KINDS, are_levels, random_problem

import lns
from lns.errors import InvalidInput
from lns.grid import weight_bound
from lns.problem import QLossProblem
from lns.start import LEAST_REACH, grids_around, land, starting_state

AUTOMATIC = {"weight_range": "auto", "bias_range": "auto"}
BITS = [1, 2, 4, 8]


def automatic(kind="dense", **options):
    """A problem whose intervals are laid around its continuous minimum."""
    return random_problem(kind, **{**AUTOMATIC, **options})


# ---- automatic intervals ----


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("kind", KINDS)
def test_zero_and_the_continuous_minimum_are_levels(kind, bits):
    """Tests every weight and the bias, at every number of bits."""
    problem = automatic(kind, weight_bits=bits, q={-1: -1.0, 1: -0.2})
    w, b = problem.warm_start
    assert are_levels(problem.weight_grid, w).all()
    assert are_levels(problem.weight_grid, np.zeros(6)).all()
    assert are_levels(problem.bias_grid, [b]).all()


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_lost_on_automatic_intervals(kind, bits):
    """Tests that a search begins with the objective of the continuous minimum."""
    problem = automatic(kind, weight_bits=bits, sample_weight=np.linspace(0.5, 2, 120))
    expected = problem.objective(*problem.warm_start)
    assert starting_state(problem, None, 0).objective == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("lam", [1.0, 100.0])
@pytest.mark.parametrize("bits", BITS)
def test_no_automatic_level_exceeds_the_bound(blobs, lam, bits):
    """Tests 1/√λ."""
    grid = QLossProblem(*blobs, lam=lam, weight_bits=bits).weight_grid
    assert np.maximum(-grid.lo, grid.hi).max() <= weight_bound(lam) * (1 + 1e-12)


def test_the_interval_of_the_bias_reaches_to_both_sides(blobs):
    """Tests that a bias near zero can still move."""
    problem = QLossProblem(*blobs)
    b = problem.warm_start[1]
    assert problem.bias_grid.lo[0] <= b - LEAST_REACH
    assert problem.bias_grid.hi[0] >= b + 0.9 * LEAST_REACH


def test_a_feature_that_is_always_zero(blobs):
    """Tests that an empty column gets an interval like the others, with zero in it."""
    X, y = blobs
    problem = QLossProblem(np.column_stack([X, np.zeros(60)]), y)
    assert are_levels(problem.weight_grid, np.zeros(6)).all()
    np.testing.assert_allclose(problem.state().weights, 0.0, atol=1e-9)


def test_intervals_are_laid_around_any_point():
    """Tests a point that is no minimum, a weight of zero and a large bias among it."""
    problem = automatic(weight_bits=3)
    w, b = np.array([0.5, -2.0, 0.0, 1e-3, -1e-3, 4.0]), 30.0
    weights, bias = grids_around(problem, w, b)
    assert are_levels(weights, w).all()
    assert are_levels(weights, np.zeros(6)).all()
    assert are_levels(bias, [b]).all()


# ---- given ranges ----


def test_a_given_range_of_weights_is_kept_beside_an_automatic_bias(blobs):
    """Tests that "auto" may be used for the bias alone, which then is a level of its interval."""
    problem = QLossProblem(*blobs, weight_range=(-0.5, 0.25))
    assert (problem.weight_grid.lo == -0.5).all()
    assert (problem.weight_grid.hi == 0.25).all()
    w, b = problem.warm_start
    assert ((w >= -0.5) & (w <= 0.25)).all()
    assert are_levels(problem.bias_grid, [b]).all()


@pytest.mark.parametrize("bits", BITS)
def test_a_given_range_of_the_bias_is_kept_beside_automatic_weights(bits):
    """Tests that the weights make up for the rounding of the bias, with levels of their own."""
    problem = random_problem(weight_range="auto", bias_range=(-1, 1), bias_bits=1, weight_bits=bits)
    assert (problem.bias_grid.lo[0], problem.bias_grid.hi[0]) == (-1.0, 1.0)
    state = starting_state(problem, None, 0)
    assert abs(state.bias) == 1.0
    w, b = problem.warm_start
    assert state.objective <= problem.objective(w, np.sign(b) or 1.0) + 1e-9


@pytest.mark.parametrize("given", [{}, {"weight_range": (-0.05, 0.1)}, {"bias_range": "auto"}])
@pytest.mark.parametrize("bits", BITS)
def test_on_a_given_grid_the_start_is_rounded_with_care(given, bits):
    """Tests that it is never worse than the nearest levels of the continuous minimum."""
    problem = random_problem("mixed", weight_bits=bits, **given)
    start = starting_state(problem, None, 0)
    assert start.problem is problem
    assert start.objective <= problem.state(problem.codes(*problem.warm_start)).objective + 1e-12


# ---- landing ----


@pytest.mark.parametrize("ranges", [AUTOMATIC, {"weight_range": "auto"}, {}])
def test_a_point_lands_at_a_true_objective(ranges):
    """Tests that what is said of the place is so, in the problem itself, which does not change."""
    problem = random_problem("mixed", weight_bits=2, **ranges)
    before = [grid.lo.copy() for grid in problem.grids]
    w, b = np.random.default_rng(0).normal(size=6), 0.3
    state = land(problem, w, b)
    assert state.objective == pytest.approx(problem.objective(state.weights, state.bias), rel=1e-12)
    if problem.grid_follows:
        assert state.objective < problem.objective(w, b)
    else:
        assert state.problem is problem
    for old, grid in zip(before, problem.grids, strict=True):
        np.testing.assert_array_equal(old, grid.lo)


def test_landing_once_more_loses_nothing():
    """Tests that intervals laid anew hold what lay on the ones before."""
    problem = automatic(weight_bits=2)
    once = land(problem, np.ones(6), 0.0)
    assert land(problem, once.weights, once.bias).objective <= once.objective + 1e-12


# ---- the start of a search ----


def test_zero_and_random_starts_lie_on_the_grid():
    """Tests the codes nearest to zero, and that a seed repeats its random codes."""
    problem = automatic()
    np.testing.assert_array_equal(starting_state(problem, "zero", 0).codes, problem.state().codes)
    one, two, other = (starting_state(problem, "random", seed).codes for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert (one != other).any()


def test_a_given_point_is_rounded_to_a_given_grid():
    """Tests weights and bias that lie between levels and outside of the range."""
    problem = random_problem()
    w, b = np.array([0.11, -0.52, 0.9, 5.0, -5.0, 0.0]), 0.3
    np.testing.assert_array_equal(starting_state(problem, (w, b), 0).codes, problem.codes(w, b))


def test_automatic_intervals_are_laid_around_a_given_point():
    """Tests that an answer goes in as it came out: every weight of it and the bias are levels."""
    problem = automatic(weight_bits=2)
    first = lns.solve(problem, max_rounds=6, time_limit=None, seed=5)
    again = starting_state(problem, (first.weights, first.bias), 0)
    assert again.objective == pytest.approx(first.objective, rel=1e-9)


@pytest.mark.parametrize("initial", ["ones", 3, (np.zeros(6),), (np.zeros(5), 0.0)])
def test_other_starts_are_refused(initial):
    """Tests words, numbers, and points of another size."""
    with pytest.raises(InvalidInput, match=r"initial must be|w must have length 6"):
        starting_state(random_problem(), initial, 0)
