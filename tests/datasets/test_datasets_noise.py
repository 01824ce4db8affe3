"""Tests of label noise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lns.datasets.noise import flip_labels
from lns.errors import InvalidInput

LABELS = np.tile(np.array([-1, 1], dtype=np.int8), 5000)


def test_only_negatives_are_flipped() -> None:
    """Tests that by default positive labels stay clean."""
    noisy, flipped = flip_labels(LABELS, 0.4, seed=1)
    assert (LABELS[flipped] == -1).all()
    assert (noisy[LABELS == 1] == 1).all()


def test_rate_is_a_probability_per_label() -> None:
    """Tests that the share of flips is near the rate but varies (5,000 labels: by 0.7 %)."""
    shares = [flip_labels(LABELS, 0.4, seed=seed)[1][LABELS == -1].mean() for seed in range(10)]
    assert np.mean(shares) == pytest.approx(0.4, abs=0.01)
    assert len(set(shares)) > 1


@pytest.mark.parametrize("flip_class", [-1, 1, None])
def test_exact_share(flip_class: int | None) -> None:
    """Tests that the exact share of each class that may be flipped is flipped, lower rates within higher."""
    y = np.repeat(np.array([-1, 1], dtype=np.int8), [701, 250])
    few, many = (flip_labels(y, rate, flip_class, seed=3, exact=True)[1] for rate in (0.1, 0.4))
    for sign, count in ((-1, 701), (1, 250)):
        wanted = flip_class in (None, sign)
        assert [int(one[y == sign].sum()) for one in (few, many)] == [
            round(rate * count) if wanted else 0 for rate in (0.1, 0.4)
        ]
    assert not (few & ~many).any()


def test_other_class() -> None:
    """Tests that the positive class can be the noisy one."""
    noisy, flipped = flip_labels(LABELS, 0.4, flip_class=1)
    assert (LABELS[flipped] == 1).all()
    assert (noisy[flipped] == -1).all()


def test_symmetric() -> None:
    """Tests that without a class both are flipped at the rate."""
    _, flipped = flip_labels(LABELS, 0.3, flip_class=None)
    for label in (-1, 1):
        assert flipped[label == LABELS].mean() == pytest.approx(0.3, abs=0.03)


def test_input_is_not_changed() -> None:
    """Tests that results are copies, also without noise."""
    y = LABELS.copy()
    noisy, flipped = flip_labels(y, 0.0)
    noisy[:] = 1
    np.testing.assert_array_equal(y, LABELS)
    assert not flipped.any()


def test_type_is_kept() -> None:
    """Tests that labels keep their type."""
    assert flip_labels(LABELS, 0.2)[0].dtype == np.int8
    assert flip_labels(LABELS.astype(float), 0.2)[0].dtype == np.float64


def test_seed_decides() -> None:
    """Tests that equal seeds give equal flips and other seeds others."""
    first, again, other = (flip_labels(LABELS, 0.4, seed=seed)[1] for seed in (5, 5, 6))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@given(
    low=st.floats(0, 0.99),
    high=st.floats(0, 0.99),
    seed=st.integers(0, 1000),
    of=st.sampled_from([-1, 1, None]),
)
def test_flips_are_nested(low: float, high: float, seed: int, of: int | None) -> None:
    """Tests that with one seed a higher rate only adds flips."""
    low, high = sorted((low, high))
    y = LABELS[:50]
    few, many = (flip_labels(y, rate, of, seed)[1] for rate in (low, high))
    assert not (few & ~many).any()


@given(y=st.lists(st.sampled_from([-1, 1]), max_size=30), rate=st.floats(0, 0.99), seed=st.integers(0, 99))
def test_mask_tells_what_changed(y: list[int], rate: float, seed: int) -> None:
    """Tests that exactly the labels of the mask differ."""
    noisy, flipped = flip_labels(np.array(y, dtype=np.int8), rate, None, seed)
    np.testing.assert_array_equal(noisy != np.array(y, dtype=np.int8), flipped)


@pytest.mark.parametrize("rate", [0.0, 0.999])
def test_accepts_rate(rate: float) -> None:
    """Tests that rates on the edge of [0, 1) are accepted."""
    assert flip_labels(LABELS, rate)[0].shape == LABELS.shape


@pytest.mark.parametrize("rate", [-0.001, 1.0, float("nan"), "0.4", None, True])
def test_refuses_rate(rate: float) -> None:
    """Tests that rates outside [0, 1) are refused."""
    with pytest.raises(InvalidInput, match=r"'rate' parameter must be a number in \[0, 1\)"):
        flip_labels(LABELS, rate)


@pytest.mark.parametrize("flip_class", [0, 2, "-1"])
def test_refuses_class(flip_class: int) -> None:
    """Tests that a class other than -1, +1 and None is refused."""
    with pytest.raises(InvalidInput, match=r"must be -1, \+1 or None"):
        flip_labels(LABELS, 0.1, flip_class)


@pytest.mark.parametrize("y", [[0, 1], [1, 2], [[1, -1]], ["a", "b"], [np.nan, 1.0]])
def test_refuses_labels(y: list[object]) -> None:
    """Tests that labels other than a list of -1 and +1 are refused."""
    with pytest.raises(InvalidInput, match="labels y must be"):
        flip_labels(y, 0.1)


@pytest.mark.parametrize("seed", [-1, 1.0, "1", None, True])
def test_refuses_seed(seed: int) -> None:
    """Tests that only non-negative integers are seeds."""
    with pytest.raises(InvalidInput, match="'seed' parameter must be a non-negative int"):
        flip_labels(LABELS, 0.1, seed=seed)
