"""A chip seen as two layers of crossing lines, the same way for all three topologies.

Every qubit lies on a vertical or a horizontal line and crosses a run of lines of the other layer. Lines are
numbered from left to right (top to bottom), so that on all topologies a qubit is a stretch ``lo .. hi`` of
line numbers on line `line`:

=========  ====================  ======================  ==========================================
topology   lines                 a qubit crosses         steps along a track
=========  ====================  ======================  ==========================================
Chimera    t per cell            the t lines of a cell   to the next qubit of the line
Pegasus    12 per column         12 lines                to the next qubit of the line
Zephyr     2t per column, of     4t lines                to the next qubit of the line, or to the
           two shifts j                                  one half a qubit further, of the other shift
=========  ====================  ======================  ==========================================
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lns.embedding.chip import Chip

    IntArray = NDArray[np.int64]

_PEGASUS_OFFSETS = np.array(
    [[2, 2, 2, 2, 10, 10, 10, 10, 6, 6, 6, 6], [6, 6, 6, 6, 2, 2, 2, 2, 10, 10, 10, 10]]
)


class Fabric:
    """Lines, tracks and neighbours of a chip's working qubits, which are numbered from 0 here.

    Parameters
    ----------
    chip
        The chip.
    flipped
        Exchange vertical and horizontal; a damaged chip may have more room one way than the other.

    Attributes
    ----------
    layer, line, step, lo, hi
        For every qubit: 0 for vertical or 1 for horizontal, its line, its position along its track, the first
        and the last line that it crosses.
    lines
        Per layer: line number to the qubits on it, in order.
    tracks
        Per layer: what a straight chain runs along, as a dict from `step` to qubit.
    neighbours
        For every qubit, its working neighbours in order.
    unit
        Number of lines that a qubit crosses.
    cell
        Number of lines between two places where qubits may begin.
    """

    def __init__(self, chip: Chip, *, flipped: bool = False) -> None:
        self.chip = chip
        layer, line, track, step, lo = _coordinates(chip)
        if flipped:
            layer = 1 - layer
        self.unit = {"chimera": chip.shape[-1], "pegasus": 12, "zephyr": 4 * chip.shape[-1]}[chip.topology]
        self.cell = {"chimera": chip.shape[-1], "pegasus": 4, "zephyr": 2 * chip.shape[-1]}[chip.topology]
        #: Line numbers at which qubits begin are `phase` modulo `cell`.
        self.phase = 2 if chip.topology == "pegasus" else 0
        self.steps = (1, 2) if chip.topology == "zephyr" else (1,)
        self.layer, self.line, self.step = layer.tolist(), line.tolist(), step.tolist()
        self.lo, self.hi = lo.tolist(), (lo + self.unit - 1).tolist()
        self.lines = _grouped(layer, line, step)
        grouped = _grouped(layer, track, step)
        self.tracks = [{t: {self.step[q]: q for q in qs} for t, qs in side.items()} for side in grouped]
        self.neighbours = _neighbours(chip)

    def __len__(self) -> int:
        return len(self.layer)

    def components(self, qubits: set[int]) -> list[set[int]]:
        """Return the connected parts of a set of qubits, the largest first."""
        left, parts = set(qubits), []
        for start in sorted(qubits):
            if start not in left:
                continue
            left.discard(start)
            part, front = {start}, [start]
            while front:
                for other in self.neighbours[front.pop()]:
                    if other in left:
                        left.discard(other)
                        part.add(other)
                        front.append(other)
            parts.append(part)
        return sorted(parts, key=lambda part: (-len(part), min(part)))

    def path(self, sources: set[int], goals: set[int], owner: list[int], longest: int) -> list[int] | None:
        """Return a shortest path of at most `longest` free qubits from `sources` to next to `goals`."""
        back = dict.fromkeys(sources, -1)
        front = sorted(sources)
        for _ in range(longest + 1):
            after = []
            for q in front:
                for other in self.neighbours[q]:
                    if other in goals:
                        path = []
                        while q not in sources:
                            path.append(q)
                            q = back[q]
                        return path
                    if owner[other] < 0 and other not in back:
                        back[other] = q
                        after.append(other)
            front = after
        return None


def size_in_cells(chip: Chip) -> tuple[int, int]:
    """How many cells a chip is wide and high."""
    m = chip.shape[0]
    return (chip.shape[1], m) if chip.topology == "chimera" else (m, m)


def cells(chip: Chip) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return, for every working qubit, its cell's column and row, and what one cell further adds to its name.

    Translations by whole cells keep the couplers of a topology. The name of a qubit then changes by
    multiples of these two numbers, to the right and downwards.
    """
    layer, line, track, step, _ = _coordinates(chip)
    vertical = layer == 0
    if chip.topology == "chimera":
        _, n, t = chip.shape
        across, along = line // t, step
        right, down = np.full_like(layer, 2 * t), np.full_like(layer, 2 * t * n)
    else:
        if chip.topology == "pegasus":
            across, along, stride = line // 12, step, 12 * (chip.shape[0] - 1)
        else:
            m, t = chip.shape
            across, along, stride = track // (2 * t), step // 2, 4 * t * m
        right, down = np.where(vertical, stride, 1), np.where(vertical, 1, stride)
    return np.where(vertical, across, along), np.where(vertical, along, across), right, down


def _coordinates(chip: Chip) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Return layer, line, track, step and first crossed line of every working qubit."""
    q = chip.qubits
    if chip.topology == "chimera":
        m, n, t = chip.shape
        rest, k = np.divmod(q, t)
        rest, u = np.divmod(rest, 2)
        i, j = np.divmod(rest, n)
        line = np.where(u == 0, j, i) * t + k
        step = np.where(u == 0, i, j)
        return u, line, line, step, step * t
    if chip.topology == "pegasus":
        (m,) = chip.shape
        rest, z = np.divmod(q, m - 1)
        rest, k = np.divmod(rest, 12)
        u, w = np.divmod(rest, m)
        line = 12 * w + k
        return u, line, line, z, 12 * z + _PEGASUS_OFFSETS[u, k]
    m, t = chip.shape
    rest, z = np.divmod(q, m)
    rest, j = np.divmod(rest, 2)
    rest, k = np.divmod(rest, t)
    u, w = np.divmod(rest, 2 * m + 1)
    step = 2 * z + j
    return u, (w * t + k) * 2 + j, w * t + k, step, step * 2 * t


def _grouped(layer: IntArray, key: IntArray, step: IntArray) -> list[dict[int, list[int]]]:
    """Return, per layer, the qubits of each key in the order of their steps."""
    result: list[dict[int, list[int]]] = [{}, {}]
    for q in np.lexsort((step, key, layer)).tolist():
        result[layer[q]].setdefault(int(key[q]), []).append(q)
    return result


def _neighbours(chip: Chip) -> list[list[int]]:
    """Return the neighbours of every working qubit, in order."""
    ends = np.searchsorted(chip.qubits, chip.couplers)
    both = np.concatenate([ends, ends[:, ::-1]])
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    starts = np.searchsorted(both[:, 0], np.arange(chip.num_qubits + 1)).tolist()
    other = both[:, 1].tolist()
    return [other[a:b] for a, b in pairwise(starts)]
