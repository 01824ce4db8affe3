"""Results of units, kept by a hash of all they depend on: code, data, seed and settings."""

from __future__ import annotations

import ast
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import lns
from lns.datasets.dataset import Dataset
from lns.files import write_text
from lns.paper import origin
from lns.paper.units import Unit

# Folders and modules whose code can change a result; the others only move or show it. What readers of data
# give is in the fingerprint of the data.
OF_ALL = (
    "clock.py", "cross_fit.py", "datasets/checks.py", "datasets/noise.py", "datasets/split.py", "descent.py",
    "flip_rates.py", "grid.py", "kernels.py", "matrix.py", "neighbourhood.py", "paper/folds.py",
    "paper/scores.py", "paper/units.py", "problem.py", "quick_fit.py", "rounding.py",
    "start.py", "state.py", "subproblem.py", "walk.py",
)  # fmt: skip
OF_SEARCH = (
    *OF_ALL, "accept.py", "backends/local.py", "driver.py", "engine.py", "merge.py", "paper/paths.py",
    "paper/qloss.py", "rounds.py", "select.py", "settings.py", "solvers", "stop.py",
)  # fmt: skip
OF_RIVALS = (*OF_ALL, "model.py", "paper/rivals")
OF_RATES = (*OF_ALL, "paper/protocols.py")
OF_KIND = {
    "choose": OF_SEARCH, "train": OF_SEARCH, "risk": (*OF_SEARCH, "paper/risk.py"), "rates": OF_RATES,
    "rival": OF_RIVALS, "cleanlab": (*OF_RIVALS, "paper/recovery.py"),
}  # fmt: skip


class Cache:
    """A folder of results; one file for each, written in one step, so that a kill leaves no half of one.

    Parameters
    ----------
    folder
        Where they are; made if it is not there.
    commit
        Of the code, to be noted with new results; None if it is not known.

    Attributes
    ----------
    commits
        Of all results that were met, old and new; the reader of this set may empty it.
    """

    def __init__(self, folder: Path, commit: str | None = None) -> None:
        self.folder, self.commit = folder, commit
        self.commits: set[str] = set()
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, unit: Unit, data: str) -> Path:
        """Where the result of a unit is or will be; `data` is the fingerprint of its data set."""
        depends = {
            "unit": unit.content(), "data": data, "code": code_of(unit.kind), "versions": origin.packages(),
        }  # fmt: skip
        text = json.dumps(depends, sort_keys=True, default=list)
        return self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:40]}.json"

    def get(self, unit: Unit, data: str) -> dict[str, Any] | None:
        """The result, if it is there; a damaged file counts as none."""
        try:
            found = json.loads(self.path(unit, data).read_text(encoding="utf-8"))
            result, commit = dict(found["result"]), str(found["commit"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        self.commits.add(commit)
        return result

    def put(self, unit: Unit, data: str, result: dict[str, Any]) -> None:
        """Keep a result, with what it is the result of, for people."""
        content = {"title": unit.title, "commit": str(self.commit), "result": result}
        self.commits.add(str(self.commit))
        write_text(self.path(unit, data), json.dumps(content, allow_nan=False) + "\n")


def fingerprint(data: Dataset) -> str:
    """A hash of features and labels."""
    X = data.X
    arrays = [X.T] if isinstance(X, np.ndarray) else [X.indptr, X.indices, X.data]
    found = hashlib.sha256(repr(X.shape).encode())
    for array in (*arrays, data.y):
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()


@cache
def code_of(kind: str) -> str:
    """A hash of the code behind a kind of unit; comments, docstrings and layout do not count."""
    home = Path(lns.__file__).parent
    found = hashlib.sha256()
    for name in OF_KIND[kind]:
        place = home / name
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            found.update(f"{path.relative_to(home)}\n{_meaning(path)}\n".encode())
    return found.hexdigest()


def _meaning(path: Path) -> str:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if (
            isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
            and ast.get_docstring(node) is not None
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.dump(tree)
