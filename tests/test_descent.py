"""Tests of descents of the continuous problem, and of the path from the convex loss to the wanted q."""

from __future__ import annotations

import numpy as np
import pytest
import slow_reference as slow
from scipy.optimize import minimize
from search_cases import KINDS, random_problem

from lns import descent
from lns.descent import continuous_path, descend
from lns.problem import NEVER, QLossProblem


def continuous(X, y, **options):
    """A problem whose given grids play no part."""
    return QLossProblem(X, y, **{"weight_range": (-1, 1), "bias_range": (-1, 1), **options})


def anywhere(problem, seed=0, size=1.0):
    """Weights and a bias drawn at random."""
    point = size * np.random.default_rng(seed).normal(size=problem.num_features + 1)
    return point[:-1], float(point[-1])


@pytest.fixture(params=["newton", "quasi-newton"])
def method(request, monkeypatch):
    """Both ways to descend, on few features."""
    if request.param != "newton":
        monkeypatch.setattr(descent, "NEWTON_FEATURES", 0)
    return request.param


@pytest.fixture(params=KINDS)
def problem(request):
    """Dense, sparse and mixed columns, with one q per class and sample weights."""
    return random_problem(request.param, q={-1: -1.0, 1: -0.25}, sample_weight=np.linspace(0.5, 2, 120))


# ---- derivatives ----


@pytest.mark.parametrize("shift", [0.0, 0.7, NEVER])
def test_derivatives_are_sums_over_examples(blob_problem, shift):
    """Tests loss, gradient and Hessian of some weights and the bias against plain sums, in every layout."""
    w, b = np.array([0.5, -1.0, 0.25, 2.0, -0.75]), 0.125
    columns = np.array([0, 3, 4, 5])
    loss, gradient = blob_problem.loss_and_gradient(w, b, shift)
    hessian = blob_problem.hessian(w, b, columns, shift)
    m, q = np.array(slow.margins(blob_problem, w, b)), blob_problem.q - shift
    rows = np.column_stack([slow.dense(blob_problem), np.ones(60)])[:, columns] * blob_problem.y[:, None]
    p, inside = blob_problem.share, (m > q) & (m < 1)
    caps = [slow.q_loss(mk, qk) for mk, qk in zip(m, q, strict=True)]
    assert loss == pytest.approx(p @ caps, rel=1e-12)
    np.testing.assert_allclose(gradient[columns], (-2 * p * inside * (1 - m)) @ rows, atol=1e-12)
    np.testing.assert_allclose(hessian, (rows * (2 * p * inside)[:, None]).T @ rows, atol=1e-12)


@pytest.mark.parametrize("shift", [0.0, 0.7])
def test_the_averaged_loss_is_an_average(problem, shift):
    """Tests it against the mean over margins up to a width to either side."""
    w, b = anywhere(problem, 1, 0.3)
    width, at = 0.5, np.linspace(-1, 1, 4001)
    at = width * 0.5 * (at[1:] + at[:-1])  # the middles of equal pieces
    u, top = 1.0 - problem.margins(w, b), 1.0 - problem.q + shift
    losses = [np.clip(u + move, 0.0, top) ** 2 @ problem.share for move in at]
    assert problem.loss_and_gradient(w, b, shift, width)[0] == pytest.approx(np.mean(losses), rel=1e-6)


@pytest.mark.parametrize("width", [0.0, 0.5])
def test_the_loss_changes_as_the_gradient_says(problem, width):
    """Tests the gradient against differences of the loss, averaged over margins and not."""
    w, b = anywhere(problem, 1, 0.3)
    gradient = problem.loss_and_gradient(w, b, 0.0, width)[1]
    for i, step in enumerate(1e-6 * np.eye(7)):
        ahead, behind = (
            problem.loss_and_gradient(w + s[:-1], b + s[-1], 0.0, width)[0] for s in (step, -step)
        )
        assert gradient[i] == pytest.approx((ahead - behind) / 2e-6, abs=1e-6)


@pytest.mark.parametrize("width", [0.0, 0.5])
def test_the_gradient_changes_as_the_hessian_says(width):
    """Tests the Hessian against differences of the gradient, where no example bends the loss down."""
    problem = random_problem(q=-np.inf)
    w, b = anywhere(problem, 1, 0.3)
    columns, step = np.arange(7), 1e-6
    hessian = problem.hessian(w, b, columns, width=width)
    for i in columns:
        ahead = np.append(w, b)
        ahead[i] += step
        behind = np.append(w, b)
        behind[i] -= step
        there, here = (problem.loss_and_gradient(x[:-1], x[-1], 0.0, width)[1] for x in (ahead, behind))
        np.testing.assert_allclose((there - here) / (2 * step), hessian[i], atol=1e-6)


