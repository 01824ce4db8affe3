"""Tests of one neighbourhood, from choice to proposal."""

from __future__ import annotations

import numpy as np
import pytest
import slow_reference as slow
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from search_cases import (
    KINDS,
    NO_WEIGHTS,
    are_levels,
    ask,
    every_code,
    margins_at,
    random_codes,
    random_problem,
    recomputed,
)

import lns
from lns import rounds, subproblem
from lns.rounds import Choice, Part, Task, propose, work_of
from lns.solvers import make_solver

AUTOMATIC = {"weight_range": "auto", "bias_range": "auto"}


@st.composite
def choices(draw, kinds=("window", "hop", "stored", "fusion"), **sizes):
    """A small problem, codes, and a choice of some of its weights."""
    problem, codes = draw(slow.problems_with_codes(**sizes))
    every = draw(st.permutations(range(len(codes))))
    count = draw(st.integers(1, min(3, len(codes))))
    kind = draw(st.sampled_from(kinds))
    other = np.array([draw(st.integers(0, int(top))) for top in problem.tops], dtype=np.int32)
    choice = Choice(
        kind,
        np.sort(every[:count]),
        background=draw(st.sampled_from(["curvature", "pinned"])),
        examples=draw(st.integers(0, problem.num_examples)),
        thrown=np.array(every[count : count + 1] if kind == "hop" else [], dtype=np.intp),
        other=problem.point(other),
        max_bits=8,
    )
    return problem, codes, choice


def asked_of(problem, codes, choice, seed=0):
    """The question of a choice, the levels around which it is asked, and the margins there."""
    asked = rounds.question(problem, codes, choice, np.random.default_rng(seed))
    levels = asked.codes
    if choice.kind in ("window", "hop"):
        levels = relaxed(problem, asked.codes, choice.weights)
    return asked, levels, margins_at(problem, levels)


def relaxed(problem, codes, free, expired=lambda: False):
    """Where some weights would like to be."""
    return rounds.relaxed(problem, codes, np.asarray(free, dtype=np.intp), expired)


def objective_at(problem, levels):
    """The objective where the codes need not be whole."""
    w, b = problem.values(levels)
    return problem.objective(w, float(b))


def answers(asked):
    """All codes that a question allows, in the order of `all_bits`."""
    neighbourhood = asked.neighbourhood
    return neighbourhood.codes(asked.codes, slow.all_bits(neighbourhood.num_bits))


def part_of(problem, codes, rows=10**6, seed=0):
    """All examples, or some of them."""
    return Part(problem, rows, seed, *problem.values(codes))


# ---- where weights would like to be ----


@settings(deadline=None)
@given(choices())
def test_relaxing_moves_chosen_weights_alone_and_within_the_grid(case):
    """Tests that all others stay on their levels, and that none passes the first or the last level."""
    problem, codes, choice = case
    levels = relaxed(problem, codes, choice.weights)
    fixed = np.setdiff1d(np.arange(len(codes)), choice.weights)
    np.testing.assert_array_equal(levels[fixed], codes[fixed])
    assert ((levels >= 0) & (levels <= problem.tops)).all()


@settings(deadline=None)
@given(choices())
def test_relaxing_never_raises_the_objective(case):
    """Tests the objective between the levels against that of the codes."""
    problem, codes, choice = case
    before = recomputed(problem, codes)
    assert objective_at(problem, relaxed(problem, codes, choice.weights)) <= before + 1e-9 * max(1, before)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("free", [[0, 3, 6], range(7)], ids=["some", "all"])
def test_relaxed_weights_are_at_a_minimum(kind, free):
    """Tests that it lies below the codes, and that no small step of a free weight within the grid helps."""
    problem = random_problem(kind)
    codes = random_codes(problem, 2)
    levels = relaxed(problem, codes, free)
    least = objective_at(problem, levels)
    assert least < recomputed(problem, codes)
    for k in free:
        for step in (-1e-3, 1e-3):
            there = levels.copy()
            there[k] = np.clip(there[k] + step, 0, problem.tops[k])
            assert objective_at(problem, there) > least - 1e-7


def test_relaxing_without_time_goes_nowhere():
    """Tests that a descent which may not take a step leaves the codes as they are."""
    problem = random_problem()
    codes = random_codes(problem)
    np.testing.assert_allclose(relaxed(problem, codes, range(7), lambda: True), codes, atol=1e-9)


# ---- bits ----


