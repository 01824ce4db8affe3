"""Tests of one neighbourhood, from choice to proposal."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
import slow_reference as slow
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from search_cases import KINDS, NO_WEIGHTS, random_codes, random_problem, recomputed

from lns import rounds
from lns.rounds import Choice, Part, Task, Turns, propose, time_until
from lns.solvers import make_solver
from lns.state import State


def fresh_rng():
    """A fresh generator."""
    return np.random.default_rng(0)


@st.composite
def choices(draw, **sizes):
    """A small problem, codes, and a choice of some of its weights in any coding."""
    problem, codes = draw(slow.problems_with_codes(**sizes))
    weights = draw(st.lists(st.integers(0, len(codes) - 1), min_size=1, max_size=3, unique=True))
    coding = draw(st.sampled_from(["window", "stored", "fusion"]))
    other = np.array([draw(st.integers(0, int(top))) for top in problem.tops], dtype=np.int32)
    bits = draw(st.integers(1, 2))
    examples = draw(st.integers(0, problem.num_examples))
    return problem, codes, Choice("random", np.sort(weights), coding, bits, examples=examples, other=other)


def neighbourhood_of(problem, codes, choice, seed=0):
    """The bits of a choice."""
    return rounds.make_neighbourhood(problem, codes, choice, np.random.default_rng(seed))


def reached(problem, codes, neighbourhood):
    """All codes of a neighbourhood."""
    return neighbourhood.codes(codes, slow.all_bits(neighbourhood.num_bits), problem.tops)


# ---- bits ----


@settings(deadline=None)
@given(choices(), st.integers(0, 100))
def test_start_bits_stand_for_the_current_codes(case, seed):
    """Tests that every coding can say "no change"."""
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
    every = reached(
        problem, codes, neighbourhood_of(problem, codes, Choice("random", np.array([1, 4, 6])), seed)
    )
    for i in (1, 4, 6):
        levels = np.unique(every[:, i])
        assert levels.tolist() == list(range(levels[0], levels[0] + 4))
        assert codes[i] in levels


def test_windows_slide():
    """Tests that the place of the window around the current level is drawn anew."""
    problem = random_problem()
    codes = (problem.tops // 2).astype(np.int32)
    choice = Choice("random", np.array([0]))
    lows = {
        int(reached(problem, codes, neighbourhood_of(problem, codes, choice, s))[:, 0].min())
        for s in range(40)
    }
    assert lows == {codes[0] - k for k in range(4)}


def test_stored_bits_reach_every_level():
    """Tests that the paper's own bits give a weight all 16 levels and the bias all 256."""
    problem = random_problem()
    codes = random_codes(problem)
    every = reached(
        problem, codes, neighbourhood_of(problem, codes, Choice("random", np.array([2, 6]), "stored"))
    )
    assert len(every) == 16 * 256
    assert np.unique(every[:, 2]).tolist() == list(range(16))
    assert np.unique(every[:, 6]).tolist() == list(range(256))


def test_fusion_has_one_bit_for_each_weight_between_here_and_there():
    """Tests that each chosen weight is at its level or at the other solution's, in all combinations."""
    problem = random_problem()
    codes = np.zeros(7, dtype=np.int32)
    other = np.arange(1, 8, dtype=np.int32)
    every = reached(
        problem,
        codes,
        neighbourhood_of(problem, codes, Choice("fusion", np.array([1, 3, 6]), "fusion", other=other)),
    )
    assert len(np.unique(every, axis=0)) == 8
    assert set(map(tuple, np.unique(every[:, [1, 3, 6]], axis=0))) == {
        (a, b, c) for a in (0, 2) for b in (0, 4) for c in (0, 7)
    }


# ---- examples ----


def case_of(problem, m):
    """0, 1, 2: flagged, inside, beyond the margin."""
    return np.where(m <= problem.q, 0, np.where(m < 1, 1, 2))


