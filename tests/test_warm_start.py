"""Tests of the continuous path and of the grids laid around its end."""

from __future__ import annotations

import numpy as np
import pytest

from lns import warm_start
from lns.grid import weight_bound
from lns.problem import QLossProblem


def continuous(X, y, **options):
    """A problem whose given grids play no part."""
    return QLossProblem(X, y, **{"weight_range": (-1, 1), "bias_range": (-1, 1), **options})


def test_the_convex_problem_is_solved(blobs, layout):
    """Tests that no small step from the minimum of the squared hinge improves it, in every layout."""
    problem = continuous(layout(blobs[0]), blobs[1], q=-np.inf, lam=0.01)
    w, b = warm_start.continuous_path(problem)
    least = problem.objective(w, b)
    for step in np.vstack([np.eye(6), -np.eye(6)]) * 0.02:
        assert problem.objective(w + step[:5], b + step[5]) > least


def test_an_infinite_shift_is_the_convex_problem(blobs):
    """Tests that the first stage of the path ignores q."""
    convex = continuous(*blobs, q=-np.inf, lam=0.01)
    ends = [
        warm_start.continuous_path(continuous(*blobs, q=q, lam=0.01), stages=[np.inf])
        for q in (-0.5, -np.inf)
    ]
    assert convex.objective(*ends[0]) == pytest.approx(convex.objective(*ends[1]), rel=1e-6)


def test_the_path_beats_all_zero_weights(blob_problem):
    """Tests that the end of the path is useful, with one q per class and sample weights."""
    w, b = warm_start.continuous_path(blob_problem)
    assert blob_problem.objective(w, b) < 1.0


def test_the_path_is_repeatable(blob_problem):
    """Tests that the same problem has the same path."""
    (w, b), (w_again, b_again) = (warm_start.continuous_path(blob_problem) for _ in range(2))
    np.testing.assert_array_equal(w, w_again)
    assert b == b_again


def test_long_data_runs_on_a_sample_first(blobs, monkeypatch):
    """Tests that the last stage on all rows repairs what the sample missed."""
    problem = continuous(*blobs, q=-0.5, lam=0.01)
    whole = problem.objective(*warm_start.continuous_path(problem))
    monkeypatch.setattr(warm_start, "PATH_ROWS", 40)
    assert problem.objective(*warm_start.continuous_path(problem)) < whole + 0.1


def test_features_of_very_different_size(blobs):
    """Tests that scaling a column changes the weights but not the objective."""
    X, y = blobs
    plain = continuous(X, y, lam=0.0, q=-np.inf)
    scaled = continuous(X * [1, 100, 1, 0.01, 1], y, lam=0.0, q=-np.inf)
    ends = [p.objective(*warm_start.continuous_path(p)) for p in (plain, scaled)]
    assert ends[0] == pytest.approx(ends[1], rel=1e-4)


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_automatic_weight_grids_contain_zero(blobs, bits):
    """Tests that every weight can be switched off at any bit depth."""
    problem = QLossProblem(*blobs, weight_bits=bits)
    assert problem.weight_grid.contains_zero().all()


@pytest.mark.parametrize("lam", [1.0, 100.0])
def test_automatic_weight_grids_respect_the_cap(blobs, lam):
    """Tests that no level exceeds 1/√λ."""
    grid = QLossProblem(*blobs, lam=lam).weight_grid
    assert np.maximum(-grid.lo, grid.hi).max() <= weight_bound(lam) * (1 + 1e-12)


def test_automatic_weight_grids_cover_the_continuous_solution(blobs):
    """Tests that each continuous weight lies inside its own interval."""
    problem = QLossProblem(*blobs, lam=1e-6)
    w, b = problem.warm_start
    assert ((problem.weight_grid.lo <= w) & (w <= problem.weight_grid.hi)).all()
    assert problem.bias_grid.lo[0] <= b <= problem.bias_grid.hi[0]


def test_rounding_to_automatic_grids_keeps_the_objective(blobs):
    """Tests that eight bits lose next to nothing against the continuous solution."""
    problem = QLossProblem(*blobs, weight_bits=8, lam=0.01)
    w, b = problem.warm_start
    assert problem.state(problem.codes(w, b)).objective == pytest.approx(problem.objective(w, b), abs=0.02)


def test_a_given_range_is_kept_beside_an_automatic_one(blobs):
    """Tests that "auto" may be used for the bias alone."""
    problem = QLossProblem(*blobs, weight_range=(-0.5, 0.25))
    assert (problem.weight_grid.lo == -0.5).all()
    assert (problem.weight_grid.hi == 0.25).all()


def test_a_feature_that_is_always_zero(blobs):
    """Tests that an empty column gets a grid like the others, with zero in it."""
    X, y = blobs
    problem = QLossProblem(np.column_stack([X, np.zeros(60)]), y)
    assert problem.weight_grid.contains_zero().all()
    assert np.isfinite(problem.state().gains()[:, 1]).all()
