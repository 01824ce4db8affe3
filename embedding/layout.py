"""Where the weights of a template run: a horizontal spine each, and vertical lines at regular distances.

A target bit is a short horizontal bar. It must cross a line of *every* weight, wherever it begins. So the
vertical lines carry the weights in cyclic order: any run of lines with `nw` carriers has all weights, and a
`period` with `nw` carriers and some free lines (for the couplings among target bits) serves a bar as long as
the period at every position. Broken lines are left free where a whole one is at hand in the same cell; the
cyclic order closes the gap by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise

from lns.embedding.fabric import Fabric

#: Free qubits that a repair of a weight's chain may take: around one dead qubit, not across the chip. On
#: Chimera that takes five: aside, three along the next line, and back.
_DETOUR = 6


@dataclass(frozen=True)
class Layout:
    """The choices behind a template.

    Parameters
    ----------
    period
        Number of vertical lines, in cells, that hold every weight once.
    blocks
        How many periods of the chip are used; more blocks have room for more examples and make the chains
        of the weights longer. None uses the whole width.
    flipped
        Exchange vertical and horizontal.
    reach
        Take spine lines that begin at this line number only (Pegasus and Zephyr lines end unevenly).
    """

    period: int
    blocks: int | None = None
    flipped: bool = False
    reach: int | None = None


def place_weights(fabric: Fabric, weights: int, layout: Layout) -> list[set[int]] | None:
    """Return the chain of every weight, or None where they find no room.

    The chains are disjoint, connected and pairwise coupled.
    """
    spines = _spines(fabric, weights, layout)
    if spines is None:
        return None
    rows = [fabric.lines[1][y] for y in spines]
    left = sorted(fabric.lo[row[0]] for row in rows)[-1]
    right = sorted(fabric.hi[row[-1]] for row in rows)[0]
    carriers = _carriers(fabric, weights, layout, (left, right), sum(spines) / len(spines))
    if len(carriers) < weights:
        return None

    owner = [-1] * len(fabric)
    chains: list[set[int]] = [set(row) for row in rows]
    for place, x in enumerate(carriers):
        chains[place % weights].update(fabric.lines[0][x])
    # The spines keep their full length: bars cross them too, and what stays idle is trimmed at the end.
    for i, chain in enumerate(chains):
        for q in chain:
            owner[q] = i
    for i in range(weights):
        chains[i] = _joined(fabric, chains[i], owner, i)
    return chains if _all_coupled(fabric, chains, owner) else None


def _spines(fabric: Fabric, weights: int, layout: Layout) -> list[int] | None:
    """Return the horizontal lines of the weights: near the middle, whole ones first, cell by cell."""
    lines = fabric.lines[1]
    if layout.reach is not None:
        lines = {y: row for y, row in lines.items() if fabric.lo[row[0]] == layout.reach}
    if len(lines) < weights:
        return None
    middle = (min(fabric.lines[1]) + max(fabric.lines[1])) / 2
    # A spine that fills whole cells leaves whole cells to the bars.
    half = weights / 2 if layout.reach is None else 0
    start = round((middle - half) / fabric.cell) * fabric.cell + half

    def rank(y: int) -> tuple[int, float, int]:
        cell = y // fabric.cell * fabric.cell + (fabric.cell - 1) / 2
        return (_defects(fabric, lines[y]), abs(cell - start), y)

    return sorted(sorted(lines, key=rank)[:weights])


def _defects(fabric: Fabric, row: list[int]) -> int:
    """Return how many qubits of a line lie beyond a gap, seen from its longest whole stretch."""
    longest = run = 1
    for a, b in pairwise(row):
        run = run + 1 if b in fabric.neighbours[a] else 1
        longest = max(longest, run)
    return len(row) - longest


def _carriers(
    fabric: Fabric, weights: int, layout: Layout, bounds: tuple[int, int], centre: float
) -> list[int]:
    """Return the vertical lines that carry weights, from left to right."""
    cells: dict[int, list[int]] = {}
    for x, column in fabric.lines[0].items():
        if bounds[0] <= x <= bounds[1] and any(fabric.lo[q] - 1 < centre < fabric.hi[q] + 1 for q in column):
            cells.setdefault((x - fabric.phase) // fabric.cell, []).append(x)
    order = sorted(cells)
    if layout.blocks is not None:
        width = min(len(order), layout.blocks * layout.period)
        skip = (len(order) - width) // 2
        order = order[skip : skip + width]

    carriers: list[int] = []
    for number, cell in enumerate(order, start=1):
        # Spread evenly: after c cells of the period c / period of the weights must have had their line.
        wanted = -(-weights * number // layout.period) - len(carriers)
        columns = cells[cell]
        whole = {x: _loss(fabric, fabric.lines[0][x], centre) for x in columns}
        carriers.extend(sorted(sorted(columns, key=lambda x: (whole[x], x))[:wanted]))
    return carriers


def _loss(fabric: Fabric, column: list[int], centre: float) -> int:
    """Return how short a vertical line is, counted from its crossing with the spine: the less the better."""
    home = min(
        range(len(column)), key=lambda i: abs((fabric.lo[column[i]] + fabric.hi[column[i]]) / 2 - centre)
    )
    whole = 1
    for step in (1, -1):
        i = home
        while 0 <= i + step < len(column) and column[i + step] in fabric.neighbours[column[i]]:
            i += step
            whole += 1
    return -whole


def _joined(fabric: Fabric, chain: set[int], owner: list[int], weight: int) -> set[int]:
    """Return the chain in one piece: its parts joined by short detours, or given up."""
    main, *parts = fabric.components(chain)
    for part in parts:
        path = fabric.path(part, main, owner, _DETOUR)
        if path is None:
            for q in part:
                owner[q] = -1
            continue
        main |= part
        main.update(path)
        for q in path:
            owner[q] = weight
    return main


def _all_coupled(fabric: Fabric, chains: list[set[int]], owner: list[int]) -> bool:
    """Couple the chains that no coupler joins by growing one of them; False where that fails."""
    seen = {
        (owner[q], owner[r]) for chain in chains for q in chain for r in fabric.neighbours[q] if owner[r] >= 0
    }
    for i, j in combinations(range(len(chains)), 2):
        if (i, j) in seen or (j, i) in seen:
            continue
        path = fabric.path(chains[i], chains[j], owner, _DETOUR)
        if path is None:
            return False
        chains[i].update(path)
        for q in path:
            owner[q] = i
            seen.update((i, owner[r]) for r in fabric.neighbours[q] if owner[r] >= 0)
    return True