@settings(deadline=None)
@given(choices(), st.integers(0, 100))
def test_the_start_is_the_answer_nearest_to_the_codes(case, seed):
    """Tests each weight of every kind; those that begin on the grid can say "no change"."""
    problem, codes, choice = case
    asked, _, _ = asked_of(problem, codes, choice, seed)
    start = asked.neighbourhood.codes(asked.codes, asked.neighbourhood.start[None, :])[0]
    way = np.abs(answers(asked) - asked.codes)
    np.testing.assert_array_equal(np.abs(start - asked.codes), way.min(axis=0))
    if choice.kind in ("stored", "fusion"):
        np.testing.assert_array_equal(start, codes)


@settings(deadline=None)
@given(choices(), st.integers(0, 100))
def test_only_chosen_weights_move_and_stay_on_the_grid(case, seed):
    """Tests all answers of every kind."""
    problem, codes, choice = case
    every = answers(asked_of(problem, codes, choice, seed)[0])
    assert ((every >= 0) & (every <= problem.tops)).all()
    fixed = np.setdiff1d(np.arange(len(codes)), [*choice.weights, *choice.thrown])
    assert (every[:, fixed] == codes[fixed]).all()


@settings(deadline=None)
@given(choices(kinds=("window", "hop")), st.integers(0, 100))
def test_each_weight_may_take_the_levels_around_its_place(case, seed):
    """Tests one bit for each weight: the level below or above where it would like to be."""
    problem, codes, choice = case
    asked, levels, _ = asked_of(problem, codes, choice, seed)
    assert asked.neighbourhood.num_bits == len(choice.weights)
    every = answers(asked)
    for k in choice.weights:
        below, above = np.unique(every[:, k])
        assert above == below + 1
        assert below <= levels[k] <= above


@settings(deadline=None)
@given(choices(), st.integers(0, 100))
def test_codes_are_not_changed_in_place(case, seed):
    """Tests that only a hop asks about other codes than those given, and that these are its own."""
    problem, codes, choice = case
    before = codes.copy()
    asked, _, _ = asked_of(problem, codes, choice, seed)
    np.testing.assert_array_equal(codes, before)
    fixed = np.setdiff1d(np.arange(len(codes)), choice.thrown)
    np.testing.assert_array_equal(asked.codes[fixed], codes[fixed])


def test_a_hop_throws_weights_to_any_level():
    """Tests that two weights meet all of their levels, each on its own, and get no bits."""
    problem = random_problem(weight_bits=2)
    codes = random_codes(problem)
    seen = set()
    for seed in range(200):
        asked = ask(problem, codes, "hop", [0, 2, 6], seed, thrown=np.array([1, 4]))
        seen.add(tuple(asked.codes[[1, 4]].tolist()))
        assert asked.neighbourhood.weights.tolist() == [0, 2, 6]
        assert (answers(asked)[:, [1, 4]] == asked.codes[[1, 4]]).all()
    assert seen == {(a, b) for a in range(4) for b in range(4)}


def test_stored_bits_reach_every_level():
    """Tests that the paper's own bits give a weight all 16 levels and the bias all 256."""
    problem = random_problem()
    every = answers(ask(problem, random_codes(problem), "stored", [2, 6]))
    assert len(every) == 16 * 256
    assert np.unique(every[:, 2]).tolist() == list(range(16))
    assert np.unique(every[:, 6]).tolist() == list(range(256))


@pytest.mark.parametrize("most", [1, 3, 11, 12, 64])
def test_there_are_no_more_stored_bits_than_asked_for(most):
    """Tests rooms smaller and larger than the twelve bits of two weights."""
    problem = random_problem(bias_bits=8)
    asked = ask(problem, random_codes(problem), "stored", [2, 6], max_bits=most)
    assert asked.neighbourhood.num_bits == min(most, 12)


def test_fusion_has_one_bit_for_each_weight_between_here_and_there():
    """Tests that each chosen weight is at its level or at the other solution's, in all combinations."""
    problem = random_problem()
    codes, other = np.zeros(7, dtype=np.int32), np.arange(1, 8, dtype=np.int32)
    every = answers(ask(problem, codes, "fusion", [1, 3, 6], other=problem.point(other)))
    assert len(np.unique(every, axis=0)) == 8
    assert set(map(tuple, np.unique(every[:, [1, 3, 6]], axis=0))) == {
        (a, b, c) for a in (0, 2) for b in (0, 4) for c in (0, 7)
    }


