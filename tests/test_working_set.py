"""Tests of the working copy and the walks on it: single precision, but never wrong about what it proposes."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import pytest
from scipy import sparse
from search_cases import KINDS, every_code, random_codes, random_problem, recomputed

from lns import working_set
from lns.problem import QLossProblem
from lns.working_set import WorkingSet

VARIANTS = {
    "plain": {},
    "sample weights": {"sample_weight": np.linspace(0.2, 3, 120)},
    "q per class": {"q": {-1: -1.5, 1: 0.0}},
    "convex": {"q": -np.inf},
    "no penalty": {"lam": 0.0},
}


def ready(problem, codes=None):
    """A working set with partners, as a part of the data has it."""
    working = WorkingSet(problem)
    working.set_partners(problem.state(codes).margins)
    return working


def kept_margins(working, state):
    """u_s = √c_s (1 - m_s) in single precision."""
    return (working.root * (1 - state.margins)).astype(np.float32)


@pytest.fixture(params=[*KINDS, "binary"])
def kind(request):
    """Dense columns, sparse ones, both, or such with entries all alike."""
    return request.param


@pytest.fixture(params=sorted(VARIANTS))
def problem(request, kind):
    """Every kind of columns with every kind of loss."""
    return random_problem(kind, **VARIANTS[request.param])


# ---- the copy ----


def test_changes_of_loss_agree_with_exact_gains(problem):
    """Tests every single-level move against `State.gains`, to single precision."""
    state = problem.state(random_codes(problem))
    working = WorkingSet(problem)
    u = kept_margins(working, state)
    w = np.append(state.weights, 0.0)
    penalty = np.append(np.full(problem.num_features, problem.lam), 0.0)
    for i, gains in enumerate(state.gains()):
        for sign, exact in zip((-1, 1), gains, strict=True):
            if np.isfinite(exact):
                d = sign * problem.steps[i]
                change = (
                    working_set.change_of_loss(working.columns, working.top, u, i, d) / problem.num_examples
                )
                assert change + penalty[i] * d * (2 * w[i] + d) == pytest.approx(exact, abs=2e-6)


def test_losses_of_examples_are_those_of_the_problem(problem):
    """Tests each against the definition, sample weights included, and the objective."""
    state = problem.state(random_codes(problem))
    losses, objective = WorkingSet(problem).losses(state.codes)
    exact = np.minimum(np.square(np.maximum(1 - state.margins, 0)), problem.cap)
    np.testing.assert_allclose(losses, problem.num_examples * problem.share * exact, rtol=1e-4, atol=1e-5)
    assert objective == pytest.approx(state.objective, rel=1e-5)


def test_the_copy_has_the_whole_loss(problem):
    """Tests the sum of losses against the problem."""
    state = problem.state(random_codes(problem))
    working = WorkingSet(problem)
    total = working_set.total_loss(kept_margins(working, state), working.top) / problem.num_examples
    assert total == pytest.approx(state.loss, rel=1e-5)


def test_a_place_has_margins_and_objective(problem):
    """Tests that the columns hold the data, with labels and sample weights folded in."""
    state = problem.state(random_codes(problem))
    working = WorkingSet(problem)
    w, u, objective = working.place(state.codes)
    np.testing.assert_array_equal(w, np.append(state.weights, state.bias))
    np.testing.assert_allclose(u, kept_margins(working, state), atol=1e-5)
    assert objective == pytest.approx(state.objective, rel=1e-5)


@pytest.mark.parametrize("chosen", [[], [3], [0, 5, 6, 119], range(120)])
def test_columns_of_some_rows(kind, chosen):
    """Tests that the columns of some examples are those of a problem that has no others."""
    problem = random_problem(kind)
    mask = np.isin(np.arange(problem.num_examples), chosen)
    rows = np.flatnonzero(mask)
    found = working_set.columns_of_rows(WorkingSet(problem).columns, mask, rows)
    for i in range(problem.num_features + 1):
        u = np.zeros(len(rows), dtype=np.float32)
        working_set.move(found, u, i, -1.0)
        whole = np.zeros(problem.num_examples, dtype=np.float32)
        working_set.move(WorkingSet(problem).columns, whole, i, -1.0)
        np.testing.assert_array_equal(u, whole[rows])


def test_dense_and_sparse_columns_both_occur():
    """Tests that the mixed problem is walked in both ways, and that every entry is stored once."""
    working = WorkingSet(random_problem("mixed"))
    columns = working.columns
    assert (columns.slot >= 0).any()
    assert (columns.slot < 0).any()
    assert columns.slot[-1] >= 0  # the bias
    assert columns.cuts[-1, -1] == len(columns.indices) == len(columns.values)


@pytest.mark.parametrize(
    ("options", "kinds"),
    [
        ({}, 2),
        ({"q": {-1: -1.5, 1: 0.0}}, 2),
        ({"sample_weight": np.where(np.arange(120) % 2, 1.0, 2.0)}, 4),
        ({"sample_weight": np.linspace(0.2, 3, 120)}, None),
    ],
)
def test_entries_that_are_alike(options, kinds):
    """Tests that few kinds of examples make for columns without values, and that many do not."""
    columns = WorkingSet(random_problem("binary", **options)).columns
    thin = (columns.slot < 0) & (columns.alike != 0)
    if kinds is None:
        assert not thin.any()
    else:
        assert columns.kinds.shape[1] == kinds
        assert thin.sum() >= 2
        np.testing.assert_array_less(columns.cuts[thin, 0], columns.cuts[thin, -1])
    assert not WorkingSet(random_problem("sparse", **options)).columns.alike.any()


def test_layout_of_the_data_does_not_matter():
    """Tests that the same numbers, dense or sparse, give the same working set and the same walk."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 5)) * (rng.random((80, 5)) < [0.05, 0.1, 0.2, 0.6, 1.0])
    y = np.where(np.arange(80) % 3, 1, -1)
    options = {"lam": 0.01, "weight_range": (-1, 1), "bias_range": (-1, 1)}
    first, second = (ready(QLossProblem(data, y, **options)) for data in (X, sparse.csr_array(X)))
    for a, b in zip(first.columns, second.columns, strict=True):
        np.testing.assert_array_equal(a, b)
    start = first.problem.state().codes
    np.testing.assert_array_equal(
        first.anneal(start, 0.1, 1e-3, 3000, 1), second.anneal(start, 0.1, 1e-3, 3000, 1)
    )


