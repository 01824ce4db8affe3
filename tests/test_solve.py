"""Tests of `lns.solve`: arguments, starts, and how good its answers are."""

from __future__ import annotations

import subprocess
import sys

import dimod
import numpy as np
import pytest
from dwave.samplers import SimulatedAnnealingSampler
from scipy import sparse
from search_cases import (
    KINDS,
    are_levels,
    every_code,
    facts,
    instances,
    long_servedio_noise20,
    random_codes,
    random_problem,
    recomputed,
    single_moves,
)

import lns
from lns.accept import Outcome
from lns.datasets.noise import flip_labels
from lns.datasets.synthetic import long_servedio
from lns.engine import EngineParams
from lns.errors import InvalidInput
from lns.settings import MODES
from lns.walk import Walker, partners

SHORT = EngineParams(walk_moves=50)
AUTOMATIC = {"weight_range": "auto", "bias_range": "auto"}
LONG_SERVEDIO = {"q": -0.5, "lam": 0.003, "weight_bits": 2, "weight_range": (0, 1), "bias_range": (-2, 2)}


def noisy_long_servedio(rows, rate=0.2, seed=0, features=21, **options):
    """The synthetic set of the paper with flipped labels."""
    data = long_servedio(rows, seed=seed)
    y, _ = flip_labels(data.y, rate, seed=seed)
    return lns.QLossProblem(data.X[:, :features], y, **{**LONG_SERVEDIO, **options})


# ---- arguments ----


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time_limit": 0}, r"time_limit .* Got 0"),
        ({"time_limit": float("nan")}, r"time_limit .* Got nan"),
        ({"max_rounds": -1}, r"max_rounds .* Got -1"),
        ({"target": float("nan")}, r"target .* Got nan"),
        ({"no_improvement": 0}, r"no_improvement .* Got 0"),
        (
            {"max_rounds": None, "time_limit": None},
            r"Give at least one of time_limit, max_rounds, target and",
        ),
        ({"backend": "cloud"}, r"Unknown backend 'cloud'\. Choose one of local"),
        ({"workers": 0}, r"workers must be at least 1\. Got 0"),
        ({"mode": "classical"}, r"Unknown mode 'classical'\. Choose one of default, rounds, paper"),
        ({"max_bits": 0}, r"A round needs room for at least one weight bit\. Got max_bits = 0"),
        ({"accept": "always"}, r"Unknown acceptance 'always'\. Choose one of .*greedy"),
        ({"solver": "taboo"}, r"Unknown solver 'taboo'\. Choose one of .*tabu"),
        (
            {"solver": None},
            r"solver must be a name, .* or a hybrid runnable\. Got None",
        ),
        ({"solver_options": {"num_reads": 0}}, r"The 'num_reads' option of tabu must be .* Got 0"),
        ({"initial": "ones"}, r"initial must be \(weights, bias\), .* Got 'ones'"),
        ({"initial": 3}, r"initial must be \(weights, bias\)"),
        ({"initial": (np.zeros(5), 0.0)}, r"w must have length 6, one per feature\. Got shape \(5,\)"),
        ({"initial": (np.full(6, np.nan), 0.0)}, r"w and b must be finite"),
    ],
)
def test_bad_arguments_are_named_in_one_sentence(options, message):
    """Tests that argument, rule and value are told on one line, before anything is done."""
    with pytest.raises(InvalidInput, match="^" + message) as caught:
        lns.solve(random_problem(), **{"max_rounds": 1, **options})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("options", [{"examples": -1}, {"max_bits": -1}, {"seed": -1}])
def test_negative_sizes_and_seeds_are_refused(options):
    """Tests that a sign is not silently dropped, and that the message names the argument."""
    with pytest.raises(InvalidInput, match=next(iter(options))):
        lns.solve(random_problem(), max_rounds=3, params=SHORT, **options)


def test_an_unknown_solver_option_names_the_closest_one():
    """Tests that a typo does not go unnoticed."""
    with pytest.raises(TypeError, match="Did you mean 'num_reads'"):
        lns.solve(random_problem(), max_rounds=1, solver_options={"num_read": 3})


def test_importing_the_module_of_solve_does_not_hide_the_function():
    """Tests `lns.solve` in a new process, after everything else of the search was imported by name."""
    code = "import lns, lns.engine, lns.bench.rival, lns.cli; print(callable(lns.solve))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


