"""Tests of the full QUBO against the paper's formulas."""

from __future__ import annotations

import dimod
import numpy as np
import pytest
import slow_reference as slow
from hypothesis import given, settings
from hypothesis import strategies as st

from lns import qubo
from lns.errors import InvalidInput
from lns.problem import QLossProblem


@settings(deadline=None)
@given(slow.problems(), st.randoms(use_true_random=False))
def test_every_sample_has_the_energy_of_the_paper(problem, random):
    """Tests energy = mean[(m - t)² + (1 - q)² (1 - msb)] + λ Σ w² on random samples."""
    bqm = problem.to_bqm()
    for _ in range(5):
        sample = {v: random.randint(0, 1) for v in bqm.variables}
        assert bqm.energy(sample) == pytest.approx(slow.qubo_energy(problem, sample), rel=1e-9, abs=1e-9)


def test_all_samples_of_a_tiny_problem(tiny):
    """Tests the energy identity on all 512 samples."""
    bqm = tiny.to_bqm()
    for bits in slow.all_bits(9):
        sample = dict(zip(bqm.variables, bits, strict=True))
        assert bqm.energy(sample) == pytest.approx(slow.qubo_energy(tiny, sample), rel=1e-12)


@settings(deadline=None, max_examples=40)
@given(slow.problems_with_codes(max_examples=3, max_target_bits=2))
def test_the_minimum_over_targets_is_at_least_the_objective(case):
    """Tests that no target bits fall below the collapsed objective, and that `encode` finds the best."""
    problem, codes = case
    w, b = problem.values(codes)
    bqm, sample = problem.to_bqm(), problem.encode(w, b)
    targets = [v for v in bqm.variables if v[0] == "t"]
    energies = [
        bqm.energy({**sample, **dict(zip(targets, bits, strict=True))})
        for bits in slow.all_bits(len(targets))
    ]
    assert min(energies) >= problem.objective(w, b) - 1e-9
    assert bqm.energy(sample) == pytest.approx(min(energies), abs=1e-9)


@pytest.mark.parametrize("margins", [(2.0, 4.0), (-2.0, 0.0), (2.0, -2.0), (4.0, 0.0)])
def test_the_minimum_is_the_objective_when_the_levels_fit(margins):
    """Tests equality on levels {-2, 0, 2, 4}: margins above 1 and margins at most q = 0 are levels.

    The middle case needs t = 1, which is no level of a grid centred on 1.
    """
    X = np.array([[margins[0]], [-margins[1]]])
    ranges = {"weight_bits": 1, "weight_range": (0, 1), "bias_bits": 1, "bias_range": (-1, 0)}
    problem = QLossProblem(X, [1, -1], q=0.0, lam=0.125, target_bits=2, target_span=6.0, **ranges)
    np.testing.assert_array_equal(problem.margins([1.0], 0.0), margins)
    energy = problem.to_bqm().energy(problem.encode([1.0], 0.0))
    assert energy == pytest.approx(problem.objective([1.0], 0.0), abs=1e-12)


def test_the_middle_case_costs_more_than_the_objective():
    """Tests that a margin between q and 1 pays for the next level above 1: (0 - 2)², not (0 - 1)²."""
    problem = QLossProblem([[1.0], [1.0]], [1, -1], q=-9.0, lam=0.0, target_bits=2, target_span=6.0,
                           weight_range=(-1, 2), weight_bits=2, bias_range=(-1, 2), bias_bits=2)  # fmt: skip
    assert problem.objective([0.0], 0.0) == pytest.approx(1.0)
    assert problem.to_bqm().energy(problem.encode([0.0], 0.0)) == pytest.approx(4.0)


# ---- the groups of the appendix --------------------------------------------------------------------------


def slow_groups(problem):
    """Each group of the appendix as a plain loop over the examples."""
    X, y, p = slow.dense(problem), problem.y.tolist(), problem.share.tolist()
    rows, n = range(problem.num_examples), range(problem.num_features)
    return {
        "A": [[sum(p[s] * X[s][i] * X[s][j] for s in rows) for j in n] for i in n],
        "B": sum(p[s] * y[s] ** 2 for s in rows),
        "C": [sum(2 * p[s] * X[s][i] for s in rows) for i in n],
        "D": [[-2 * p[s] * y[s] * X[s][i] for s in rows] for i in n],
        "E": [-2 * p[s] * y[s] for s in rows],
        "F": [p[s] for s in rows],
        "G": [-p[s] * (1 - problem.q[s]) ** 2 for s in rows],
        "H": [problem.lam for _ in n],
        "constant": sum(p[s] * (1 - problem.q[s]) ** 2 for s in rows),
    }


@pytest.mark.parametrize("name", ["A", "B", "C", "D", "E", "F", "G", "H", "constant"])
def test_group_of_the_appendix(blob_problem, name):
    """Tests one group by its name, with one q per class and sample weights."""
    np.testing.assert_allclose(
        getattr(qubo.groups(blob_problem), name), slow_groups(blob_problem)[name], atol=1e-14
    )


def test_the_groups_of_equal_weights_are_those_of_the_paper(blobs):
    """Tests that without sample weights F is 1/S, B is 1 and G is -(1 - q)²/S."""
    group = qubo.groups(QLossProblem(*blobs, q=-0.5, weight_range=(-1, 1), bias_range=(-1, 1)))
    np.testing.assert_allclose(group.F, 1 / 60)
    np.testing.assert_allclose(group.G, -2.25 / 60)
    assert pytest.approx(1.0) == group.B


