"""Tests of one neighbourhood, from choice to proposal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import slow_reference as slow
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from search_cases import (
    KINDS,
    NO_WEIGHTS,
    are_levels,
    random_codes,
    random_problem,
    recomputed,
    window_sub,
)

from lns import rounds
from lns.rounds import Choice, Part, Task, Turns, propose, time_until, work_of
from lns.solvers import make_solver
from lns.state import State

AUTOMATIC = {"weight_range": "auto", "bias_range": "auto"}


@st.composite
def choices(draw, kinds=("window", "stored", "fusion"), **sizes):
    """A small problem, codes, and a choice of some of its weights that holds the current codes."""
    problem, codes = draw(slow.problems_with_codes(**sizes))
    weights = draw(st.lists(st.integers(0, len(codes) - 1), min_size=1, max_size=3, unique=True))
    kind = draw(st.sampled_from(kinds))
    other = np.array([draw(st.integers(0, int(top))) for top in problem.tops], dtype=np.int32)
    examples = draw(st.integers(0, problem.num_examples))
    choice = Choice(kind, np.sort(weights), examples=examples, other=problem.point(other), max_bits=8)
    return problem, codes, choice


def neighbourhood_of(problem, codes, choice, seed=0):
    """The bits of a choice."""
    return rounds.make_neighbourhood(problem, codes, choice, np.random.default_rng(seed))


def reached(problem, codes, neighbourhood):
    """All codes of a neighbourhood."""
    return neighbourhood.codes(codes, slow.all_bits(neighbourhood.num_bits), problem.tops)


def part_of(problem, codes, rows=10**6, seed=0):
    """All examples, or some of them."""
    return Part(problem, rows, seed, *problem.values(codes))


# ---- bits ----


@settings(deadline=None)
@given(choices(), st.integers(0, 100))
def test_start_bits_stand_for_the_current_codes(case, seed):
    """Tests that every kind that begins on the grid can say "no change"."""
    problem, codes, choice = case
    neighbourhood = neighbourhood_of(problem, codes, choice, seed)
    start = neighbourhood.start[None, :]
    np.testing.assert_array_equal(neighbourhood.codes(codes, start, problem.tops)[0], codes)


@settings(deadline=None)
@given(choices(), st.integers(0, 100))
def test_only_chosen_weights_move_and_stay_on_the_grid(case, seed):
    """Tests all answers of a neighbourhood."""
    problem, codes, choice = case
    every = reached(problem, codes, neighbourhood_of(problem, codes, choice, seed))
    assert ((every >= 0) & (every <= problem.tops)).all()
    fixed = np.setdiff1d(np.arange(len(codes)), choice.weights)
    assert (every[:, fixed] == codes[fixed]).all()


@pytest.mark.parametrize("seed", range(5))
def test_a_window_holds_neighbouring_levels_around_the_current_one(seed):
    """Tests that four levels in a row are reached for each weight, the current one among them."""
    problem = random_problem()
    codes = random_codes(problem, seed)
    choice = Choice("window", np.array([1, 4, 6]))
    every = reached(problem, codes, neighbourhood_of(problem, codes, choice, seed))
    for i in (1, 4, 6):
        levels = np.unique(every[:, i])
        assert levels.tolist() == list(range(levels[0], levels[0] + 4))
        assert codes[i] in levels


def test_stored_bits_reach_every_level():
    """Tests that the paper's own bits give a weight all 16 levels and the bias all 256."""
    problem = random_problem()
    codes = random_codes(problem)
    choice = Choice("stored", np.array([2, 6]))
    every = reached(problem, codes, neighbourhood_of(problem, codes, choice))
    assert len(every) == 16 * 256
    assert np.unique(every[:, 2]).tolist() == list(range(16))
    assert np.unique(every[:, 6]).tolist() == list(range(256))


def test_fusion_has_one_bit_for_each_weight_between_here_and_there():
    """Tests that each chosen weight is at its level or at the other solution's, in all combinations."""
    problem = random_problem()
    codes, other = np.zeros(7, dtype=np.int32), np.arange(1, 8, dtype=np.int32)
    choice = Choice("fusion", np.array([1, 3, 6]), other=problem.point(other))
    every = reached(problem, codes, neighbourhood_of(problem, codes, choice))
    assert len(np.unique(every, axis=0)) == 8
    assert set(map(tuple, np.unique(every[:, [1, 3, 6]], axis=0))) == {
        (a, b, c) for a in (0, 2) for b in (0, 4) for c in (0, 7)
    }


