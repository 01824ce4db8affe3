"""Bars: short straight chains of free qubits that couple to every weight."""

from __future__ import annotations

from lns.embedding.fabric import Fabric


def weight_masks(fabric: Fabric, owner: list[int], weights: int) -> list[int]:
    """Return for every qubit the set of weights that it couples to, as bits of an integer."""
    masks = [0] * len(fabric)
    for q, i in enumerate(owner):
        if 0 <= i < weights:
            bit = 1 << i
            for other in fabric.neighbours[q]:
                masks[other] |= bit
    return masks


def find_bars(
    fabric: Fabric, layer: int, owner: list[int], weights: int, longest: int, stubs: int
) -> list[list[int]]:
    """Return disjoint bars of at most `longest` free qubits along the tracks of a layer.

    Each track is walked from its first qubit. At every free qubit the shortest bar is taken that begins
    there, couples to all weights, and crosses `stubs` free qubits of the other layer, without which it could
    not be joined to others; a qubit where none begins is passed over.
    """
    masks, full = weight_masks(fabric, owner, weights), (1 << weights) - 1
    free = [
        0 if owner[q] >= 0 else sum(owner[r] < 0 and fabric.layer[r] != layer for r in fabric.neighbours[q])
        for q in range(len(fabric))
    ]
    bars = []
    taken: set[int] = set()
    for _, track in sorted(fabric.tracks[layer].items()):
        for start in sorted(track):
            if owner[track[start]] < 0 and track[start] not in taken:
                bar = _shortest(fabric, track, start, owner, taken, masks, free, (full, stubs), longest)
                if bar:
                    taken.update(bar)
                    bars.append(bar)
    return bars


def _shortest(
    fabric: Fabric,
    track: dict[int, int],
    start: int,
    owner: list[int],
    taken: set[int],
    masks: list[int],
    free: list[int],
    wanted: tuple[int, int],
    longest: int,
) -> list[int] | None:
    """Return the shortest bar from a position of a track, the most compact among equals."""
    first, (full, stubs) = track[start], wanted
    front = [(start, masks[first], free[first], [first])]
    for _ in range(longest):
        after = []
        for at, mask, crossed, bar in front:
            if mask & full == full and crossed >= stubs:
                return bar
            for step in fabric.steps:
                q = track.get(at + step, -1)
                if q >= 0 and owner[q] < 0 and q not in taken and q in fabric.neighbours[bar[-1]]:
                    after.append((at + step, mask | masks[q], crossed + free[q], [*bar, q]))
        front = after
    return None
