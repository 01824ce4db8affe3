"""Take from chains the qubits at their ends that no coupling needs."""

from __future__ import annotations

from collections import Counter

from lns.embedding.fabric import Fabric


def trim(fabric: Fabric, chains: list[set[int]], weights: int, target_bits: int) -> list[set[int]]:
    """Return the chains without idle ends.

    A qubit at the end of a chain goes if every other variable that it couples to is coupled to the chain
    elsewhere too. Target bits come first: their chains are the many.
    """
    chains = [set(chain) for chain in chains]
    owner = [-1] * len(fabric)
    for i, chain in enumerate(chains):
        for q in chain:
            owner[q] = i

    def needs(i: int, j: int) -> bool:
        return min(i, j) < weights or (i - weights) // target_bits == (j - weights) // target_bits

    for i in [*range(weights, len(chains)), *range(weights)]:
        chain = chains[i]
        links: dict[int, list[int]] = {}
        couplers: Counter[int] = Counter()
        inner: dict[int, int] = {}
        for q in chain:
            around = [owner[r] for r in fabric.neighbours[q] if owner[r] >= 0]
            inner[q] = around.count(i)
            links[q] = [j for j in around if j != i and needs(i, j)]
            couplers.update(links[q])
        ends = sorted(q for q in chain if inner[q] <= 1)
        while ends and len(chain) > 1:
            q = ends.pop()
            if any(couplers[j] <= n for j, n in Counter(links[q]).items()):
                continue
            couplers.subtract(links[q])
            chain.discard(q)
            owner[q] = -1
            for r in fabric.neighbours[q]:
                if owner[r] == i:
                    inner[r] -= 1
                    if inner[r] == 1:
                        ends.append(r)
    return chains