@settings(deadline=None)
@given(choices(), st.integers(0, 100), st.sampled_from(["ambiguous", "random"]))
def test_only_examples_whose_case_can_change_get_target_bits(case, seed, kind_of_batch):
    """Tests that the margin of every chosen example can move as far as its nearest edge."""
    problem, codes, choice = case
    state = State(problem, codes)
    neighbourhood = neighbourhood_of(problem, codes, choice, seed)
    chosen = rounds.choose_examples(
        problem, state, neighbourhood, kind_of_batch, choice.examples, fresh_rng()
    )
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
@given(choices(), st.integers(0, 100), st.sampled_from(["ambiguous", "random"]))
def test_examples_left_out_of_a_full_choice_keep_their_case(case, seed, kind_of_batch):
    """Tests the presolve: with room for everybody, who gets no bits is exactly quadratic in the window."""
    problem, codes, choice = case
    state = State(problem, codes)
    neighbourhood = neighbourhood_of(problem, codes, choice, seed)
    chosen = rounds.choose_examples(
        problem, state, neighbourhood, kind_of_batch, problem.num_examples, fresh_rng()
    )
    left = np.setdiff1d(np.arange(problem.num_examples), chosen)
    for other in reached(problem, codes, neighbourhood):
        m = np.array(slow.margins(problem, *problem.values(other)))
        moved = case_of(problem, m)[left] != case_of(problem, state.margins)[left]
        # On the edge itself both cases have the same loss; rounding may put a margin on either side.
        at_edge = np.minimum(np.abs(m - problem.q), np.abs(m - 1))[left] < 1e-9
        started = np.minimum(np.abs(state.margins - problem.q), np.abs(state.margins - 1))[left] < 1e-9
        assert not (moved & ~at_edge & ~started).any()


@pytest.mark.parametrize("kind", KINDS)
def test_no_examples_are_chosen_if_none_are_asked_for(kind):
    """Tests a count of zero."""
    problem = random_problem(kind)
    state = problem.state()
    neighbourhood = neighbourhood_of(problem, state.codes, Choice("random", np.array([0, 1])))
    assert len(rounds.choose_examples(problem, state, neighbourhood, "random", 0, fresh_rng())) == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 8, 120, 1000])
def test_at_most_as_many_examples_as_asked_for_are_chosen(kind, count):
    """Tests counts up to and beyond the number of examples."""
    problem = random_problem(kind)
    state = problem.state(random_codes(problem))
    neighbourhood = neighbourhood_of(problem, state.codes, Choice("random", np.arange(7)))
    chosen = rounds.choose_examples(problem, state, neighbourhood, "ambiguous", count, fresh_rng())
    assert 1 <= len(chosen) <= min(count, 120)
    assert len(np.unique(chosen)) == len(chosen)


# ---- sub-QUBOs ----------------------------------------------------------------------


@settings(deadline=None)
@given(choices(), st.integers(0, 100))
def test_pairwise_is_exact_on_moves_of_one_and_two_bits(case, seed):
    """Tests the energy of the current solution, and of all moves of one or two bits from it."""
    problem, codes, choice = case
    state = State(problem, codes)
    neighbourhood = neighbourhood_of(problem, codes, choice, seed)
    sub = rounds.pairwise(problem, state, neighbourhood)
    n = neighbourhood.num_bits
    assert sub.num_variables == sub.num_weight_bits == n
    np.testing.assert_array_equal(sub.quadratic, sub.quadratic.T)
    moves = [(), *((i,) for i in range(n)), *combinations(range(n), 2)]
    bits = np.repeat(neighbourhood.start[None, :], len(moves), axis=0)
    for k, flipped in enumerate(moves):
        bits[k, list(flipped)] ^= 1
    expected = [recomputed(problem, c) for c in neighbourhood.codes(codes, bits, problem.tops)]
    np.testing.assert_allclose(sub.energies(bits), expected, rtol=1e-9, atol=1e-12)


@settings(deadline=None)
@given(choices(), st.integers(0, 100))
def test_pinned_never_promises_too_much(case, seed):
    """Tests that with all other targets fixed the energy of an answer is at least its true objective."""
    problem, codes, choice = case
    choice = Choice(
        "random", choice.weights, choice.coding, choice.bits, "pinned", 0.0, 0, other=choice.other
    )
    sub, neighbourhood, _ = rounds.build(problem, State(problem, codes), choice, np.random.default_rng(seed))
    bits = slow.all_bits(neighbourhood.num_bits)
    steps = neighbourhood.base + bits @ neighbourhood.spread.T
    unclipped = codes[neighbourhood.weights] + steps @ neighbourhood.directions
    every = neighbourhood.codes(codes, bits, problem.tops)
    inside = (unclipped == every[:, neighbourhood.weights]).all(axis=1)
    promised, true = sub.energies(bits)[inside], [recomputed(problem, c) for c in every[inside]]
    assert (promised >= np.array(true) - 1e-9 * np.maximum(1.0, true)).all()


