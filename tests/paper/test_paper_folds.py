"""Tests of the rows of an experiment: what is trained on, what is scored, and what is flipped."""

from __future__ import annotations

import numpy as np
import pytest

from lns.paper.folds import FOLDS, HELD_OUT, Source, sheet

SOURCE = Source("mease-wyner")


def test_the_seventy_per_cent_are_ten_folds_and_the_rest_is_held_out():
    """Tests that every row inside is tested once, and none of those outside."""
    whole = sheet(SOURCE)
    assert (len(whole.inside), len(whole.outside)) == (1400, 600)
    assert np.bincount(whole.fold).tolist() == pytest.approx([140] * FOLDS, abs=1)
    rows = {row.tobytes() for row in np.asarray(whole.inside.X)}
    assert not rows & {row.tobytes() for row in np.asarray(whole.outside.X)}


def test_only_negatives_are_flipped_and_only_where_models_train():
    """Tests the labels of a fold at 40 % noise."""
    part = sheet(SOURCE).part(40, 3)
    assert (part.train.y[part.flipped] == -1).all()
    assert (part.y[part.flipped] == 1).all()
    assert (part.y[~part.flipped] == part.train.y[~part.flipped]).all()
    assert 0.33 < part.flipped[part.train.y < 0].mean() < 0.47
    truth = np.where(np.asarray(part.test.X)[:, :5].sum(axis=1, dtype=np.float64) > 2.5, 1, -1)
    assert (part.test.y == truth).all()


def test_the_noise_is_drawn_once_for_all_folds():
    """Tests that what validates a fold in the honest protocol is what other folds are trained with."""
    whole = sheet(SOURCE)
    labels = whole.part(30, HELD_OUT).y
    for fold in (0, 7):
        part = whole.part(30, fold)
        assert (part.noisy == labels[whole.fold == fold]).all()
        assert (part.y == labels[whole.fold != fold]).all()


def test_flips_at_a_lower_rate_are_among_those_at_a_higher_one():
    """Tests that curves over the noise compare like with like."""
    few, many = (sheet(SOURCE).part(noise, 0).flipped for noise in (10, 40))
    assert few.sum() < many.sum()
    assert not (few & ~many).any()


def test_the_held_out_rows_have_no_noise():
    """Tests the part that the honest protocol is judged by."""
    part = sheet(SOURCE).part(40, HELD_OUT)
    assert part.noisy is None
    assert len(part.train) == 1400
    assert len(part.test) == 600


def test_another_seed_is_another_division():
    """Tests that the seed reaches split, folds and flips."""
    one, two = (sheet(Source("mease-wyner", seed)) for seed in (0, 1))
    assert (one.inside.X != two.inside.X).any()
    assert (one.part(20, 0).flipped[:100] != two.part(20, 0).flipped[:100]).any()


def test_rows_are_limited_on_request():
    """Tests the sample that settings are compared on: fewer training rows, the same test rows."""
    part = sheet(SOURCE).part(20, 0)
    few = part.limited(100, seed=1)
    assert len(few.train) == len(few.y) == len(few.flipped) == 100
    assert few.test is part.test
    assert part.limited(10_000, seed=1) is part
    assert len(sheet(Source("mease-wyner", max_rows=500)).inside) == 350