# ---- examples ----


def case_of(problem, m):
    """0, 1, 2: flagged, inside, beyond the margin."""
    return np.where(m <= problem.q, 0, np.where(m < 1, 1, 2))


@settings(deadline=None)
@given(choices(), st.integers(0, 100))
def test_only_examples_whose_case_can_change_get_target_bits(case, seed):
    """Tests that the margin of every chosen example can move as far as its nearest edge."""
    problem, codes, choice = case
    state = State(problem, codes)
    neighbourhood = neighbourhood_of(problem, codes, choice, seed)
    chosen = rounds.choose_examples(problem, state, neighbourhood, choice.examples)
    assert len(chosen) <= choice.examples
    assert (np.diff(chosen) > 0).all()
    # The furthest that a margin can go: every direction at whichever end is further.
    steps = np.abs(neighbourhood.directions) * problem.steps[neighbourhood.weights]
    far = np.zeros(len(codes))
    far[neighbourhood.weights] = neighbourhood.reach @ steps
    features = np.column_stack([np.array(slow.dense(problem)), np.ones(problem.num_examples)])
    reach = np.abs(features) @ far
    edge = np.minimum(np.abs(state.margins - problem.q), np.abs(state.margins - 1))
    assert (edge[chosen] <= reach[chosen] + 1e-12).all()


@settings(deadline=None)
@given(choices(), st.integers(0, 100))
def test_examples_left_out_of_a_full_choice_keep_their_case(case, seed):
    """Tests the presolve: with room for everybody, who gets no bits is exactly quadratic in the window."""
    problem, codes, choice = case
    state = State(problem, codes)
    neighbourhood = neighbourhood_of(problem, codes, choice, seed)
    chosen = rounds.choose_examples(problem, state, neighbourhood, problem.num_examples)
    left = np.setdiff1d(np.arange(problem.num_examples), chosen)
    for other in reached(problem, codes, neighbourhood):
        m = np.array(slow.margins(problem, *problem.values(other)))
        moved = case_of(problem, m)[left] != case_of(problem, state.margins)[left]
        # On the edge itself both cases have the same loss; rounding may put a margin on either side.
        at_edge = np.minimum(np.abs(m - problem.q), np.abs(m - 1))[left] < 1e-9
        started = np.minimum(np.abs(state.margins - problem.q), np.abs(state.margins - 1))[left] < 1e-9
        assert not (moved & ~at_edge & ~started).any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [0, 1, 8, 120, 1000])
def test_at_most_as_many_examples_as_asked_for_are_chosen(kind, count):
    """Tests counts up to and beyond the number of examples."""
    problem = random_problem(kind)
    state = problem.state(random_codes(problem))
    neighbourhood = neighbourhood_of(problem, state.codes, Choice("window", np.arange(7)))
    chosen = rounds.choose_examples(problem, state, neighbourhood, count)
    assert min(count, 1) <= len(chosen) <= min(count, 120)
    assert len(np.unique(chosen)) == len(chosen)


# ---- sub-QUBOs ----


@settings(deadline=None)
@given(choices(), st.integers(0, 100))
def test_pinned_never_promises_too_much(case, seed):
    """Tests that with all other targets fixed the energy of an answer is at least its true objective."""
    problem, codes, choice = case
    choice = replace(choice, background="pinned", examples=0)
    sub, neighbourhood, _ = rounds.build(problem, State(problem, codes), choice, np.random.default_rng(seed))
    bits = slow.all_bits(neighbourhood.num_bits)
    steps = neighbourhood.base + bits @ neighbourhood.spread.T
    unclipped = codes[neighbourhood.weights] + steps @ neighbourhood.directions
    every = neighbourhood.codes(codes, bits, problem.tops)
    inside = (unclipped == every[:, neighbourhood.weights]).all(axis=1)
    promised, true = sub.energies(bits)[inside], [recomputed(problem, c) for c in every[inside]]
    assert (promised >= np.array(true) - 1e-9 * np.maximum(1.0, true)).all()


@settings(deadline=None)
@given(choices(max_target_bits=3), st.sampled_from(["curvature", "pinned"]))
def test_a_build_is_made_of_weight_bits_and_target_bits(case, background):
    """Tests the sizes of a sub-QUBO against its neighbourhood and its batch."""
    problem, codes, choice = case
    choice = replace(choice, background=background, width=0.3)
    sub, neighbourhood, batch = rounds.build(problem, State(problem, codes), choice, np.random.default_rng(0))
    assert sub.num_weight_bits == neighbourhood.num_bits
    assert sub.num_variables == neighbourhood.num_bits + problem.target_bits * len(batch)
    assert len(batch) <= choice.examples


