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
    from lns.driver import resume, solve
    from lns.engine import EngineParams
    from lns.errors import (
        AnnealerError,
        CheckpointError,
        CheckpointWarning,
        ClusterError,
        ClusterWarning,
        DamagedCheckpoint,
        DataError,
        EnergyMismatchError,
        ForeignCheckpoint,
        InvalidInput,
        LNSError,
        NewerCheckpoint,
        WrongProblem,
    )
    from lns.hybrid import QLossComposer, QLossDecomposer, hybrid_state, hybrid_workflow
    from lns.model import LinearModel, load_model
    from lns.problem import QLossProblem
    from lns.progress import Callbacks
    from lns.q_range import q_candidates, q_lower_bound
    from lns.result import Result
    from lns.sampler import LNSSampler
    from lns.sharded import ShardedProblem

__version__ = "0.1.0"

_HOMES = {
    "AnnealerError": "lns.errors",
    "Callbacks": "lns.progress",
    "CheckpointError": "lns.errors",
    "CheckpointWarning": "lns.errors",
    "ClusterError": "lns.errors",
    "ClusterWarning": "lns.errors",
    "DamagedCheckpoint": "lns.errors",
    "DataError": "lns.errors",
    "Dataset": "lns.datasets.load",
    "EnergyMismatchError": "lns.errors",
    "EngineParams": "lns.engine",
    "ForeignCheckpoint": "lns.errors",
    "InvalidInput": "lns.errors",
    "LNSError": "lns.errors",
    "LNSSampler": "lns.sampler",
    "LinearModel": "lns.model",
    "NewerCheckpoint": "lns.errors",
    "QLossClassifier": "lns.classifier",
    "QLossComposer": "lns.hybrid",
    "QLossDecomposer": "lns.hybrid",
    "QLossProblem": "lns.problem",
    "Result": "lns.result",
    "ShardedProblem": "lns.sharded",
    "WrongProblem": "lns.errors",
    "flip_labels": "lns.datasets.noise",
    "hybrid_state": "lns.hybrid",
    "hybrid_workflow": "lns.hybrid",
    "load_dataset": "lns.datasets.load",
    "load_model": "lns.model",
    "q_candidates": "lns.q_range",
    "q_lower_bound": "lns.q_range",
    "resume": "lns.driver",
    "solve": "lns.driver",
}

__all__ = [
    "AnnealerError",
    "Callbacks",
    "CheckpointError",
    "CheckpointWarning",
    "ClusterError",
    "ClusterWarning",
    "DamagedCheckpoint",
    "DataError",
    "Dataset",
    "EnergyMismatchError",
    "EngineParams",
    "ForeignCheckpoint",
    "InvalidInput",
    "LNSError",
    "LNSSampler",
    "LinearModel",
    "NewerCheckpoint",
    "QLossClassifier",
    "QLossComposer",
    "QLossDecomposer",
    "QLossProblem",
    "Result",
    "ShardedProblem",
    "WrongProblem",
    "flip_labels",
    "hybrid_state",
    "hybrid_workflow",
    "load_dataset",
    "load_model",
    "q_candidates",
    "q_lower_bound",
    "resume",
    "solve",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'lns' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
