"""Tests of sub-QUBOs: against the full model, and against the collapsed objective."""

from __future__ import annotations

import numpy as np
import pytest
import slow_reference as slow
from hybrid.utils import bqm_induced_by
from hypothesis import given, settings
from hypothesis import strategies as st
from search_cases import margins_at

from lns import neighbourhood as nb
from lns import subproblem
from lns.grid import unpack_bits
from lns.problem import QLossProblem
from lns.qubo import labels
from lns.state import State


@st.composite
def restrictions(draw):
    """A small problem, codes of weights and targets, some of its weight bits and some of its examples."""
    problem, codes = draw(slow.problems_with_codes())
    count = problem.num_examples
    targets = draw(st.lists(st.integers(0, problem.target_grid.top), min_size=count, max_size=count))
    depth = [problem.weight_bits] * problem.num_features + [problem.bias_bits]
    every = [(i, k) for i, bits in enumerate(depth) for k in range(bits)]
    chosen = draw(st.lists(st.sampled_from(every), min_size=1, max_size=6, unique=True))
    batch = draw(st.lists(st.integers(0, count - 1), max_size=count, unique=True))
    return problem, codes, np.array(targets), np.array(chosen), np.array(batch, dtype=int)


def sub_at(problem, levels, space, background, batch=()):
    """The sub-QUBO of a neighbourhood around some levels; `background` makes its model from the margins."""
    margins = margins_at(problem, levels)
    return subproblem.build(problem, levels, margins, space, np.array(batch, dtype=int), background(margins))


def restrict(problem, codes, targets, chosen, batch, levels=None):
    """The sub-QUBO of stored bits with pinned targets, its variables in the full model, the full sample."""
    sub = sub_at(
        problem,
        codes if levels is None else levels,
        nb.stored_bits(codes, chosen),
        lambda m: subproblem.pinned(problem, m, targets),
        batch,
    )
    weight_labels = [("b", k) if i == problem.num_features else ("w", i, k) for i, k in chosen.tolist()]
    variables = weight_labels + [("t", s, k) for s in batch.tolist() for k in range(problem.target_bits)]
    bits = [unpack_bits(codes[:-1], problem.weight_bits), unpack_bits(codes[-1:], problem.bias_bits)]
    bits.append(unpack_bits(targets, problem.target_bits))
    sample = dict(zip(labels(problem), np.concatenate([b.ravel() for b in bits]).tolist(), strict=True))
    return sub, variables, sample


@settings(deadline=None)
@given(restrictions())
def test_the_sub_qubo_is_the_induced_one(case):
    """Tests every coefficient against dwave-hybrid's restriction of the full model, to 1e-9 relative."""
    sub, variables, sample = restrict(*case)
    bqm = case[0].to_bqm()
    induced = bqm_induced_by(bqm, variables, sample)
    scale = max(1e-30, *np.abs(list(bqm.linear.values())), *np.abs(list(bqm.quadratic.values()) or [0.0]))
    for a, name in enumerate(variables):
        assert sub.linear[a] == pytest.approx(induced.linear[name], rel=1e-9, abs=1e-9 * scale)
        for c, other in enumerate(variables[:a]):
            expected = induced.quadratic.get((name, other), 0.0) if other in induced.adj[name] else 0.0
            assert sub.quadratic[a, c] == pytest.approx(expected, rel=1e-9, abs=1e-9 * scale)


@settings(deadline=None)
@given(restrictions(), st.randoms(use_true_random=False))
def test_sub_energies_are_full_energies(case, random):
    """Tests that the offset is right too: the energy of an answer is that of the completed full sample."""
    sub, variables, sample = restrict(*case)
    bqm = case[0].to_bqm()
    assert sub.num_variables == len(variables)
    for _ in range(5):
        bits = [random.randint(0, 1) for _ in variables]
        completed = {**sample, **dict(zip(variables, bits, strict=True))}
        assert sub.energies(np.array([bits]))[0] == pytest.approx(bqm.energy(completed), rel=1e-9, abs=1e-9)


@settings(deadline=None)
@given(restrictions(), st.integers(0, 100))
def test_pinned_targets_make_the_same_sub_qubo_from_anywhere(case, seed):
    """Tests that it does not matter around which levels of its weights an exact quadratic is known."""
    problem, codes, _, chosen, _ = case
    levels, moved = codes.astype(float), np.unique(chosen[:, 0])
    levels[moved] = np.random.default_rng(seed).uniform(0, problem.tops[moved])
    here, there = restrict(*case)[0], restrict(*case, levels)[0]
    bits = np.random.default_rng(seed).integers(0, 2, (20, here.num_variables))
    np.testing.assert_allclose(there.energies(bits), here.energies(bits), rtol=1e-9, atol=1e-9)