# ---- examples ----


def case_of(problem, m):
    """0, 1, 2: flagged, inside, beyond the margin."""
    return np.where(m <= problem.q, 0, np.where(m < 1, 1, 2))


def way_to_an_edge(problem, m):
    """How far each margin is from the next edge of the loss."""
    return np.minimum(np.abs(m - problem.q), np.abs(m - 1))


@settings(deadline=None)
@given(choices(), st.integers(0, 100))
def test_only_examples_whose_case_can_change_get_target_bits(case, seed):
    """Tests that the margin of every chosen example can move as far as its nearest edge."""
    problem, codes, choice = case
    asked, levels, m = asked_of(problem, codes, choice, seed)
    assert len(asked.batch) <= choice.examples
    assert (np.diff(asked.batch) > 0).all()
    # The furthest that a margin can go: every weight at whichever end is further.
    far = problem.steps * np.abs(answers(asked) - levels).max(axis=0)
    features = np.column_stack([np.array(slow.dense(problem)), np.ones(problem.num_examples)])
    reach = np.abs(features) @ far
    assert (way_to_an_edge(problem, m)[asked.batch] <= reach[asked.batch] + 1e-9).all()


@settings(deadline=None)
@given(choices(), st.integers(0, 100))
def test_examples_left_out_of_a_full_choice_keep_their_case(case, seed):
    """Tests the presolve: with room for everybody, who gets no bits is exactly quadratic in the window."""
    problem, codes, choice = case
    asked, levels, m = asked_of(problem, codes, choice, seed)
    chosen = rounds.choose_examples(problem, levels, m, asked.neighbourhood, problem.num_examples)
    left = np.setdiff1d(np.arange(problem.num_examples), chosen)
    for other in answers(asked):
        there = np.array(slow.margins(problem, *problem.values(other)))
        moved = case_of(problem, there)[left] != case_of(problem, m)[left]
        # On the edge itself both cases have the same loss; rounding may put a margin on either side.
        at_edge = way_to_an_edge(problem, there)[left] < 1e-9
        started = way_to_an_edge(problem, m)[left] < 1e-9
        assert not (moved & ~at_edge & ~started).any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [0, 1, 8, 120, 1000])
def test_at_most_as_many_examples_as_asked_for_are_chosen(kind, count):
    """Tests counts up to and beyond the number of examples."""
    problem = random_problem(kind)
    chosen = ask(problem, random_codes(problem), weights=range(7), examples=count).batch
    assert min(count, 1) <= len(chosen) <= min(count, 120)
    assert len(np.unique(chosen)) == len(chosen)


# ---- sub-QUBOs ----


@settings(deadline=None)
@given(choices(), st.integers(0, 100))
def test_pinned_never_promises_too_much(case, seed):
    """Tests that with all other targets fixed the energy of an answer is at least its true objective."""
    problem, codes, choice = case
    asked, levels, m = asked_of(problem, codes, choice, seed)
    background = subproblem.pinned(problem, m)
    sub = subproblem.build(problem, levels, m, asked.neighbourhood, rounds.NO_EXAMPLES, background)
    true = np.array([recomputed(problem, other) for other in answers(asked)])
    promised = sub.energies(slow.all_bits(asked.neighbourhood.num_bits))
    assert (promised >= true - 1e-9 * np.maximum(1.0, true)).all()


@settings(deadline=None)
@given(choices(max_target_bits=3), st.integers(0, 100))
def test_a_question_is_made_of_weight_bits_and_target_bits(case, seed):
    """Tests the sizes of a sub-QUBO and of its start against its neighbourhood and its batch."""
    problem, codes, choice = case
    asked, _, _ = asked_of(problem, codes, choice, seed)
    assert asked.sub.num_weight_bits == asked.neighbourhood.num_bits
    assert asked.sub.num_variables == len(asked.start)
    assert asked.sub.num_variables == asked.neighbourhood.num_bits + problem.target_bits * len(asked.batch)
    np.testing.assert_array_equal(asked.start[: asked.sub.num_weight_bits], asked.neighbourhood.start)


