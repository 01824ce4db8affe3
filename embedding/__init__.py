"""Chips, and embeddings of sub-QUBOs on them.

A sub-QUBO has one shape: weight bits that couple to everything, and the target bits of each example, which
couple to each other (:class:`Shape`). :func:`embed` finds where it goes on a :class:`Chip`, by a template, a
clique or a search, and keeps the answer in a :class:`Store`; :func:`best_shape` says how large it may be.

Importing this package is cheap: a name's module is loaded when the name is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lns.embedding.bench import bench_embedding as bench_embedding
    from lns.embedding.chip import KNOWN_CHIPS as KNOWN_CHIPS
    from lns.embedding.chip import Chip as Chip
    from lns.embedding.embedding import Embedding as Embedding
    from lns.embedding.errors import InvalidEmbedding as InvalidEmbedding
    from lns.embedding.errors import NoEmbedding as NoEmbedding
    from lns.embedding.routes import embed as embed
    from lns.embedding.shape import Shape as Shape
    from lns.embedding.sizing import best_shape as best_shape
    from lns.embedding.sizing import largest_embedding as largest_embedding
    from lns.embedding.store import Store as Store
    from lns.embedding.store import cache_dir as cache_dir
    from lns.embedding.store import default_store as default_store

_MODULES = {
    "KNOWN_CHIPS": "chip",
    "Chip": "chip",
    "Embedding": "embedding",
    "InvalidEmbedding": "errors",
    "NoEmbedding": "errors",
    "Shape": "shape",
    "Store": "store",
    "bench_embedding": "bench",
    "best_shape": "sizing",
    "cache_dir": "store",
    "default_store": "store",
    "embed": "routes",
    "largest_embedding": "sizing",
}

__all__ = [
    "KNOWN_CHIPS",
    "Chip",
    "Embedding",
    "InvalidEmbedding",
    "NoEmbedding",
    "Shape",
    "Store",
    "bench_embedding",
    "best_shape",
    "cache_dir",
    "default_store",
    "embed",
    "largest_embedding",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
