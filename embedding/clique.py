"""The clique route: busclique's embedding of a complete graph, which holds every shape of its size."""

from __future__ import annotations

from lns.embedding.chip import Chip
from lns.embedding.embedding import Embedding
from lns.embedding.shape import Shape

#: Dead couplers between working qubits beyond which busclique is not asked: it takes minutes and finds
#: little.
_MANY_COUPLERS = 200


def clique_bound(chip: Chip) -> int:
    """Return the size of the largest clique that an undamaged chip of this shape has an embedding of."""
    if chip.topology == "chimera":
        return chip.shape[-1] * min(chip.shape[:2])
    if chip.topology == "pegasus":
        return max(4, 12 * (chip.shape[0] - 1))
    return max(4, 4 * chip.shape[-1] * chip.shape[0] - 2 * chip.shape[-1])


def find_clique(chip: Chip, shape: Shape, *, seed: int = 0) -> Embedding | None:
    """Return a shape's embedding as a clique of its size, or None if the chip has none.

    busclique's own cache is left alone: it lies inside the environment, which may be read-only, and what is
    found here is kept in our store.
    """
    chains = _clique(chip, shape.size, seed)
    if chains is None:
        return None
    return Embedding.from_chains(chip, shape, chains, "clique")


def largest_clique(chip: Chip, *, seed: int = 0, at_least: int = 1, max_chain: int | None = None) -> int:
    """Return the size of the largest clique found with chains within a bound, 0 if below `at_least`."""

    def fits(size: int) -> bool:
        chains = _clique(chip, size, seed)
        return chains is not None and (max_chain is None or max(map(len, chains)) <= max_chain)

    low, high = at_least, min(clique_bound(chip), chip.num_qubits)
    # On damaged chips every single answer takes seconds: ask for the least that would be of use first.
    if high < low or not fits(low):
        return 0
    if fits(high):
        return high
    high -= 1
    while low < high:
        half = (low + high + 1) // 2
        if fits(half):
            low = half
        else:
            high = half - 1
    return low


def _clique(chip: Chip, size: int, seed: int) -> list[list[int]] | None:
    """Return the chains of a clique, the shortest first, or None."""
    from minorminer.busclique import find_clique_embedding

    # Without its cache, busclique (minorminer 0.2.22) takes all memory and dies on cliques that fit one cell:
    # 3 and 4 on Chimera, 5 to 8 on Zephyr. A clique of one more holds them.
    tile = chip.shape[-1]
    least = {"chimera": tile + 1, "pegasus": 5, "zephyr": 2 * tile + 1}[chip.topology]
    asked = max(size, least) if size > 1 else size
    if asked > min(clique_bound(chip), chip.num_qubits):
        return None
    if size == 1:
        return [[int(chip.qubits[0])]]
    if not chip.num_couplers or chip.missing_couplers > _MANY_COUPLERS:
        return None
    found = find_clique_embedding(asked, chip.graph, use_cache=False, seed=seed)
    chains = sorted((sorted(chain) for chain in found.values()), key=lambda chain: (len(chain), chain))
    return chains[:size] if len(chains) == asked else None
