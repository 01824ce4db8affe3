"""Small problems and fakes for the tests of the search."""

from __future__ import annotations

import csv
import os
from dataclasses import fields
from pathlib import Path

import numpy as np
from scipy import sparse

from lns.problem import QLossProblem
from lns.rounds import Choice, Proposal, question

KINDS = ("dense", "sparse", "mixed")
NO_WEIGHTS = np.empty(0, dtype=np.intp)


def random_problem(kind="dense", rows=120, features=6, seed=0, **options):
    """Noisy labels of a random linear rule; range (-1, 1).

    Dense, sparse, with columns of both kinds, or with entries that are alike within each column ("binary").
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features))
    y = np.where(X @ rng.normal(size=features) + rng.normal(size=rows) > 0, 1, -1)
    y[:2] = -1, 1
    if kind != "dense":
        keep = np.full(features, 0.1) if kind == "sparse" else np.linspace(0.05, 1, features)
        X *= rng.random((rows, features)) < keep
    if kind == "binary":
        X = np.where(X != 0, np.linspace(0.5, 2, features), 0.0)
    options = {"q": -0.5, "lam": 0.01, "weight_range": (-1, 1), "bias_range": (-1, 1), **options}
    return QLossProblem(sparse.csc_array(X) if kind == "sparse" else X, y, **options)


def random_codes(problem, seed=0):
    """Codes anywhere on the grid."""
    return np.random.default_rng(seed).integers(0, problem.tops + 1, dtype=np.int32)


def every_code(problem):
    """All codes of a very small problem, best objective first, and their objectives."""
    axes = np.meshgrid(*[np.arange(top + 1, dtype=np.int32) for top in problem.tops], indexing="ij")
    codes = np.stack([axis.ravel() for axis in axes], axis=1)
    objectives = problem.state(codes[0]).evaluate(codes)
    order = np.argsort(objectives, kind="stable")
    return codes[order], objectives[order]


def single_moves(problem, codes):
    """Change of the objective by one level down and up of every weight, bias last; infinite off the grid."""
    codes, gains = np.asarray(codes), np.full((len(codes), 2), np.inf)
    for k, step in enumerate((-1, 1)):
        moved = codes + step * np.eye(len(codes), dtype=np.int32)
        possible = (moved.diagonal() >= 0) & (moved.diagonal() <= problem.tops)
        gains[possible, k] = problem.state(codes).evaluate(moved[possible]) - recomputed(problem, codes)
    return gains


def recomputed(problem, codes):
    """The objective of codes, from nothing but the problem."""
    return problem.objective(*problem.values(np.asarray(codes)))


def are_levels(grid, values):
    """Which of these values lie on the grids of their variables, to rounding."""
    return np.abs(grid.values(grid.codes(values)) - values) <= 1e-12 * (grid.hi - grid.lo)


def margins_at(problem, levels):
    """Margins where the codes need not be whole."""
    w, b = problem.values(levels)
    return problem.matrix.margins(w, float(b), problem.y)


def ask(problem, codes, kind="window", weights=(0,), seed=0, **options):
    """What a choice of some weights asks of a solver."""
    choice = Choice(kind, np.sort(np.asarray(weights, dtype=np.intp)), **options)
    return question(problem, codes, choice, np.random.default_rng(seed))


def proposal_of(task, codes):
    """What a backend returns for a task, without having worked for it."""
    return Proposal(np.asarray(codes, dtype=np.int32), task.choice, NO_WEIGHTS, 0, 0, 0, {})


def facts(record):
    """A record of a round as plain values, without its timings and what happened to its messages."""
    timed = {
        "seconds",
        "select_time",
        "solve_time",
        "merge_time",
        "timings",
        "retries",
        "rebuilt",
        "moved_bytes",
    }

    def plain(value):
        if isinstance(value, np.ndarray):
            return value.tolist()
        return [facts(one) for one in value] if isinstance(value, tuple) else value

    return {f.name: plain(getattr(record, f.name)) for f in fields(record) if f.name not in timed}


def instances():
    """The folder with the fixed instances, or None."""
    given = os.environ.get("LNS_DATA_DIR")
    folders = [Path(given) / "instances"] if given else []
    folders.append(Path(__file__).resolve().parents[2] / "shared" / "data" / "instances")
    return next((f for f in folders if (f / "best_known.csv").is_file()), None)


def long_servedio_noise20():
    """The fixed instance of 5,650 variables, and its best known objective."""
    with open(instances() / "best_known.csv", newline="") as file:
        row = next(r for r in csv.DictReader(file) if r["file"] == "long-servedio-noise20.npz")
    data = np.load(instances() / row["file"])
    problem = QLossProblem(
        data["X"].astype(np.float32), data["y"], q=float(row["q"]), lam=float(row["lam"]),
        weight_bits=int(row["weight_bits"]), weight_range=(float(row["weight_lo"]), float(row["weight_hi"])),
        bias_bits=int(row["bias_bits"]), bias_range=(float(row["bias_lo"]), float(row["bias_hi"])),
    )  # fmt: skip
    return problem, float(row["best_objective"])


def assert_same_run(one, other):
    """Two results have the same rounds and the same solution, bit for bit; only timings may differ."""
    assert [facts(record) for record in one.rounds] == [facts(record) for record in other.rounds]
    np.testing.assert_array_equal(one.codes, other.codes)
    np.testing.assert_array_equal(one.flagged, other.flagged)
    assert (one.objective, one.start_objective) == (other.objective, other.start_objective)
    assert (one.weights.tolist(), one.bias) == (other.weights.tolist(), other.bias)
    for grid, same in zip(one.grids, other.grids, strict=True):
        assert (grid.lo.tolist(), grid.hi.tolist(), grid.bits) == (
            same.lo.tolist(),
            same.hi.tolist(),
            same.bits,
        )
