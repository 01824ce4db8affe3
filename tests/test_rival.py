"""Tests of the rival: it has to be honest and good, or beating it means nothing."""

from __future__ import annotations

from time import perf_counter

import numpy as np
import pytest
from search_cases import KINDS, every_code, random_codes, random_problem, recomputed

from lns.bench.rival import RANGES, Rival


@pytest.fixture(params=KINDS)
def problem(request):
    """Dense and sparse data, with sample weights and one q per class."""
    return random_problem(request.param, sample_weight=np.linspace(0.5, 2, 120), q={-1: -1.0, 1: -0.2})


@pytest.mark.parametrize("hot", RANGES)
def test_a_walk_is_never_worse_than_its_start(problem, hot):
    """Tests the true objective of its codes, and that they lie on the grid."""
    rival = Rival(problem)
    for seed in range(2):
        start = random_codes(problem, seed)
        before = start.copy()
        codes, moves = rival.walk(start, hot, 0.02, seed)
        assert ((codes >= 0) & (codes <= problem.tops)).all()
        assert recomputed(problem, codes) <= recomputed(problem, start) + 1e-9
        assert moves > 0
        np.testing.assert_array_equal(start, before)


def test_the_objective_is_the_best_of_its_walks(problem, monkeypatch):
    """Tests that what is reported is the recomputed objective of the best codes of all ranges."""
    rival = Rival(problem)
    found = []
    walk = rival.walk

    def spy(*arguments):
        codes, moves = walk(*arguments)
        found.append(recomputed(problem, codes))
        return codes, moves

    monkeypatch.setattr(rival, "walk", spy)
    start = random_codes(problem)
    objective, microseconds = rival(start, 0.1, 0)
    assert len(found) == len(RANGES)
    assert objective == pytest.approx(min(found), rel=1e-12)
    assert objective <= recomputed(problem, start)
    assert microseconds > 0


@pytest.mark.parametrize("kind", KINDS)
def test_it_finds_the_optimum_of_small_problems(kind):
    """Tests that the rival is no straw man."""
    problem = random_problem(kind, features=4, weight_bits=2, bias_bits=3)
    _, objectives = every_code(problem)
    objective, _ = Rival(problem)(random_codes(problem), 0.2, 0)
    assert objective == pytest.approx(objectives[0], abs=1e-9)


@pytest.mark.slow  # looks at the clock
def test_it_uses_the_time_that_it_gets():
    """Tests that a call takes about as long as was said: neither cut short nor much longer."""
    problem = random_problem()
    rival = Rival(problem)
    start = random_codes(problem)
    took = []
    for _ in range(2):
        began = perf_counter()
        rival(start, 0.3, 0)
        took.append(perf_counter() - began)
    assert min(took) >= 0.25
    assert min(took) <= 0.3 * 1.3 + 0.2
