"""``lns bench quality --null`` and ``--ablate``: what answers of sub-QUBOs are worth, and each mechanism.

The null solver returns the bits as they stand, the random solver any bits. Where a search ends in the same
place with these, nothing is owed to the answers of sub-QUBOs. The problems are those in which they might
matter: many rows, low bits with hundreds of coupled weights, small integer models, and the paper's synthetic
sets, where nothing else runs beside an annealer.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from lns import descent, rounding, rounds, select, start, subproblem, walk
from lns.driver import solve
from lns.engine import EngineParams
from lns.problem import QLossProblem
from lns.settings import Settings
from lns.subproblem import SubQubo


def null(sub: SubQubo, start: NDArray[np.int8], seed: int) -> NDArray[np.int8]:
    """The bits as they stand."""
    return start[None, :]


def nearest(problem: QLossProblem, w: NDArray, b: float, deadline: float) -> NDArray[np.int32]:
    """Each weight on the level next to it."""
    return problem.codes(w, b)


def random(sub: SubQubo, start: NDArray[np.int8], seed: int) -> NDArray[np.int8]:
    """Any bits."""
    return np.random.default_rng(seed).integers(0, 2, (8, len(start)), dtype=np.int8)


NULL_TEST: dict[str, dict[str, Any]] = {
    "default": {},
    "default, null": {"solver": null},
    "rounds": {"mode": "rounds"},
    "rounds, null": {"mode": "rounds", "solver": null},
    "paper": {"mode": "paper"},
}

# Where one module's name is replaced for a run: what is no setting, and should be none.
Patch = tuple[Any, str, Any]
ABLATIONS: dict[str, tuple[dict[str, Any], tuple[Patch, ...]]] = {
    "engine": ({}, ()),
    **{
        f"no {kind}": ({"params": EngineParams(kinds=tuple(k for k in select.KINDS if k != kind))}, ())
        for kind in select.KINDS
    },
    "null solver": ({"solver": null}, ()),
    "random solver": ({"solver": random}, ()),
    "no target bits": ({"examples": 0}, ()),
    "64 weight bits": ({"max_bits": 64}, ()),
    "one neighbourhood": ({"params": EngineParams(neighbourhoods=1)}, ()),
    "two elites": ({"params": EngineParams(elites=2)}, ()),
    "one heat": ({"params": EngineParams(heats=(6.0,))}, ()),
    "all rows": ({"params": EngineParams(sample_rows=10**9, most_rows=10**9)}, ()),
    "no partners": ({}, ((walk, "PAIRS", 0.0),)),
    "steps of one level": ({}, ((walk, "adapted", lambda stride, *_: stride),)),
    "curvature at the point": ({}, ((subproblem, "WIDTH", 0.0),)),
    "answers as they are": ({}, ((rounds, "on_the_way", lambda sub, start, samples: samples),)),
    "kinds drawn alike": ({}, ((select.Wheel, "draw", lambda wheel, kinds, rng: str(rng.choice(kinds))),)),
    "levels stay": ({}, ((Settings, "follows", lambda settings, problem: False),)),
    "path along the loss itself": ({}, ((descent, "PATH_WIDTHS", (0.0,)),)),
    "one path": ({}, ((descent, "PATH_WIDTHS", (0.5,)),)),
    "nearest levels": ({}, ((start, "round_compensated", nearest),)),
    "no halves": ({}, ((rounding, "_by_halves", lambda problem, at, end: np.rint(at).astype(np.int32)),)),
    "no sweeps": ({}, ((rounding, "_by_sweeps", lambda problem, starts, deadline: ()),)),
}  # fmt: skip


def afresh(problem: QLossProblem) -> QLossProblem:
    """The same problem, sharing its data, whose start is not known yet."""
    other = copy.copy(problem)
    other._cut_short = True  # one that was cut short is found anew
    return other


@contextlib.contextmanager
def patched(patches: tuple[Patch, ...]) -> Iterator[None]:
    """Replace names of modules for a while."""
    before = [(module, name, getattr(module, name)) for module, name, _ in patches]
    try:
        for module, name, value in patches:
            setattr(module, name, value)
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


def chance(lower: NDArray[np.float64], higher: NDArray[np.float64]) -> float:
    """How likely it is that the first is so often below the second, if neither were (sign test)."""
    less, more = int((lower < higher - 1e-9).sum()), int((lower > higher + 1e-9).sum())
    return float(binomtest(less, less + more, alternative="greater").pvalue) if less + more else 1.0


def null_row(name: str, problem: QLossProblem, seconds: float, seeds: int) -> dict[str, Any]:
    """Median objectives with tabu search and with the null solver, and how sure the order is."""
    ends: dict[str, list[float]] = {kind: [] for kind in NULL_TEST}
    solve(problem, max_rounds=4, time_limit=5.0)  # compiled before any clock runs
    for seed in range(seeds):
        for kind, settings in NULL_TEST.items():
            ends[kind].append(solve(problem, time_limit=seconds, seed=seed, **settings).objective)
    found = {kind: np.array(values) for kind, values in ends.items()}
    start = solve(problem, max_rounds=0, time_limit=None).objective
    row: dict[str, Any] = {"problem": name, "start": start}
    row |= {kind: float(np.median(values)) for kind, values in found.items()}
    row["rounds below null"] = f"{100 * (1 - row['rounds'] / row['rounds, null']):.2f} %"
    row["by chance"] = chance(found["rounds"], found["rounds, null"])
    row["default worse by chance"] = chance(found["default, null"], found["default"])
    return row


def ablation_row(name: str, problem: QLossProblem, seconds: float, seeds: int) -> dict[str, Any]:
    """By how many per cent the median objective rises without each mechanism, paired seeds."""
    ends: dict[str, list[float]] = {kind: [] for kind in ABLATIONS}
    solve(problem, max_rounds=4, time_limit=5.0)
    for seed in range(seeds):
        for kind, (settings, patches) in ABLATIONS.items():
            with patched(patches):
                result = solve(afresh(problem), time_limit=seconds, seed=seed, **settings)
                ends[kind].append(result.objective)
    whole = np.array(ends["engine"])
    row: dict[str, Any] = {"problem": name, "engine": float(np.median(whole))}
    for kind, values in ends.items():
        if kind != "engine":
            row[kind] = f"{100 * float(np.median(np.array(values) / whole - 1)):+.3f}"
    return row
