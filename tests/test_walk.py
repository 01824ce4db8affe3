"""Tests of walks on a compact copy: single precision, but never wrong about what they propose."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import pytest
from scipy import sparse
from search_cases import KINDS, every_code, random_codes, random_problem, recomputed, single_moves

from lns import walk
from lns.problem import QLossProblem
from lns.walk import Walker, partners

VARIANTS = {
    "plain": {},
    "sample weights": {"sample_weight": np.linspace(0.2, 3, 120)},
    "q per class": {"q": {-1: -1.5, 1: 0.0}},
    "convex": {"q": -np.inf},
    "no penalty": {"lam": 0.0},
}


def ready(problem, codes=None):
    """A walker whose weights know their partners at these codes."""
    codes = problem.state().codes if codes is None else codes
    return Walker(problem, *partners(problem, *problem.values(codes)))


def walk_from(problem, start, hot, cold, moves, seed, **options):
    """The codes that a walk comes to, with partners as they are at its start."""
    return ready(problem, start).walk(problem, start, hot, cold, moves, seed, **options)


def kept_margins(walker, state):
    """u_s = √c_s (1 - m_s) in single precision."""
    return (walker.root * (1 - state.margins)).astype(np.float32)


@pytest.fixture(params=KINDS)
def kind(request):
    """Dense columns, sparse ones, or both."""
    return request.param


@pytest.fixture(params=sorted(VARIANTS))
def problem(request, kind):
    """Every kind of columns with every kind of loss."""
    return random_problem(kind, **VARIANTS[request.param])


# ---- the copy ----


def test_changes_of_loss_agree_with_exact_gains(problem):
    """Tests every single-level move against the objective itself, to single precision."""
    state = problem.state(random_codes(problem))
    walker = ready(problem)
    u = kept_margins(walker, state)
    w = np.append(state.weights, 0.0)
    penalty = np.append(np.full(problem.num_features, problem.lam), 0.0)
    for i, gains in enumerate(single_moves(problem, state.codes)):
        for sign, exact in zip((-1, 1), gains, strict=True):
            if np.isfinite(exact):
                d = sign * problem.steps[i]
                change = walk.change_of_loss(walker.columns, walker.top, u, i, d) / problem.num_examples
                assert change + penalty[i] * d * (2 * w[i] + d) == pytest.approx(exact, abs=2e-6)


def test_a_place_has_margins_and_objective(problem):
    """Tests that the columns hold the data, with labels and sample weights folded in."""
    state = problem.state(random_codes(problem))
    walker = ready(problem)
    w, u, objective = walker.place(problem, state.codes)
    np.testing.assert_array_equal(w, np.append(state.weights, state.bias))
    np.testing.assert_allclose(u, kept_margins(walker, state), atol=1e-5)
    assert objective == pytest.approx(state.objective, rel=1e-5)


def test_one_copy_serves_all_levels(problem):
    """Tests the objective on levels that the copy was not made with."""
    other = random_problem(weight_range=(-2.0, 0.5), bias_range=(-1, 3), weight_bits=7)
    on_levels = problem.on_levels(*other.grids)
    codes = random_codes(other, 1)
    assert ready(problem).place(on_levels, codes)[2] == pytest.approx(recomputed(on_levels, codes), rel=1e-5)


def test_dense_and_sparse_columns_both_occur():
    """Tests that the mixed problem is walked in both ways, and that every entry is stored once."""
    columns = ready(random_problem("mixed")).columns
    assert (columns.slot >= 0).any()
    assert (columns.slot < 0).any()
    assert columns.slot[-1] >= 0  # the bias
    assert columns.ends.max() == len(columns.indices) == len(columns.values)


def test_layout_of_the_data_does_not_matter():
    """Tests that the same numbers, dense or sparse, give the same copy and the same walk."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 5)) * (rng.random((80, 5)) < [0.05, 0.1, 0.2, 0.6, 1.0])
    y = np.where(np.arange(80) % 3, 1, -1)
    options = {"lam": 0.01, "weight_range": (-1, 1), "bias_range": (-1, 1)}
    problems = [QLossProblem(data, y, **options) for data in (X, sparse.csr_array(X))]
    for a, b in zip(*(ready(problem).columns for problem in problems), strict=True):
        np.testing.assert_array_equal(a, b)
    start = problems[0].state().codes
    ends = [walk_from(problem, start, 0.1, 1e-3, 3000, 1) for problem in problems]
    np.testing.assert_array_equal(*ends)


