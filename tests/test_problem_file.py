"""Tests of problems as files, and of their fingerprints."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from search_cases import random_codes, random_problem

import lns
from lns.problem_file import fingerprint, read_problem, write_problem

OPTIONS = {
    "plain": {},
    "classes": {"q": {-1: -1.0, 1: 0.0}, "lam": 0.0},
    "vectors": {"q": -np.linspace(0, 2, 120), "sample_weight": np.linspace(0, 3, 120) ** 2},
    "convex": {"q": -np.inf},
    "automatic": {"weight_range": "auto", "bias_range": "auto", "weight_bits": 3, "target_span": 5.0},
    "intervals": {"weight_range": (np.linspace(-2, -1, 6), np.linspace(1, 3, 6)), "bias_bits": 3},
}


def kept(problem, tmp_path):
    """The problem, written and read again."""
    path = tmp_path / "problem.npz"
    with open(path, "wb") as file:
        write_problem(file, problem)
    return read_problem(path)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("name", OPTIONS)
def test_a_problem_comes_back_bit_for_bit(name, kind, tmp_path):
    """Tests the fingerprint and every objective of a problem that went through a file."""
    problem = random_problem(kind, **OPTIONS[name])
    again = kept(problem, tmp_path)
    assert fingerprint(again) == fingerprint(problem)
    for attribute in ("y", "q", "cap", "share", "tops", "steps"):
        np.testing.assert_array_equal(getattr(again, attribute), getattr(problem, attribute))
    codes = random_codes(problem)
    assert again.state(codes).objective == problem.state(codes).objective
    assert again.num_variables == problem.num_variables


def test_every_layout_comes_back_as_it_was(blob_problem, tmp_path):
    """Tests precision and memory order: sums depend on both."""
    again = kept(blob_problem, tmp_path)
    X, X_again = blob_problem.matrix.X, again.matrix.X
    assert (type(X), X.dtype) == (type(X_again), X_again.dtype)
    if isinstance(X, np.ndarray):
        assert X.flags.f_contiguous == X_again.flags.f_contiguous
    assert fingerprint(again) == fingerprint(blob_problem)


def test_the_fingerprint_sees_every_difference():
    """Tests that data, labels, weights and every parameter count."""
    X, y = random_problem().matrix.X, random_problem().y
    other_X, other_y, weight = X.copy(), y.copy(), np.ones(120)
    other_X[7, 3] = np.nextafter(other_X[7, 3], 9)
    other_y[5] = -other_y[5]
    weight[3] = 1.001
    problems = [
        lns.QLossProblem(X, y),
        lns.QLossProblem(other_X, y),
        lns.QLossProblem(X, other_y),
        lns.QLossProblem(X, y, q=-0.4),
        lns.QLossProblem(X, y, lam=1e-5),
        lns.QLossProblem(X, y, sample_weight=weight),
        lns.QLossProblem(X, y, weight_bits=3),
        lns.QLossProblem(X, y, bias_bits=3),
        lns.QLossProblem(X, y, target_bits=3),
        lns.QLossProblem(X, y, target_span=7.0),
        lns.QLossProblem(X, y, weight_range=(-1, 1)),
        lns.QLossProblem(X, y, bias_range=(-1, 1)),
        lns.QLossProblem(X.astype(np.float32), y),
        lns.QLossProblem(np.asfortranarray(X), y),
        lns.QLossProblem(sparse.csc_array(X), y),
        lns.QLossProblem(X[:119], y[:119]),
    ]
    assert len({fingerprint(problem) for problem in problems}) == len(problems)


def test_the_fingerprint_does_not_depend_on_what_was_computed_meanwhile():
    """Tests that a warm start and grids leave it as it was, and that the same arguments give the same."""
    problem = random_problem(weight_range="auto")
    before = fingerprint(problem)
    lns.solve(problem, max_rounds=1, params=lns.EngineParams(walk_moves=5))
    assert fingerprint(problem) == before == fingerprint(random_problem(weight_range="auto"))


@pytest.mark.parametrize("damage", ["missing", "short", "altered", "foreign"])
def test_a_bad_file_is_named_with_a_remedy(damage, tmp_path):
    """Tests that the message says which file and what to do."""
    path = tmp_path / "problem.npz"
    kept(random_problem(), tmp_path)
    whole = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        middle = len(whole) // 2
        changed = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
        path.write_bytes({"short": whole[:-50], "altered": changed, "foreign": b"no"}[damage])
    with pytest.raises(lns.DataError, match=r"problem\.npz.*problem="):
        read_problem(path)
