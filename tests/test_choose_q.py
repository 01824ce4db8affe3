"""Tests of the choice of q and λ."""

from __future__ import annotations

import numpy as np
import pytest

import lns
from lns.choose_q import DEFAULT_LAM, _Part, choose_q, choose_q_for_classes, error_costs
from lns.cross_fit import NEVER, CrossFit, stratified_folds
from lns.datasets.split import train_test_split
from lns.flip_rates import FlipRates, corrected_error


def clean_error(X, y, chosen, test):
    """Test error of the continuous solution for what was chosen."""
    w, b = lns.QLossProblem(X, y, q=chosen.q, lam=chosen.lam).warm_start
    return float((test.y * (test.X @ w + b) <= 0).mean())


@pytest.mark.parametrize("flip_class", [-1, 1])
def test_the_suspect_labels_are_given_up_more_easily(flip_class):
    """Tests that one-sided noise, in either direction, is recognised and survived."""
    data = lns.load_dataset("mease-wyner")
    train, test = (data.take(rows) for rows in train_test_split(data))
    y, _ = lns.flip_labels(train.y, 0.3, flip_class=flip_class)
    chosen = choose_q(train.X, y)
    assert chosen.q[-flip_class] > chosen.q[flip_class]  # flips carry the label of the other class
    assert clean_error(train.X, y, chosen, test) < 0.06  # LinearSVC: 0.18


def test_clean_labels_are_all_trusted():
    """Tests that data without a wrong example keeps the lowest q of the paper's rule, alike for both."""
    rng = np.random.default_rng(0)
    X = rng.random((200, 3))
    X[:, 0] += 2 * (np.arange(200) % 2)
    chosen = choose_q(X, np.where(np.arange(200) % 2, 1, -1))
    assert chosen.q == {-1: -9.0, 1: -9.0}  # 1 - 1/√0.01: no error is taken for less than 1 %


def test_given_values_are_kept():
    """Tests that a given λ and given rates are used, and that the winner has the lowest error tried."""
    data = lns.load_dataset("mease-wyner")
    y, _ = lns.flip_labels(data.y[:400], 0.3)
    chosen = choose_q(data.X[:400], y, lam=0.02, rates=(0.3, 0.0))
    assert chosen.lam == 0.02
    assert chosen.rates == (0.3, 0.0)
    best = min(chosen.errors, key=chosen.errors.__getitem__)
    assert best == (chosen.q[-1], chosen.q[1], 0.02)


def test_one_q_for_several_classes():
    """Tests that three classes, a fifth of the labels at random, get one q by plain validation error."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 300)
    X = rng.random((300, 2)) * 0.4 + np.array([[0.0, 0.0], [0.6, 0.0], [0.3, 0.6]])[truth]
    codes = np.where(rng.random(300) < 0.2, rng.integers(0, 3, 300), truth)
    chosen = choose_q_for_classes(X, codes, lam=1e-3)
    assert chosen.q[-1] == chosen.q[1] <= 0
    assert chosen.rates is None
    assert len(chosen.errors) == 5
    assert chosen.errors[chosen.q[1], chosen.q[1], 1e-3] == pytest.approx(0.13, abs=0.05)


def test_too_little_data_chooses_nothing():
    """Tests the fallback for a class of few examples."""
    rng = np.random.default_rng(0)
    chosen = choose_q(rng.random((40, 2)), np.where(np.arange(40) < 5, 1, -1))
    assert chosen.rates is None
    assert chosen.errors == {}
    assert chosen.lam == DEFAULT_LAM
    assert chosen.q[-1] == chosen.q[1] < 0


def test_large_data_is_sampled(monkeypatch):
    """Tests that the work is bounded, and that the same seed draws the same sample."""
    monkeypatch.setattr("lns.choose_q.MOST_ROWS", 600)
    monkeypatch.setattr("lns.choose_q.LAMS", (1e-3,))
    sizes = []
    monkeypatch.setattr(
        "lns.choose_q.CrossFit", lambda X, y, *rest: sizes.append(len(y)) or CrossFit(X, y, *rest)
    )
    data = lns.load_dataset("long-servedio")
    y, _ = lns.flip_labels(data.y, 0.2)
    first, second = (choose_q(data.X, y, seed=5) for _ in range(2))
    assert sizes == [600, 600]
    assert first == second


def test_folds_share_both_classes():
    """Tests that no fold has more than one example more of a class than another."""
    y = np.where(np.arange(103) % 5, 1, -1)
    fold = stratified_folds(y, 4, 0)
    for label in (-1, 1):
        counts = np.bincount(fold[y == label], minlength=4)
        assert counts.max() - counts.min() <= 1


def test_scores_come_from_models_that_have_not_seen_the_example(blobs):
    """Tests a fold's scores against a fit on the other folds, for the convex loss with its unique minimum."""
    X, y = blobs
    fit = CrossFit(X, y, folds=3, seed=1)
    scores = fit.scores(NEVER, 0.1)
    fold = stratified_folds(np.asarray(y), 3, 1)
    for k in range(3):
        rest = lns.QLossProblem(X[fold != k], y[fold != k], q=-np.inf, lam=0.1)
        w, b = rest.warm_start
        np.testing.assert_allclose(scores[fold == k], X[fold == k] @ w + b, atol=1e-3)


def test_wrong_counts_weights():
    """Tests the weighted shares of wrong answers in each class."""
    X = np.arange(6.0)[:, None]
    fit = CrossFit(X, [-1, -1, -1, 1, 1, 1], [1, 2, 1, 1, 1, 6], folds=2)
    # Wrong: the second and the third of -1 (2 + 1 of 4), the first of +1 (1 of 8).
    assert fit.wrong(np.array([-1.0, 1.0, 0.0, -1.0, 1.0, 1.0])) == pytest.approx((0.75, 0.125))


def test_a_rare_class_is_not_lost_in_the_sample(monkeypatch):
    """Tests that a sample takes all of a rare class and keeps its share of the weight."""
    monkeypatch.setattr("lns.choose_q.MOST_ROWS", 100)
    y = np.where(np.arange(1000) < 20, 1, -1)
    part = _Part.of(np.arange(1000.0)[:, None], y, None, 0)
    assert (part.labels == 1).sum() == 20
    assert len(part.labels) == 100
    assert part.weight[part.labels == 1].sum() / part.weight.sum() == pytest.approx(0.02)


def test_a_heavy_example_is_spread_over_the_folds():
    """Tests that an example that stands for many is trained on in every fold and scored by all of them."""
    rng = np.random.default_rng(0)
    X, y = rng.random((40, 2)), np.where(np.arange(40) % 2, 1, -1)
    weight = np.where(np.arange(40) == 7, 100.0, 1.0)
    scores = CrossFit(X, y, weight).scores(NEVER, 1e-3)
    w, b = lns.QLossProblem(X, y, q=-np.inf, lam=1e-3, sample_weight=weight).warm_start
    assert scores[7] == pytest.approx(X[7] @ w + b, abs=0.05)


def test_costs_are_what_one_more_wrong_answer_adds():
    """Tests both costs as slopes of the corrected error."""
    rates, negative_share = FlipRates(0.3, 0.1), 0.4
    before = corrected_error(0.2, 0.1, negative_share, rates)
    added = (
        corrected_error(0.25, 0.1, negative_share, rates) - before,
        corrected_error(0.2, 0.15, negative_share, rates) - before,
    )
    assert error_costs(rates) == pytest.approx((added[0] / (0.05 * 0.4), added[1] / (0.05 * 0.6)))