@pytest.mark.parametrize("width", [0.1, 0.9])
def test_no_direction_bends_down(problem, width):
    """Tests that the Hessian can be used for Newton's steps, where the averaged loss is not convex, too."""
    for seed in range(5):
        w, b = anywhere(problem, seed, 0.3)
        assert np.linalg.eigvalsh(problem.hessian(w, b, np.arange(7), 0.0, width))[0] > -1e-12


# ---- descents ----


@pytest.mark.parametrize("seed", range(5))
def test_a_descent_never_rises(problem, method, seed):
    """Tests starts anywhere, far out as well, one step and many."""
    w, b = anywhere(problem, seed, 10.0 ** (seed - 2))
    before = problem.objective(w, b)
    for steps in (1, 3, 20):
        after = problem.objective(*descend(problem, w, b, steps=steps))
        assert after <= before
        before = after


def test_a_descent_ends_at_a_minimum(problem, method):
    """Tests that no small step from the end helps."""
    w, b = descend(problem, *anywhere(problem, 3), steps=100, enough=1e-12)
    least = problem.objective(w, b)
    for step in np.vstack([np.eye(7), -np.eye(7)]) * 0.01:
        assert problem.objective(w + step[:-1], b + step[-1]) > least - 1e-9


def test_both_methods_agree_on_a_convex_problem(monkeypatch):
    """Tests that the squared hinge has one minimum, whoever looks for it."""
    problem = random_problem(q=-np.inf, features=12)
    newton = descend(problem, *anywhere(problem), steps=100, enough=1e-13)
    monkeypatch.setattr(descent, "NEWTON_FEATURES", 0)
    other = descend(problem, *anywhere(problem, 1), steps=500, enough=1e-13)
    assert problem.objective(*other) == pytest.approx(problem.objective(*newton), rel=1e-8)
    np.testing.assert_allclose(np.append(*other), np.append(*newton), atol=1e-3)


