"""Tests of LNSSampler: recognising models, low energies, dimod's rules."""

from __future__ import annotations

import dimod
import numpy as np
import pytest
import slow_reference as slow
from dimod.testing.asserts import assert_response_energies, assert_sampler_api
from dwave.samplers import SimulatedAnnealingSampler
from hypothesis import given, settings
from hypothesis import strategies as st
from search_cases import every_code, random_codes, random_problem

import lns
from lns.errors import InvalidInput
from lns.full_energy import FullEnergy
from lns.qubo import labels
from lns.recognise import NotRecognised, energies, recognise


def agrees(problem, bqm, seed=0, count=20):
    """Whether a problem has the energies of a model, on random samples; relative error."""
    bits = np.random.default_rng(seed).integers(0, 2, size=(count, bqm.num_variables), dtype=np.int8)
    expected = bqm.energies((bits, labels(problem)))
    return np.abs(energies(problem, bits) - expected).max() < 1e-11 * np.abs(expected).max()


# ---- reading problems back ----

uneven = {"weight_range": (np.linspace(-5, -0.1, 6), np.linspace(0.2, 7, 6)), "bias_range": (-3, 0.5)}


@pytest.mark.parametrize("kind", ["dense", "sparse", "mixed"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"lam": 0.0},
        {"lam": 1e-7},
        {"bias_bits": 1},
        {"weight_bits": 2, "target_bits": 2},
        {"q": {-1: -2.0, 1: 0.0}},
        {"weight_bits": 7, **uneven},
        {"lam": 0.0, **uneven},
        {"sample_weight": np.where(np.arange(120) % 7, np.linspace(0.1, 3, 120), 0.0)},
        {"target_span": 3.0},
    ],
)
def test_problems_are_read_back_from_their_models(kind, options):
    """Tests that labels and coefficients tell everything that matters to any energy."""
    problem = random_problem(kind, **options)
    bqm = problem.to_bqm()
    found = recognise(bqm)
    assert agrees(found, bqm)
    # The collapsed objective is the same function of the codes, too.
    for seed in range(5):
        codes = random_codes(problem, seed)
        expected = problem.objective(*problem.values(codes))
        assert found.objective(*found.values(codes)) == pytest.approx(expected, rel=1e-9)


