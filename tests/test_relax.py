"""Tests of weights off their grid, and of the sub-QUBO that brings them back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import slow_reference as slow
from scipy.optimize import minimize
from search_cases import KINDS, random_codes, random_problem, recomputed

import lns
from lns import neighbourhood as nb
from lns import rounds, subproblem
from lns.problem import QLossProblem
from lns.relax import UNDIVIDED, Settled, half_way, rounding_width, settle
from lns.rounds import Choice, Part, Task, propose
from lns.solvers import make_solver

ALL = np.arange(7)  # the weights of `random_problem`, and its bias


@pytest.fixture(params=KINDS)
def problem(request):
    """Dense, sparse and mixed columns."""
    return random_problem(request.param)


def inside_problem(**options):
    """Few levels of small weights: whatever the codes, every margin stays between q and 1."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-0.2, 0.2, size=(40, 5))
    y = np.where(rng.random(40) < 0.5, 1, -1)
    return QLossProblem(X, y, q=-2.0, weight_bits=3, bias_bits=3, weight_range=(-0.5, 0.5),
                        bias_range=(-0.3, 0.3), **options)  # fmt: skip


# ---- settling ----


@pytest.mark.parametrize("seed", range(6))
def test_settling_goes_downhill_within_the_grid(problem, seed):
    """Tests that the objective falls, no level leaves the grid, and what is said of the point is true."""
    codes = random_codes(problem, seed)
    settled = settle(problem, codes, ALL)
    assert settled.objective < recomputed(problem, codes)
    assert (settled.levels >= 0).all()
    assert (settled.levels <= problem.tops).all()
    assert settled.objective == pytest.approx(recomputed(problem, settled.levels), rel=1e-12)
    w, b = problem.values(settled.levels)
    np.testing.assert_allclose(settled.margins, problem.margins(w, b), atol=1e-12)
    np.testing.assert_array_equal(settled.weights, w)


@pytest.mark.parametrize("free", [[0], [2, 6], [1, 3, 5]])
def test_other_weights_stay(problem, free):
    """Tests that only the free weights leave their levels."""
    codes = random_codes(problem)
    settled = settle(problem, codes, np.array(free))
    held = np.setdiff1d(ALL, free)
    np.testing.assert_array_equal(settled.levels[held], codes[held])


@pytest.mark.parametrize("q", [-np.inf, -8.0])
def test_a_convex_problem_settles_at_its_minimum(problem, q):
    """Tests against scipy: within limits, the squared hinge has one minimum."""
    convex = QLossProblem(
        problem.matrix.X, problem.y, q=q, lam=0.01, weight_range=(-1, 1), bias_range=(-1, 1)
    )
    settled = settle(convex, random_codes(convex), ALL)

    def objective(levels):
        return convex.objective(*convex.values(levels))

    limits = [(0, top) for top in convex.tops]
    best = minimize(objective, convex.tops / 2, method="L-BFGS-B", bounds=limits, options={"maxfun": 10**5})
    assert settled.objective == pytest.approx(best.fun, rel=1e-4)
    assert settled.objective > best.fun - 1e-6


def test_a_settled_point_stays():
    """Tests that settling once more gains next to nothing, and that a minimum on the grid is kept."""
    problem = random_problem()
    settled = settle(problem, random_codes(problem), ALL)
    again = settle(problem, settled.levels, ALL)
    assert again.objective == pytest.approx(settled.objective, rel=1e-4)


def test_features_that_nobody_has_do_no_harm():
    """Tests an empty column, whose weight has no curvature but the penalty's; here none."""
    X = np.random.default_rng(0).normal(size=(30, 3))
    X[:, 1] = 0.0
    y = np.where(X[:, 0] > 0, 1, -1)
    problem = QLossProblem(X, y, lam=0.0, weight_range=(-1, 1), bias_range=(-1, 1))
    codes = random_codes(problem)
    assert settle(problem, codes, np.arange(4)).objective < recomputed(problem, codes)


