"""Tests of equal regions of a chip."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lns.embedding import Chip, Embedding, Store, largest_embedding
from lns.embedding.tiles import split
from lns.errors import InvalidInput

CHIPS = ("chimera:2", "chimera:5", "pegasus:3", "pegasus:6", "zephyr:2", "zephyr:5")


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    name=st.sampled_from(CHIPS),
    count=st.integers(1, 6),
    dead=st.floats(0, 0.05),
    seed=st.integers(0, 1000),
)
def test_parts_are_disjoint_copies_of_the_tile(name, count, dead, seed):
    """Tests that every qubit and coupler of the tile works in every part, and that no part meets another."""
    chip = Chip.from_name(name).damaged(dead, dead, seed=seed)
    assume(count < chip.shape[0] ** 2)
    try:
        tiles = split(chip, count)
    except InvalidInput:  # too little of it works in all parts
        assume(False)
    couplers = {tuple(row) for row in chip.couplers.tolist()}
    used: set[int] = set()
    for part in range(count):
        names = dict(
            zip(tiles.tile.qubits.tolist(), tiles.place(tiles.tile.qubits, part).tolist(), strict=True)
        )
        assert set(names.values()) <= set(chip.qubits.tolist())
        assert used.isdisjoint(names.values())
        used.update(names.values())
        for a, b in tiles.tile.couplers.tolist():
            assert tuple(sorted((names[a], names[b]))) in couplers
    assert len(tiles) == count
    assert tiles.place(tiles.tile.qubits, 0).tolist() == tiles.tile.qubits.tolist()


@pytest.mark.parametrize("name", ["chimera:8", "pegasus:6", "zephyr:4"])
@pytest.mark.parametrize("dead", [0.0, 0.02])
def test_one_embedding_serves_all_parts(name, dead):
    """Tests that the tile's embedding, moved to any part, is an embedding on the chip."""
    chip = Chip.from_name(name).damaged(dead, dead, seed=3)
    tiles = split(chip, 4)
    found = largest_embedding(tiles.tile, weights=4, store=Store(None))
    for part in range(4):
        qubits = tiles.place(found.qubits, part).astype(np.int32)
        Embedding(chip, found.shape, qubits, found.offsets).verify()


@pytest.mark.parametrize(
    ("name", "count", "qubits"),
    [("chimera:8", 4, 128), ("chimera:8", 2, 256), ("chimera:16", 4, 512), ("zephyr:12", 4, 1152)],
)
def test_tiles_lose_little(name, count, qubits):
    """Tests the size of tiles, against whole rectangles of cells counted by hand."""
    assert split(Chip.from_name(name), count).tile.num_qubits == qubits


def test_a_single_part_is_the_chip():
    """Tests that nothing is lost without packing."""
    chip = Chip.from_name("pegasus:3").damaged(0.05, 0.05, seed=1)
    assert split(chip, 1).tile is chip