@settings(deadline=None)
@given(choices(), st.integers(0, 100))
def test_curvature_is_exact_where_no_case_changes(case, seed):
    """Tests that width 0 gives the true objective of every answer that keeps the cases of the margins."""
    problem, codes, choice = case
    asked, levels, m = asked_of(problem, codes, choice, seed)
    # On an edge itself rounding decides which case an example is in.
    assume(way_to_an_edge(problem, m).min() > 1e-9)
    background = subproblem.curvature(problem, m)
    sub = subproblem.build(problem, levels, m, asked.neighbourhood, rounds.NO_EXAMPLES, background)
    for bits, other in zip(slow.all_bits(asked.neighbourhood.num_bits), answers(asked), strict=True):
        there = np.array(slow.margins(problem, *problem.values(other)))
        if (case_of(problem, there) == case_of(problem, m)).all():
            true = recomputed(problem, other)
            assert sub.energies(bits[None, :])[0] == pytest.approx(true, rel=1e-9, abs=1e-9)


def test_backgrounds_give_different_questions():
    """Tests that the background of a choice reaches the coefficients."""
    problem = random_problem()
    one, other = (
        ask(problem, random_codes(problem), weights=range(7), background=name).sub
        for name in ("curvature", "pinned")
    )
    assert not np.allclose(one.linear, other.linear)


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
    "free fusion": {"kind": "fusion", "other": np.linspace(-1, 1, 7), "follow": True},
    "hop": {"kind": "hop", "thrown": np.array([1, 4])},
    "free hop": {"kind": "hop", "thrown": np.array([1, 4]), "follow": True},
    "pinned": {"background": "pinned"},
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
    """Tests codes, sizes and timings of every kind of choice: all but walks ask a solver."""
    problem = problem_for(CHOICES[name], kind)
    task = make_task(problem, **CHOICES[name])
    proposal = propose(part_of(problem, task.codes), make_solver("tabu"), task)
    assert ((proposal.codes >= 0) & (proposal.codes <= problem.tops)).all()
    assert proposal.choice is task.choice
    assert all(seconds >= 0 for seconds in proposal.timings.values())
    steps = {"walk"} if task.choice.kind == "walk" else set()
    if task.choice.kind == "walk":
        assert (proposal.num_variables, proposal.num_couplers, proposal.reads) == (0, 0, 0)
    else:
        assert proposal.reads >= 1
        assert proposal.num_variables >= problem.target_bits * len(proposal.batch) + 1
        steps |= {"objective", "build", "solve", "rank"}
    if task.follow or task.choice.kind in ("window", "hop"):
        steps |= {"descent"}
    assert set(proposal.timings) == steps
    assert (proposal.point is None) == (not task.follow)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["free walk", "free hop", "free fusion"])
def test_what_leaves_the_grid_ends_at_a_minimum(name, kind):
    """Tests that no small step from its end helps."""
    problem = random_problem(kind, weight_bits=2, **AUTOMATIC)
    task = make_task(problem, moves=2000, **CHOICES[name])
    point = propose(part_of(problem, task.codes), make_solver("tabu"), task).point
    least = problem.objective(point[:-1], point[-1])
    for step in np.vstack([np.eye(7), -np.eye(7)]) * 0.002:
        assert problem.objective((point + step)[:-1], (point + step)[-1]) > least - 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_a_walk_that_leaves_the_grid_goes_down(kind):
    """Tests that its end lies below the start."""
    problem = random_problem(kind, weight_bits=2, **AUTOMATIC)
    task = make_task(problem, moves=2000, **{**CHOICES["free walk"], "heat": 0.5})
    point = propose(part_of(problem, task.codes), make_solver("tabu"), task).point
    assert problem.objective(point[:-1], point[-1]) < recomputed(problem, task.codes)


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


@pytest.mark.parametrize("name", ["stored", "fusion"])
def test_a_solver_that_finds_nothing_proposes_no_change(name):
    """Tests the answer that leaves everything as it is."""
    problem = random_problem()
    task = make_task(problem, **CHOICES[name])
    proposal = propose(part_of(problem, task.codes), lambda sub, start, seed: start[None, :], task)
    np.testing.assert_array_equal(proposal.codes, task.codes)


def test_a_hop_proposes_what_it_has_thrown():
    """Tests that a solver is asked once, and that its answer keeps the thrown weights where they fell."""
    problem = random_problem()
    task = make_task(problem, **CHOICES["hop"])
    calls = []

    def count(sub, start, seed):
        calls.append(sub)
        return make_solver("exact")(sub, start, seed)

    proposal = propose(part_of(problem, task.codes), count, task)
    assert len(calls) == 1
    asked = rounds.question(problem, task.codes, task.choice, np.random.default_rng(task.seed))
    assert (asked.codes[[1, 4]] != task.codes[[1, 4]]).any()
    np.testing.assert_array_equal(proposal.codes[[1, 4]], asked.codes[[1, 4]])


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


