"""A layout of weights filled with examples."""

from __future__ import annotations

from dataclasses import dataclass

from lns.embedding.bars import find_bars
from lns.embedding.embedding import Embedding
from lns.embedding.fabric import Fabric
from lns.embedding.groups import Grouper
from lns.embedding.layout import Layout, place_weights
from lns.embedding.shape import Shape
from lns.embedding.trim import trim


@dataclass(frozen=True)
class Packing:
    """Every example that a layout has room for, those near the spines first."""

    fabric: Fabric
    layout: Layout
    target_bits: int
    weights: list[set[int]]
    groups: list[list[list[int]]]

    def embedding(self, examples: int) -> Embedding:
        """Return the embedding of the first `examples` examples, idle qubits trimmed."""
        chains = [*self.weights, *(set(chain) for group in self.groups[:examples] for chain in group)]
        trimmed = trim(self.fabric, chains, len(self.weights), self.target_bits)
        chip = self.fabric.chip
        shape = Shape(len(self.weights), examples, self.target_bits)
        return Embedding.from_chains(chip, shape, [chip.qubits[sorted(c)] for c in trimmed], "template")

    def within(self, max_chain: int) -> Embedding | None:
        """Return the embedding of the most examples whose chains are all within a bound, or None."""
        if self.embedding(0).max_chain > max_chain:
            return None
        low, high = 0, len(self.groups)
        best = None
        while low < high or best is None:
            # Examples are sorted by how far they stretch the weights: fewer of them never need longer chains.
            half = (low + high + 1) // 2
            found = self.embedding(half)
            if found.max_chain <= max_chain:
                low, best = half, found
            else:
                high = half - 1
        return best


def pack(fabric: Fabric, weights: int, target_bits: int, layout: Layout) -> Packing | None:
    """Fill a layout with as many examples as find room, or return None if the weights find none."""
    chains = place_weights(fabric, weights, layout)
    if chains is None:
        return None
    owner = [-1] * len(fabric)
    for i, chain in enumerate(chains):
        for q in chain:
            owner[q] = i
    length = -(-layout.period * fabric.cell // fabric.unit)
    # On Chimera bars of one cell never couple directly; elsewhere two neighbours do, which halves the stubs.
    chimera = fabric.chip.topology == "chimera"
    stubs = target_bits - 1 if chimera else target_bits // 2
    groups: list[list[list[int]]] = []
    # Bars as short as the layout allows come first; then those that dead qubits make longer; then, on what is
    # left, bars across the spines.
    for layer, longest in ((1, length), (1, length + 1), (1, length + 2), (0, length + 2)):
        bars = find_bars(fabric, layer, owner, weights, longest, stubs)
        for group in Grouper(fabric, owner, bars, target_bits, tall=chimera).pack():
            groups.append(group)
            for q in (q for chain in group for q in chain):
                owner[q] = weights
    rows = [fabric.line[q] for chain in chains for q in chain if fabric.layer[q]]
    middle = sum(rows) / max(1, len(rows))
    groups.sort(key=lambda group: _distance(fabric, group, middle))
    return Packing(fabric, layout, target_bits, chains, groups)


def _distance(fabric: Fabric, group: list[list[int]], middle: float) -> float:
    """Return how far from the spines a group keeps the weights' columns busy."""
    return max(
        (abs(fabric.line[q] - middle) for chain in group for q in chain if fabric.layer[q]), default=0.0
    )