def test_very_many_sparse_columns_are_taken_as_they_lie(monkeypatch):
    """Tests that the short way gives the same columns, costs and objective, and that nobody has partners."""
    problem = random_problem("sparse", features=20, sample_weight=np.linspace(0.2, 3, 120))
    few = ready(problem)
    monkeypatch.setattr(walk, "NEWTON_FEATURES", 5)
    many = ready(problem)
    assert many.partner.shape == (21, 0)
    state = problem.state(random_codes(problem))
    np.testing.assert_allclose(
        many.place(problem, state.codes)[1], few.place(problem, state.codes)[1], atol=1e-5
    )
    np.testing.assert_array_equal(many.cost, few.cost)
    found = many.walk(problem, state.codes, 0.02, 1e-4, 4000, 0)
    assert recomputed(problem, found) < state.objective


def test_the_work_of_a_move_grows_with_the_data():
    """Tests that the estimate of the work is positive and knows rows from entries."""
    small, large = (ready(random_problem(rows=rows)) for rows in (100, 10_000))
    thin = ready(random_problem("sparse", rows=10_000))
    assert 0 < small.move_work < large.move_work
    assert thin.move_work < large.move_work


# ---- walks ----


def test_a_walk_is_never_worse_than_its_start(problem):
    """Tests the true objective of what comes out, and that its codes lie on the grid."""
    for seed in range(3):
        start = random_codes(problem, seed)
        for hot in (1.0, 0.01):
            found = walk_from(problem, start, hot, 1e-4, 2000, seed)
            assert found.dtype == np.int32
            assert ((found >= 0) & (found <= problem.tops)).all()
            before = recomputed(problem, start)
            assert recomputed(problem, found) <= before + 1e-6 * max(1.0, before)


def test_a_walk_from_anywhere_finds_something_better(problem):
    """Tests that walks do work: a few thousand moves from a random place go down."""
    start = random_codes(problem, 1)
    found = walk_from(problem, start, 0.02, 1e-4, 4000, 0)
    assert recomputed(problem, found) < recomputed(problem, start) - 1e-3


def test_a_walk_leaves_its_start_alone(kind):
    """Tests that the codes passed in are not moved."""
    problem = random_problem(kind)
    start = random_codes(problem)
    before = start.copy()
    walk_from(problem, start, 1.0, 1e-3, 1000, 0)
    np.testing.assert_array_equal(start, before)


def test_the_same_seed_gives_the_same_walk(kind):
    """Tests that seeds decide: one seed repeats itself, several seeds differ."""
    problem = random_problem(kind, features=12, weight_bits=6)
    start = random_codes(problem)
    found = [walk_from(problem, start, 0.05, 1e-3, 300, seed) for seed in (0, 0, 1, 2, 3)]
    np.testing.assert_array_equal(found[0], found[1])
    assert any((found[0] != other).any() for other in found[2:])


class Segment(NamedTuple):
    before: np.ndarray
    after: np.ndarray
    hot: float
    cold: float


@pytest.fixture
def spy(monkeypatch):
    """The segments of walks: where each began and ended, and its ends of temperature."""
    segments = []
    compiled = walk.anneal

    def watched(*arguments):
        codes, hot, cold = arguments[4], *arguments[14:16]
        before = codes.copy()
        compiled(*arguments)
        segments.append(Segment(before, codes.copy(), hot, cold))

    monkeypatch.setattr(walk, "anneal", watched)
    return segments


def test_segments_follow_each_other(spy):
    """Tests that each begins where the one before ended, colder, and that the last one is frozen."""
    problem = random_problem()
    walk_from(problem, random_codes(problem), 0.1, 1e-3, 100_000, 0)
    assert spy[0].hot == 0.1
    for one, after in itertools.pairwise(spy):
        np.testing.assert_array_equal(after.before, one.after)
        assert one.hot > one.cold >= after.hot * (1 - 1e-9)
    assert spy[-2].cold == pytest.approx(1e-3, rel=0.3)
    assert spy[-1].hot == spy[-1].cold == walk.FROZEN * 1e-3


def test_a_late_walk_cools_faster(spy):
    """Tests that a walk that is behind its time goes to the temperature of that time, and ends with it.

    Its time is what is left when it begins: here one half.
    """
    problem = random_problem()
    times = iter([0.5, 0.6, 0.7, 0.85, 1.0])
    walk_from(problem, random_codes(problem), 1.0, 1e-4, 10**6, 0, used=lambda: next(times))
    frozen = walk.FROZEN * 1e-4  # at the end of its time, as far as its pace so far tells
    assert [one.hot for one in spy] == pytest.approx([1.0, 10**-0.8, 10**-1.6, frozen], rel=1e-2)


def test_a_clock_that_is_not_late_changes_nothing(kind):
    """Tests that a walk is the same whether or not it has a generous time limit."""
    problem = random_problem(kind)
    start = random_codes(problem)
    found = [
        walk_from(problem, start, 0.1, 1e-3, 3_000, 0, used=lambda share=share: share)
        for share in (0.0, 0.99)
    ]
    np.testing.assert_array_equal(*found)


