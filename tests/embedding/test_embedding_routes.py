"""Tests of the clique, the search, and the best of all routes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lns.embedding import Chip, Embedding, InvalidEmbedding, NoEmbedding, Shape, Store, embed, routes
from lns.embedding.clique import clique_bound, find_clique, largest_clique
from lns.embedding.routes import checked
from lns.embedding.search import find_by_search


@pytest.mark.parametrize(
    ("name", "size", "chain"),
    [("chimera:8", 32, 9), ("pegasus:16", 180, 17), ("zephyr:12", 184, 13), ("zephyr:15", 232, 16)],
)
def test_largest_clique(name: str, size: int, chain: int) -> None:
    """Tests the largest cliques of whole chips and their chain lengths."""
    chip = Chip.from_name(name)
    assert largest_clique(chip) == size == clique_bound(chip)
    found = find_clique(chip, Shape(size % 4 or 4, (size - (size % 4 or 4)) // 4))
    assert found is not None
    assert found.verify().max_chain == chain


@pytest.mark.parametrize("name", ["chimera:3", "pegasus:3", "zephyr:2"])
def test_every_clique_size(name: str) -> None:
    """Tests all sizes up to the largest: busclique alone runs out of memory on some small ones."""
    chip = Chip.from_name(name)
    for size in range(1, clique_bound(chip) + 1):
        found = find_clique(chip, Shape(size, 0))
        assert found is not None
        assert checked(found).shape.size == size
    assert find_clique(chip, Shape(clique_bound(chip) + 1, 0)) is None


def test_largest_clique_within_a_chain_bound() -> None:
    """Tests that a bound on chains gives the clique that keeps it, and 0 where none is of use."""
    chip = Chip.from_name("chimera:8")
    assert largest_clique(chip, max_chain=5) == 16
    assert largest_clique(chip, max_chain=5, at_least=17) == 0
    assert largest_clique(chip, at_least=33) == 0


def test_search_is_seeded() -> None:
    """Tests that the same seed gives the same chains, and that no time gives none."""
    chip, shape = Chip.from_name("chimera:4"), Shape(4, 3, 2)
    found = find_by_search(chip, shape, timeout=20, seed=7)
    assert found is not None
    assert checked(found) == find_by_search(chip, shape, timeout=20, seed=7)
    assert found.route == "search"
    assert find_by_search(chip, shape, timeout=0) is None
    assert find_by_search(Chip.from_name("chimera:1"), Shape(9, 0), timeout=5) is None


def test_embed_takes_the_cheapest(memory: Store) -> None:
    """Tests that no route alone beats what embed returns."""
    chip, shape = Chip.from_name("pegasus:4"), Shape(8, 5, 3)
    best = embed(chip, shape, store=memory)
    others = [routes.find_template(chip, shape), find_clique(chip, shape)]
    assert best.cost <= min(e.cost for e in others if e is not None)


def test_embed_asks_the_routes_once(memory: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a second request is answered by the store."""
    chip, shape = Chip.from_name("zephyr:2"), Shape(4, 2)
    first = embed(chip, shape, store=memory)
    monkeypatch.setattr(routes, "find_best", lambda *a, **k: pytest.fail("embedded twice"))
    assert embed(chip, shape, store=memory, seed=5) is first


def test_embed_without_room(memory: Store) -> None:
    """Tests that a shape without room raises, names the chip, and says where to ask for what fits."""
    with pytest.raises(
        NoEmbedding, match=r"\(404 variables\) on chimera:4 with 128 working qubits.*best_shape"
    ):
        embed(Chip.from_name("chimera:4"), Shape(4, 100), store=memory)
    with pytest.raises(NoEmbedding):
        embed(Chip.from_name("chimera:2"), Shape(8, 4), timeout=1, store=memory)


def test_an_invalid_embedding_never_leaves(memory: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a route with a bug is stopped by the check."""
    chip, shape = Chip.from_name("chimera:2"), Shape(2, 1, 1)
    wrong = Embedding.from_chains(chip, shape, [[0], [1], [2]], "template")
    monkeypatch.setattr(routes, "find_template", lambda *a: wrong)
    with pytest.raises(InvalidEmbedding):
        embed(chip, shape, store=memory, timeout=0)
    assert memory.load(chip, shape) is None


def test_edge_shapes(memory: Store) -> None:
    """Tests one weight alone, one weight with examples, and weights without examples."""
    for name in ("chimera:2", "pegasus:2", "zephyr:1"):
        chip = Chip.from_name(name)
        for shape in (Shape(1, 0), Shape(1, 2, 1), Shape(3, 0, 6), Shape(1, 1, 3)):
            assert embed(chip, shape, store=memory).verify().shape == shape


def test_importing_is_cheap() -> None:
    """Tests that the package itself loads no heavy library before it is needed."""
    import subprocess
    import sys

    heavy = "{'networkx', 'minorminer', 'scipy'}"
    code = (
        f"import lns, sys\na = {{*sys.modules}}\nimport lns.embedding\nprint({heavy} & {{*sys.modules}} - a)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    name=st.sampled_from(
        ["chimera:2", "chimera:4", "pegasus:2", "pegasus:3", "zephyr:1", "zephyr:2", "zephyr:3"]
    ),
    shape=st.builds(Shape, st.integers(1, 8), st.integers(0, 5), st.integers(1, 5)),
    dead=st.sampled_from([0.0, 0.02, 0.05]),
    seed=st.integers(0, 100),
)
def test_everything_embedded_is_valid(name: str, shape: Shape, dead: float, seed: int) -> None:
    """Tests D-Wave's check on what embed returns, over chips, shapes and damage."""
    chip = Chip.from_name(name).damaged(dead, dead, seed=seed)
    try:
        found = embed(chip, shape, timeout=0.2, store=Store(None))
    except NoEmbedding:
        return
    assert checked(found).shape == shape
