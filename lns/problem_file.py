"""A problem as a file, and its fingerprint: what a checkpoint needs to find its data again.

The file is an uncompressed ``.npz`` of the arrays of the problem with a JSON header; nothing in it is
pickled, so that reading a stranger's file runs no code.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lns.errors import DataError
from lns.grid import Grid
from lns.matrix import SparseMatrix
from lns.problem import PARAMETERS, QLossProblem

Contents = tuple[dict[str, Any], dict[str, NDArray]]


def contents(problem: QLossProblem) -> Contents:
    """All that makes a problem what it is: its parameters, and its arrays (not copied)."""
    values: dict[str, Any] = {name: getattr(problem, name) for name in PARAMETERS}
    arrays: dict[str, NDArray] = {"y": problem.y.astype(np.int8)}
    X: Any = problem.matrix.X
    if isinstance(problem.matrix, SparseMatrix):
        values["shape"] = list(X.shape)
        arrays |= {"data": X.data, "indices": X.indices, "indptr": X.indptr}
    else:
        arrays["X"] = X
    for name, vector in (("q", problem.q), ("share", problem.share)):
        arrays[name] = vector[:1] if (vector == vector[0]).all() else vector
    for name, grid in (("weight", problem._weight_grid), ("bias", problem._bias_grid)):
        if grid is not None:
            arrays |= {f"{name}_lo": grid.lo, f"{name}_hi": grid.hi}
    return values, arrays


def fingerprint(problem: QLossProblem) -> str:
    """A hash of data and parameters.

    The memory order of the data belongs to it: sums over rows and over columns round differently, so that
    the same search on the other order may take another way.
    """
    values, arrays = contents(problem)
    digest = hashlib.blake2b(json.dumps(values, sort_keys=True).encode(), digest_size=16)
    for name in sorted(arrays):
        array = arrays[name]
        by_columns = not array.flags.c_contiguous
        digest.update(f"{name} {array.dtype.str} {array.shape} {by_columns}".encode())
        digest.update(memoryview(array.T if by_columns else array).cast("B"))
    return digest.hexdigest()


def write_problem(file: IO[bytes], problem: QLossProblem) -> None:
    """Write a problem to an open file."""
    values, arrays = contents(problem)
    header = np.frombuffer(json.dumps(values).encode(), dtype=np.uint8)
    np.savez(file, header=header, **arrays)  # type: ignore[arg-type]


def read_problem(path: Path) -> QLossProblem:
    """The problem in a file, bit for bit as it was written."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
        values = json.loads(arrays.pop("header").tobytes())
        return _problem(values, arrays)
    except FileNotFoundError:
        raise DataError(
            f"{path}, the data of this checkpoint, is missing. Put it beside the checkpoint, or pass the "
            "problem itself (problem=)."
        ) from None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} cannot be read ({error}). Pass the problem itself (problem=).") from error


def _problem(values: dict[str, Any], arrays: dict[str, NDArray]) -> QLossProblem:
    X: Any = arrays.get("X")
    if X is None:
        parts = arrays["data"], arrays["indices"], arrays["indptr"]
        X = sparse.csc_array(parts, shape=tuple(values["shape"]))
    y, q, share = arrays["y"], arrays["q"], arrays["share"]
    options: dict[str, Any] = {
        f"{name}_range": (arrays[f"{name}_lo"], arrays[f"{name}_hi"])
        for name in ("weight", "bias")
        if f"{name}_lo" in arrays
    }
    options |= {name: values[name] for name in PARAMETERS}
    problem = QLossProblem(X, y, q=q[0] if len(q) == 1 else q, **options)
    problem.share = np.repeat(share, len(y)) if len(share) == 1 else share  # as it was, not divided again
    return problem


def grids_to_arrays(name: str, problem: QLossProblem) -> dict[str, NDArray]:
    """The levels that a solution of this name lies on."""
    weights, bias = problem.grids
    ends = {"weight_lo": weights.lo, "weight_hi": weights.hi, "bias_lo": bias.lo, "bias_hi": bias.hi}
    return {f"{name}.{end}": array for end, array in ends.items()}


def on_levels_of(problem: QLossProblem, name: str, arrays: dict[str, NDArray]) -> QLossProblem:
    """The problem on the levels that a solution of this name lies on."""
    ends = {end: arrays[f"{name}.{end}"] for end in ("weight_lo", "weight_hi", "bias_lo", "bias_hi")}
    weights = Grid.make(
        ends["weight_lo"], ends["weight_hi"], problem.weight_bits, problem.num_features, "weight_range"
    )
    bias = Grid.make(ends["bias_lo"], ends["bias_hi"], problem.bias_bits, 1, "bias_range")
    return problem.on_levels(weights, bias)
