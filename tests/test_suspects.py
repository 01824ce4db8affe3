"""Tests of what is kept of the margins."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lns.suspects import MOST, Labels, flagged_csv, histogram_edges, summarise


def case(count, seed=0, q=(-1.0, 0.0)):
    """Margins, one q per class, and labels with flips."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(count) < 0.4, -1, 1)
    margins = rng.normal(0.5, 2.0, count).round(1)  # ties
    rows = np.sort(rng.choice(3 * count, count, replace=False))
    return margins, np.where(y < 0, *q), Labels(rows, y, ("no", "yes"), rng.random(count) < 0.2)


@pytest.mark.parametrize("count", [1, 2, MOST - 1, MOST, MOST + 1, 1000])
def test_the_most_suspicious_come_first(count):
    """Tests the rows against sorting all of them, ties by their order in the data."""
    margins, q, labels = case(count)
    order = sorted(range(count), key=lambda i: (margins[i] - q[i], i))[:MOST]
    assert summarise(margins, q, labels)["suspicious"] == [
        {
            "row": labels.rows[i] + 1,
            "label": "yes" if labels.y[i] > 0 else "no",
            "margin": margins[i],
            "flipped": labels.flipped[i],
            "flagged": margins[i] <= q[i],
        }
        for i in order
    ]


def test_without_q_the_lowest_margins_come_first():
    """Tests q = -inf, where nothing is flagged but something is still most suspicious."""
    margins, _, labels = case(300)
    found = summarise(margins, np.full(300, -1e100), labels)
    assert found["flagged"] == 0
    assert [one["margin"] for one in found["suspicious"]] == sorted(margins)[:MOST]


def test_counts_are_exact():
    """Tests counts by class and of flips; every example is in one bar of its colour."""
    margins, q, labels = case(500)
    flagged = margins <= q
    found = summarise(margins, q, labels)
    assert found["flagged"] == flagged.sum()
    assert found["by_class"] == [(labels.y < 0).sum(), (labels.y > 0).sum()]
    assert found["flagged_by_class"] == [(flagged & (labels.y < 0)).sum(), (flagged & (labels.y > 0)).sum()]
    assert found["flipped"] == labels.flipped.sum()
    assert found["found"] == (labels.flipped & flagged).sum()
    assert sum(found["histogram"]["flagged"]) == flagged.sum()
    assert sum(found["histogram"]["kept"]) == (~flagged).sum()


def test_without_flips_nothing_is_said_of_them():
    """Tests labels that are as they were given."""
    margins, q, labels = case(10)
    found = summarise(margins, q, Labels(labels.rows, labels.y, labels.classes))
    assert found["flipped"] is None
    assert "flipped" not in found["suspicious"][0]


@example([1.0], -0.5, 1.0)
@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50),
    st.sampled_from([0.0, -0.01, -0.5, -3.0, -1e100]),
    st.floats(1e-3, 1e3),
)
def test_the_bins_hold_1_and_q_as_edges(margins, q, size):
    """Tests that bins are equal and not too many, and that the marks of the picture lie on their edges."""
    margins = np.array(margins) * size
    edges = histogram_edges(margins, np.full(len(margins), q))
    assert np.diff(edges) == pytest.approx(np.full(len(edges) - 1, edges[1] - edges[0]))
    assert len(edges) <= 130
    assert np.abs(edges - 1).min() < 1e-6 * (edges[1] - edges[0])
    if q > -1:
        assert edges[0] <= q
        if edges[1] - edges[0] <= 1 - q:
            assert np.abs(edges - q).min() < 1e-6 * (edges[1] - edges[0])
    if q < -1e6:
        assert edges[0] > -2 * max(np.abs(margins).max(), 1.0)


def test_far_margins_are_in_the_outermost_bars():
    """Tests that one example far away does not stretch the picture, and is said to be beyond it."""
    margins = np.append(np.linspace(-1, 2, 2000), 1e6)
    found = summarise(margins, np.full(2001, -0.5), Labels(np.arange(2001), np.ones(2001), (-1, 1)))
    assert found["histogram"]["edges"][-1] < 10
    assert found["histogram"]["beyond"]
    assert sum(found["histogram"]["kept"]) + sum(found["histogram"]["flagged"]) == 2001


def test_the_table_has_every_flagged_row_once():
    """Tests flagged.csv against the mask."""
    margins, q, labels = case(400)
    table = list(csv.DictReader(flagged_csv(margins, q, labels).splitlines()))
    flagged = np.flatnonzero(margins <= q)
    assert {int(line["row"]) for line in table} == set((labels.rows[flagged] + 1).tolist())
    assert len(table) == len(flagged)
    depth = [float(line["margin"]) + (1.0 if line["label"] == "no" else 0.0) for line in table]
    assert depth == sorted(depth)
    assert sum(int(line["flipped"]) for line in table) == labels.flipped[flagged].sum()