def test_seconds_per_move_grow_with_the_data():
    """Tests that the estimate of the work is positive and knows rows from entries."""
    small, large = (WorkingSet(random_problem(rows=rows)) for rows in (100, 10_000))
    thin = WorkingSet(random_problem("sparse", rows=10_000))
    assert 0 < small.seconds_per_move < large.seconds_per_move
    assert thin.seconds_per_move < large.seconds_per_move


# ---- walks ----


def test_a_walk_is_never_worse_than_its_start(problem):
    """Tests the true objective of what comes out, and that its codes lie on the grid."""
    for seed in range(3):
        start = random_codes(problem, seed)
        working = ready(problem, start)
        for hot in (1.0, 0.01):
            found = working.anneal(start, hot, 1e-4, 2000, seed)
            assert found.dtype == np.int32
            assert ((found >= 0) & (found <= problem.tops)).all()
            before = recomputed(problem, start)
            assert recomputed(problem, found) <= before + 1e-6 * max(1.0, before)


def test_a_walk_from_anywhere_finds_something_better(problem):
    """Tests that walks do work: a few thousand moves from a random place go down."""
    start = random_codes(problem, 1)
    found = ready(problem, start).anneal(start, 0.02, 1e-4, 4000, 0)
    assert recomputed(problem, found) < recomputed(problem, start) - 1e-3


def test_a_walk_leaves_its_start_alone(kind):
    """Tests that the codes passed in are not moved."""
    problem = random_problem(kind)
    start = random_codes(problem)
    before = start.copy()
    ready(problem).anneal(start, 1.0, 1e-3, 1000, 0)
    np.testing.assert_array_equal(start, before)


def test_the_same_seed_gives_the_same_walk(kind):
    """Tests that seeds decide: one seed repeats itself, several seeds differ."""
    problem = random_problem(kind, features=12, weight_bits=6)
    start = random_codes(problem)
    found = [ready(problem).anneal(start, 0.05, 1e-3, 300, seed) for seed in (0, 0, 1, 2, 3)]
    np.testing.assert_array_equal(found[0], found[1])
    assert any((found[0] != other).any() for other in found[2:])


