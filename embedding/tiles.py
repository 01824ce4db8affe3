"""Equal regions of a chip, so that several sub-QUBOs share one call.

A tile is a rectangle of cells. All tiles are translations of the first, and a qubit or coupler counts as
working only if it works in every one of them: one embedding then serves all tiles alike, and what comes of a
sub-QUBO does not depend on the tile it lies on or on who lies beside it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lns.embedding.chip import Chip, coupler_codes
from lns.embedding.fabric import cells, size_in_cells
from lns.errors import InvalidInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

    IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Tiles:
    """A chip in equal parts.

    Parameters
    ----------
    tile
        The first part, as a chip of its own: what works in all parts, under the names of the first.
    shifts
        One row for each part: what to add to the name of a tile's qubit, for every qubit of `tile`.

    Examples
    --------
    >>> tiles = split(Chip.from_name("chimera:4"), 4)
    >>> tiles.tile.num_qubits, tiles.place(tiles.tile.qubits[:3], 3).tolist()
    (32, [80, 81, 82])
    """

    tile: Chip
    shifts: IntArray

    def __len__(self) -> int:
        return len(self.shifts)

    def place(self, qubits: NDArray[np.integer], part: int) -> IntArray:
        """The names on the chip of some qubits of the tile, in one of the parts."""
        at = np.searchsorted(self.tile.qubits, qubits)
        return np.asarray(qubits, dtype=np.int64) + self.shifts[part, at]


def split(chip: Chip, count: int) -> Tiles:
    """A chip in `count` equal parts, as square as possible.

    Raises
    ------
    InvalidInput
        If no qubit works in all parts.
    """
    if count == 1:
        return Tiles(chip, np.zeros((1, chip.num_qubits), dtype=np.int64))
    rows = max(1, round(math.sqrt(count)))
    columns = math.ceil(count / rows)
    # A damaged chip may keep more one way than the other.
    ways = [_split(chip, count, *way) for way in dict.fromkeys([(rows, columns), (columns, rows)])]
    best = max(ways, key=lambda tiles: tiles.tile.num_couplers)
    if not best.tile.num_qubits:
        raise InvalidInput(
            f"{chip.name} with {chip.num_qubits:,} working qubits cannot be split into {count} equal parts: "
            "pack fewer sub-QUBOs into a call."
        )
    return best


def _split(chip: Chip, count: int, rows: int, columns: int) -> Tiles:
    x, y, step_x, step_y = cells(chip)
    most_x, most_y = size_in_cells(chip)
    width, height = most_x // columns, most_y // rows
    moves = [(k % columns * width, k // columns * height) for k in range(count)]
    shifts = np.stack([dx * step_x + dy * step_y for dx, dy in moves])
    inside = (x < width) & (y < height)
    for (dx, dy), shift in zip(moves, shifts, strict=True):
        moved = chip.qubits + shift
        at = np.searchsorted(chip.qubits, moved).clip(max=chip.num_qubits - 1)
        # Beyond the edge of the chip the name may be that of some other qubit.
        inside &= (chip.qubits[at] == moved) & (x[at] == x + dx) & (y[at] == y + dy)
    qubits, shifts = chip.qubits[inside], shifts[:, inside]

    couplers = chip.couplers[np.isin(chip.couplers, qubits).all(axis=1)]
    ends = np.searchsorted(qubits, couplers)
    known = coupler_codes(chip.couplers)
    works = np.ones(len(couplers), dtype=bool)
    for shift in shifts:
        works &= np.isin(coupler_codes(np.sort(couplers + shift[ends], axis=1)), known)
    return Tiles(Chip(chip.topology, chip.shape, qubits, couplers[works]), shifts)