@settings(deadline=None)
@given(choices(), st.integers(0, 100))
def test_curvature_is_exact_where_no_case_changes(case, seed):
    """Tests that width 0 gives the true objective of every answer that keeps all cases."""
    problem, codes, choice = case
    state = State(problem, codes)
    choice = replace(choice, background="curvature", width=0.0, examples=0)
    sub, neighbourhood, _ = rounds.build(problem, state, choice, np.random.default_rng(seed))
    # On an edge itself rounding decides which case an example is in.
    assume(np.minimum(np.abs(state.margins - problem.q), np.abs(state.margins - 1)).min() > 1e-9)
    bits = slow.all_bits(neighbourhood.num_bits)
    steps = neighbourhood.base + bits @ neighbourhood.spread.T
    levels = codes[neighbourhood.weights] + steps @ neighbourhood.directions
    every = neighbourhood.codes(codes, bits, problem.tops)
    for k, other in enumerate(every):
        m = np.array(slow.margins(problem, *problem.values(other)))
        kept = (case_of(problem, m) == case_of(problem, state.margins)).all()
        if kept and (levels[k] == other[neighbourhood.weights]).all():
            true = recomputed(problem, other)
            assert sub.energies(bits[[k]])[0] == pytest.approx(true, rel=1e-9, abs=1e-9)


# ---- proposals ----


def make_task(problem, seed=0, moves=200, follow=False, **options):
    """A task from random codes."""
    choice = Choice(**{"kind": "window", "weights": np.array([0, 2, 6]), "examples": 4, **options})
    child = np.random.SeedSequence(seed, spawn_key=(3, 1))
    return Task(random_codes(problem, seed), problem.grids, choice, moves, child, follow=follow)


CHOICES = {
    "window": {},
    "stored": {"kind": "stored", "weights": np.array([0, 2])},
    "fusion": {"kind": "fusion", "other": np.linspace(-1, 1, 7)},
    "hop": {"kind": "hop", "weights": np.arange(7)},
    "free hop": {"kind": "hop", "weights": np.arange(7), "follow": True},
    "pinned": {"background": "pinned"},
    "smooth": {"width": 0.5},
    "no examples": {"examples": 0},
    "walk": {"kind": "walk", "weights": NO_WEIGHTS, "heat": 2.0},
    "free walk": {"kind": "walk", "weights": NO_WEIGHTS, "heat": 2.0, "follow": True},
}


def problem_for(options, kind="dense"):
    """A problem on whose levels a task of these options runs."""
    return random_problem(kind, **(AUTOMATIC if options.get("follow") else {}))


@pytest.mark.parametrize("name", CHOICES)
def test_a_proposal_depends_on_its_arguments_alone(name):
    """Tests that a repetition, on a part of its own and after other work, gives the same proposal."""
    problem = problem_for(CHOICES[name])
    task = make_task(problem, **CHOICES[name])
    before = task.codes.copy()
    first = propose(part_of(problem, before), make_solver("tabu"), task)
    part = part_of(problem, before)
    propose(part, make_solver("sa"), make_task(problem, seed=5))
    second = propose(part, make_solver("tabu"), task)
    np.testing.assert_array_equal(first.codes, second.codes)
    np.testing.assert_array_equal(first.point, second.point)
    np.testing.assert_array_equal(first.batch, second.batch)
    sizes = [(p.num_variables, p.num_couplers, p.reads) for p in (first, second)]
    assert sizes[0] == sizes[1]
    np.testing.assert_array_equal(task.codes, before)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CHOICES)
def test_a_proposal_lies_on_the_grid_and_accounts_for_itself(kind, name):
    """Tests codes, sizes and timings of every kind of choice."""
    problem = problem_for(CHOICES[name], kind)
    task = make_task(problem, **CHOICES[name])
    proposal = propose(part_of(problem, task.codes), make_solver("tabu"), task)
    assert ((proposal.codes >= 0) & (proposal.codes <= problem.tops)).all()
    assert proposal.choice is task.choice
    assert all(seconds >= 0 for seconds in proposal.timings.values())
    if task.choice.kind == "walk" or task.follow:
        assert (proposal.num_variables, proposal.num_couplers, proposal.reads) == (0, 0, 0)
        walk = {"walk"} if task.choice.kind == "walk" else set()
        assert set(proposal.timings) == (walk | {"descent"} if task.follow else walk)
    else:
        assert proposal.reads >= 1
        assert proposal.num_variables >= problem.target_bits * len(proposal.batch) + 1
        assert {"objective", "build", "solve", "rank"} <= set(proposal.timings)
    assert (proposal.point is None) == (not task.follow)