@pytest.mark.parametrize("seed", range(8))
def test_the_minimum_within_a_box_is_found(seed):
    """Tests columns that nearly depend on each other, from a corner of a tight box, against L-BFGS-B."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 20)) + 0.1 * rng.normal(size=(200, 20))
    y = np.where(X @ rng.normal(size=20) + rng.normal(size=200) > 0, 1, -1)
    box = np.append(np.full(20, -0.2), -0.5), np.append(np.full(20, 0.2), 0.5)
    problem = continuous(X, y, q=-np.inf, lam=1e-5)
    found = descend(problem, 5.0 * rng.normal(size=20), 0.0, box=box)

    def value_and_gradient(x):
        loss, gradient = problem.loss_and_gradient(x[:-1], x[-1])
        penalty = problem.lam * np.append(x[:-1], 0.0)
        return loss + penalty @ x, gradient + 2.0 * penalty

    options = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 0.0, "gtol": 1e-9}
    reference = minimize(
        value_and_gradient, np.zeros(21), jac=True, bounds=np.column_stack(box), options=options
    )
    assert problem.objective(*found) == pytest.approx(reference.fun, rel=1e-4)


def test_a_descent_stays_in_its_box(problem, method):
    """Tests a start outside of it, and that the end is as low as within the box it can be."""
    convex = QLossProblem(problem.matrix.X, problem.y, q=-np.inf, lam=0.01)
    low, high = np.full(7, -0.1), np.full(7, 0.2)
    w, b = descend(convex, np.full(6, 5.0), -5.0, box=(low, high), steps=100, enough=1e-12)
    point = np.append(w, b)
    assert ((point >= low) & (point <= high)).all()
    assert (point == high).any()
    limits = list(zip(low, high, strict=True))
    best = minimize(lambda x: convex.objective(x[:-1], x[-1]), point * 0, bounds=limits, method="L-BFGS-B")
    assert convex.objective(w, b) <= best.fun + 1e-8


@pytest.mark.parametrize("free", [[0], [2, 6], [1, 3, 5]])
def test_other_weights_stay(problem, method, free):
    """Tests that only the free weights move, and that they do."""
    w, b = anywhere(problem, 4)
    moved = np.append(*descend(problem, w, b, free=np.array(free))) != np.append(w, b)
    assert set(np.flatnonzero(moved)) <= set(free)
    assert moved.any()


@pytest.mark.parametrize("past", [{"deadline": -1.0}, {"expired": lambda: True}])
def test_a_descent_past_its_deadline_stays_where_it_is(problem, method, past):
    """Tests that no step is begun without time, whoever says so."""
    w, b = anywhere(problem)
    there = descend(problem, w, b, **past)
    np.testing.assert_array_equal(there[0], w)
    assert there[1] == b


def test_a_lower_q_is_another_problem(problem):
    """Tests that a shift lowers q, and that a descent knows it."""
    lower = QLossProblem(
        problem.matrix.X, problem.y, q={-1: -1.5, 1: -0.75}, lam=0.01, sample_weight=np.linspace(0.5, 2, 120)
    )
    w, b = anywhere(problem, 2)
    shifted, plain = descend(problem, w, b, shift=0.5), descend(lower, w, b)
    np.testing.assert_allclose(shifted[0], plain[0], atol=1e-9)


@pytest.mark.parametrize("columns", ["absent", "repeated"])
def test_flat_directions_do_no_harm(method, columns):
    """Tests a column that nobody has, and one that is there three times, without a penalty to choose."""
    X = np.random.default_rng(0).normal(size=(30, 3))
    y = np.where(X[:, 0] > 0, 1, -1)
    X[:, 1:] = 0.0 if columns == "absent" else X[:, :1]
    problem = continuous(X, y, lam=0.0)
    w, b = descend(problem, *anywhere(problem))
    assert np.isfinite(w).all()
    assert problem.objective(w, b) < problem.objective(*anywhere(problem))


# ---- the path ----


def test_the_convex_problem_is_solved(blobs, layout):
    """Tests that no small step from the minimum of the squared hinge improves it, in every layout."""
    problem = continuous(layout(blobs[0]), blobs[1], q=-np.inf, lam=0.01)
    w, b = continuous_path(problem)
    least = problem.objective(w, b)
    for step in np.vstack([np.eye(6), -np.eye(6)]) * 0.02:
        assert problem.objective(w + step[:5], b + step[5]) > least


def test_an_infinite_shift_is_the_convex_problem(blobs):
    """Tests that the first stage of the path ignores q."""
    convex = continuous(*blobs, q=-np.inf, lam=0.01)
    here = np.zeros(5), 0.0
    ends = [descend(continuous(*blobs, q=q, lam=0.01), *here, shift=NEVER) for q in (-0.5, -np.inf)]
    assert convex.objective(*ends[0]) == pytest.approx(convex.objective(*ends[1]), rel=1e-6)


def test_the_path_beats_all_zero_weights(blob_problem):
    """Tests that the end of the path is useful, with one q per class and sample weights."""
    w, b = continuous_path(blob_problem)
    assert blob_problem.objective(w, b) < 1.0


def test_the_path_is_repeatable(blob_problem):
    """Tests that the same problem has the same path."""
    (w, b), (w_again, b_again) = (continuous_path(blob_problem) for _ in range(2))
    np.testing.assert_array_equal(w, w_again)
    assert b == b_again


def test_long_data_runs_on_a_sample_first(blobs, monkeypatch):
    """Tests that the last stage on all rows repairs what the sample missed."""
    problem = continuous(*blobs, q=-0.5, lam=0.01)
    whole = problem.objective(*continuous_path(problem))
    monkeypatch.setattr(descent, "FEW_ROWS", 40)
    assert problem.objective(*continuous_path(problem)) < whole + 0.1


def test_features_of_very_different_size(blobs, method):
    """Tests that scaling a column changes the weights but not the objective."""
    X, y = blobs
    plain = continuous(X, y, lam=0.0, q=-np.inf)
    scaled = continuous(X * [1, 100, 1, 0.01, 1], y, lam=0.0, q=-np.inf)
    ends = [p.objective(*continuous_path(p)) for p in (plain, scaled)]
    assert ends[0] == pytest.approx(ends[1], rel=1e-4)


def test_the_path_stays_within_the_given_ranges(blobs):
    """Tests that the warm start is a point of the box that the ranges leave."""
    problem = continuous(*blobs, weight_range=(-0.1, 0.1), bias_range=(0.2, 0.3))
    w, b = problem.warm_start
    assert np.abs(w).max() <= 0.1
    assert 0.2 <= b <= 0.3
    assert (np.abs(w) == 0.1).any()
