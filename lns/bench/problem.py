"""What the core operations cost, measured against the least memory traffic they could have.

Times are ratios within one run, operation and reference in turn, so that they mean the same on any machine:

``objective``  against a bare ``X @ w`` in the precision of the data.
``gradient``   loss and gradient in one call, against ``X @ w`` and ``X.T @ r``.

The passes are numpy's, on one core; ours use all cores where there are enough rows.
"""

from __future__ import annotations

import argparse
import json
import time
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from lns.commands.parser import Parser
from lns.problem import QLossProblem

LIMIT = 3.0  # no ratio may exceed it
MEMORY_LIMIT = 8.0  # vectors of length S besides the data
BQM_LIMIT = 1.0  # seconds
DENSITY = 0.04  # of the sparse case


def run(rows: int = 581_012, features: int = 54, seed: int = 0, repeats: int = 5) -> dict[str, Any]:
    """Measure the ratios for dense float32 data in both memory orders and for sparse data.

    Parameters
    ----------
    rows, features
        Size of the random data; the default is that of covertype.
    seed
        Of the data.
    repeats
        How often each operation and its reference are timed in each of three turns; medians are reported.
    """
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(rows) < 0.5, -1.0, 1.0)
    by_rows = rng.random((rows, features), dtype=np.float32)
    thin = sparse.random_array((rows, features), density=DENSITY, format="csc", dtype=np.float32, rng=rng)
    cases = {
        "dense, by rows": lambda: by_rows,
        "dense, by columns": lambda: np.asfortranarray(by_rows),
        "sparse": lambda: thin,
    }
    return {
        "rows": rows,
        "features": features,
        "cases": {name: _case(make(), y, repeats) for name, make in cases.items()},
        "to_bqm_seconds": _time_to_bqm(rng, repeats),
    }


def format(result: dict[str, Any]) -> str:
    """The result of `run` as a table, misses marked with an exclamation mark."""
    lines = [
        f"{result['rows']:,} x {result['features']}, float32: ratios to a bare pass (at most {LIMIT:g}),",
        f"memory besides the data in vectors of length S (at most {MEMORY_LIMIT:g}).",
        "",
        f"{'':20}{'objective':>12}{'gradient':>12}{'memory':>12}",
    ]
    for name, case in result["cases"].items():
        cells = [(case[key]["ratio"], LIMIT) for key in ("objective", "gradient")]
        cells.append((case["extra_vectors"], MEMORY_LIMIT))
        lines.append(f"{name:20}" + "".join(f"{value:11.2f}{_mark(value, limit)}" for value, limit in cells))
    seconds = result["to_bqm_seconds"]
    lines += [
        "",
        f"to_bqm() of 1,400 x 21: {seconds:.2f} s{_mark(seconds, BQM_LIMIT)}(at most {BQM_LIMIT:g} s)",
    ]
    return "\n".join(lines)


def passed(result: dict[str, Any]) -> bool:
    """Whether every figure is within its limit."""
    return "!" not in format(result)


def main(argv: Sequence[str]) -> int:
    """``lns bench problem``: returns 1 if a figure is above its limit."""
    parser = Parser(
        "lns bench problem", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=581_012, help="default 581012, as covertype")
    parser.add_argument("--features", type=int, default=54, help="default 54")
    parser.add_argument("--repeats", type=int, default=5, help="default 5")
    parser.add_argument("--seed", type=int, default=0, help="default 0")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args(argv)
    result = run(args.rows, args.features, args.seed, args.repeats)
    print(json.dumps(result) if args.json else format(result))
    return 0 if passed(result) else 1


def _mark(value: float, limit: float) -> str:
    return " " if value <= limit else "!"


def _case(X: Any, y: NDArray, repeats: int) -> dict[str, Any]:
    codes = np.append(np.arange(X.shape[1]) % 16, 128).astype(np.int32)
    ranges: dict[str, Any] = {"weight_range": (-0.2, 0.2), "bias_range": (-0.2, 0.2)}
    QLossProblem(X, y, **ranges).state(codes)  # compiles
    tracemalloc.start()
    problem = QLossProblem(X, y, **ranges)
    state = problem.state(codes)
    extra = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    w, b = state.weights, state.bias
    w_single = w.astype(X.dtype)

    residuals = state.margins.astype(X.dtype)

    def bare() -> None:
        X @ w_single
        X.T @ residuals

    return {
        "objective": _compare(lambda: problem.objective(w, b), lambda: X @ w_single, repeats),
        "gradient": _compare(lambda: problem.loss_and_gradient(w, b), bare, repeats),
        "extra_vectors": extra / (8 * len(y)),
    }


def _compare(operation: Callable[[], Any], reference: Callable[[], Any], repeats: int) -> dict[str, float]:
    """Median times of both, in three turns so that a busy machine hurts both alike.

    Each turn warms up first: the threads of a BLAS call go on spinning for a while after it.
    """
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(3):
        for function, taken in zip((operation, reference), times, strict=True):
            for k in range(-2, repeats):
                start = time.perf_counter()
                function()
                if k >= 0:
                    taken.append(time.perf_counter() - start)
    seconds, bare = (float(np.median(taken)) for taken in times)
    return {"ratio": seconds / bare, "seconds": seconds, "reference_seconds": bare}


def _time_to_bqm(rng: np.random.Generator, repeats: int) -> float:
    """Seconds of the full QUBO of 1,400 x 21, the size of the paper's synthetic sets."""
    X = rng.random((1400, 21))
    y = np.where(np.arange(1400) % 2, 1.0, -1.0)
    problem = QLossProblem(X, y, weight_bits=2, weight_range=(0, 1), bias_range=(-2, 2))
    return _compare(problem.to_bqm, lambda: None, min(2, repeats))["seconds"]
