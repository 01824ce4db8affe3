"""The three routes side by side: how much each has room for, how long it takes, how long its chains are."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from lns.embedding.chip import Chip
from lns.embedding.clique import find_clique, largest_clique
from lns.embedding.embedding import Embedding
from lns.embedding.routes import checked
from lns.embedding.search import find_by_search
from lns.embedding.shape import Shape
from lns.embedding.template import largest_template

#: Chip, weight bits and target bits of the rows of the benchmark.
CASES: tuple[tuple[str, int, int], ...] = (
    ("chimera:8", 8, 4),
    ("chimera:8", 12, 4),
    ("chimera:8", 16, 4),
    ("chimera:16", 16, 4),
    ("pegasus:16", 16, 4),
    ("pegasus:16", 24, 4),
    ("zephyr:15", 16, 4),
    ("zephyr:15", 24, 4),
)

ROUTES = ("clique", "search", "template")


@dataclass(frozen=True)
class Row:
    """One route on one chip: the largest round it found, and what it cost."""

    chip: str
    dead_qubits: int
    weights: int
    target_bits: int
    route: str
    examples: int
    total: int
    qubits: int
    mean_chain: float
    max_chain: int
    mean_weight_chain: float
    cpu_seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return the row as a dict."""
        return asdict(self)


def bench_embedding(
    cases: Iterable[tuple[str, int, int]] = CASES,
    *,
    routes: Iterable[str] = ROUTES,
    dead: float = 0.0,
    timeout: float = 10.0,
    max_chain: int | None = None,
    seed: int = 0,
    progress: Callable[[Row], None] | None = None,
) -> list[Row]:
    """Return the largest round of every route for every case; nothing is read from or kept in the store.

    Parameters
    ----------
    cases
        Chip, weight bits and target bits of each case.
    routes
        Which of ``"clique"``, ``"search"`` and ``"template"``.
    dead
        Fraction of random dead qubits.
    timeout
        Seconds for each attempt of the search.
    max_chain
        Longest chain allowed, for the template and the clique.
    seed
        The seed of the damage, of busclique and of the search.
    progress
        Called with each row when it is there.
    """
    finders: dict[str, Callable[[Chip, int, int], Embedding | None]] = {
        "clique": lambda chip, weights, bits: _clique(chip, weights, bits, max_chain, seed),
        "search": lambda chip, weights, bits: _search(chip, weights, bits, timeout, seed),
        "template": lambda chip, weights, bits: largest_template(chip, weights, bits, max_chain),
    }
    rows = []
    chosen = list(routes)
    for name, weights, bits in cases:
        chip = Chip.from_name(name)
        if dead:
            chip = chip.damaged(dead, 0.0, seed=seed)
        for route in chosen:
            start = time.process_time()
            found = finders[route](chip, weights, bits)
            row = _row(chip, weights, bits, route, found, time.process_time() - start)
            rows.append(row)
            if progress is not None:
                progress(row)
    return rows


def _clique(chip: Chip, weights: int, bits: int, max_chain: int | None, seed: int) -> Embedding | None:
    size = largest_clique(chip, seed=seed, at_least=weights, max_chain=max_chain)
    return find_clique(chip, Shape(weights, (size - weights) // bits, bits), seed=seed) if size else None


def _search(chip: Chip, weights: int, bits: int, timeout: float, seed: int) -> Embedding | None:
    """Return the largest round that the search finds: twice as many examples until it fails, then between."""
    best: Embedding | None = None
    low, high = 0, 0
    while not high or high - low > max(1, low // 8):
        examples = (low + high) // 2 if high else max(1, 2 * low)
        found = find_by_search(chip, Shape(weights, examples, bits), timeout=timeout, seed=seed)
        if found is None:
            high = examples
        else:
            low, best = examples, found
    return best


def _row(chip: Chip, weights: int, bits: int, route: str, found: Embedding | None, seconds: float) -> Row:
    if found is None:
        return Row(chip.name, chip.missing_qubits, weights, bits, route, 0, 0, 0, 0.0, 0, 0.0, seconds)
    checked(found)
    return Row(
        chip=chip.name,
        dead_qubits=chip.missing_qubits,
        weights=weights,
        target_bits=bits,
        route=route,
        examples=found.shape.examples,
        total=found.shape.size,
        qubits=found.num_qubits,
        mean_chain=found.mean_chain,
        max_chain=found.max_chain,
        mean_weight_chain=float(found.weight_chain_lengths.mean()),
        cpu_seconds=seconds,
    )
