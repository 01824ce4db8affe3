"""The template: weights on spines and columns, target bits on bars, examples on groups of bars.

Built in seconds where a search takes minutes, and with several times the room. `layout` says where the
weights run, `bars` what a target bit is, `groups` how the bits of an example are joined, `packing` puts them
together; here the layout is chosen. Dead qubits and couplers count at each step. Nothing is random.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from lns.embedding.chip import Chip
from lns.embedding.embedding import Embedding
from lns.embedding.fabric import Fabric
from lns.embedding.layout import Layout
from lns.embedding.packing import Packing, pack
from lns.embedding.shape import Shape


def largest_template(
    chip: Chip, weights: int, target_bits: int, max_chain: int | None = None
) -> Embedding | None:
    """Return the template with the most examples, or None if not even the weights find room.

    Parameters
    ----------
    chip
        The chip.
    weights
        Number of weight bits.
    target_bits
        Number of target bits of an example.
    max_chain
        Longest chain allowed. Without it the whole chip is filled; with it, as many blocks, and as many
        examples near the spines, as keep every chain within the bound.
    """
    best: Embedding | None = None
    for full in _full_width(chip, weights, target_bits):
        if max_chain is None:
            return full.embedding(len(full.groups))
        columns = _column_length(full.fabric) + full.layout.period * full.fabric.cell // full.fabric.unit
        blocks = max(1, max_chain // columns)
        # Few blocks used to their ends, or one more used near the spines only.
        for packing in (*_narrower(full, range(blocks, blocks + 2)), full):
            found = packing.within(max_chain)
            if found is not None and (best is None or found.shape.examples > best.shape.examples):
                best = found
        if best is not None:
            return best
    return best


def find_template(chip: Chip, shape: Shape) -> Embedding | None:
    """Return the cheapest template of a shape that the layouts give, or None without room."""
    best: Embedding | None = None
    for full in _full_width(chip, shape.weights, shape.target_bits):
        if len(full.groups) < shape.examples:
            continue
        share = shape.examples / max(1, len(full.groups))
        least = max(1, int(share * _max_blocks(full)))
        for packing in (*_narrower(full, range(least, least + 3)), full):
            if len(packing.groups) >= shape.examples:
                found = packing.embedding(shape.examples)
                if best is None or found.cost < best.cost:
                    best = found
    return best


@lru_cache(maxsize=4)
def _fabric(chip: Chip, flipped: bool) -> Fabric:
    return Fabric(chip, flipped=flipped)


@lru_cache(maxsize=8)
def _full_width(chip: Chip, weights: int, target_bits: int) -> list[Packing]:
    """Return a packing of the whole chip for each period, the one with the most examples first."""

    def filled(layout: Layout) -> Packing | None:
        return pack(_fabric(chip, layout.flipped), weights, target_bits, layout)

    fabric = _fabric(chip, False)
    if not all(fabric.lines):
        return []
    found = [p for p in (filled(Layout(period)) for period in _periods(fabric, weights)) if p is not None]
    found.sort(key=_room)
    if chip.topology == "chimera":
        # Small chips: whole periods only may leave columns for bars across the spines.
        wholes = [replace(p.layout, blocks=_max_blocks(p)) for p in found if _max_blocks(p)]
        found.extend(p for p in map(filled, wholes) if p is not None)
    elif found:
        found.extend(p for p in map(filled, _variants(fabric, weights, found[0].layout)) if p is not None)
    if chip.missing_qubits or chip.missing_couplers:
        turned = (filled(replace(p.layout, flipped=True)) for p in found[:2])
        found.extend([p for p in turned if p is not None])
    best: dict[int, Packing] = {}
    for packing in sorted(found, key=_room):
        best.setdefault(packing.layout.period, packing)
    return list(best.values())


def _room(packing: Packing) -> int:
    return -len(packing.groups)


def _periods(fabric: Fabric, weights: int) -> list[int]:
    """Return the periods worth a try, in cells: bars of the least possible length, and a little longer."""
    per_qubit = fabric.unit // fabric.cell
    least = -(-weights // fabric.unit)
    return [length * per_qubit for length in range(least, least + 3)]


def _variants(fabric: Fabric, weights: int, layout: Layout) -> Iterator[Layout]:
    """Yield layouts whose spines all begin at the same line: together they reach further."""
    starts = [fabric.lo[row[0]] for row in fabric.lines[1].values()]
    for start in sorted(set(starts)):
        if weights <= starts.count(start) < len(starts):
            yield replace(layout, reach=start)


def _column_length(fabric: Fabric) -> int:
    return max(map(len, fabric.lines[0].values()))


def _max_blocks(packing: Packing) -> int:
    """Return how many whole periods the chip is wide."""
    lines = packing.fabric.lines[0]
    return (max(lines) - min(lines) + 1) // (packing.layout.period * packing.fabric.cell)


def _narrower(full: Packing, blocks: Iterable[int]) -> Iterator[Packing]:
    """Yield packings of part of the chip's width."""
    for number in blocks:
        if 1 <= number <= _max_blocks(full):
            layout = replace(full.layout, blocks=number)
            packing = pack(full.fabric, len(full.weights), full.target_bits, layout)
            if packing is not None:
                yield packing