def test_a_machine_that_stalls_for_a_moment_changes_nothing(kind):
    """Tests a share of the time that is lost early in a walk which ends long before its time."""
    problem = random_problem(kind)
    start = random_codes(problem)
    ends = []
    for lost in (0.0, 0.03):
        looks = iter([0.0])  # at the beginning; then it has been busy elsewhere
        ends.append(walk_from(problem, start, 0.1, 1e-3, 3_000, 0, used=lambda: next(looks, lost)))  # noqa: B023
    np.testing.assert_array_equal(*ends)


@pytest.mark.parametrize("count", [3, 60])
def test_small_problems_are_walked_to_the_optimum(kind, count, monkeypatch):
    """Tests that cutting a walk into segments loses neither its cooling nor its best point."""
    monkeypatch.setattr(walk, "SEGMENTS", count)
    problem = random_problem(kind, features=4, weight_bits=2, bias_bits=3)
    _, objectives = every_code(problem)
    found = walk_from(problem, random_codes(problem), 0.1, 1e-4, 8000, 0)
    assert recomputed(problem, found) == pytest.approx(objectives[0], abs=1e-6)


def test_no_moves_leave_everything_as_it_is(kind):
    """Tests a walk of length zero."""
    problem = random_problem(kind)
    start = random_codes(problem)
    np.testing.assert_array_equal(walk_from(problem, start, 1.0, 0.1, 0, 0), start)


def test_a_walk_whose_time_has_expired_stays_where_it_is():
    """Tests that no segment runs."""
    problem = random_problem()
    start = random_codes(problem)
    found = walk_from(problem, start, 0.02, 0.001, 10**9, 0, used=lambda: 1.0)
    np.testing.assert_array_equal(found, start)


def test_a_walk_ends_when_its_time_expires():
    """Tests an endless walk whose third look at the clock says stop, and that its answer is kept."""
    problem = random_problem()
    looks = iter([0.0, 0.0, 1.0])
    start = random_codes(problem)
    found = walk_from(problem, start, 0.02, 0.001, 10**6, 0, used=lambda: next(looks))
    assert next(looks, None) is None
    assert recomputed(problem, found) <= recomputed(problem, start) + 1e-6


def test_a_frozen_walk_only_descends():
    """Tests that at temperature zero, almost, a walk ends in a place that no single level improves."""
    problem = random_problem(features=4)
    found = walk_from(problem, random_codes(problem), 1e-9, 1e-9, 20_000, 0)
    assert single_moves(problem, found).min() > -1e-6


# ---- partners ----


