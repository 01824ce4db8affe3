"""The search route: minorminer's heuristic, with a time limit."""

from __future__ import annotations

from lns.embedding.chip import Chip
from lns.embedding.embedding import Embedding
from lns.embedding.shape import Shape


def find_by_search(chip: Chip, shape: Shape, *, timeout: float, seed: int = 0) -> Embedding | None:
    """Return an embedding that minorminer finds, or None.

    A search that ends by itself depends on the seed alone; one that the time limit ends may succeed on a
    faster machine. minorminer overruns the limit by up to a third.

    Parameters
    ----------
    chip
        The chip.
    shape
        The graph to embed.
    timeout
        Seconds; 0 or less does not search.
    seed
        The seed of the search.
    """
    from minorminer import find_embedding

    if timeout <= 0 or shape.size > chip.num_qubits or (shape.size > 1 and not chip.num_couplers):
        return None
    if shape.size == 1:
        return Embedding.from_chains(chip, shape, [[int(chip.qubits[0])]], "search")
    # Both edge lists are sorted: the same seed finds something else in another order.
    found = find_embedding(shape.edges(), chip.couplers.tolist(), random_seed=seed, timeout=timeout)
    if len(found) != shape.size:
        return None
    return Embedding.from_chains(chip, shape, [found[i] for i in range(shape.size)], "search")
