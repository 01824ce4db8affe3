"""The best of the three routes for a shape, from the store where it is there."""

from __future__ import annotations

from lns.embedding.chip import Chip
from lns.embedding.clique import clique_bound, find_clique
from lns.embedding.embedding import Embedding
from lns.embedding.errors import InvalidEmbedding, NoEmbedding
from lns.embedding.search import find_by_search
from lns.embedding.shape import Shape
from lns.embedding.store import Store, default_store
from lns.embedding.template import find_template

#: Up to this many logical variables the search is worth its time beside the other routes: it may find shorter
#: chains. Beyond, it is asked only when the others have found nothing.
SEARCH_SIZE = 64


def embed(
    chip: Chip, shape: Shape, *, timeout: float = 10.0, seed: int = 0, store: Store | None = None
) -> Embedding:
    """Return an embedding of a shape on a chip: the cheapest of all routes, see :attr:`Embedding.cost`.

    It is found once; afterwards the store has it, whatever the timeout and the seed.

    Parameters
    ----------
    chip
        The chip.
    shape
        The graph to embed.
    timeout
        Seconds for minorminer's search; 0 leaves it out.
    seed
        The seed of the search and of busclique.
    store
        Where embeddings are kept; the user's cache by default.

    Raises
    ------
    NoEmbedding
        If no route finds room.

    Examples
    --------
    >>> chip = Chip.from_name("chimera:4")
    >>> found = embed(chip, Shape(weights=4, examples=2, target_bits=2), store=Store(None))
    >>> found.shape.size, len(found.verify().target_chains)
    (8, 2)
    """
    store = store if store is not None else default_store()
    known = store.load(chip, shape)
    if known is not None:
        return known
    with store.building(chip, f"w{shape.weights}-n{shape.examples}-t{shape.target_bits}"):
        known = store.load(chip, shape)
        if known is not None:
            return known
        found = find_best(chip, shape, timeout=timeout, seed=seed)
        if found is None:
            raise NoEmbedding(
                f"No embedding was found for {shape} ({shape.size} variables) on {chip.name} with "
                f"{chip.num_qubits} working qubits. lns.embedding.best_shape says what has room."
            )
        store.save(found)
        return found


def find_best(chip: Chip, shape: Shape, *, timeout: float, seed: int) -> Embedding | None:
    """Return the best embedding of the three routes, checked, or None; the store is not asked."""
    if shape.size > chip.num_qubits:
        return None
    found = [find_template(chip, shape)]
    if shape.size <= clique_bound(chip):
        found.append(find_clique(chip, shape, seed=seed))
    if shape.size <= SEARCH_SIZE or not any(found):
        found.append(find_by_search(chip, shape, timeout=timeout, seed=seed))
    valid = [e for e in found if e is not None]
    return checked(min(valid, key=lambda e: e.cost)) if valid else None


def checked(embedding: Embedding) -> Embedding:
    """Return an embedding after D-Wave's own check and ours; both must agree before anything leaves here.

    Raises
    ------
    InvalidEmbedding
        If the embedding breaks a rule: a bug here or in a library.
    """
    from dwave.embedding import verify_embedding
    from dwave.embedding.exceptions import EmbeddingError

    embedding.verify()
    shape = embedding.shape
    chains = embedding.relabel(range(shape.weights), range(shape.weights, shape.size))
    source = shape.edges() or [(i, i) for i in chains]
    try:
        verify_embedding(chains, source, embedding.chip.graph)
    except EmbeddingError as error:
        raise InvalidEmbedding(
            f"An embedding by the route {embedding.route!r} is invalid: {error}"
        ) from error
    return embedding