def twin_problem(scale=2.0, twin_range=(-1, 1)):
    """Column 3 is column 0 times `scale`, with a grid of its own."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    X[:, 3] = scale * X[:, 0]
    y = np.where(X[:, 0] + X[:, 1] > 0, 1, -1)
    low, high = np.full(4, -1.0), np.full(4, 1.0)
    low[3], high[3] = twin_range
    return QLossProblem(X, y, lam=0.0, weight_range=(low, high), bias_range=(-1, 1))


@pytest.mark.parametrize("scale", [1.0, -1.0, 2.0])
def test_a_repeated_column_is_the_first_partner(scale):
    """Tests that twins know each other, and how much of one makes up for the other."""
    walker = ready(twin_problem(scale))
    assert walker.partner[0, 0] == 3
    assert walker.partner[3, 0] == 0
    assert walker.ratio[0, 0] == pytest.approx(-1 / scale, rel=1e-6)
    assert walker.ratio[3, 0] == pytest.approx(-scale, rel=1e-6)


@pytest.mark.parametrize(
    ("scale", "twin_range", "ratio"), [(1.0, (-1, 1), -1.0), (2.0, (-1, 1), -0.5), (1.0, (-2, 2), -0.5)]
)
def test_a_walk_knows_the_levels_that_make_up_for_one(scale, twin_range, ratio, monkeypatch):
    """Tests that ratios of weights become ratios of levels on the grids of the walk."""
    problem, seen = twin_problem(scale, twin_range), []
    compiled = walk.anneal
    monkeypatch.setattr(walk, "anneal", lambda *words: seen.append(words[11]) or compiled(*words))
    walk_from(problem, problem.state().codes, 0.1, 0.01, 100, 0)
    assert seen[0][0, 0] == pytest.approx(ratio, rel=1e-6)
    assert seen[0][3, 0] == pytest.approx(1 / ratio, rel=1e-6)


def test_no_weight_is_its_own_partner(problem):
    """Tests that partners are other weights, each once, and that all numbers are finite."""
    walker = ready(problem)
    n = problem.num_features + 1
    assert walker.partner.shape == walker.ratio.shape
    assert walker.partner.shape[0] == n
    for i, others in enumerate(walker.partner.tolist()):
        assert i not in others
        assert len(set(others)) == len(others)
    assert np.isfinite(walker.ratio).all()


def test_a_feature_that_is_absent_from_a_sample_does_no_harm():
    """Tests a column of zeros: partners stay finite and a walk still runs."""
    X = np.zeros((50, 3))
    X[:, 0] = np.linspace(-1, 1, 50)
    problem = QLossProblem(
        X, np.where(X[:, 0] > 0, 1, -1), lam=0.01, weight_range=(-1, 1), bias_range=(-1, 1)
    )
    assert np.isfinite(ready(problem).ratio).all()
    start = problem.state().codes
    assert recomputed(problem, walk_from(problem, start, 0.1, 1e-3, 2000, 0)) < recomputed(problem, start)


def test_twins_move_along_a_valley_that_single_moves_cannot_follow(monkeypatch):
    """Tests pair moves: of two nearly equal columns only the sum matters to the loss, and it is right.

    Without a temperature a single level changes the sum, which costs more than the penalty gives; both
    weights together go down to equal halves.
    """
    rng = np.random.default_rng(1)
    x = rng.normal(size=400)
    y = np.where(x + rng.normal(size=400) > 0, 1, -1)
    X = np.column_stack([x, x + 1e-4 * rng.normal(size=400)])
    options = {"weight_bits": 6, "weight_range": (-7.875, 7.875), "bias_range": (-1, 1)}
    problem = QLossProblem(X, y, q=-np.inf, lam=1e-4, **options)
    middle = problem.codes([0.0, 0.0], 0.0)
    ends = middle + np.array([[24 + k, -24, 0] for k in range(7)], dtype=np.int32)
    start = ends[np.argmin(problem.state(middle).evaluate(ends))]
    found = []
    for pairs in (0.0, 0.5):
        monkeypatch.setattr(walk, "PAIRS", pairs)
        found.append(walk_from(problem, start, 1e-7, 1e-7, 5000, 0))
    alone, together = found
    assert recomputed(problem, together) < recomputed(problem, alone) - 1e-3
    assert abs(together[0] - together[1]) < abs(alone[0] - alone[1]) / 2


# ---- length of steps ----


def test_steps_follow_what_is_taken():
    """Tests a weight that takes every step, one that takes enough, one that takes none, an unknown one."""
    share = np.array([1.0, walk.TAKEN, 0.0])
    offered, taken = np.array([1e9, 1e9, 1e9, 0.0]), np.append(1e9 * share, 0.0)
    longer = walk.adapted(np.full(4, 3.0), offered, taken, np.full(4, 15))
    np.testing.assert_allclose(longer, 3.0 * np.exp(np.append(share - walk.TAKEN, 0.0)), rtol=1e-6)
    assert longer[0] > longer[1] > longer[2]


def test_what_was_counted_is_forgotten_by_and_by():
    """Tests that a segment's counts weigh less in the next one."""
    offered, taken = np.array([8.0, 4.0]), np.array([8.0, 2.0])
    walk.adapted(np.ones(2), offered, taken, np.full(2, 15))
    np.testing.assert_array_equal(offered, walk.FORGET * np.array([8.0, 4.0]))
    np.testing.assert_array_equal(taken, walk.FORGET * np.array([8.0, 2.0]))


def test_steps_stay_within_half_of_the_levels():
    """Tests that the shortest step is one level and the longest half of those there are, or one."""
    offered, none, levels = np.full(3, 1e9), np.zeros(3), np.array([15, 3, 0])
    longest = walk.adapted(np.array([7.0, 1.0, 1.0]), offered, offered, levels)
    np.testing.assert_allclose(longest, [7.5, 1.5, 1.0])
    np.testing.assert_allclose(walk.adapted(np.ones(3), offered, none, levels), np.ones(3))


@pytest.mark.parametrize(("stride", "lengths"), [(1.0, {1}), (1.5, {1, 2}), (3.0, {1, 2, 3})])
def test_a_step_has_as_many_levels_as_it_may(stride, lengths):
    """Tests the lengths of single steps of a walk so hot that it takes all, most of which are steps."""
    problem = random_problem(weight_bits=8)
    walker = ready(problem)
    seen: list[int] = []
    for seed in range(400):
        here = problem.tops // 2
        w, u, _ = walker.place(problem, here)
        walk.anneal(
            walker.columns, walker.top, u, 1.0 / len(u), here, w, problem.steps, np.array([0]),
            problem.tops, problem.lam, walker.partner, walker.ratio, walker.cost, 0.0, 1e9, 1e9, 1.0, seed,
            np.zeros(len(here)), np.zeros(len(here)), np.full(len(here), stride),
        )  # fmt: skip
        seen.append(abs(int(here[0] - problem.tops[0] // 2)))
    counts = np.bincount(seen)
    assert {by for by in range(1, len(counts)) if counts[by] > 60} == lengths