@settings(deadline=None)
@given(choices(max_target_bits=3), st.sampled_from(["curvature", "pinned", "pairwise"]))
def test_a_build_is_made_of_weight_bits_and_target_bits(case, background):
    """Tests the sizes of a sub-QUBO against its neighbourhood and its batch."""
    problem, codes, choice = case
    choice = Choice(
        "random",
        choice.weights,
        choice.coding,
        choice.bits,
        background,
        0.3,
        choice.examples,
        other=choice.other,
    )
    sub, neighbourhood, batch = rounds.build(problem, State(problem, codes), choice, np.random.default_rng(0))
    assert sub.num_weight_bits == neighbourhood.num_bits
    assert sub.num_variables == neighbourhood.num_bits + problem.target_bits * len(batch)
    assert len(batch) <= (0 if background == "pairwise" else choice.examples)


@settings(deadline=None)
@given(choices(), st.integers(0, 100))
def test_curvature_is_exact_where_no_case_changes(case, seed):
    """Tests that width 0 gives the true objective of every answer that keeps all cases."""
    problem, codes, choice = case
    state = State(problem, codes)
    choice = Choice(
        "random", choice.weights, choice.coding, choice.bits, "curvature", 0.0, 0, other=choice.other
    )
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


def make_task(problem, seed=0, moves=200, **options):
    """A task from random codes."""
    choice = Choice(**{"kind": "random", "weights": np.array([0, 2, 6]), "examples": 4, **options})
    return Task(random_codes(problem, seed), choice, moves, np.random.SeedSequence(seed, spawn_key=(3, 1)))


CHOICES = {
    "window": {},
    "stored": {"coding": "stored", "weights": np.array([0, 2])},
    "fusion": {"coding": "fusion", "other": np.arange(7, dtype=np.int32)},
    "pairwise": {"background": "pairwise"},
    "pinned": {"background": "pinned"},
    "smooth": {"width": 0.5},
    "no examples": {"examples": 0},
    "no polish": {"heat": 0.0},
    "walk only": {"weights": NO_WEIGHTS},
}


@pytest.mark.parametrize("name", CHOICES)
def test_a_proposal_depends_on_its_arguments_alone(name):
    """Tests that a repetition, on a part of its own and after other work, gives the same proposal."""
    problem = random_problem()
    task = make_task(problem, **CHOICES[name])
    before = task.codes.copy()
    first = propose(Part(problem, before, 10**6, 0), make_solver("tabu"), task)
    part = Part(problem, before, 10**6, 0)
    propose(part, make_solver("sa"), make_task(problem, seed=5))
    second = propose(part, make_solver("tabu"), task)
    np.testing.assert_array_equal(first.codes, second.codes)
    np.testing.assert_array_equal(first.batch, second.batch)
    sizes = [(p.num_variables, p.num_couplers, p.reads) for p in (first, second)]
    assert sizes[0] == sizes[1]
    np.testing.assert_array_equal(task.codes, before)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CHOICES)
def test_a_proposal_lies_on_the_grid_and_accounts_for_itself(kind, name):
    """Tests codes, sizes and timings of every kind of choice."""
    problem = random_problem(kind)
    task = make_task(problem, **CHOICES[name])
    proposal = propose(Part(problem, task.codes, 10**6, 0), make_solver("tabu"), task)
    assert ((proposal.codes >= 0) & (proposal.codes <= problem.tops)).all()
    assert proposal.choice is task.choice
    assert all(seconds >= 0 for seconds in proposal.timings.values())
    steps = set()
    if len(task.choice.weights):
        assert proposal.reads >= 1
        assert proposal.num_variables >= len(task.choice.weights) + problem.target_bits * len(proposal.batch)
        steps |= {"objective", "build", "solve", "rank"}
    else:
        assert (proposal.num_variables, proposal.num_couplers, proposal.reads) == (0, 0, 0)
    if task.choice.heat > 0:
        steps.add("polish")
    assert set(proposal.timings) == steps


def test_without_a_polish_only_chosen_weights_change():
    """Tests that a proposal stays inside its neighbourhood."""
    problem = random_problem()
    task = make_task(problem, heat=0.0)
    proposal = propose(Part(problem, task.codes, 10**6, 0), make_solver("exact"), task)
    fixed = [1, 3, 4, 5]
    np.testing.assert_array_equal(proposal.codes[fixed], task.codes[fixed])


