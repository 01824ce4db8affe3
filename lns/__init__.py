"""Train noise-robust classifiers as giant QUBOs, by large neighbourhood search.

Names are imported when they are first used, so that ``import lns`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lns.classifier import QLossClassifier
    from lns.datasets.load import Dataset, load_dataset
    from lns.datasets.noise import flip_labels
    from lns.driver import solve
    from lns.errors import DataError, EnergyMismatchError, InvalidInput, LNSError
    from lns.problem import QLossProblem
    from lns.progress import Callbacks
    from lns.q_range import q_candidates, q_lower_bound
    from lns.result import Result

__version__ = "0.1.0"

_HOMES = {
    "Callbacks": "lns.progress",
    "DataError": "lns.errors",
    "Dataset": "lns.datasets.load",
    "EnergyMismatchError": "lns.errors",
    "InvalidInput": "lns.errors",
    "LNSError": "lns.errors",
    "QLossClassifier": "lns.classifier",
    "QLossProblem": "lns.problem",
    "Result": "lns.result",
    "flip_labels": "lns.datasets.noise",
    "load_dataset": "lns.datasets.load",
    "q_candidates": "lns.q_range",
    "q_lower_bound": "lns.q_range",
    "solve": "lns.driver",
}

__all__ = [
    "Callbacks", "DataError", "Dataset", "EnergyMismatchError", "InvalidInput", "LNSError", "QLossClassifier",
    "QLossProblem", "Result", "flip_labels", "load_dataset", "q_candidates", "q_lower_bound", "solve",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'lns' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