@pytest.mark.parametrize("kind", KINDS)
def test_a_walk_that_leaves_the_grid_ends_at_a_minimum(kind):
    """Tests that no small step from its end helps, and that it lies below the start."""
    problem = random_problem(kind, weight_bits=2, **AUTOMATIC)
    task = make_task(problem, kind="walk", weights=NO_WEIGHTS, heat=0.5, follow=True, moves=2000)
    point = propose(part_of(problem, task.codes), make_solver("tabu"), task).point
    least = problem.objective(point[:-1], point[-1])
    assert least < recomputed(problem, task.codes)
    for step in np.vstack([np.eye(7), -np.eye(7)]) * 0.02:
        assert problem.objective((point + step)[:-1], (point + step)[-1]) > least - 1e-4


def test_a_walk_off_the_grid_keeps_a_given_bias():
    """Tests that many levels are laid for the weights alone."""
    problem = random_problem(weight_range="auto", bias_bits=3)
    weights, bias = rounds.fine_grids(problem)
    assert bias is problem.bias_grid
    assert weights.top > problem.weight_grid.top
    assert (weights.lo <= problem.weight_grid.lo).all()
    assert (weights.hi >= problem.weight_grid.hi).all()
    task = make_task(problem, kind="walk", weights=NO_WEIGHTS, heat=1.0, follow=True)
    point = propose(part_of(problem, task.codes), make_solver("tabu"), task).point
    assert problem.bias_grid.lo[0] <= point[-1] <= problem.bias_grid.hi[0]


def test_a_sub_qubo_moves_chosen_weights_alone():
    """Tests that a proposal stays inside its neighbourhood."""
    problem = random_problem()
    task = make_task(problem)
    proposal = propose(part_of(problem, task.codes), make_solver("exact"), task)
    fixed = [1, 3, 4, 5]
    np.testing.assert_array_equal(proposal.codes[fixed], task.codes[fixed])


def test_a_solver_that_finds_nothing_proposes_no_change():
    """Tests the answer that leaves everything as it is."""
    problem = random_problem()
    task = make_task(problem)
    proposal = propose(part_of(problem, task.codes), lambda sub, start, seed: start[None, :], task)
    np.testing.assert_array_equal(proposal.codes, task.codes)


@pytest.mark.parametrize("name", ["window", "walk", "free walk"])
def test_without_time_nothing_is_proposed(name):
    """Tests that no solver is asked and no walk begun once all time is used."""
    problem = problem_for(CHOICES[name])
    task = make_task(problem, **CHOICES[name])

    def never(sub, start, seed):
        raise AssertionError("was asked")

    proposal = propose(part_of(problem, task.codes), never, task, lambda: 1.0)
    np.testing.assert_array_equal(proposal.codes, task.codes)
    assert proposal.point is None


def test_reads_are_ranked_by_the_true_objective():
    """Tests that the read with the lowest objective wins, wherever it is and whatever its energy."""
    problem = random_problem()
    task = make_task(problem, examples=0)
    seen = {}

    def everything(sub, start, seed):
        seen["bits"] = slow.all_bits(sub.num_variables)
        return seen["bits"]

    proposal = propose(part_of(problem, task.codes), everything, task)
    rng = np.random.default_rng(task.seed)
    neighbourhood = rounds.make_neighbourhood(problem, task.codes, task.choice, rng)
    every = neighbourhood.codes(task.codes, seen["bits"], problem.tops)
    every = every[(every != task.codes).any(axis=1)]
    best = min(recomputed(problem, codes) for codes in every)
    assert recomputed(problem, proposal.codes) == pytest.approx(best, rel=1e-12)


def test_the_solver_starts_from_the_current_solution():
    """Tests that the start handed to a solver has the energy of the current codes with their best targets."""
    problem = random_problem()
    task = make_task(problem, background="pinned")
    seen = {}

    def spy(sub, start, seed):
        assert 0 <= seed < 2**31
        seen.update(start=sub.energies(start[None])[0], best_of_targets=np.inf, n=sub.num_weight_bits)
        for bits in slow.all_bits(4):  # any other targets of the last example are no better
            other = start.copy()
            other[-4:] = bits
            seen["best_of_targets"] = min(seen["best_of_targets"], sub.energies(other[None])[0])
        return start[None, :]

    propose(part_of(problem, task.codes), spy, task)
    assert seen["start"] == pytest.approx(seen["best_of_targets"], rel=1e-12)