@pytest.mark.parametrize("caution", [0.0, 0.25])
def test_features_that_are_the_same_do_no_harm(caution):
    """Tests a column that is there three times, without a penalty that could choose between them."""
    X = np.repeat(np.random.default_rng(0).normal(size=(30, 1)), 3, axis=1)
    y = np.where(X[:, 0] > 0, 1, -1)
    problem = QLossProblem(X, y, lam=0.0, weight_range=(-1, 1), bias_range=(-1, 1))
    codes = random_codes(problem)
    settled = settle(problem, codes, np.arange(4), caution)
    assert settled.objective < Settled.at(problem, codes, codes.astype(float), settled.width).objective


@pytest.mark.parametrize("free", [ALL, np.array([1, 4]), np.array([6])])
def test_the_width_is_what_rounding_does_to_margins(problem, free):
    """Tests against many roundings by chance: levels that end anywhere between two whole numbers."""
    rng = np.random.default_rng(0)
    levels = np.zeros((4000, 7))
    levels[:, free] = rng.uniform(-0.5, 0.5, size=(4000, len(free)))
    change = levels * problem.steps
    X = problem.matrix.block(np.arange(problem.num_examples), ALL)
    moved = np.square(change @ X.T) @ problem.share
    assert rounding_width(problem, free) == pytest.approx(np.sqrt(moved.mean()), rel=0.05)


@pytest.mark.parametrize("caution", [0.25, 1.0])
def test_caution_minimises_what_is_to_be_expected(problem, caution):
    """Tests a convex problem: each of two settled points is the best one by its own measure."""
    convex = QLossProblem(
        problem.matrix.X, problem.y, q=-np.inf, lam=0.01, weight_range=(-1, 1), bias_range=(-1, 1)
    )
    codes = random_codes(convex)
    careful, careless = (settle(convex, codes, ALL, c) for c in (caution, 0.0))
    assert careful.width == pytest.approx(caution * rounding_width(convex, ALL))
    there = Settled.at(convex, codes, careless.levels, careful.width)
    assert careful.objective < there.objective + 1e-6
    assert careless.objective < recomputed(convex, careful.levels) + 1e-6
    assert careful.objective > careless.objective
    again = minimize(
        lambda levels: Settled.at(convex, codes, levels, careful.width).objective, careful.levels,
        method="L-BFGS-B", bounds=[(0, top) for top in convex.tops], options={"maxfun": 10**5},
    )  # fmt: skip
    assert careful.objective == pytest.approx(again.fun, rel=1e-3)


# ---- coming back ----


def test_bits_are_the_levels_below_and_above():
    """Tests levels inside, on a level, and at both limits, against numbers worked out by hand."""
    codes = np.array([3, 3, 3, 3], dtype=np.int32)
    tops = np.array([15, 15, 15, 15], dtype=np.int32)
    levels = np.array([4.3, 7.0, 0.0, 15.0])
    neighbourhood = nb.rounding(codes, levels, tops, np.array([3, 0, 1, 2]))
    low, high = neighbourhood.codes(codes, np.array([[0, 0, 0, 0], [1, 1, 1, 1]]), tops)
    np.testing.assert_array_equal(low, [4, 7, 0, 14])
    np.testing.assert_array_equal(high, [5, 8, 1, 15])
    near = neighbourhood.codes(codes, neighbourhood.start[None, :], tops)[0]
    np.testing.assert_array_equal(near, [4, 7, 0, 15])


@pytest.mark.parametrize("examples", [0, 3])
@pytest.mark.parametrize("weights", [[0, 1, 2, 3, 4, 5], [1, 4, 5]])
def test_energies_are_objectives_where_no_example_changes_its_case(examples, weights):
    """Tests every answer of a relaxed sub-QUBO against the objective: here its model is exact."""
    problem = inside_problem(lam=0.02)
    state = problem.state(random_codes(problem, 1))
    choice = Choice("random", np.array(weights), "relaxed", batch="random", examples=examples)
    place = settle(problem, state.codes, choice.weights)
    sub, neighbourhood, batch = rounds.build(problem, place, choice, np.random.default_rng(0))
    assert len(batch) == 0  # nobody can change, so nobody needs target bits
    bits = slow.all_bits(neighbourhood.num_bits)
    expected = state.evaluate(neighbourhood.codes(state.codes, bits, problem.tops))
    np.testing.assert_allclose(sub.energies(bits), expected, rtol=1e-10)


