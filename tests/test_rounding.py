"""Tests of the way from a point between the levels to the grid."""

from __future__ import annotations

import math
from itertools import product
from time import perf_counter

import numpy as np
import pytest
from search_cases import KINDS, random_codes, random_problem, recomputed

from lns import descent, rounding
from lns.problem import QLossProblem
from lns.rounding import box_of, levels_of, nearest_plane, round_compensated, sweep
from lns.walk import Walker, partners

VARIANTS = {
    "plain": {},
    "weights": {"sample_weight": np.linspace(0, 3, 120)},
    "classes": {"q": {-1: -1.5, 1: 0.0}},
    "convex": {"q": -np.inf},
    "no penalty": {"lam": 0.0},
    "cut off": {"weight_range": (-0.05, 0.1), "bias_range": (0.1, 0.2)},
    "intervals": {"weight_range": (np.linspace(-2, -0.1, 6), np.linspace(0.1, 3, 6))},
}


def nearest(problem, w, b):
    """The objective on the nearest levels."""
    return problem.state(problem.codes(w, b)).objective


def curved(seed, n, spread=0.3):
    """A positive definite matrix whose columns are much alike, levels, and their tops."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(4 * n, 1)) + spread * rng.normal(size=(4 * n, n))
    tops = rng.integers(1, 6, n)
    return rows.T @ rows, rng.uniform(0, tops), tops


def rise(hessian, change):
    """What a change costs."""
    return float(change @ hessian @ change)


# ---- one quadratic ----


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("n", [1, 2, 4])
def test_each_weight_is_rounded_where_the_others_want_it(seed, n):
    """Tests against the definition: with the weights before it fixed and all others free, its best place."""
    hessian, levels, tops = curved(seed, n)
    order = np.random.default_rng(seed).permutation(n)
    codes = nearest_plane(hessian, levels, tops, order)
    change = np.zeros(n)
    for k, i in enumerate(order):
        fixed, free = order[:k], order[k:]
        wanted = np.linalg.solve(hessian[np.ix_(free, free)], -hessian[np.ix_(free, fixed)] @ change[fixed])
        expected = np.clip(np.rint(levels[i] + wanted[0]), 0, tops[i])
        assert codes[i] == expected
        change[i] = expected - levels[i]


@pytest.mark.parametrize("seed", range(10))
def test_without_correlations_the_nearest_levels_are_best(seed):
    """Tests a diagonal matrix in any order against all levels there are."""
    rng = np.random.default_rng(seed)
    hessian, (_, levels, tops) = np.diag(rng.uniform(0.1, 9, 4)), curved(seed, 4)
    codes = nearest_plane(hessian, levels, tops, rng.permutation(4))
    every = np.array(list(product(*(range(top + 1) for top in tops))))
    best = every[np.argmin([rise(hessian, one - levels) for one in every])]
    np.testing.assert_array_equal(codes, best)


def test_compensated_levels_lie_near_the_best_ones():
    """Tests correlated weights: most of what the nearest levels lose against all levels is won back."""
    lost = np.zeros(2)
    for seed in range(40):
        hessian, levels, tops = curved(seed, 4)
        every = np.array(list(product(*(range(top + 1) for top in tops))))
        best = min(rise(hessian, one - levels) for one in every)
        codes = nearest_plane(hessian, levels, tops, np.argsort(-np.diag(hessian)))
        assert rise(hessian, codes - levels) >= best - 1e-9
        lost += rise(hessian, codes - levels) - best, rise(hessian, np.rint(levels) - levels) - best
    assert lost[0] < 0.3 * lost[1]


# ---- problems ----


@pytest.mark.parametrize("bits", [1, 2, 3, 4, 6, 8])
@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("kind", KINDS)
def test_compensated_rounding_is_never_worse_than_the_nearest_levels(kind, name, bits):
    """Tests minima and other points, inside and outside of the ranges, in every kind of problem."""
    for seed in range(2):
        problem = random_problem(kind, seed=seed, weight_bits=bits, **VARIANTS[name])
        far = 2 * np.random.default_rng(seed).normal(size=7)
        for w, b in (problem.warm_start, (far[:-1], far[-1])):
            codes = round_compensated(problem, w, b)
            assert ((codes >= 0) & (codes <= problem.tops)).all()
            assert recomputed(problem, codes) <= nearest(problem, w, b) + 1e-12


def test_compensated_rounding_is_worth_while():
    """Tests few bits and correlated features: half of what the nearest levels lose is won back."""
    lost = np.zeros(2)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(300, 1)) + 0.3 * rng.normal(size=(300, 12))
        y = np.where(X @ rng.normal(size=12) + rng.normal(size=300) > 0, 1, -1)
        problem = QLossProblem(
            X, y, q=-1.0, lam=0.01, weight_bits=3, weight_range=(-1, 1), bias_range=(-1, 1)
        )
        w, b = problem.warm_start
        found = recomputed(problem, round_compensated(problem, w, b))
        lost += np.array([found, nearest(problem, w, b)]) - problem.objective(w, b)
    assert lost[0] < 0.5 * lost[1]


def test_what_lies_on_the_grid_stays():
    """Tests that levels have no error to make up for."""
    problem = random_problem()
    codes = random_codes(problem)
    w, b = problem.values(codes)
    np.testing.assert_array_equal(round_compensated(problem, w, b), codes)


def test_rounding_repeats_itself():
    """Tests that nothing depends on chance."""
    problem = random_problem("mixed", weight_bits=2)
    one, two = (round_compensated(problem, *problem.warm_start) for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_without_time_there_is_an_answer_all_the_same():
    """Tests a deadline that has passed, with more features than a square matrix may have as well."""
    problem = random_problem(weight_bits=2)
    w, b = problem.warm_start
    codes = round_compensated(problem, w, b, perf_counter() - 1.0)
    assert recomputed(problem, codes) <= nearest(problem, w, b) + 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_very_many_features_are_rounded_with_care_too(kind, monkeypatch):
    """Tests more weights than a square matrix may have: the promise holds all the same."""
    for module in (descent, rounding):
        monkeypatch.setattr(module, "NEWTON_FEATURES", 4)
    problem = random_problem(kind, features=12, weight_bits=2)
    w, b = problem.warm_start
    codes = round_compensated(problem, w, b)
    assert ((codes >= 0) & (codes <= problem.tops)).all()
    assert recomputed(problem, codes) <= nearest(problem, w, b) + 1e-12


def test_curvature_may_be_that_of_a_sample(monkeypatch):
    """Tests that what is found on some rows is judged on all."""
    for module in (descent, rounding):
        monkeypatch.setattr(module, "FEW_ROWS", 40)
    problem = random_problem(weight_bits=2)
    w, b = problem.warm_start
    assert recomputed(problem, round_compensated(problem, w, b)) <= nearest(problem, w, b) + 1e-12


def swept(problem, levels, deadline=math.inf):
    """Where sweeps over the weights, in their order, lead from these levels."""
    codes = np.rint(levels).astype(np.int32)
    walker = Walker(problem, *partners(problem, *problem.values(codes)))
    return sweep(walker, problem, levels, np.arange(len(levels)), deadline)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_sweeps_from_the_grid_never_rise(kind, seed):
    """Tests that they end lower, on the grid, where no single level helps much."""
    problem = random_problem(kind, weight_bits=3)
    codes = random_codes(problem, seed)
    found = swept(problem, codes.astype(float))
    assert ((found >= 0) & (found <= problem.tops)).all()
    assert recomputed(problem, found) < recomputed(problem, codes)
    np.testing.assert_array_equal(swept(problem, codes.astype(float), 0.0), codes)


def test_the_first_sweep_takes_a_level_beside():
    """Tests that weights between two levels go to one of these, if there is no time for more."""
    problem = random_problem(weight_bits=3)
    levels = levels_of(problem, *problem.warm_start)
    found = swept(problem, levels, 0.0)
    assert (np.abs(found - levels) < 1.0).all()


def test_levels_between_codes():
    """Tests that levels of values are their codes where these are whole, and end with the grid."""
    problem = random_problem()
    codes = random_codes(problem)
    w, b = problem.values(codes)
    np.testing.assert_allclose(levels_of(problem, w, b), codes, atol=1e-9)
    np.testing.assert_array_equal(levels_of(problem, np.full(6, 9.0), -9.0), [15] * 6 + [0])
    low, high = box_of(problem)
    np.testing.assert_array_equal([low, high], [[-1] * 7, [1] * 7])


def test_a_feature_that_no_example_has_without_a_penalty():
    """Tests an empty column whose weight nothing holds, on a range without zero."""
    X = np.column_stack([np.random.default_rng(0).normal(size=(80, 3)), np.zeros(80)])
    y = np.where(X[:, 0] > 0, 1, -1)
    problem = QLossProblem(X, y, lam=0.0, weight_bits=3, weight_range=(0.15, 3.0), bias_range=(-3, 3))
    codes = round_compensated(problem, *problem.warm_start)
    assert recomputed(problem, codes) <= nearest(problem, *problem.warm_start) + 1e-12


def test_no_candidate_is_worked_out_once_the_time_is_over(monkeypatch):
    """Tests that the nearest levels are what is left then."""
    problem = random_problem(weight_bits=2)
    w, b = problem.warm_start
    monkeypatch.setattr(rounding, "hessian_in_levels", None)
    monkeypatch.setattr(rounding, "Walker", None)
    codes = round_compensated(problem, w, b, deadline=0.0)
    np.testing.assert_array_equal(codes, problem.codes(w, b))