@settings(deadline=None, max_examples=30)
@given(restrictions())
def test_the_dimod_form_has_the_same_energies(case):
    """Tests `SubQubo.to_bqm` and the symmetry of the arrays."""
    sub, variables, _ = restrict(*case)
    bits = np.resize([1, 0, 1, 1, 0], (3, len(variables)))
    bqm = sub.to_bqm()
    np.testing.assert_allclose(sub.energies(bits), bqm.energies((bits, range(len(variables)))), atol=1e-9)
    np.testing.assert_allclose(sub.quadratic, sub.quadratic.T, atol=1e-12)
    assert not np.diag(sub.quadratic).any()
    assert sub.num_couplers == bqm.num_interactions


def test_pinned_targets_are_the_best_by_default(blob_problem):
    """Tests the default of `pinned`."""
    m = blob_problem.state().margins
    given_ = subproblem.pinned(blob_problem, m, blob_problem.best_target_codes(m))
    default = subproblem.pinned(blob_problem, m)
    np.testing.assert_array_equal(given_.value, default.value)
    np.testing.assert_array_equal(given_.slope, default.slope)


# ---- the collapsed loss as background --------------------------------------------------------------------


@pytest.fixture
def steady(layout):
    """Examples whose case no small move changes: margins near 3, -3 and 0 with q = -1."""
    rng = np.random.default_rng(0)
    X = rng.integers(-4, 5, size=(30, 4)) / 32
    X[:, 0] = np.repeat([3.0, -3.0, 0.0], 10)
    y = np.where(np.arange(30) % 2, 1, -1)
    X[:, 0] *= y
    ranges = {"weight_range": (-1, 2), "weight_bits": 4, "bias_range": (-0.1, 0.1), "bias_bits": 4}
    problem = QLossProblem(layout(X), y, q=-1.0, lam=0.05, **ranges)
    return problem, State(problem, np.array([10, 5, 5, 5, 8]))  # the first weight is 1


@pytest.mark.parametrize("place", [[10, 5, 5, 5, 8], [10, 5.25, 4.5, 5, 8.75], [10, 3.5, 7, 5, 12.125]])
def test_windows_are_exact_when_no_case_changes(steady, place):
    """Tests that curvature of width 0 gives the true objective of every answer around any place."""
    problem, state = steady
    levels = np.array(place, dtype=float)
    space = nb.window(state.codes, levels, problem.tops, np.array([1, 2, 4]))
    sub = sub_at(problem, levels, space, lambda m: subproblem.curvature(problem, m))
    bits = slow.all_bits(3)
    np.testing.assert_allclose(sub.energies(bits), state.evaluate(space.codes(state.codes, bits)))


def test_merges_are_exact_when_no_case_changes(steady):
    """Tests the same for one bit between the levels of two solutions."""
    problem, state = steady
    other = state.codes + np.array([0, -4, 3, 0, -6], dtype=np.int32)
    space = nb.towards(state.codes, other, np.array([1, 2, 4]))
    sub = sub_at(problem, state.codes, space, lambda m: subproblem.curvature(problem, m))
    bits = slow.all_bits(3)
    np.testing.assert_allclose(sub.energies(bits), state.evaluate(space.codes(state.codes, bits)))


@pytest.fixture
def even():
    """Margins that are even integers for all codes, on target levels -14, -12, ..., 16, with q = 0."""
    X = np.array([[2.0, -2.0], [0.0, 2.0], [-2.0, 2.0]])
    ranges = {"weight_bits": 2, "weight_range": (0, 3), "bias_bits": 1, "bias_range": (-2, 0)}
    return QLossProblem(X, [1, -1, 1], q=0.0, lam=0.01, target_bits=4, target_span=30.0, **ranges)


def least_over_targets(sub, weight_bits, target_bits):
    """The energy of weight bits with the target bits of each example at their best, all of them tried."""
    count = (sub.num_variables - len(weight_bits)) // target_bits
    bits = np.concatenate([weight_bits, np.zeros(count * target_bits, dtype=np.int8)])
    for s in range(count):  # targets of different examples are not coupled
        trials = np.repeat(bits[None, :], 2**target_bits, axis=0)
        own = slice(len(weight_bits) + s * target_bits, len(weight_bits) + (s + 1) * target_bits)
        trials[:, own] = slow.all_bits(target_bits)
        bits = trials[np.argmin(sub.energies(trials))]
    return sub.energies(bits[None, :])[0]