@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 6), st.integers(2, 5), st.floats(0, 1))
@settings(max_examples=25, deadline=None)
def test_any_problem_is_read_back(seed, weight_bits, bias_bits, target_bits, lam):
    """Tests random sizes, penalties and intervals, with features that make up for each other."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, size=(rng.integers(4, 30), 4)).astype(float)
    X[:, 3] = X[:, 0] - X[:, 1]
    y = np.where(rng.random(len(X)) < 0.5, -1, 1)
    y[:2] = 1, -1
    lo = -rng.random(4) * 3
    problem = lns.QLossProblem(
        X, y, q=-rng.random(len(X)), lam=lam, weight_bits=weight_bits, bias_bits=bias_bits,
        weight_range=(lo, lo + 0.1 + rng.random(4)), bias_range=(-1, 2), target_bits=target_bits,
        target_span=float(1 + 9 * rng.random()), sample_weight=0.1 + rng.random(len(X)),
    )  # fmt: skip
    bqm = problem.to_bqm()
    assert agrees(recognise(bqm), bqm)


def test_the_order_of_variables_does_not_matter():
    """Tests a model whose variables and couplers come in another order."""
    bqm = random_problem(rows=20).to_bqm()
    order = np.random.default_rng(0).permutation(list(range(bqm.num_variables)))
    shuffled = dimod.BinaryQuadraticModel("BINARY")
    for v in (list(bqm.variables)[k] for k in order):
        shuffled.add_linear(v, bqm.linear[v])
    for u, v, bias in reversed(list(bqm.iter_quadratic())):
        shuffled.add_quadratic(v, u, bias)
    shuffled.offset = bqm.offset
    assert agrees(recognise(shuffled), bqm)


def spoil(bqm, how):
    """A model that is not quite one of ours."""
    if how == "coupler":
        bqm.add_quadratic(("w", 0, 0), ("w", 1, 1), 0.1)
    elif how == "target coupler":
        bqm.add_quadratic(("t", 0, 0), ("t", 1, 0), 0.1)
    elif how == "linear":
        bqm.add_linear(("w", 2, 1), -0.1)
    elif how == "offset":
        bqm.offset += 0.1
    elif how == "scale":
        bqm.scale(2.0)
    elif how == "negative":
        bqm.scale(-1.0)
    elif how == "fixed":
        bqm.fix_variable(("t", 3, 1), 0)
    elif how == "more":
        bqm.add_variable(("t", 7, 9))
    elif how == "stranger":
        bqm.add_variable("x", 1.0)
    elif how == "other labels":
        bqm.relabel_variables({v: k for k, v in enumerate(bqm.variables)})
    elif how == "empty":
        bqm = dimod.BinaryQuadraticModel("BINARY")
    elif how == "zero":
        bqm.scale(0.0)
    return bqm


SPOILED = (
    "coupler", "target coupler", "linear", "offset", "scale", "negative", "fixed", "more", "stranger",
    "other labels", "empty", "zero",
)  # fmt: skip


@pytest.mark.parametrize("how", SPOILED)
def test_other_models_are_refused(how):
    """Tests models changed in one place, or altogether different."""
    bqm = spoil(random_problem(rows=20).to_bqm(), how)
    with pytest.raises(NotRecognised, match=r"^LNSSampler takes models made by .* For other models use"):
        lns.LNSSampler().sample(bqm)


@pytest.mark.parametrize("bits", ["weight_bits", "target_bits"])
def test_single_bits_are_refused_with_a_remedy(bits):
    """Tests the models that do not tell their problem."""
    bqm = random_problem(rows=20, **{bits: 1}).to_bqm()
    with pytest.raises(NotRecognised, match=r"have one bit.*call lns\.solve\(problem\)"):
        lns.LNSSampler().sample(bqm)


# ---- the energy of the model ----


def test_the_full_energy_is_that_of_the_model(blob_problem):
    """Tests codes with their best targets against the model's energy of the encoded sample."""
    bqm, energy = blob_problem.to_bqm(), FullEnergy(blob_problem)
    for seed in range(5):
        codes = random_codes(blob_problem, seed)
        expected = bqm.energy(blob_problem.encode(*blob_problem.values(codes)))
        assert energy(codes) == pytest.approx(expected, abs=1e-9)


def test_settled_codes_have_no_better_neighbour(blob_problem):
    """Tests every level of every single weight, the bias within its reach."""
    energy = FullEnergy(blob_problem)
    for seed in range(3):
        start = random_codes(blob_problem, seed)
        codes = energy.settle(start)
        assert energy(codes) <= energy(start)
        for i, top in enumerate(blob_problem.tops):
            for level in range(max(0, codes[i] - 8), min(top, codes[i] + 8) + 1):
                other = codes.copy()
                other[i] = level
                assert energy(other) >= energy(codes) - 1e-9


def test_a_walk_keeps_its_best(blob_problem):
    """Tests that a walk is never worse than its start, repeats with its seed, and ends past a deadline."""
    energy = FullEnergy(blob_problem)
    start = random_codes(blob_problem, 1)
    found = energy.anneal(start, 2000, 3)
    assert energy(found) < energy(energy.settle(start))
    assert np.array_equal(found, energy.anneal(start, 2000, 3))
    assert np.array_equal(energy.anneal(start, 10**9, 3, deadline=0.0), energy.settle(start))


# ---- sampling ----