def test_target_bits_do_not_mind_where_the_weights_had_settled(problem):
    """Tests that with target bits for all examples energies are the same, seen from the grid or off it."""
    state = problem.state(random_codes(problem))
    free, everybody = np.array([0, 2, 6]), np.arange(problem.num_examples)
    levels = state.codes.astype(float)
    levels[free] = np.clip(levels[free] + 0.4, 0, problem.tops[free])
    settled = Settled.at(problem, state.codes, levels, 0.0)
    neighbourhood = nb.rounding(state.codes, levels, problem.tops, free)
    around = replace(neighbourhood, base=neighbourhood.base + (state.codes - levels)[free])
    subs = [
        subproblem.build(problem, place, bits, everybody, subproblem.curvature(problem, place.margins))
        for place, bits in ((state, neighbourhood), (settled, around))
    ]
    x = np.random.default_rng(0).integers(0, 2, size=(20, subs[0].num_variables))
    np.testing.assert_allclose(subs[1].energies(x), subs[0].energies(x), rtol=1e-9)


@pytest.mark.parametrize("background", ["curvature", "pairwise", "pinned"])
@pytest.mark.parametrize("solver", ["tabu", "sa", "exact"])
def test_a_relaxed_round_proposes_codes_on_the_grid(problem, solver, background):
    """Tests every background and several solvers, with and without polish; the same seed, the same codes."""
    part = Part(problem, random_codes(problem), 10**6, 0)
    for heat in (0.0, 0.5):
        choice = Choice("random", ALL, "relaxed", background=background, examples=2, heat=heat)
        task = Task(random_codes(problem), choice, 50, np.random.SeedSequence(1))
        one, two = (propose(part, make_solver(solver), task) for _ in range(2))
        assert (one.codes >= 0).all()
        assert (one.codes <= problem.tops).all()
        np.testing.assert_array_equal(one.codes, two.codes)
        assert one.num_variables >= len(ALL)


def test_rounding_together_beats_rounding_each_for_itself():
    """Tests the reason for all this: features so alike that an error of one is best made up for by others."""
    excess = np.zeros(2)  # over the settled objective: together, each
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(200, 1)) + 0.2 * rng.normal(size=(200, 6))
        y = np.where(X @ rng.normal(size=6) + 0.5 * rng.normal(size=200) > 0, 1, -1)
        problem = QLossProblem(
            X, y, q=-9.0, lam=0.01, weight_bits=3, weight_range=(-2, 2), bias_range=(-1, 1)
        )
        state = problem.state(problem.codes(np.zeros(6), 0.0))
        settled = settle(problem, state.codes, ALL)
        sub, neighbourhood, batch = rounds.build(
            problem, settled, Choice("random", ALL, "relaxed"), np.random.default_rng(0)
        )
        samples = make_solver("exact")(sub, rounds.start_bits(problem, settled, neighbourhood, batch), 0)
        _, together = rounds.best_read(state, state.codes, neighbourhood, samples)
        each = recomputed(problem, np.rint(settled.levels).astype(np.int32))
        excess += together - settled.objective, each - settled.objective
    assert 0 < excess[0] < 0.7 * excess[1]


# ---- by halves ----