@settings(deadline=None)
@given(slow.problems(), st.data())
def test_the_groups_add_up_to_the_objective(problem, data):
    """Tests the expansion in A to H for real-valued w, b and t."""
    g = qubo.groups(problem)
    value = st.floats(-3, 3)
    w = np.array([data.draw(value) for _ in range(problem.num_features)])
    t = np.array([data.draw(value) for _ in range(problem.num_examples)])
    b, msb = data.draw(value), (t > 1).astype(float)
    total = w @ g.A @ w + g.B * b**2 + b * g.C @ w + w @ g.D @ t + b * g.E @ t + g.F @ t**2 + g.G @ msb
    total += g.H @ w**2 + g.constant
    m = np.array(slow.margins(problem, w, b))
    expected = problem.share @ ((m - t) ** 2 + problem.cap * (1 - msb)) + problem.lam * w @ w
    assert total == pytest.approx(expected, rel=1e-9, abs=1e-9)


# ---- labels, samples, size -------------------------------------------------------------------------------


def test_labels_and_their_order(tiny):
    """Tests the names of the variables: weights, bias, targets, least significant bit first."""
    names = [("w", 0, 0), ("w", 0, 1), ("b", 0)] + [("t", s, k) for s in range(3) for k in range(2)]
    assert list(tiny.to_bqm().variables) == names


def test_the_model_is_binary_and_has_only_couplers_that_exist(blob_problem):
    """Tests that zero features make no couplers."""
    bqm = blob_problem.to_bqm()
    assert bqm.vartype is dimod.BINARY
    assert 0 < bqm.num_interactions < qubo.num_couplers(blob_problem)
    assert all(bias != 0 for bias in bqm.quadratic.values())


def test_the_number_of_couplers_of_full_data():
    """Tests the count that the size limit uses: 1,400 x 21 with 2-bit weights."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(140) % 2, 1, -1)
    problem = QLossProblem(
        rng.uniform(1, 2, (140, 21)), y, weight_bits=2, weight_range=(0, 1), bias_range=(0, 1)
    )
    assert problem.to_bqm().num_interactions == qubo.num_couplers(problem)


@settings(deadline=None)
@given(slow.problems_with_codes())
def test_decode_inverts_encode(case):
    """Tests the round trip of every level."""
    problem, codes = case
    w, b = problem.values(codes)
    decoded_w, decoded_b = problem.decode(problem.encode(w, b))
    np.testing.assert_allclose(decoded_w, w, rtol=1e-12)
    assert decoded_b == pytest.approx(b)


def test_decode_takes_the_best_of_a_sample_set(tiny):
    """Tests that the answer of a dimod sampler can be decoded as it is."""
    samples = dimod.ExactSolver().sample(tiny.to_bqm())
    w, b = tiny.decode(samples)
    w_first, b_first = tiny.decode(samples.first.sample)
    assert (w[0], b) == (w_first[0], b_first)


def test_decode_of_spins(tiny):
    """Tests that spin samples mean the same as binary ones."""
    binary = dimod.ExactSolver().sample(tiny.to_bqm())
    spins = binary.change_vartype("SPIN", inplace=False)
    assert tiny.decode(spins)[0] == tiny.decode(binary)[0]
    assert tiny.decode({v: 2 * bit - 1 for v, bit in binary.first.sample.items()}) == tiny.decode(binary)


def test_decode_needs_all_weight_bits(tiny):
    """Tests that the first missing bit is named."""
    sample = tiny.encode([0.0], 1.0)
    del sample["w", 0, 1]
    with pytest.raises(InvalidInput, match=r"^sample must have all .* It lacks \('w', 0, 1\)\.$"):
        tiny.decode(sample)


def test_decode_needs_a_mapping(tiny):
    """Tests the message for anything else."""
    with pytest.raises(InvalidInput, match=r"^sample must be a mapping or a dimod SampleSet\. Got list\.$"):
        tiny.decode([0, 1])


def test_above_the_size_limit_the_model_is_refused(tiny, monkeypatch):
    """Tests that the message has couplers, bytes and what to call instead."""
    monkeypatch.setattr(qubo, "MAX_COUPLERS", qubo.num_couplers(tiny) - 1)
    message = r"^The full QUBO would have 24 couplers \(.* GB\); to_bqm\(\) stops at 23\. Call lns\.solve\("
    with pytest.raises(InvalidInput, match=message):
        tiny.to_bqm()


def test_on_the_size_limit_the_model_is_built(tiny, monkeypatch):
    """Tests the other side of the limit."""
    monkeypatch.setattr(qubo, "MAX_COUPLERS", qubo.num_couplers(tiny))
    assert tiny.to_bqm().num_interactions == 24


def test_the_refusal_is_immediate_at_full_size():
    """Tests that half a million examples are refused before anything is built, with figures in GB."""
    X = np.ones((581_012, 1), dtype=np.float32)
    y = np.where(np.arange(len(X)) % 2, 1.0, -1.0)
    problem = QLossProblem(X, y, weight_range=(-1, 1), bias_range=(-1, 1))
    with pytest.raises(InvalidInput, match=r"would have 31,374,\d{3} couplers \(1\.0 GB\)"):
        problem.to_bqm()


def test_an_infinite_q_has_no_qubo(blobs):
    """Tests that the squared hinge is refused with the reason."""
    problem = QLossProblem(*blobs, q=-np.inf, weight_range=(-1, 1), bias_range=(-1, 1))
    with pytest.raises(InvalidInput, match=r"^to_bqm\(\) needs a finite q"):
        problem.to_bqm()