@pytest.fixture
def spy(monkeypatch):
    """The segments of walks: what each believed to change and what it did, ends of temperature, examples."""
    segments = []
    compiled = working_set.anneal

    def watched(*arguments):
        u, codes, hot, cold = arguments[2], arguments[4], *arguments[15:17]
        before = codes.copy()
        found, low, end = compiled(*arguments)
        segments.append(Segment(before, codes.copy(), found, low, end, hot, cold, len(u)))
        return found, low, end

    monkeypatch.setattr(working_set, "anneal", watched)
    return segments


class Segment(NamedTuple):
    before: np.ndarray
    after: np.ndarray
    found: np.ndarray
    low: float
    end: float
    hot: float
    cold: float
    examples: int


def short_segments(monkeypatch, work=20_000.0):
    """Many segments, also on little data."""
    monkeypatch.setattr(working_set, "SHORTEST_SEGMENT", work)
    monkeypatch.setattr(working_set, "LONGEST_SEGMENT", work)


@pytest.fixture
def leave_out(monkeypatch):
    """Examples are left out also of little data."""
    monkeypatch.setattr(working_set, "WORTH_LEAVING_OUT", 0.0)


@pytest.mark.parametrize("work", [20_000.0, 1e9])
def test_segments_know_what_they_do(kind, work, spy, monkeypatch):
    """Tests the changes of the objective that a hot walk with all examples believes in."""
    short_segments(monkeypatch, work)
    monkeypatch.setattr(working_set, "LEAST_MOVE", 1e6)
    problem = random_problem(kind, rows=300)
    ready(problem).anneal(random_codes(problem), 1.0, 0.5, 3_000, 0)  # nearly every move is accepted
    assert len(spy) == 1 if work == 1e9 else len(spy) > 5
    for one in spy:
        start = recomputed(problem, one.before)
        assert one.examples == 300
        assert start + one.end == pytest.approx(recomputed(problem, one.after), abs=3e-6)
        assert start + one.low == pytest.approx(recomputed(problem, one.found), abs=3e-6)


