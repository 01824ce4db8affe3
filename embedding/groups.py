"""Groups: bars joined to the cliques of the examples' target bits, by direct couplers and stubs.

Bars of one layer hardly couple to each other. A stub, a free qubit of the other layer that crosses several
bars, is given to one of them and thereby couples it to the rest.
"""

from __future__ import annotations

from itertools import combinations

from lns.embedding.fabric import Fabric

#: How many different last members are tried before a bar is given up.
_TRIES = 12


class Grouper:
    """Packs bars into cliques of `size` chains, greedily, in the order of the bars.

    Parameters
    ----------
    fabric
        The chip.
    owner
        Who holds each qubit; free ones are negative. Not changed.
    bars
        Disjoint bars of free qubits.
    size
        Number of bars of a group, d_t.
    tall
        Also use stubs of two qubits: on Chimera a qubit crosses the lines of a single cell.
    """

    def __init__(
        self, fabric: Fabric, owner: list[int], bars: list[list[int]], size: int, *, tall: bool = False
    ) -> None:
        self.bars, self.size = bars, size
        self.loose = set(range(len(bars)))
        bar_of: dict[int, int] = {q: b for b, bar in enumerate(bars) for q in bar}
        #: Bars that each free stub crosses.
        self.crossed: dict[int, set[int]] = {}
        self.direct: list[set[int]] = [set() for _ in bars]
        self.stubs: list[list[int]] = [[] for _ in bars]
        for b, bar in enumerate(bars):
            for q in bar:
                for other in fabric.neighbours[q]:
                    c = bar_of.get(other, -1)
                    if c >= 0 and c != b:
                        self.direct[b].add(c)
                    elif c < 0 and owner[other] < 0:
                        self.crossed.setdefault(other, set()).add(b)
        #: Qubits of each stub; a stub of one qubit has that qubit's number.
        self.parts: dict[int, tuple[int, ...]] = {v: (v,) for v in sorted(self.crossed)}
        if tall:
            self._add_tall(fabric)
        #: Stubs that contain each qubit.
        self.containing: dict[int, list[int]] = {}
        for v, qubits in self.parts.items():
            for q in qubits:
                self.containing.setdefault(q, []).append(v)
            for b in self.crossed[v]:
                self.stubs[b].append(v)

    def _add_tall(self, fabric: Fabric) -> None:
        """Add stubs of two free neighbours on a line."""
        number = len(fabric)
        for v in list(self.parts):
            for w in fabric.neighbours[v]:
                if w > v and w in self.crossed and fabric.layer[w] == fabric.layer[v]:
                    self.parts[number] = (v, w)
                    self.crossed[number] = self.crossed[v] | self.crossed[w]
                    number += 1

    def pack(self, limit: int | None = None) -> list[list[list[int]]]:
        """Return the groups found, at most `limit`: per group the chains of its target bits."""
        groups: list[list[list[int]]] = []
        for b in range(len(self.bars)):
            if limit is not None and len(groups) >= limit:
                break
            if b in self.loose:
                group = self._group(b)
                if group is not None:
                    groups.append(group)
        return groups

    def _group(self, first: int) -> list[list[int]] | None:
        """Return a group with a given bar, and take its bars and stubs."""
        members, shared = [first], self._live(first)
        partners = sorted(self._partners(first))
        while len(members) < self.size - 1:
            choice = self._ranked(members, shared, partners)
            if not choice:
                return None
            members.append(choice[0])
            shared &= self._live(choice[0])
        lasts = self._ranked(members, shared, partners)[:_TRIES] if self.size > 1 else [-1]
        for last in lasts:
            full = members if last < 0 else [*members, last]
            stubs = self._join(full)
            if stubs is not None:
                self._take(full, stubs)
                return [[*self.bars[b], *(q for v in stubs[b] for q in self.parts[v])] for b in full]
        return None

    def _live(self, bar: int) -> set[int]:
        """Return the stubs of a bar that are still free."""
        return {v for v in self.stubs[bar] if v in self.crossed}

    def _partners(self, bar: int) -> set[int]:
        """Return the loose bars that a bar could couple to."""
        found = set(self.direct[bar]).union(*(self.crossed[v] for v in self._live(bar)))
        return (found & self.loose) - {bar}

    def _ranked(self, members: list[int], shared: set[int], partners: list[int]) -> list[int]:
        """Return the bars that may join the members, the best first.

        What must not run out are stubs that cross all members: one for each pair that is still open, and one
        for each member still to come. Then direct couplers save stubs, and many shared stubs leave a choice.
        """
        missing = self.size - len(members) - 1
        still_open = sum(b not in self.direct[a] for a, b in combinations(members, 2))
        ranked = []
        for c in partners:
            if c in members:
                continue
            coupled = sum(c in self.direct[m] for m in members)
            stubs = len(shared.intersection(self.stubs[c]))
            if stubs or coupled == len(members):
                # A stub of c closes all its pairs at once, and so does one of the members before it.
                needed = min(still_open + len(members) - coupled, len(members)) + missing
                ranked.append((max(0, needed - stubs), -coupled, -stubs, abs(c - members[0]), c))
        return [c for *_, c in sorted(ranked)]

    def _join(self, members: list[int]) -> dict[int, list[int]] | None:
        """Return stubs for each member that couple all of them, or None."""
        open_pairs = {(a, b) for a, b in combinations(members, 2) if b not in self.direct[a]}
        given: dict[int, list[int]] = {b: [] for b in members}
        used: set[int] = set()
        inside = set(members)
        reach: dict[int, set[int]] = {}
        if open_pairs:
            for b in members:
                for v in self._live(b):
                    reach[v] = self.crossed[v] & inside
        while open_pairs:
            best: tuple[int, int, int, int, int] | None = None
            for v, bars in reach.items():
                if len(bars) < 2 or not used.isdisjoint(self.parts[v]):
                    continue
                for b in bars:
                    gain = sum((b, c) in open_pairs or (c, b) in open_pairs for c in bars)
                    key = (-gain, len(self.parts[v]), len(self.crossed[v]), v, b)
                    if gain and (best is None or key < best):
                        best = key
            if best is None:
                return None
            *_, v, b = best
            used.update(self.parts[v])
            given[b].append(v)
            open_pairs -= {(b, c) for c in reach[v]} | {(c, b) for c in reach[v]}
        return given

    def _take(self, members: list[int], stubs: dict[int, list[int]]) -> None:
        """Mark bars and stubs as used."""
        self.loose.difference_update(members)
        for taken in stubs.values():
            for q in (q for v in taken for q in self.parts[v]):
                for v in self.containing[q]:
                    self.crossed.pop(v, None)
        for b in members:
            for v in self._live(b):
                self.crossed[v].discard(b)