@pytest.mark.parametrize("place", [[1, 2, 0], [1.5, 2.75, 0.25]])
def test_with_all_examples_in_the_batch_the_sub_qubo_is_the_objective(even, place):
    """Tests that exact targets for all examples give the true objective, if their levels fit."""
    state, levels = State(even, np.array([1, 2, 0])), np.array(place, dtype=float)
    space = nb.window(state.codes, levels, even.tops, np.arange(3))
    sub = sub_at(even, levels, space, lambda m: subproblem.curvature(even, m, width=0.3), range(3))
    answers = slow.all_bits(space.num_bits)
    least = [least_over_targets(sub, bits, 4) for bits in answers]
    np.testing.assert_allclose(least, state.evaluate(space.codes(state.codes, answers)), atol=1e-12)


@settings(deadline=None, max_examples=30)
@given(slow.problems_with_codes(max_target_bits=3))
def test_with_all_examples_in_the_batch_no_answer_is_below_the_objective(case):
    """Tests that targets on a grid only ever add to the objective."""
    problem, codes = case
    space = nb.stored_bits(codes, np.array([[0, 0], [problem.num_features, 0]]))
    every = range(problem.num_examples)
    sub = sub_at(problem, codes, space, lambda m: subproblem.curvature(problem, m), every)
    answers = slow.all_bits(2)
    least = [least_over_targets(sub, bits, problem.target_bits) for bits in answers]
    assert (least >= State(problem, codes).evaluate(space.codes(codes, answers)) - 1e-9).all()


def test_the_batch_is_exact_beside_a_background(steady):
    """Tests that batch and background add up: an example in the batch only has its target freed."""
    problem, state = steady
    levels = state.codes + np.array([0, 0.5, -0.25, 0, 0])
    space = nb.window(state.codes, levels, problem.tops, np.array([1, 2]))
    batch = [3, 17, 25]
    alone, mixed = (
        sub_at(problem, levels, space, lambda m: subproblem.pinned(problem, m), rows) for rows in ([], batch)
    )
    best = problem.best_target_codes(margins_at(problem, levels))[batch]
    targets = unpack_bits(best, problem.target_bits).ravel()
    bits = slow.all_bits(space.num_bits)
    completed = np.column_stack([bits, np.tile(targets, (len(bits), 1))])
    np.testing.assert_allclose(mixed.energies(completed), alone.energies(bits))


# ---- smoothing -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [0.05, 0.3, 2.0])
@pytest.mark.parametrize("m", [-3.0, -0.6, -0.5, -0.4, 0.2, 0.95, 1.0, 1.1, 4.0])
def test_averaged_derivatives_equal_a_fine_sum(m, width):
    """Tests slope and bend around both edges of the loss: the bend from the loss, by second differences."""
    problem = QLossProblem([[1.0], [1.0]], [1, -1], q=-0.5, weight_range=(-1, 1), bias_range=(-1, 1))
    background = subproblem.curvature(problem, np.full(2, m), width)
    at = np.linspace(-width, width, 200_001)
    at = 0.5 * (at[1:] + at[:-1])
    step = 1e-3
    low, here, high = (np.mean(np.clip(1.0 - (m + move + at), 0.0, 1.5) ** 2) for move in (-step, 0.0, step))
    # Where an end of the interval lies on an edge, the bend jumps: differences have half of the jump.
    assert background.slope[0] == pytest.approx((high - low) / (2 * step) / 2, abs=step / width)
    near = min(abs(m + end - edge) for end in (-width, width) for edge in (-0.5, 1.0)) < 2 * step
    if not near:
        assert background.bend[0] == pytest.approx((low - 2 * here + high) / step**2 / 2, abs=1e-3)


def test_the_bend_is_negative_around_q():
    """Tests that the model knows that giving an example up can pay."""
    problem = QLossProblem([[1.0], [1.0]], [1, -1], q=-0.5, weight_range=(-1, 1), bias_range=(-1, 1))
    assert (subproblem.curvature(problem, np.full(2, -0.5), 0.2).bend < 0).all()


def test_a_narrow_width_is_the_plain_derivative():
    """Tests the limit of no smoothing, away from the seams."""
    problem = QLossProblem([[1.0], [1.0]], [1, -1], q=-0.5, weight_range=(-1, 1), bias_range=(-1, 1))
    m = np.array([0.3, -2.0])
    exact, narrow = (subproblem.curvature(problem, m, width) for width in (0.0, 1e-6))
    np.testing.assert_allclose(narrow.slope, exact.slope, atol=1e-9)
    np.testing.assert_allclose(narrow.bend, exact.bend, atol=1e-9)


def test_smoothing_of_the_squared_hinge_is_finite():
    """Tests q = -inf."""
    problem = QLossProblem([[1.0], [1.0]], [1, -1], q=-np.inf, weight_range=(-1, 1), bias_range=(-1, 1))
    background = subproblem.curvature(problem, np.array([-5.0, 2.0]), 0.5)
    assert np.isfinite(background.slope).all()
    assert np.isfinite(background.bend).all()
    assert background.bend[0] == pytest.approx(1.0)