def separable(rows=2000, seed=0):
    """Two classes far apart: most examples never come near an edge of their loss."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 5)) * (rng.random((rows, 5)) < [1.0, 1.0, 0.3, 0.1, 0.1])
    y = np.where(X[:, 0] + 0.1 * rng.normal(size=rows) > 0, 1, -1)
    y[: rows // 10] *= -1
    return QLossProblem(X, y, lam=1e-6, weight_bits=8, weight_range=(-16, 16), bias_range=(-1, 1))


@pytest.mark.usefixtures("leave_out")
def test_examples_far_from_the_edges_are_left_out(spy, monkeypatch):
    """Tests that a cool walk works on a part of the examples, and still knows what it does."""
    short_segments(monkeypatch, 500_000.0)
    problem = separable()
    start = problem.codes([14.0, 0, 0, 0, 0], 0.0)
    unit = recomputed(problem, start) / problem.num_examples
    found = ready(problem, start).anneal(start, unit, 0.04 * unit, 60_000, 0)
    assert spy[0].examples == problem.num_examples  # nothing is known yet
    assert np.median([one.examples for one in spy]) < 0.5 * problem.num_examples
    hurt = [
        recomputed(problem, one.after) - recomputed(problem, one.before) - one.end > one.hot + 1e-6
        for one in spy
    ]
    assert np.mean(hurt) < 0.1
    assert recomputed(problem, found) < recomputed(problem, start)


def test_little_data_is_walked_as_a_whole(spy, monkeypatch):
    """Tests that nobody is left out where a look at a column costs next to nothing."""
    short_segments(monkeypatch, 500_000.0)
    problem = separable(rows=1000)
    start = problem.codes([14.0, 0, 0, 0, 0], 0.0)
    ready(problem, start).anneal(start, 1e-5, 4e-7, 60_000, 0)
    assert {one.examples for one in spy} == {problem.num_examples}


def test_examples_are_left_out_where_that_saves_enough(spy, monkeypatch):
    """Tests that a segment has all examples, or so few that the work asked for is saved."""
    short_segments(monkeypatch, 500_000.0)
    problem = separable()
    start = problem.codes([14.0, 0, 0, 0, 0], 0.0)
    working = ready(problem, start)
    monkeypatch.setattr(working_set, "WORTH_LEAVING_OUT", 0.9 * working.column_cost)
    unit = recomputed(problem, start) / problem.num_examples
    working.anneal(start, unit, 0.04 * unit, 60_000, 0)
    counts = np.array([one.examples for one in spy])
    few = counts <= 0.1 * problem.num_examples
    assert few.any()
    assert (counts[~few] == problem.num_examples).all()


@pytest.mark.usefixtures("leave_out")
def test_segments_that_hurt_examples_left_out_are_taken_back(spy, monkeypatch):
    """Tests a walk that leaves out all it can: where it was wrong, the next segment begins where it began."""
    short_segments(monkeypatch, 100_000.0)
    for name in ("REACH_FROM_ZERO", "REACH_FROM_TOP"):
        monkeypatch.setattr(working_set, name, 0.0)
    problem = separable()
    start = random_codes(problem, 3)
    unit = recomputed(problem, start) / problem.num_examples
    ready(problem, start).anneal(start, 20 * unit, 0.04 * unit, 20_000, 0)
    backs = 0
    for one, after in itertools.pairwise(spy):
        believed = recomputed(problem, one.before) + one.end
        true = recomputed(problem, one.after)
        if true > believed + one.hot + 1e-5:
            backs += 1
            np.testing.assert_array_equal(after.before, one.before)
        elif true < believed + one.hot - 1e-5:
            np.testing.assert_array_equal(after.before, one.after)
    assert backs > 0


def test_temperatures_go_from_hot_to_cold(spy, monkeypatch):
    """Tests that segments follow each other from one end to the other."""
    short_segments(monkeypatch)
    problem = random_problem()
    ready(problem).anneal(random_codes(problem), 0.1, 1e-3, 3_000, 0)
    assert spy[0].hot == 0.1
    assert all(one.hot > one.cold >= after.hot for one, after in itertools.pairwise(spy))
    assert spy[-1].cold == pytest.approx(1e-3, rel=0.3)


def test_a_late_walk_cools_faster(spy, monkeypatch):
    """Tests that a walk that is behind its time goes to the temperature of that time, and ends with it.

    Its time is what is left when it begins: here one half.
    """
    short_segments(monkeypatch)
    problem = random_problem()
    times = iter([0.5, 0.5, 0.75, 0.95, 1.0])
    ready(problem).anneal(random_codes(problem), 1.0, 1e-4, 10**6, 0, used=lambda: next(times))
    assert [one.hot for one in spy] == pytest.approx([1.0, 1e-2, 10**-3.6], rel=1e-2)


def test_a_clock_that_is_not_late_changes_nothing(kind):
    """Tests that a walk is the same whether or not it has a generous time limit."""
    problem = random_problem(kind)
    start = random_codes(problem)
    found = [
        ready(problem).anneal(start, 0.1, 1e-3, 3000, 0, used=lambda share=share: share)
        for share in (0.0, 0.99)
    ]
    np.testing.assert_array_equal(*found)


def test_a_walk_in_pieces_still_finds_the_optimum(kind, monkeypatch):
    """Tests that cutting a walk into segments loses neither its cooling nor its best point."""
    problem = random_problem(kind, features=4, weight_bits=2, bias_bits=3)
    _, objectives = every_code(problem)
    for work in (100_000.0, 1e9):
        short_segments(monkeypatch, work)
        found = ready(problem).anneal(random_codes(problem), 0.1, 1e-4, 8000, 0)
        assert recomputed(problem, found) == pytest.approx(objectives[0], abs=1e-6)


def test_no_moves_leave_everything_as_it_is(kind):
    """Tests a walk of length zero."""
    problem = random_problem(kind)
    start = random_codes(problem)
    np.testing.assert_array_equal(ready(problem).anneal(start, 1.0, 0.1, 0, 0), start)


def test_a_walk_whose_time_has_expired_stays_where_it_is():
    """Tests that no segment runs."""
    problem = random_problem()
    start = random_codes(problem)
    found = ready(problem).anneal(start, 0.02, 0.001, 10**9, 0, used=lambda: 1.0)
    np.testing.assert_array_equal(found, start)


def test_a_walk_ends_when_its_time_expires(monkeypatch):
    """Tests an endless walk whose third look at the clock says stop, and that its answer is kept."""
    problem = random_problem()
    short_segments(monkeypatch)
    looks = iter([0.0, 0.0, 1.0])
    start = random_codes(problem)
    found = ready(problem).anneal(start, 0.02, 0.001, 10**9, 0, used=lambda: next(looks))
    assert next(looks, None) is None
    assert recomputed(problem, found) <= recomputed(problem, start) + 1e-6


def test_a_frozen_walk_only_descends():
    """Tests that at temperature zero, almost, a walk ends in a place that no single level improves."""
    problem = random_problem(features=4)
    found = ready(problem).anneal(random_codes(problem), 1e-9, 1e-9, 20_000, 0)
    assert problem.state(found).gains().min() > -1e-6


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


@pytest.mark.parametrize(
    ("scale", "twin_range", "ratio"),
    [(1.0, (-1, 1), -1.0), (-1.0, (-1, 1), 1.0), (2.0, (-1, 1), -0.5), (1.0, (-2, 2), -0.5)],
)
def test_a_repeated_column_is_the_first_partner(scale, twin_range, ratio):
    """Tests that twins know each other, and how many levels of one make up for a level of the other."""
    working = ready(twin_problem(scale, twin_range))
    assert working.partner[0, 0] == 3
    assert working.partner[3, 0] == 0
    assert working.ratio[0, 0] == pytest.approx(ratio, rel=1e-6)
    assert working.ratio[3, 0] == pytest.approx(1 / ratio, rel=1e-6)


def test_no_weight_is_its_own_partner(problem):
    """Tests that partners are other weights, each once, and that all numbers are finite."""
    working = ready(problem)
    n = problem.num_features + 1
    assert working.partner.shape == working.ratio.shape
    assert working.partner.shape[0] == n
    for i, partners in enumerate(working.partner.tolist()):
        assert i not in partners
        assert len(set(partners)) == len(partners)
    assert np.isfinite(working.ratio).all()


def test_a_feature_that_is_absent_from_a_sample_does_no_harm():
    """Tests a column of zeros: partners stay finite and a walk still runs."""
    X = np.zeros((50, 3))
    X[:, 0] = np.linspace(-1, 1, 50)
    problem = QLossProblem(
        X, np.where(X[:, 0] > 0, 1, -1), lam=0.01, weight_range=(-1, 1), bias_range=(-1, 1)
    )
    working = ready(problem)
    assert np.isfinite(working.ratio).all()
    start = problem.state().codes
    assert recomputed(problem, working.anneal(start, 0.1, 1e-3, 2000, 0)) < recomputed(problem, start)


def test_twins_move_along_a_valley_that_single_moves_cannot_follow():
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
    working = ready(problem, start)
    alone, together = (working.anneal(start, 1e-7, 1e-7, 5000, 0, pairs=p) for p in (0.0, 0.5))
    assert recomputed(problem, together) < recomputed(problem, alone) - 1e-3
    assert abs(together[0] - together[1]) < abs(alone[0] - alone[1]) / 2


@pytest.mark.parametrize("seed", range(5))
def test_a_walk_between_two_solutions_stays_there(problem, seed):
    """Tests that only weights that differ move, and at most a level beyond either."""
    start, other = random_codes(problem, seed), random_codes(problem, seed + 50)
    other[::2] = start[::2]
    working = ready(problem)
    ends = [working.anneal(start, 1.0, 0.5, 2000, k, other=other) for k in range(3)]
    differ = start != other
    for found in ends:
        np.testing.assert_array_equal(found[~differ], start[~differ])
        assert (found >= np.minimum(start, other) - 1).all()
        assert (found <= np.maximum(start, other) + 1).all()
        assert ((found >= 0) & (found <= problem.tops)).all()


def test_a_walk_between_two_solutions_finds_the_best_there():
    """Tests a long walk against all codes between the two and a level beyond."""
    problem = random_problem(rows=60, features=4)
    start = random_codes(problem, 1)
    other = start.copy()
    other[:2] = np.where(start[:2] > 5, start[:2] - 3, start[:2] + 3)
    low, high = np.minimum(start, other) - 1, np.maximum(start, other) + 1
    low, high = np.maximum(low, 0)[:2], np.minimum(high, problem.tops)[:2]
    values = []
    for first, second in itertools.product(range(low[0], high[0] + 1), range(low[1], high[1] + 1)):
        codes = start.copy()
        codes[:2] = first, second
        values.append(recomputed(problem, codes))
    found = ready(problem).anneal(start, 0.1, 1e-5, 4000, 0, other=other)
    assert recomputed(problem, found) == pytest.approx(min(values), abs=1e-9)


def test_a_walk_between_equal_solutions_goes_nowhere():
    """Tests codes that do not differ."""
    problem = random_problem()
    start = random_codes(problem)
    np.testing.assert_array_equal(ready(problem).anneal(start, 1.0, 0.1, 1000, 0, other=start), start)


# ---- drawing ----


def test_at_first_all_free_weights_are_drawn_alike():
    """Tests that nothing is known yet, and that others are never drawn."""
    free = np.array([1, 4, 7])
    drawn = working_set.to_draw_from(free, np.zeros(9), np.zeros(9))
    counts = np.bincount(drawn, minlength=9)
    assert counts[free].max() - counts[free].min() <= 1
    assert counts.sum() == counts[free].sum() >= 1000


def test_weights_that_take_every_step_are_drawn_less():
    """Tests the odds of a weight that takes everything, one that takes half and one that takes nothing."""
    offered = np.array([1e9, 1e9, 1e9])
    taken = np.array([1e9, 5e8, 0.0])
    counts = np.bincount(working_set.to_draw_from(np.arange(3), offered, taken)).astype(float)
    least = working_set.LEAST_DRAWN
    np.testing.assert_allclose(counts / counts[2], [least, (1 + least) / 2, 1.0], rtol=2e-3)


def test_what_was_counted_is_forgotten_by_and_by():
    """Tests that a segment's counts weigh less in the next one."""
    offered, taken = np.array([8.0, 4.0]), np.array([8.0, 2.0])
    working_set.to_draw_from(np.arange(2), offered, taken)
    np.testing.assert_array_equal(offered, working_set.FORGET * np.array([8.0, 4.0]))
    np.testing.assert_array_equal(taken, working_set.FORGET * np.array([8.0, 2.0]))


