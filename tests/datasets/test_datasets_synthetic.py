"""Tests of the two synthetic sets."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from lns.datasets.load import load_dataset
from lns.datasets.split import describe
from lns.datasets.synthetic import long_servedio, mease_wyner
from lns.errors import InvalidInput


def _agreements(X: np.ndarray, y: np.ndarray) -> Counter[tuple[int, int]]:
    """Count examples by how many of the first 11 and of the last 10 features equal the label."""
    same = y[:, None] == X
    return Counter(zip(same[:, :11].sum(1).tolist(), same[:, 11:].sum(1).tolist(), strict=True))


def test_long_servedio_has_three_kinds() -> None:
    """Tests that large-margin examples, pullers and penalizers come in the shares 1/4, 1/4 and 1/2."""
    data = long_servedio(n=8000, seed=3)
    kinds = _agreements(data.X, data.y)
    assert set(kinds) == {(11, 10), (11, 0), (5, 6)}
    assert [kinds[kind] / 8000 for kind in ((11, 10), (11, 0), (5, 6))] == pytest.approx(
        [0.25, 0.25, 0.5], abs=0.02
    )


def test_long_servedio_penalizers_are_random() -> None:
    """Tests that every feature agrees with the label as often as its group does."""
    data = long_servedio(n=20000, seed=1)
    share = (data.y[:, None] == data.X).mean(axis=0)
    assert share[:11] == pytest.approx(np.full(11, 0.5 + 0.5 * 5 / 11), abs=0.02)
    assert share[11:] == pytest.approx(np.full(10, 0.25 + 0.5 * 6 / 10), abs=0.02)


def test_mease_wyner_rule() -> None:
    """Tests that the first five features decide and that all are uniform in [0, 1)."""
    data = mease_wyner(n=5000, seed=2)
    np.testing.assert_array_equal(data.y == 1, data.X[:, :5].astype(float).sum(1) > 2.5)
    assert data.X.mean(axis=0) == pytest.approx(np.full(20, 0.5), abs=0.02)
    assert data.X.min() >= 0
    assert data.X.max() < 1


@pytest.mark.parametrize("draw", [long_servedio, mease_wyner])
def test_seed_decides(draw: type) -> None:
    """Tests that equal seeds give equal examples and other seeds others."""
    first, again, other = draw(n=50, seed=1), draw(n=50, seed=1), draw(n=50, seed=2)
    np.testing.assert_array_equal(first.X, again.X)
    assert (first.X != other.X).any()


@pytest.mark.parametrize("draw", [long_servedio, mease_wyner])
@pytest.mark.parametrize("n", [0, -1, 2.5, True])
def test_refuses_count(draw: type, n: int) -> None:
    """Tests that a set needs at least one example."""
    with pytest.raises(InvalidInput, match="n must be a positive int"):
        draw(n=n)


@pytest.mark.parametrize("draw", [long_servedio, mease_wyner])
def test_one_example(draw: type) -> None:
    """Tests that the smallest set has one example."""
    assert len(draw(n=1)) == 1


@pytest.mark.parametrize(
    ("name", "features", "baseline"), [("long-servedio", 21, 50.00), ("mease-wyner", 20, 49.80)]
)
def test_named_sets_match_the_paper(name: str, features: int, baseline: float) -> None:
    """Tests that rows, features, density and baseline error are those of the paper's data summary."""
    summary = describe(load_dataset(name))
    assert (summary.rows, summary.features) == (2000, features)
    assert summary.density_percent == 100.0
    assert summary.baseline_error_percent == pytest.approx(baseline, abs=0.01)


def test_long_servedio_is_coded_like_the_instances(real_data: Path) -> None:
    """Tests that the coding and the kinds are those of the stored training instance."""
    with np.load(real_data / "instances" / "long-servedio-noise20.npz") as stored:
        X, y = stored["X"], stored["y_clean"]
    ours = long_servedio(n=1400)
    assert np.unique(ours.X).tolist() == np.unique(X).tolist()
    assert set(_agreements(ours.X, ours.y)) == set(_agreements(X, y))


def test_mease_wyner_labels_the_instances(real_data: Path) -> None:
    """Tests that our rule gives the clean labels of the stored training instance."""
    with np.load(real_data / "instances" / "mease-wyner-noise20.npz") as stored:
        X, y = stored["X"], stored["y_clean"]
    np.testing.assert_array_equal(X[:, :5].sum(1, dtype=float) > 2.5, y == 1)
