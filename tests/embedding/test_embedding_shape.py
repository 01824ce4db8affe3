"""Tests of shapes and of the embedding object."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from lns.embedding import Chip, Embedding, InvalidEmbedding, Shape
from lns.errors import InvalidInput


@pytest.mark.parametrize(
    "shape", [Shape(1, 0), Shape(5, 0, 2), Shape(1, 3, 1), Shape(4, 3, 4), Shape(3, 2, 6)]
)
def test_edges(shape: Shape) -> None:
    """Tests the edges against the definition: the join of a clique with disjoint cliques."""
    cliques = nx.disjoint_union_all([nx.Graph(), *[nx.complete_graph(shape.target_bits)] * shape.examples])
    joined = nx.disjoint_union(nx.complete_graph(shape.weights), cliques)
    joined.add_edges_from((i, j) for i in range(shape.weights) for j in range(shape.weights, shape.size))
    edges = shape.edges()
    assert edges == sorted(edges)
    assert {frozenset(e) for e in edges} == {frozenset(e) for e in joined.edges}
    assert len(edges) == shape.num_edges
    assert sorted(zip(*(a.tolist() for a in shape.edge_arrays()), strict=True)) == edges


@pytest.mark.parametrize(
    ("numbers", "name"), [((0, 1, 1), "weights"), ((1, -1, 1), "examples"), ((1, 1, 0), "target_bits")]
)
def test_bad_shape(numbers: tuple[int, int, int], name: str) -> None:
    """Tests that a number below its least is refused by name."""
    with pytest.raises(InvalidInput, match=f"'{name}' of a Shape must be an int of at least"):
        Shape(*numbers)
    with pytest.raises(InvalidInput, match="must be an int"):
        Shape(1.5, 1, 1)  # type: ignore[arg-type]


@pytest.fixture
def chip() -> Chip:
    """One Chimera cell: qubits 0 to 3 couple to 4 to 7."""
    return Chip.from_name("chimera:1")


@pytest.fixture
def path(chip: Chip) -> Embedding:
    """A weight on qubits 0 and 4, two examples of one target bit on 5 and 1."""
    return Embedding.from_chains(chip, Shape(1, 2, 1), [[4, 0], [5], [1]], "search")


def test_numbers(path: Embedding) -> None:
    """Tests the sizes of a small embedding, counted by hand."""
    assert path.verify() is path
    assert path.chain_lengths.tolist() == [2, 1, 1]
    assert (path.max_chain, path.num_qubits, len(path)) == (2, 4, 3)
    assert path.mean_chain == pytest.approx(4 / 3)
    assert path.weight_chain_lengths.tolist() == [2]
    assert path.target_chain_lengths.tolist() == [1, 1]
    assert [c.tolist() for c in path.weight_chains] == [[0, 4]]
    assert [[c.tolist() for c in example] for example in path.target_chains] == [[[5]], [[1]]]


def test_relabel(path: Embedding) -> None:
    """Tests that labels of any kind get the chains in order, as tuples of Python ints."""
    labelled = path.relabel(["w"], [("t", 0), ("t", 1)])
    assert labelled == {"w": (0, 4), ("t", 0): (5,), ("t", 1): (1,)}
    assert type(labelled["w"][0]) is int
    with pytest.raises(InvalidInput, match=r"needs 1 weight labels and 2 target labels\. Got 2 and 1"):
        path.relabel(["a", "b"], ["c"])
    with pytest.raises(InvalidInput, match="must differ"):
        path.relabel(["a"], ["a", "b"])


def test_restrict(path: Embedding) -> None:
    """Tests that a part of an embedding serves a smaller shape, and only a smaller one."""
    part = path.restrict(Shape(1, 1, 1)).verify()
    assert part.relabel(["w"], ["t"]) == {"w": (0, 4), "t": (5,)}
    assert path.restrict(path.shape) is path
    with pytest.raises(InvalidInput, match="cannot be restricted to"):
        path.restrict(Shape(2, 1, 1))


@pytest.mark.parametrize(
    ("chains", "message"),
    [
        ([[0, 4], [5], [9]], "Qubit 9 is not a working qubit"),
        ([[0, 4], [5], [-1]], "Qubit -1 is not a working qubit"),
        ([[0, 4], [5], [5]], "share a qubit"),
        ([[0, 4], [5], []], "variable 2 is empty"),
        ([[0, 1, 4], [5], [2, 3]], "variable 2 is not connected"),
        ([[0], [5], [1]], "joins the chains of variables 0 and 2"),
        ([[0, 4], [5]], "must have 3 chains"),
    ],
)
def test_verify_names_the_fault(chip: Chip, chains: list[list[int]], message: str) -> None:
    """Tests that each broken rule is found and named."""
    with pytest.raises(InvalidEmbedding, match=message):
        Embedding.from_chains(chip, Shape(1, 2, 1), chains, "search").verify()


def test_verify_couplings_within_an_example(chip: Chip) -> None:
    """Tests that the target bits of one example must couple, and those of two need not."""
    chains = [[0, 4], [5], [6]]
    assert Embedding.from_chains(chip, Shape(1, 2, 1), chains, "search").verify()
    with pytest.raises(InvalidEmbedding, match="joins the chains of variables 1 and 2"):
        Embedding.from_chains(chip, Shape(1, 1, 2), chains, "search").verify()


def test_verify_agrees_with_dwave(chip: Chip) -> None:
    """Tests our check against D-Wave's on random chains in a damaged cell, valid and not."""
    from dwave.embedding import is_valid_embedding

    rng = np.random.default_rng(0)
    shape = Shape(1, 1, 2)
    seen = set()
    for seed in range(300):
        damaged = chip.damaged(0.1, 0.2, seed=seed)
        order = rng.permutation(damaged.qubits).tolist()
        chains = [order[:2], order[2:4], order[4:5]]
        theirs = is_valid_embedding(dict(enumerate(chains)), shape.edges(), damaged.graph)
        try:
            ours = bool(Embedding.from_chains(damaged, shape, chains, "search").verify())
        except InvalidEmbedding:
            ours = False
        assert ours == theirs
        seen.add(ours)
    assert seen == {True, False}
