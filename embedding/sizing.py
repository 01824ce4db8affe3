"""How large a round may be on a chip."""

from __future__ import annotations

import logging
import time

from lns.embedding.chip import Chip
from lns.embedding.clique import clique_bound, find_clique, largest_clique
from lns.embedding.embedding import Embedding
from lns.embedding.errors import NoEmbedding
from lns.embedding.routes import checked
from lns.embedding.search import find_by_search
from lns.embedding.shape import Shape
from lns.embedding.store import Store, default_store
from lns.embedding.template import largest_template
from lns.errors import InvalidInput

_log = logging.getLogger("lns.embedding")

#: Bound on the longest chain where nobody asks for another. Longer chains have room for more examples, but
#: break more often; about three blocks on today's chips.
DEFAULT_MAX_CHAIN = 48

#: Numbers of weight bits that the automatic choice considers.
WEIGHT_CHOICES = (32, 24, 16, 12, 8, 4)

#: Seconds for a search for a single example, where the other routes have no room for one.
_LAST_RESORT = 2.0


def best_shape(
    chip: Chip,
    *,
    weights: int | None = None,
    target_bits: int = 4,
    max_chain: int | None = None,
    timeout: float = 0.0,
    seed: int = 0,
    store: Store | None = None,
) -> Shape:
    """Return the largest round that has room on a chip; its embedding is in the store afterwards.

    Parameters
    ----------
    chip
        The chip.
    weights
        Number of weight bits. Where a small or damaged chip cannot hold them with a single example, the
        answer has fewer. None chooses a number, and then bounds the chains by `DEFAULT_MAX_CHAIN` unless told
        otherwise.
    target_bits
        Number of target bits of an example.
    max_chain
        Longest chain allowed; None for no bound.
    timeout
        Seconds for minorminer's search to improve on the other routes; 0 leaves it out.
    seed
        The seed of the search and of busclique.
    store
        Where embeddings and answers are kept; the user's cache by default.

    Raises
    ------
    NoEmbedding
        If the chip has no working qubit.

    Examples
    --------
    >>> best_shape(Chip.from_name("chimera:8"), weights=12, store=Store(None))
    Shape(weights=12, examples=10, target_bits=4)
    """
    options = {"timeout": timeout, "seed": seed, "store": store}
    return largest_embedding(
        chip,
        weights=weights,
        target_bits=target_bits,
        max_chain=max_chain,
        **options,  # type: ignore[arg-type]
    ).shape


def largest_embedding(
    chip: Chip,
    *,
    weights: int | None = None,
    target_bits: int = 4,
    max_chain: int | None = None,
    timeout: float = 0.0,
    seed: int = 0,
    store: Store | None = None,
) -> Embedding:
    """Return the embedding of `best_shape`, which has the same parameters; its chains keep the bound."""
    wanted = Shape(1 if weights is None else weights, 1, target_bits)
    if max_chain is not None and max_chain < 1:
        raise InvalidInput(f"The 'max_chain' of a round must be at least 1. Got {max_chain} instead.")
    if not chip.num_qubits:
        raise NoEmbedding(f"{chip.name} has no working qubit.")
    if weights is None and max_chain is None:
        max_chain = DEFAULT_MAX_CHAIN
    store = store if store is not None else default_store()
    request = f"largest-w{weights or 'auto'}-t{target_bits}-c{max_chain or 'any'}-s{timeout:g}"
    known = _known(chip, request, max_chain, store)
    if known is not None:
        return known
    with store.building(chip, request):
        known = _known(chip, request, max_chain, store)
        if known is not None:
            return known
        if weights is None:
            found = _choose(chip, target_bits, max_chain, timeout, seed)
        else:
            found = _largest_or_fewer(chip, wanted, max_chain, timeout, seed)
            _warn_if_fewer(chip, wanted, found.shape, max_chain)
        found = checked(found)
        # Another request may have led to the same shape with shorter chains, whose bound must go on to hold.
        older = store.load(chip, found.shape)
        if older is not None and older.max_chain <= found.max_chain:
            found = older
        else:
            store.save(found)
        store.save_size(chip, request, found.shape)
    return found


def _warn_if_fewer(chip: Chip, wanted: Shape, got: Shape, max_chain: int | None) -> None:
    if got.weights < wanted.weights:
        _log.warning(
            "%s has no room for %d weight bits and an example of %d target bits%s: the round has %d.",
            chip.name,
            wanted.weights,
            wanted.target_bits,
            "" if max_chain is None else f" with chains of at most {max_chain} qubits",
            got.weights,
        )


def _known(chip: Chip, request: str, max_chain: int | None, store: Store) -> Embedding | None:
    """Return the stored answer to a request, if its size and its embedding are whole and within the bound."""
    shape = store.load_size(chip, request)
    known = None if shape is None else store.load(chip, shape)
    return None if known is None or (max_chain is not None and known.max_chain > max_chain) else known


def _choose(chip: Chip, target_bits: int, max_chain: int | None, timeout: float, seed: int) -> Embedding:
    """Return the round with the most couplings between weights and examples.

    More weight bits leave room for fewer examples; their product is what a round decides about. It rises and
    then falls with the number of weights, so that the first fall ends the search.
    """
    best: Embedding | None = None
    most = 0
    for weights in WEIGHT_CHOICES:
        found = _largest(chip, Shape(weights, 1, target_bits), max_chain, timeout, seed)
        product = 0 if found is None else weights * found.shape.examples
        if product < most:
            break
        if product > most:
            best, most = found, product
    if best is not None:
        return best
    return _largest_or_fewer(chip, Shape(16, 1, target_bits), max_chain, timeout, seed)


def _largest_or_fewer(
    chip: Chip, wanted: Shape, max_chain: int | None, timeout: float, seed: int
) -> Embedding:
    """Return the largest round with the wanted weights, or with half as many until an example has room."""
    weights, bare = wanted.weights, None
    while weights:
        found = _largest(chip, Shape(weights, 1, wanted.target_bits), max_chain, timeout, seed)
        if found is None or not found.shape.examples:
            one = find_by_search(chip, Shape(weights, 1, wanted.target_bits), timeout=_LAST_RESORT, seed=seed)
            if one is not None and (max_chain is None or one.max_chain <= max_chain):
                found = one
        if found is not None and found.shape.examples:
            break
        bare = bare or found
        weights //= 2
    else:
        # Not one example beside one weight: the weights alone, or a single qubit.
        found = bare or Embedding.from_chains(
            chip, Shape(1, 0, wanted.target_bits), [[int(chip.qubits[0])]], "template"
        )
    return found


def _largest(chip: Chip, least: Shape, max_chain: int | None, timeout: float, seed: int) -> Embedding | None:
    """Return the largest round with exactly these weights by any route, or None."""
    weights, bits = least.weights, least.target_bits
    best = largest_template(chip, weights, bits, max_chain)
    examples = -1 if best is None else best.shape.examples
    more = weights + (examples + 1) * bits
    if more <= clique_bound(chip):
        size = largest_clique(chip, seed=seed, at_least=more, max_chain=max_chain)
        if size:
            best = find_clique(chip, Shape(weights, (size - weights) // bits, bits), seed=seed)
    deadline = time.monotonic() + timeout
    while timeout > 0:
        # In steps of an eighth: the search fails rather suddenly, and each success costs seconds.
        examples = -1 if best is None else best.shape.examples
        shape = Shape(weights, examples + 1 + max(0, examples) // 8, bits)
        found = find_by_search(chip, shape, timeout=deadline - time.monotonic(), seed=seed)
        if found is None or (max_chain is not None and found.max_chain > max_chain):
            break
        best = found
    return best