@pytest.mark.parametrize("name", ["window", "hop", "stored", "fusion"])
def test_reads_are_ranked_by_the_true_objective(name):
    """Tests that the read with the lowest objective wins, wherever it is and whatever its energy."""
    problem = random_problem(weight_bits=3)
    task = make_task(problem, **{**CHOICES[name], "examples": 0})

    def everything(sub, start, seed):
        return slow.all_bits(sub.num_variables)

    proposal = propose(part_of(problem, task.codes), everything, task)
    asked = rounds.question(problem, task.codes, task.choice, np.random.default_rng(task.seed))
    others = [codes for codes in answers(asked) if (codes != asked.codes).any()]
    best = min(recomputed(problem, codes) for codes in others)
    assert recomputed(problem, proposal.codes) == pytest.approx(best, rel=1e-12)


def test_the_best_read_is_a_change(tiny):
    """Tests that the second best is proposed at the best, and no change only if there is no other read."""
    codes, _ = every_code(tiny)
    bits = ask(tiny, codes[0], "stored", [0, 1]).neighbourhood
    every = slow.all_bits(bits.num_bits)
    np.testing.assert_array_equal(rounds.best_read(tiny.state(codes[0]), bits, every), codes[1])
    stay = bits.start[None, :]
    np.testing.assert_array_equal(rounds.best_read(tiny.state(codes[0]), bits, stay), codes[0])


@pytest.mark.parametrize("name", ["window", "hop", "stored", "fusion"])
def test_a_solver_is_given_the_question_and_its_start(name):
    """Tests the bits that it begins from, and that a seed is drawn for it."""
    problem = random_problem()
    task = make_task(problem, **CHOICES[name])
    seen = []

    def spy(sub, start, seed):
        assert 0 <= seed < 2**31
        seen.append((sub.linear, start))
        return start[None, :]

    propose(part_of(problem, task.codes), spy, task)
    asked = rounds.question(problem, task.codes, task.choice, np.random.default_rng(task.seed))
    np.testing.assert_array_equal(seen[0][0], asked.sub.linear)
    np.testing.assert_array_equal(seen[0][1], asked.start)


def test_target_bits_begin_at_their_best():
    """Tests that stored bits as they are come with the best targets of the current codes."""
    problem = random_problem()
    asked = ask(problem, random_codes(problem), "stored", [0, 2], examples=4, background="pinned")
    count = asked.sub.num_weight_bits
    assert asked.sub.num_variables == count + 16
    least = asked.sub.energies(asked.start[None, :])[0]
    for s in range(4):
        for bits in slow.all_bits(4):
            other = asked.start.copy()
            other[count + 4 * s : count + 4 * (s + 1)] = bits
            assert asked.sub.energies(other[None, :])[0] >= least - 1e-12


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
    sub = ask(problem, random_codes(problem), weights=range(7), examples=2).sub
    answer = make_solver("exact")(sub, np.zeros(sub.num_variables, dtype=np.int8), 0)
    start = np.append(1 - answer[0, :7], np.zeros(8, dtype=np.int8))
    answers = np.vstack([answer, start])
    found = rounds.on_the_way(sub, start, answers)
    np.testing.assert_array_equal(found[:2], answers)
    stations = found[2:]
    assert [np.count_nonzero(one[:7] != start[:7]) for one in stations] == [1, 2, 3, 4, 5, 6, 7]
    np.testing.assert_array_equal(stations[-1], answer[0])
    np.testing.assert_array_equal(rounds.on_the_way(sub, start, start[None, :]), start[None, :])


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


def test_a_weight_without_examples_stays_where_it_is_off_the_grid():
    """Tests that a walk between fine levels does not move a weight by rounding it to one of them."""
    X = np.random.default_rng(0).normal(size=(80, 4))
    X[:, 2] = 0.0
    y = np.where(X[:, 0] + X[:, 1] > 0, 1, -1)
    problem = lns.QLossProblem(X, y, lam=0.0, weight_bits=2)
    task = make_task(problem, moves=2000, **CHOICES["free walk"])
    point = propose(part_of(problem, task.codes), make_solver("tabu"), task).point
    assert point[2] == problem.point(task.codes)[2]