def test_dimods_rules():
    """Tests the interface, and that unknown keywords are errors."""
    sampler = lns.LNSSampler()
    assert_sampler_api(sampler)
    assert "num_reads" in sampler.parameters
    with pytest.raises(TypeError, match="num_raeds"):
        sampler.sample(random_problem(rows=20).to_bqm(), num_raeds=3)


@pytest.mark.parametrize("vartype", ["BINARY", "SPIN"])
def test_samples_have_all_variables_and_exact_energies(vartype):
    """Tests binary and spin models, and that the targets are the best for the weights."""
    problem = random_problem()
    bqm = problem.to_bqm().change_vartype(vartype, inplace=False)
    found = lns.LNSSampler().sample(bqm, num_reads=2, max_rounds=3, seed=1)
    assert_response_energies(found, bqm)
    assert len(found) == 2
    assert found.vartype is dimod.as_vartype(vartype)
    assert set(found.variables) == set(bqm.variables)
    w, b = problem.decode(found)
    best = problem.encode(w, b)
    assert found.first.energy == pytest.approx(problem.to_bqm().energy(best), abs=1e-9)
    assert min(found.info["objective"]) <= problem.objective(w, b) + 1e-9


def test_a_tiny_model_is_solved(tiny):
    """Tests against all 512 samples of the model."""
    bqm = tiny.to_bqm()
    lowest = bqm.energies((slow.all_bits(9), labels(tiny))).min()
    assert lns.LNSSampler().sample(bqm, max_rounds=3, seed=0).first.energy == pytest.approx(lowest, abs=1e-12)


def test_a_small_model_is_solved_where_targets_matter():
    """Tests against all weights when margins leave the interval of the targets and the objective misleads."""
    problem = random_problem(
        features=2,
        seed=1,
        lam=0.0,
        q=-0.25,
        weight_bits=3,
        weight_range=(-4, 4),
        bias_bits=2,
        target_bits=2,
        target_span=2.0,
    )
    energy = FullEnergy(problem)
    codes, _ = every_code(problem)
    lowest = min(energy(row) for row in codes)
    assert energy(codes[0]) > lowest + 0.1  # the best classifier is another
    found = lns.LNSSampler().sample(problem.to_bqm(), max_rounds=3, seed=0)
    assert found.first.energy == pytest.approx(lowest, abs=1e-9)


def test_energies_are_below_those_of_simulated_annealing():
    """Tests a model of 1,228 variables against 1000 sweeps over its bits."""
    problem = random_problem(rows=300, features=5)
    bqm = problem.to_bqm()
    rival = SimulatedAnnealingSampler().sample(bqm, num_reads=2, num_sweeps=1000, seed=1).first.energy
    assert lns.LNSSampler().sample(bqm, max_rounds=5, seed=1).first.energy <= rival + 1e-9


def test_a_seed_repeats_the_samples():
    """Tests the same samples for the same seed."""
    bqm = random_problem(features=10).to_bqm()
    one, two = (lns.LNSSampler().sample(bqm, num_reads=2, max_rounds=3, seed=7) for _ in range(2))
    assert np.array_equal(one.record.sample, two.record.sample)


def test_time_is_limited():
    """Tests that a time limit ends a search without a round limit."""
    bqm = random_problem().to_bqm()
    found = lns.LNSSampler().sample(bqm, max_rounds=None, time_limit=0.3, num_reads=2, seed=1)
    assert_response_energies(found, bqm)


def test_nonsense_is_refused():
    """Tests the other arguments."""
    with pytest.raises(InvalidInput, match=r"num_reads must be an int of at least 1\. Got 0"):
        lns.LNSSampler().sample(random_problem(rows=20).to_bqm(), num_reads=0)
    with pytest.raises(InvalidInput, match=r"bqm must be a dimod\.BinaryQuadraticModel\. Got dict"):
        lns.LNSSampler().sample({})
    with pytest.raises(InvalidInput, match="Give at least one of time_limit"):
        lns.LNSSampler().sample(random_problem(rows=20).to_bqm(), max_rounds=None)