@pytest.mark.parametrize("count", [1, 5, 5000])
def test_everybody_is_drawn_sometimes(count):
    """Tests that no weight is left out, however many there are and whatever they have taken."""
    taken = np.where(np.arange(count) % 2, 1e6, 0.0)
    drawn = working_set.to_draw_from(np.arange(count), np.full(count, 1e6), taken)
    assert len(np.unique(drawn)) == count


# ---- length of steps ----


def test_steps_follow_what_is_taken():
    """Tests a weight that takes every step, one that takes enough, one that takes none, an unknown one."""
    offered, taken = np.array([1e9, 1e9, 1e9, 0.0]), np.array([1e9, 4e8, 0.0, 0.0])
    longer = working_set.adapted(np.full(4, 3.0), offered, taken, np.full(4, 15))
    np.testing.assert_allclose(longer, [3 * working_set.LONGER, 3.0, 3 / working_set.LONGER, 3.0])


def test_steps_stay_within_half_of_the_levels():
    """Tests that the shortest step is one level and the longest half of those there are, or one."""
    offered, none, levels = np.full(3, 1e9), np.zeros(3), np.array([15, 3, 0])
    longest = working_set.adapted(np.array([7.0, 1.0, 1.0]), offered, offered, levels)
    np.testing.assert_allclose(longest, [7.5, 1.5, 1.0])
    np.testing.assert_allclose(working_set.adapted(np.ones(3), offered, none, levels), np.ones(3))


@pytest.mark.parametrize(("stride", "lengths"), [(1.0, {1}), (1.5, {1, 2}), (3.0, {1, 2, 3})])
def test_a_step_has_as_many_levels_as_it_may(stride, lengths):
    """Tests the lengths of single steps of a walk so hot that it takes all, most of which are steps."""
    problem = random_problem(weight_bits=8)
    working = ready(problem)
    seen: list[int] = []
    for seed in range(400):
        here = problem.tops // 2
        w, u, _ = working.place(here)
        working_set.anneal(
            working.columns, working.top, u, 1.0 / len(u), here, w, problem.steps, np.array([0]),
            np.zeros_like(problem.tops), problem.tops, problem.lam, working.partner, working.ratio,
            working.columns.cost, 0.0, 1e9, 1e9, 1.0, seed, np.zeros(len(here)), np.zeros(len(here)),
            np.full(len(here), stride),
        )  # fmt: skip
        seen.append(abs(int(here[0] - problem.tops[0] // 2)))
    counts = np.bincount(seen)
    assert {by for by in range(1, len(counts)) if counts[by] > 60} == lengths