def separable_problem(seed, features=20):
    """Two classes with a gap between them: the best weights lean on the examples at its edges."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, features))
    score = X @ rng.normal(size=features)
    apart = np.abs(score) > 0.3
    return QLossProblem(X[apart], np.where(score[apart] > 0, 1, -1), q=-0.5, lam=1e-6, weight_bits=4)


class Remembering:
    """A solver that keeps what it was asked."""

    def __init__(self):
        self.solver, self.asked = make_solver("tabu"), []

    def __call__(self, sub, start, seed):
        self.asked.append(sub.num_variables)
        return self.solver(sub, start, seed)


def test_the_nearer_half_comes_back(problem):
    """Tests which weights stay, at which levels, and that the others settle around them."""
    codes = random_codes(problem)
    settled = settle(problem, codes, ALL, 0.25)
    neighbourhood = nb.rounding(codes, settled.levels, problem.tops, ALL)
    bits = 1 - neighbourhood.start  # the further level of each
    answer = neighbourhood.codes(codes, bits[None, :], problem.tops)[0]
    way = np.abs(answer - settled.levels)
    there, left = half_way(problem, settled, neighbourhood, bits, 0.25)
    back = np.setdiff1d(ALL, left)
    assert len(back) == 4
    assert way[back].max() <= way[left].min()
    np.testing.assert_array_equal(there.codes[back], answer[back])
    np.testing.assert_array_equal(there.levels[back], answer[back])
    np.testing.assert_array_equal(there.codes[left], codes[left])
    assert there.width == pytest.approx(0.25 * rounding_width(problem, left))
    before = settled.levels.copy()
    before[back] = answer[back]
    assert there.objective <= Settled.at(problem, there.codes, before, there.width).objective


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_settling_ends_with_its_time(problem, steps):
    """Tests that each step asks for the time: none is left at first, or after some steps."""
    left = iter([False] * steps)
    codes = random_codes(problem)
    settled = settle(problem, codes, ALL, expired=lambda: next(left, True))
    assert (settled.levels == codes).all() == (steps == 0)
    assert settled.objective >= settle(problem, codes, ALL).objective


def relaxed_task(problem, heat=0.5):
    """A relaxed round of all weights, from rounded codes of the warm start, and where it runs."""
    codes = problem.codes(*problem.warm_start)
    part = Part(problem, codes, 10**6, 0)
    codes = part.polish(codes, 6.0, problem.state(codes).objective, 20_000, 0)
    choice = Choice("random", np.arange(len(codes)), "relaxed", width=0.25, heat=heat)
    return part, Task(codes, choice, 0, np.random.SeedSequence(1), problem.state(codes).objective)


def test_answers_too_far_up_are_asked_for_by_halves():
    """Tests the sizes of the sub-QUBOs of separable data, and that all are accounted for."""
    solver = Remembering()
    problem = separable_problem(0)
    best = lns.solve(problem, max_rounds=6, time_limit=None).codes  # that hardly any rounding is better than
    part, task = relaxed_task(problem, heat=1e-9)
    found = propose(part, solver, replace(task, codes=best))
    assert solver.asked == [21, 10, 5]
    assert solver.asked[-1] <= UNDIVIDED
    assert found.num_variables == 21
    assert found.reads >= 3
    assert set(found.timings) == {"objective", "settle", "build", "solve", "rank", "polish"}


def test_a_good_answer_is_taken_at_once():
    """Tests that data whose model is exact needs one sub-QUBO; so does a round without polish."""
    problem = inside_problem(lam=0.02)
    codes = np.zeros(6, dtype=np.int32)
    choice = Choice("random", np.arange(6), "relaxed", width=0.25)
    solver = Remembering()
    propose(Part(problem, codes, 10**6, 0), solver, Task(codes, choice, 0, np.random.SeedSequence(1)))
    assert solver.asked == [6]
    solver = Remembering()
    part, task = relaxed_task(separable_problem(0), heat=0.0)
    propose(part, solver, task)
    assert solver.asked == [21]


def test_halves_and_caution_pay_on_separable_data():
    """Tests the reason for both: what comes back lies lower than from one careless sub-QUBO."""
    careful, careless = [], []
    for seed in range(8):
        part, task = relaxed_task(separable_problem(seed))
        problem = part.problem
        careful.append(recomputed(problem, propose(part, make_solver("tabu"), task).codes))
        choice = replace(task.choice, width=0.0, heat=0.0)
        found = propose(part, make_solver("tabu"), replace(task, choice=choice))
        careless.append(recomputed(problem, found.codes))
    assert np.mean(careful) < 0.9 * np.mean(careless)