# ---- starts ----


@pytest.mark.parametrize("kind", KINDS)
def test_the_default_start_is_the_continuous_one(kind):
    """Tests a run without rounds: on a given grid the start is rounded with care, otherwise it is a level."""
    given, automatic = random_problem(kind, weight_bits=2), random_problem(kind, weight_bits=2, **AUTOMATIC)
    result = lns.solve(given, max_rounds=0)
    assert result.stop_reason == "max_rounds"
    assert result.objective == result.start_objective == pytest.approx(recomputed(given, result.codes))
    assert result.objective <= recomputed(given, given.codes(*given.warm_start)) + 1e-12
    expected = automatic.objective(*automatic.warm_start)
    assert lns.solve(automatic, max_rounds=0).start_objective == pytest.approx(expected, rel=1e-9)


def test_a_start_at_zero():
    """Tests that all weights and the bias are as near to zero as their grids allow."""
    problem = random_problem()
    result = lns.solve(problem, max_rounds=0, initial="zero")
    np.testing.assert_array_equal(result.codes, problem.state().codes)


def test_a_random_start_depends_on_the_seed():
    """Tests that a seed repeats its start, and that seeds differ."""
    problem = random_problem()
    codes = [lns.solve(problem, max_rounds=0, initial="random", seed=s).codes for s in (1, 1, 2)]
    np.testing.assert_array_equal(codes[0], codes[1])
    assert (codes[0] != codes[2]).any()
    assert ((codes[0] >= 0) & (codes[0] <= problem.tops)).all()


def test_a_given_start_is_rounded_to_the_grid():
    """Tests weights and bias that lie between levels and outside of the range."""
    problem = random_problem()
    w, b = np.array([0.11, -0.52, 0.9, 5.0, -5.0, 0.0]), 0.3
    result = lns.solve(problem, max_rounds=0, initial=(w, b))
    np.testing.assert_array_equal(result.codes, problem.codes(w, b))
    assert result.weights.max() == 1.0


@pytest.mark.parametrize("ranges", [{}, AUTOMATIC], ids=["given", "automatic"])
@pytest.mark.parametrize("initial", ["zero", "random", (np.zeros(6), 0.5), None])
def test_no_run_ends_above_its_start(initial, ranges):
    """Tests every kind of start."""
    result = lns.solve(random_problem(**ranges), max_rounds=4, initial=initial, params=SHORT)
    assert result.objective <= result.start_objective
    assert len(result.rounds) == 4


@pytest.mark.parametrize("ranges", [{}, AUTOMATIC], ids=["given", "automatic"])
def test_the_result_of_a_run_can_be_the_start_of_the_next(ranges):
    """Tests that an answer goes in as it came out."""
    problem = random_problem(weight_bits=2, **ranges)
    first = lns.solve(problem, max_rounds=5, initial="random", params=SHORT)
    second = lns.solve(problem, max_rounds=3, initial=(first.weights, first.bias), seed=1, params=SHORT)
    assert second.start_objective == pytest.approx(first.objective, rel=1e-12)
    assert second.objective <= first.objective + 1e-12


# ---- every way to run it ----


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"q": {-1: -1.0, 1: 0.0}},
        {"sample_weight": np.linspace(0, 2, 120)},
        {"q": -np.inf},
        {"lam": 0.0},
        {"weight_bits": 1, "bias_bits": 1},
        {"weight_range": "auto", "bias_range": "auto"},
    ],
)
def test_every_kind_of_problem_is_solved(kind, options):
    """Tests that the answer is what it says and no worse than a descent by single levels would leave it."""
    problem = random_problem(kind, **options)
    result = lns.solve(problem, max_rounds=5)
    assert result.objective == pytest.approx(problem.objective(result.weights, result.bias), abs=1e-9)
    assert single_moves(problem.on_levels(*result.grids), result.codes).min() >= -1e-6