def test_a_solver_that_finds_nothing_proposes_no_change():
    """Tests the answer that leaves everything as it is."""
    problem = random_problem()
    task = make_task(problem, heat=0.0)
    proposal = propose(Part(problem, task.codes, 10**6, 0), lambda sub, start, seed: start[None, :], task)
    np.testing.assert_array_equal(proposal.codes, task.codes)


@pytest.mark.parametrize("share", [0.99, 1.01])
def test_a_polish_begins_at_a_read_that_is_not_too_high(share):
    """Tests that what lies above half the temperature per weight is left for the current codes."""
    problem = random_problem()
    task = make_task(problem, moves=0, examples=0, heat=1.0)
    start = recomputed(problem, task.codes)
    part = Part(problem, task.codes, 10**6, 0)

    def other_end(sub, start, seed):
        return 1 - start[None, :]

    read = propose(part, other_end, make_task(problem, moves=0, examples=0, heat=0.0)).codes
    rise = recomputed(problem, read) - start
    assert rise > 0
    warm = problem.num_examples * rise / (0.5 * len(task.choice.weights))  # the level at which both are equal
    proposal = propose(part, other_end, replace(task, level=warm / share))
    np.testing.assert_array_equal(proposal.codes, read if share < 1 else task.codes)


def test_the_polish_of_a_fusion_stays_between_its_solutions():
    """Tests that only weights that differ change, at most a level beyond either, with and without bits."""
    problem = random_problem()
    for seed, weights in product(range(6), ([0, 2, 6], [])):
        codes, other = random_codes(problem, seed), random_codes(problem, seed + 9)
        other[1::2] = codes[1::2]
        chosen = np.array([i for i in weights if codes[i] != other[i]], dtype=np.intp)
        task = make_task(problem, seed, weights=chosen, coding="fusion", other=other, heat=30.0)
        found = propose(Part(problem, codes, 10**6, 0), make_solver("tabu"), task).codes
        same = codes == other
        np.testing.assert_array_equal(found[same], codes[same])
        assert (found >= np.minimum(codes, other) - 1).all()
        assert (found <= np.maximum(codes, other) + 1).all()


def test_reads_are_ranked_by_the_true_objective():
    """Tests that the read with the lowest objective wins, wherever it is and whatever its energy."""
    problem = random_problem()
    task = make_task(problem, heat=0.0, examples=0)
    seen = {}

    def everything(sub, start, seed):
        seen["bits"] = slow.all_bits(sub.num_variables)
        return seen["bits"]

    proposal = propose(Part(problem, task.codes, 10**6, 0), everything, task)
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

    propose(Part(problem, task.codes, 10**6, 0), spy, task)
    assert seen["start"] == pytest.approx(seen["best_of_targets"], rel=1e-12)


# ---- parts ----


@pytest.mark.parametrize("kind", KINDS)
def test_a_part_is_a_sample_of_the_rows(kind):
    """Tests its size, that it knows the same grids, and that a larger sample holds the smaller one."""
    problem = random_problem(kind)
    small, large = (Part(problem, problem.state().codes, rows, 7) for rows in (30, 60))
    assert (small.rows, large.rows) == (30, 60)
    assert small.problem.num_examples == 30
    np.testing.assert_array_equal(small.problem.steps, problem.steps)
    inside = {tuple(row) for row in slow.dense(large.problem)}
    assert all(tuple(row) in inside for row in slow.dense(small.problem))


@pytest.mark.parametrize("rows", [120, 121, 10**6])
def test_a_part_with_room_for_all_is_the_problem_itself(rows):
    """Tests that nothing is copied then."""
    problem = random_problem()
    part = Part(problem, problem.state().codes, rows, 0)
    assert part.problem is problem
    assert part.rows == 120


def test_a_view_shows_gains_partners_and_elites():
    """Tests what strategies may look at."""
    problem = random_problem()
    codes = random_codes(problem)
    elites = [random_codes(problem, 1)]
    view = Part(problem, codes, 10**6, 0).view(codes, elites)
    np.testing.assert_array_equal(view.codes, codes)
    np.testing.assert_allclose(view.gains(), problem.state(codes).gains())
    assert len(view.partner) == len(codes)
    assert view.elites is elites


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
