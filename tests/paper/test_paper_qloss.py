"""Tests of training with q-loss for the paper's tables."""

from __future__ import annotations

import numpy as np
import pytest

from lns.cross_fit import NEVER
from lns.errors import InvalidInput
from lns.paper.folds import Source, sheet
from lns.paper.plans import PER_WEIGHT, PLANS, QSetting, width_of
from lns.paper.qloss import Paths, problem_of, quick_fits, train

MEASE_WYNER = sheet(Source("mease-wyner"))


def test_paths_end_where_no_step_helps():
    """Tests the end of a path and of a detour: lower than the start, and flat around."""
    part = MEASE_WYNER.part(20, 0)
    paths = Paths(part.train.X, part.y, 1e-3)
    convex = paths(NEVER, NEVER)
    for q_neg, q_pos, detour in ((-0.5, -0.5, None), (-1.0, 0.0, None), (-0.5, -0.5, -1.0)):
        problem = paths.problem(q_neg, q_pos)
        w, b = paths(q_neg, q_pos, detour)
        assert problem.objective(w, b) < problem.objective(*convex)
        _, gradient = problem.loss_and_gradient(w, b)
        gradient[:-1] += 2 * problem.lam * w
        assert np.abs(gradient).max() < 0.02


def test_a_detour_can_end_elsewhere():
    """Tests that giving up suspicious positives first finds another solution for the same q."""
    part = MEASE_WYNER.part(40, 0)
    paths = Paths(part.train.X, part.y, 1e-3)
    straight, around = (paths(-0.35, -0.35, detour) for detour in (None, -1.0))
    assert np.abs(straight[0] - around[0]).max() > 0.1


def test_the_coarse_grid_holds_the_true_boundary_of_mease_wyner():
    """Tests levels of weights and bias: zero, equal steps, and half steps for the bias."""
    problem = problem_of(MEASE_WYNER.part(0, 0), QSetting(0.0, 0.0, 0.0, "zero:24"), PLANS["mease-wyner"])
    assert problem.weight_grid.values(np.array([[0] * 20, [3] * 20]))[:, 0].tolist() == [0.0, 24.0]
    w, b = np.where(np.arange(20) < 5, 8.0, 0.0), -20.0
    back = problem.values(problem.codes(w, b))
    np.testing.assert_allclose(back[0], w, atol=1e-9)
    assert back[1] == pytest.approx(b)


@pytest.mark.parametrize("noise", [0, 40])
def test_mease_wyner_is_solved_despite_noise(noise):
    """Tests the search on the coarse grid: no error on a clean test fold."""
    part = MEASE_WYNER.part(noise, 0)
    _, (w, b) = train(part, QSetting(-0.3, -0.3, 0.000126, "zero:24"), PLANS["mease-wyner"], 0)
    assert (part.test.y * (part.test.X @ w + b) > 0).all()


def test_weights_are_on_the_levels_of_the_paper():
    """Tests that what is kept has d_w bits: at most 2^d_w different values of a weight, one of them zero."""
    plan = PLANS["mushrooms"]
    part = MEASE_WYNER.part(20, 0)
    problem, (w, b) = train(part, QSetting(-1.0, 0.0, 0.000126, PER_WEIGHT), plan, 0)
    assert problem.weight_bits == plan.weight_bits == 4
    np.testing.assert_allclose(problem.values(problem.codes(w, b))[0], w)
    nearest = problem.values(problem.codes(np.zeros(20), 0.0))[0]
    assert np.abs(nearest / problem.weight_grid.step).max() < 1e-9


def test_quick_fits_come_in_the_order_of_the_settings():
    """Tests that every setting gets its model, whatever paths share."""
    part = MEASE_WYNER.part(20, 0).limited(300, 0)
    settings = [QSetting(-1.0, 0.0, 1e-3), QSetting(-0.5, -0.5, 1e-2), QSetting(-1.0, -1.0, 1e-3)]
    fits = list(quick_fits(part, settings, PLANS["adult9"], 0))
    assert [setting for setting, _, _ in fits] == settings
    assert fits[0][1].q.min() == -1.0
    assert fits[0][1].q.max() == 0.0
    assert fits[1][1].lam == 1e-2


def test_unknown_intervals_are_refused():
    """Tests the message."""
    with pytest.raises(InvalidInput, match=r"'per weight', 'zero:W' or 'uniform:W'\. Got 'around:3'"):
        width_of("around:3")


def test_every_plan_holds_one_q_and_pairs():
    """Tests that grids are distinct settings, of both kinds, also when coarse."""
    for plan in (*PLANS.values(), *(plan.coarse() for plan in PLANS.values())):
        settings = plan.settings()
        assert len(set(settings)) == len(settings)
        assert {setting.is_even for setting in settings} == {True, False}
        assert all(setting.q_pos >= setting.q_neg for setting in settings)