@pytest.mark.parametrize(
    "options",
    [
        {"solver": "sa"},
        {"solver": "descent"},
        {"solver": "exact"},
        {"solver": "exact", "mode": "paper"},
        {"solver": "exact", "solver_options": {"max_weight_bits": 1}},
        {"mode": "rounds"},
        {"mode": "paper"},
        {"params": EngineParams(kinds=("stored",))},
        {"params": EngineParams(kinds=("walk",), walk_moves=50)},
        {"examples": 0},
        {"examples": 1000},
        {"max_bits": 2},
        {"max_bits": 1},
        {"accept": "greedy"},
        {"accept": lambda best, curr, cand, rng: Outcome.BEST if cand < best else Outcome.ACCEPT},
        {"solver": lambda sub, start, seed: start[None, :]},
        {"solver": SimulatedAnnealingSampler(), "solver_options": {"num_reads": 2, "num_sweeps": 10}},
        {"solver": dimod.RandomSampler()},
    ],
)
def test_every_way_to_run_it_ends_with_a_true_answer(options):
    """Tests solvers, modes, kinds, sizes and acceptances, each in a short run from a random start."""
    for ranges in ({}, AUTOMATIC):
        problem = random_problem(**ranges)
        result = lns.solve(problem, max_rounds=12, initial="random", **{"params": SHORT, **options})
        assert len(result.rounds) == 12
        true = problem.objective(result.weights, result.bias)
        assert result.objective == pytest.approx(true, abs=1e-9)
        assert result.objective < result.start_objective


def test_a_solver_gets_no_more_weight_bits_than_it_can_take():
    """Tests that rounds are sized to the solver's own limit."""
    seen = []

    class Small:
        max_weight_bits = 6

        def __call__(self, sub, start, seed):
            seen.append(sub.num_weight_bits)
            return start[None, :]

    lns.solve(random_problem(), max_rounds=20, solver=Small(), params=SHORT)
    assert seen
    assert max(seen) <= 6


def test_a_solver_gets_no_more_variables_than_it_can_take():
    """Tests that target bits are sized to the solver's own limit too, as its protocol promises."""
    seen = []

    class Small:
        max_variables = 20

        def __call__(self, sub, start, seed):
            seen.append(sub.num_variables)
            return start[None, :]

    lns.solve(random_problem(), max_rounds=20, solver=Small(), params=SHORT)
    assert seen
    assert max(seen) <= 20


def test_layouts_of_the_same_data_agree():
    """Tests that dense and sparse data give the same answer from the same seed."""
    rng = np.random.default_rng(0)
    X = rng.integers(-4, 5, size=(100, 5)) / 4 * (rng.random((100, 5)) < 0.4)
    y = np.where(X @ [1, -1, 1, 0, 2] + 0.3 * rng.normal(size=100) > 0, 1, -1)
    options = {"lam": 0.01, "weight_range": (-1, 1), "bias_range": (-1, 1)}
    first, second = (
        lns.solve(lns.QLossProblem(data, y, **options), max_rounds=5, initial="zero")
        for data in (X, sparse.csr_array(X))
    )
    assert second.objective == pytest.approx(first.objective, abs=1e-9)


def test_progress_changes_nothing_but_what_is_shown(capsys):
    """Tests that a run with a progress line makes the same rounds and keeps standard output clean."""
    problem = random_problem()
    runs = [lns.solve(problem, max_rounds=4, progress=p, params=SHORT) for p in (False, True)]
    assert [facts(r) for r in runs[0].rounds] == [facts(r) for r in runs[1].rounds]
    assert capsys.readouterr().out == ""


def test_a_problem_is_not_changed_by_solving_it():
    """Tests that the data is only read, and that levels, full QUBO and samples of it stay what they were."""
    problem = random_problem(rows=40, weight_bits=2, **AUTOMATIC)
    codes = random_codes(problem)
    before = problem.matrix.X.copy(), problem.y.copy(), problem.share.copy()
    bqm, sample = problem.to_bqm(), problem.encode(*problem.values(codes))
    result = lns.solve(problem, max_rounds=12, params=SHORT, initial="random")
    assert (result.grids[0].hi != problem.weight_grid.hi).any()  # the search has left the levels
    for old, new in zip(before, (problem.matrix.X, problem.y, problem.share), strict=True):
        np.testing.assert_array_equal(old, new)
    assert problem.to_bqm() == bqm
    w, b = problem.decode(sample)
    np.testing.assert_array_equal(problem.codes(w, b), codes)