def test_work_is_counted_not_timed():
    """Tests that it grows with the length of a walk, with the rows, and with the weights of a sub-QUBO."""
    small, large = (random_problem(rows=rows) for rows in (100, 1000))
    parts = [part_of(problem, problem.state().codes) for problem in (small, large)]

    def work(part, **options):
        return work_of(part, make_task(part.problem, **options))

    walk = {"kind": "walk", "weights": NO_WEIGHTS}
    assert work(parts[0], moves=200, **walk) == 2 * work(parts[0], moves=100, **walk) > 0
    assert work(parts[0], **walk) < work(parts[1], **walk)
    assert work(parts[0]) < work(parts[1])
    assert work(parts[0], weights=np.array([0])) < work(parts[0], weights=np.arange(7))


def test_answers_are_approached_one_bit_after_the_other():
    """Tests stations on the way to an answer: the first differs in one bit, the last is there."""
    problem = random_problem()
    state = problem.state(random_codes(problem))
    sub, neighbourhood, _ = window_sub(problem, state, np.arange(7), examples=2)
    start = np.append(neighbourhood.start, np.zeros(8, dtype=np.int8))
    answer = make_solver("exact", {"max_weight_bits": 14})(sub, start, 0)
    stations = rounds.on_the_way(sub, start, np.vstack([answer, start]))
    differ = [np.count_nonzero(one[:14] != start[:14]) for one in stations]
    assert differ[0] == 1
    assert differ == sorted(set(differ))
    np.testing.assert_array_equal(stations[-1], answer[0])
    assert len(rounds.on_the_way(sub, start, start[None, :])) == 0


# ---- parts ----


@pytest.mark.parametrize("kind", KINDS)
def test_a_part_is_a_sample_of_the_rows(kind):
    """Tests its size, that it knows the same grids, and that a larger sample holds the smaller one."""
    problem = random_problem(kind)
    small, large = (part_of(problem, problem.state().codes, rows, 7) for rows in (30, 60))
    assert (small.rows, large.rows) == (30, 60)
    assert small.problem.num_examples == 30
    np.testing.assert_array_equal(small.problem.steps, problem.steps)
    inside = {tuple(row) for row in slow.dense(large.problem)}
    assert all(tuple(row) in inside for row in slow.dense(small.problem))


@pytest.mark.parametrize("rows", [120, 121, 10**6])
def test_a_part_with_room_for_all_is_the_problem_itself(rows):
    """Tests that nothing is copied then."""
    problem = random_problem()
    part = part_of(problem, problem.state().codes, rows)
    assert part.problem is problem
    assert part.rows == 120


def test_a_part_can_be_put_on_other_levels():
    """Tests that the examples are shared and the levels are those given."""
    problem, other = random_problem(), random_problem(weight_range=(-3, 0.5), weight_bits=6)
    part = part_of(problem, problem.state().codes, 50)
    there = part.on(other.grids)
    assert there.matrix is part.problem.matrix
    assert are_levels(there.weight_grid, other.weight_grid.hi).all()
    assert part.problem.grids[0].hi[0] == 1.0


# ---- time ----


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is set."""
    now = [100.0]
    monkeypatch.setattr(rounds, "perf_counter", lambda: now[0])
    return now


def test_tasks_that_take_turns_share_the_time(clock):
    """Tests five tasks on two workers: three turns of equal length."""
    turns = Turns(5, 2, 130.0)
    assert turns.span == pytest.approx(10.0)
    assert [turns.end(k) for k in range(5)] == pytest.approx([110, 110, 120, 120, 130])


def test_without_a_deadline_turns_have_no_end(clock):
    """Tests that nothing is ever late."""
    assert Turns(5, 2, np.inf).end(4) == np.inf
    used = time_until(np.inf)
    clock[0] = 1e9
    assert used() == 0.0


def test_the_share_of_time_that_is_used(clock):
    """Tests the beginning, the middle, the end and beyond, and a time that is over before it begins."""
    used = time_until(104.0)
    shares = []
    for clock[0] in (100.0, 101.0, 104.0, 106.0):
        shares.append(used())
    assert shares == pytest.approx([0.0, 0.25, 1.0, 1.5])
    assert time_until(106.0)() == time_until(90.0)() == 1.0
