"""Tests of the rows that the embedding benchmark returns."""

from __future__ import annotations

import pytest

from lns.embedding import bench_embedding


def test_rows() -> None:
    """Tests that every route has a row with room, time and chains, in order."""
    seen = []
    rows = bench_embedding([("chimera:4", 4, 2)], timeout=1, progress=seen.append)
    assert rows == seen
    assert [row.route for row in rows] == ["clique", "search", "template"]
    for row in rows:
        assert row.total == 4 + 2 * row.examples > 4
        assert row.qubits == pytest.approx(row.mean_chain * row.total)
        assert row.max_chain >= row.mean_weight_chain >= 1
        assert row.cpu_seconds >= 0
    assert rows[0].to_dict()["chip"] == "chimera:4"


def test_rows_without_room_and_with_damage() -> None:
    """Tests that a route without an answer has a row of zeros."""
    (row,) = bench_embedding([("chimera:2", 30, 4)], routes=["clique"], dead=0.1, seed=1)
    assert (row.total, row.examples, row.max_chain) == (0, 0, 0)
    assert row.dead_qubits == 3