def test_levels_follow_the_basin():
    """Tests that an answer lies on the levels it comes with, and that zero does at any number of bits."""
    for bits in (1, 2, 4):
        problem = random_problem("mixed", weight_bits=bits, **AUTOMATIC)
        result = lns.solve(problem, max_rounds=6, params=SHORT, initial="zero")
        weights, bias = result.grids
        np.testing.assert_array_equal(weights.values(result.codes[:-1]), result.weights)
        assert bias.values(result.codes[-1:])[0] == result.bias
        assert are_levels(weights, np.zeros(6)).all()
        assert result.objective == pytest.approx(problem.objective(result.weights, result.bias), rel=1e-12)


def test_given_levels_stay_what_they_are():
    """Tests that with given ranges an answer lies on the levels of the problem, and comes with them."""
    problem = random_problem("mixed", weight_bits=2)
    result = lns.solve(problem, max_rounds=6, params=SHORT)
    for found, given in zip(result.grids, problem.grids, strict=True):
        np.testing.assert_array_equal([found.lo, found.hi], [given.lo, given.hi])
    np.testing.assert_array_equal(problem.values(result.codes)[0], result.weights)


def test_numpy_s_global_generator_is_left_alone():
    """Tests that a run draws only from generators of its own."""
    np.random.seed(5)  # noqa: NPY002 - that is the point
    expected = np.random.random(3)  # noqa: NPY002
    np.random.seed(5)  # noqa: NPY002
    lns.solve(random_problem(), max_rounds=3, params=SHORT)
    np.testing.assert_array_equal(np.random.random(3), expected)  # noqa: NPY002


# ---- modes ----


def kinds_of(result):
    """All that was tried."""
    return {one.kind for record in result.rounds for one in record.neighbourhoods}


@pytest.mark.parametrize("ranges", [{}, AUTOMATIC], ids=["given", "automatic"])
def test_the_paper_s_rounds_are_stored_bits_with_targets_held(ranges):
    """Tests that there is nothing else, however many rounds there are."""
    result = lns.solve(random_problem(**ranges), max_rounds=20, mode="paper", initial="random")
    assert kinds_of(result) == {"stored"}
    assert {one.background for record in result.rounds for one in record.neighbourhoods} == {"pinned"}


@pytest.mark.parametrize("ranges", [{}, AUTOMATIC], ids=["given", "automatic"])
def test_rounds_alone_have_no_walks(ranges):
    """Tests that there are none, however many rounds there are, and on a given grid sub-QUBOs alone."""
    result = lns.solve(random_problem(**ranges), max_rounds=30, mode="rounds", initial="random")
    assert kinds_of(result) <= set(MODES["rounds"])
    assert "walk" not in kinds_of(result)
    if not ranges:
        assert all(one.num_variables > 0 for record in result.rounds for one in record.neighbourhoods)


@pytest.mark.parametrize(
    ("ranges", "windows"), [({}, True), ({"bias_range": "auto"}, True), ({"weight_range": "auto"}, False)]
)
@pytest.mark.parametrize("mode", ["default", "rounds"])
def test_windows_are_for_given_levels(mode, ranges, windows):
    """Tests that levels laid around a minimum have none: its weights have nowhere else to go."""
    result = lns.solve(random_problem(**ranges), max_rounds=10, mode=mode, params=SHORT)
    assert ("window" in kinds_of(result)) == windows


@pytest.mark.parametrize(("mode", "hops"), [("default", False), ("rounds", True)])
def test_where_levels_follow_hops_stand_in_for_walks(mode, hops):
    """Tests that there are either walks or hops on automatic levels."""
    found = kinds_of(lns.solve(random_problem(**AUTOMATIC), max_rounds=10, mode=mode, params=SHORT))
    assert ("hop" in found, "walk" in found) == (hops, not hops)


@pytest.mark.parametrize("kind", ["window", "hop", "walk"])
def test_one_kind_alone_can_be_asked_for_on_any_levels(kind):
    """Tests runs that would be left without a kind."""
    params = EngineParams(kinds=(kind,), walk_moves=50)
    assert kinds_of(lns.solve(random_problem(**AUTOMATIC), max_rounds=3, params=params)) == {kind}


@pytest.mark.parametrize(("mode", "stays"), [("default", False), ("rounds", False), ("paper", True)])
def test_only_the_paper_s_rounds_stay_on_the_levels_they_begin_with(mode, stays):
    """Tests automatic levels, which all else may leave for better ones."""
    problem = random_problem(weight_bits=2, **AUTOMATIC)
    result = lns.solve(problem, max_rounds=12, mode=mode, params=SHORT, initial="random")
    assert result.objective < result.start_objective
    assert np.array_equal(result.grids[0].hi, problem.weight_grid.hi) == stays


def test_a_run_has_everything_unless_told_otherwise():
    """Tests that walks and sub-QUBOs both occur, and that walks alone can be asked for."""
    result = lns.solve(random_problem(), max_rounds=30, params=SHORT)
    assert {"walk"} < kinds_of(result)
    params = EngineParams(kinds=("walk",), walk_moves=50)
    assert kinds_of(lns.solve(random_problem(), max_rounds=5, max_bits=0, params=params)) == {"walk"}


# ---- how good it is ----


@pytest.mark.parametrize("seed", range(3))
def test_small_problems_are_solved_to_the_optimum(seed):
    """Tests Long-Servedio with 20 % noise on 6 features against all 32,768 solutions."""
    problem = noisy_long_servedio(300, seed=seed, features=6, bias_bits=3)
    _, objectives = every_code(problem)
    for initial in (None, "random"):
        result = lns.solve(problem, max_rounds=8, seed=seed, initial=initial)
        assert result.objective == pytest.approx(objectives[0], abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_rounds_without_walks_get_near_the_optimum(kind):
    """Tests that sub-QUBOs alone bring most of the way down."""
    problem = random_problem(kind, features=4, weight_bits=3, bias_bits=4)
    _, objectives = every_code(problem)
    result = lns.solve(problem, max_rounds=60, initial="random", seed=1, mode="rounds")
    assert result.objective - objectives[0] <= 0.2 * (result.start_objective - objectives[0])


@pytest.mark.parametrize("rate", [0.2, 0.4])
def test_long_servedio_is_no_worse_than_a_long_walk(rate):
    """Tests a hundred rounds on 21 features against half a million moves of plain annealing."""
    problem = noisy_long_servedio(400, rate, seed=3)
    start = problem.codes(*problem.warm_start)
    walker = Walker(problem, *partners(problem, *problem.values(start)))
    walk = recomputed(problem, walker.walk(problem, start, 30 / 400, 0.02 / 400, 500_000, 0))
    result = lns.solve(problem, max_rounds=100, time_limit=None, seed=0)
    assert result.objective <= walk + 1e-9


def test_pinned_rounds_freeze_and_curvature_rounds_move():
    """Tests what the backgrounds are for: greedy rounds of exact answers from a random start.

    Every fixed target holds its margin in place, so pinned rounds win less than a fifth of what the same
    rounds win when examples enter by their slope and curvature.
    """
    options = {"solver": "exact", "accept": "greedy", "max_bits": 8, "initial": "random"}
    params = EngineParams(kinds=("stored",), neighbourhoods=1)
    rounds = {"pinned": {"mode": "paper"}, "curvature": {}}
    won = dict.fromkeys(rounds, 0.0)
    for seed in range(3):
        problem = noisy_long_servedio(1400, seed=seed, weight_bits=4, weight_range=(-1, 1), target_span=16.0)
        for background, mode in rounds.items():
            result = lns.solve(problem, max_rounds=30, seed=seed, params=params, **mode, **options)
            won[background] += result.start_objective - result.objective
    assert won["curvature"] > 0.5
    assert won["pinned"] < 0.2 * won["curvature"]


@pytest.mark.skipif(
    instances() is None, reason="the fixed instances are not here: set LNS_DATA_DIR to the folder above them"
)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("initial", [None, "zero"])
def test_the_best_known_objective_of_long_servedio_is_reached(seed, initial):
    """Tests F = 0.28641 of the 5,650-variable QUBO within a handful of rounds."""
    problem, best_known = long_servedio_noise20()
    assert problem.num_variables == 5650
    result = lns.solve(problem, max_rounds=8, target=best_known + 1e-6, seed=seed, initial=initial)
    assert result.stop_reason == "target"
    assert problem.objective(result.weights, result.bias) <= best_known + 1e-6


def test_codes_of_a_random_start_are_worse_than_the_answer():
    """Tests that a default run on a noisy problem beats a thousand random solutions."""
    problem = random_problem()
    result = lns.solve(problem, max_rounds=3, params=SHORT)
    assert result.objective < min(recomputed(problem, random_codes(problem, k)) for k in range(1000))
