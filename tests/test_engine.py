"""Tests of the loop: what it keeps, what it records, when it stops."""

from __future__ import annotations

import math
from dataclasses import replace
from time import perf_counter, sleep

import numpy as np
import pytest
from search_cases import KINDS, every_code, facts, proposal_of, random_codes, random_problem, recomputed

import lns
from lns import engine, stop
from lns import merge as merge_module
from lns.accept import Outcome, greedy
from lns.backends.local import LocalBackend
from lns.engine import EngineParams, Parts, Search
from lns.errors import EnergyMismatchError, InvalidInput
from lns.rounds import Choice, Part, Task
from lns.select import Selector
from lns.solvers import make_solver

SHORT = EngineParams(walk_moves=50)
AUTOMATIC = {"weight_range": "auto", "bias_range": "auto"}


class OneChoice:
    """A selector that always chooses the first weight, and remembers what it is told."""

    def __init__(self, kind="window"):
        self.kind, self.told = kind, []

    def __call__(self, view, count, rng):
        weights = np.array([0] if self.kind != "walk" else [], dtype=np.intp)
        return [Choice(self.kind, weights, heat=1.0) for _ in range(count)]

    def update(self, kind, gain, work):
        self.told.append((kind, gain, work))


class Script:
    """A backend that returns prepared answers: for each round, one for each task; codes, or points."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    def __call__(self, part, tasks, deadline):
        self.asked.append(tasks)
        answer = self.answers[len(self.asked) - 1]
        answers = [answer] * len(tasks) if np.ndim(answer[0]) == 0 else answer
        return [self.proposal(task, one) for task, one in zip(tasks, answers, strict=True)]

    def proposal(self, task, answer):
        if np.asarray(answer).dtype.kind == "f":
            return replace(proposal_of(task, task.codes), point=np.asarray(answer))
        return proposal_of(task, answer)


def play(problem, start, script, accept=greedy, rule=None, select=None, **params):
    """Run the loop on a script: the search, its records, the reason, and (curr, best) of each round."""
    seen = []

    def watch(record, search):
        seen.append((search.curr.codes.tolist(), search.best.codes.tolist()))

    state = problem.state(np.asarray(start, dtype=np.int32))
    search = Search.begin(state)
    settings = EngineParams(**{"neighbourhoods": 1, **params})
    records, reason = engine.run(
        search, state.point, select or OneChoice(), accept, script,
        rule or stop.max_rounds(len(script.answers)), params=settings, seed=0, began=perf_counter(),
        follow=problem.grid_follows, on_round=watch,
    )  # fmt: skip
    return search, records, reason, seen


def codes_of(problem, search):
    """The elites of a search as codes."""
    return [problem.codes(point[:-1], point[-1]).tolist() for _, point in search.elites]


@pytest.fixture
def ladder(tiny):
    """The tiny problem and its 8 solutions, best first, as lists; all objectives differ."""
    codes, objectives = every_code(tiny)
    assert (np.diff(objectives) > 1e-6).all()
    return tiny, codes.tolist()


# ---- trajectories ----


def test_a_greedy_trajectory(ladder):
    """Tests current solution, best solution and outcome of each round of a script."""
    problem, c = ladder
    script = Script(c[5], c[6], c[3], c[3], c[4], c[0], c[1])
    search, records, reason, seen = play(problem, c[7], script)
    assert [r.outcome for r in records] == ["best", "reject", "best", "reject", "reject", "best", "reject"]
    assert [curr for curr, _ in seen] == [c[5], c[5], c[3], c[3], c[3], c[0], c[0]]
    assert [best for _, best in seen] == [c[5], c[5], c[3], c[3], c[3], c[0], c[0]]
    assert reason == "max_rounds"
    assert search.rounds == len(records) == 7


def all_worse(best, curr, cand, rng):
    """Takes what is worse, too, unless nothing has changed."""
    found = greedy(best, curr, cand, rng)
    return Outcome.ACCEPT if found is Outcome.REJECT and cand != curr else found


def test_the_trajectory_of_a_rule_that_takes_worse_ones(ladder):
    """Tests that worse candidates may become current without touching the best."""
    problem, c = ladder
    script = Script(c[2], c[4], c[3], c[2], c[1], c[6])
    search, records, _, seen = play(problem, c[7], script, all_worse)
    assert [r.outcome for r in records] == ["best", "accept", "better", "better", "best", "accept"]
    assert [curr for curr, _ in seen] == [c[2], c[4], c[3], c[2], c[1], c[6]]
    assert [best for _, best in seen] == [c[2], c[2], c[2], c[2], c[1], c[1]]
    assert search.best.codes.tolist() == c[1]


def test_a_rejected_candidate_leaves_the_current_solution_untouched(ladder):
    """Tests codes, objective and margins after a rejection."""
    problem, c = ladder
    one, _, _, _ = play(problem, c[7], Script(c[1]))
    two, _, _, _ = play(problem, c[7], Script(c[1], c[6]))
    np.testing.assert_array_equal(two.curr.codes, one.curr.codes)
    np.testing.assert_array_equal(two.curr.margins, one.curr.margins)
    assert two.curr.objective == one.curr.objective


def test_proposals_of_a_round_are_merged():
    """Tests that two halves found side by side are both taken: F = 1, 0.5 for each, 0 for both."""
    X = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 2.0], [0.0, -2.0]])
    ranges = {"weight_bits": 1, "weight_range": (0, 1), "bias_bits": 1, "bias_range": (0, 1)}
    problem = lns.QLossProblem(X, [1, -1, 1, -1], lam=0.0, **ranges)
    search, records, _, _ = play(problem, [0, 0, 0], Script([[1, 0, 0], [0, 1, 0]]), neighbourhoods=2)
    assert search.best.codes.tolist() == [1, 1, 0]
    assert records[0].objective == 0.0
    assert [one.objective for one in records[0].neighbourhoods] == [0.5, 0.5]


def test_tasks_start_from_the_current_solution_and_have_seeds_of_their_own(ladder):
    """Tests what the backend is asked for."""
    problem, c = ladder
    script = Script(c[5], c[3], c[2])
    play(problem, c[7], script, neighbourhoods=2)
    froms = [[task.codes.tolist() for task in tasks] for tasks in script.asked]
    assert froms == [[c[7]] * 2, [c[5]] * 2, [c[3]] * 2]
    states = [tuple(task.seed.generate_state(2)) for tasks in script.asked for task in tasks]
    assert len(set(states)) == len(states)


def test_the_selector_hears_of_gain_and_work(ladder):
    """Tests the kind, what share of the objective was won or lost, and that both were worked for."""
    problem, c = ladder
    select, lonely = OneChoice(), OneChoice()
    script = Script(c[5], [c[2], c[6]], [c[4], c[4]])
    _, records, _, _ = play(problem, c[7], script, lambda *_: Outcome.ACCEPT, select=select, neighbourhoods=2)
    values = [recomputed(problem, c[7]), *(record.objective for record in records)]
    assert {kind for kind, _, _ in select.told} == {"window"}
    gains = [gain for _, gain, _ in select.told]
    np.testing.assert_allclose(gains, -np.diff(values) / values[:-1], atol=1e-12)
    assert min(gains) < 0 < max(gains)
    play(problem, c[7], Script(c[5]), select=lonely)
    assert select.told[0][2] == pytest.approx(2 * lonely.told[0][2])
    assert lonely.told[0][2] > 0


# ---- levels that follow ----


def follow(script, rule=None, bits=2, **params):
    """Run the loop on a problem with automatic intervals, from its continuous minimum."""
    problem = random_problem("mixed", weight_bits=bits, **AUTOMATIC)
    start = problem.codes(*problem.warm_start)
    return problem, *play(problem, start, script, rule=rule, select=OneChoice("walk"), **params)


def test_levels_are_laid_around_a_better_point():
    """Tests that a point off the grid is followed down, kept as it is, and judged by its true objective."""
    better = np.append(np.full(6, 0.4), 0.1)
    problem, search, records, _, _ = follow(Script(better), accept=lambda *_: Outcome.ACCEPT)
    assert records[0].neighbourhoods[0].objective == pytest.approx(problem.objective(better[:-1], better[-1]))
    curr = search.curr
    assert curr.problem is not problem
    assert curr.objective <= records[0].neighbourhoods[0].objective
    assert curr.objective == pytest.approx(problem.objective(curr.weights, curr.bias), rel=1e-12)
    np.testing.assert_array_equal(curr.problem.codes(curr.weights, curr.bias), curr.codes)


def test_the_next_task_has_the_levels_of_the_current_solution():
    """Tests grids and codes of the tasks after a step to other levels."""
    script = Script(np.append(np.full(6, 0.4), 0.1), np.append(np.full(6, -0.4), 0.1))
    problem, *_ = follow(script, accept=lambda *_: Outcome.ACCEPT)
    first, second = (tasks[0] for tasks in script.asked)
    assert first.grids is problem.grids
    assert (second.grids[0].hi != first.grids[0].hi).any()
    assert second.follow


def test_a_change_on_the_grid_stays_there():
    """Tests that codes which are better are kept as they are, on the levels that they were found on."""
    problem = random_problem(weight_bits=4, **AUTOMATIC)
    start, there = problem.codes(np.full(6, -0.3), 0.0), problem.codes(*problem.warm_start)
    search, _, _, _ = play(problem, start, Script(there.tolist()))
    assert search.best.problem is problem
    np.testing.assert_array_equal(search.best.codes, there)


def test_given_levels_stay(ladder):
    """Tests that codes are merged and judged on the levels given, and that walks are told so."""
    problem, c = ladder
    script = Script(c[5], c[3])
    search, _, _, _ = play(problem, c[7], script, select=OneChoice("walk"))
    assert search.best.problem is problem
    assert not any(task.follow for tasks in script.asked for task in tasks)


# ---- honesty ----


@pytest.mark.parametrize("lie", [1e-6, -1e-6])
def test_a_merge_that_lies_is_found_out(ladder, monkeypatch, lie):
    """Tests that an objective which recomputation does not confirm stops the run."""
    problem, c = ladder
    honest = merge_module.combine

    def lying(*arguments, **options):
        codes, value, alone = honest(*arguments, **options)
        return codes, value + lie, alone

    monkeypatch.setattr(merge_module, "combine", lying)
    with pytest.raises(
        EnergyMismatchError, match=r"kept by the merge is .* recomputing it gives .* This is a bug"
    ):
        play(problem, c[7], Script(c[1]))


def test_rounding_in_a_merge_is_no_lie(ladder, monkeypatch):
    """Tests the other side of the tolerance."""
    problem, c = ladder
    honest = merge_module.combine

    def rounding(*arguments, **options):
        codes, value, alone = honest(*arguments, **options)
        return codes, value + 1e-12, alone

    monkeypatch.setattr(merge_module, "combine", rounding)
    search, _, _, _ = play(problem, c[7], Script(c[1]))
    assert search.best.objective == pytest.approx(recomputed(problem, c[1]), rel=1e-15)


def test_an_error_of_a_solver_reaches_the_caller():
    """Tests that nothing is swallowed on the way out of a thread."""

    def broken(sub, start, seed):
        raise RuntimeError("chip on fire")

    with pytest.raises(RuntimeError, match="chip on fire"):
        lns.solve(random_problem(), max_rounds=5, solver=broken, params=SHORT)


class Watched:
    """Threads, and the true objectives of all that they proposed."""

    def __init__(self, problem):
        self.problem, self.backend, self.found = problem, LocalBackend(make_solver("tabu"), 2), []

    def __call__(self, part, tasks, deadline):
        proposals = self.backend(part, tasks, deadline)
        self.found.append([self.objective(*pair) for pair in zip(tasks, proposals, strict=True)])
        return proposals

    def objective(self, task, proposal):
        if proposal.point is not None:
            return self.problem.objective(proposal.point[:-1], proposal.point[-1])
        return recomputed(self.problem.on_levels(*task.grids), proposal.codes)


@pytest.mark.parametrize("ranges", [{}, AUTOMATIC], ids=["given", "automatic"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_recorded_objective_equals_its_recomputation(kind, ranges):
    """Tests current and best objective of every round, and of every proposal, to 1e-9."""
    problem = random_problem(kind, sample_weight=np.linspace(0.5, 2, 120), q={-1: -1.0, 1: -0.2}, **ranges)
    backend, checked = Watched(problem), []

    def check(record, search):
        for state, value in ((search.curr, record.objective), (search.best, record.best)):
            assert value == pytest.approx(problem.objective(state.weights, state.bias), abs=1e-9)
        assert [one.objective for one in record.neighbourhoods] == pytest.approx(backend.found[-1], abs=1e-9)
        checked.append(record.round)

    selector = Selector(SHORT.kinds, SHORT.heats, max_bits=12, max_examples=4, background="curvature")
    start = problem.state(random_codes(problem))
    with backend.backend:
        engine.run(
            Search.begin(start), start.point, selector, greedy, backend, stop.max_rounds(15),
            params=SHORT, seed=0, began=perf_counter(), on_round=check,
        )  # fmt: skip
    assert checked == list(range(15))


def real_run(problem, rounds=12, seed=0, **options):
    """A run with all its parts, and what its new best solutions were."""
    bests = []

    class Watch(lns.Callbacks):
        def on_best(self, record, weights, bias):
            bests.append((record, weights.copy(), bias))

    options = {"params": SHORT, "time_limit": None, **options}
    return lns.solve(problem, max_rounds=rounds, seed=seed, callbacks=[Watch()], **options), bests


@pytest.mark.parametrize(
    "ranges", [{}, AUTOMATIC, {"weight_range": "auto"}], ids=["given", "auto", "weights"]
)
def test_a_result_is_what_it_says(ranges):
    """Tests objective, weights, bias, codes, levels and flags of a result against the problem."""
    problem = random_problem(weight_bits=2, **ranges)
    result, bests = real_run(problem, initial="random")
    w, b = result.weights, result.bias
    assert result.objective == pytest.approx(problem.objective(w, b), rel=1e-12)
    np.testing.assert_array_equal(result.grids[0].values(result.codes[:-1]), w)
    assert result.grids[1].values(result.codes[-1:])[0] == b
    np.testing.assert_array_equal(result.flagged, problem.flagged(w, b))
    assert result.objective == result.rounds[-1].best <= result.start_objective
    assert bests
    for record, weights, bias in bests:
        assert record.outcome == "best"
        assert record.best == pytest.approx(problem.objective(weights, bias), rel=1e-12)


# ---- records ----


def test_every_round_is_accounted_for():
    """Tests that each round has a record with choice, sizes, background, timings and outcome."""
    problem = random_problem()
    result, _ = real_run(problem, rounds=20)
    assert [r.round for r in result.rounds] == list(range(20))
    for record in result.rounds:
        assert record.outcome in {o.value for o in Outcome}
        assert record.rows == 120
        assert min(record.select_time, record.solve_time, record.merge_time) >= 0
        assert len(record.neighbourhoods) == SHORT.neighbourhoods
        assert len({one.kind for one in record.neighbourhoods}) == 1
        for one in record.neighbourhoods:
            assert math.isfinite(one.objective)
            assert one.kind in SHORT.kinds
            if one.kind == "walk":
                assert (len(one.weights), one.num_variables) == (0, 0)
                assert set(one.timings) == {"walk"}
                assert one.heat in SHORT.heats
                continue
            assert one.background == "curvature"
            assert len(one.weights) >= 1
            assert ((one.weights >= 0) & (one.weights < 7)).all()
            assert ((one.examples >= 0) & (one.examples < 120)).all()
            assert one.num_variables >= problem.target_bits * len(one.examples)
            assert one.num_couplers <= one.num_variables * (one.num_variables - 1) // 2
            assert one.reads >= 1
            assert {"build", "solve", "rank"} <= set(one.timings)


def test_times_of_records_add_up():
    """Tests that seconds increase and that the steps of a round fit into the time between two of them."""
    result, _ = real_run(random_problem())
    before = result.start_time
    for record in result.rounds:
        assert record.select_time + record.solve_time + record.merge_time <= record.seconds - before + 1e-3
        before = record.seconds
    assert before <= result.wall_time
    assert {"select", "merge", "walk", "solve"} <= set(result.times())
    assert all(value >= 0 for value in result.times().values())


def test_overhead_is_what_solvers_and_walks_do_not_take():
    """Tests a round of which a quarter is choosing and merging, and a third of the rest is building."""
    result, _ = real_run(random_problem(), rounds=1)
    one = result.rounds[0].neighbourhoods[0]
    laps = {"objective": 1.0, "build": 3.0, "solve": 3.0, "rank": 2.0}, {"walk": 5.0}
    built, walked = (
        replace(
            result.rounds[0], select_time=1.0, solve_time=9.0, merge_time=2.0,
            neighbourhoods=(replace(one, timings=timings),) * 2,
        )
        for timings in laps
    )  # fmt: skip
    assert replace(result, rounds=[built]).overhead == pytest.approx((1 + 2 + 3) / 12)
    assert replace(result, rounds=[built, walked]).overhead == pytest.approx((6 + 3) / 24)
    assert replace(result, rounds=[]).overhead == 0.0


def test_bests_only_go_down():
    """Tests the best objective from round to round, and that "best" is said exactly when it drops."""
    result, _ = real_run(random_problem(), rounds=30, initial="random")
    before = result.start_objective
    for record in result.rounds:
        assert (record.best < before) == (record.outcome == "best")
        assert record.objective >= record.best
        before = record.best


def test_the_summary_is_for_people():
    """Tests what a printed result tells."""
    result, _ = real_run(random_problem())
    text = str(result)
    assert text == result.summary()
    assert f"{result.objective:.6f}" in text
    assert "12, " in text
    assert "max_rounds" in text
    assert result.accepted == sum(r.outcome != "reject" for r in result.rounds)


# ---- the same again ----


@pytest.mark.parametrize("ranges", [{}, AUTOMATIC], ids=["given", "automatic"])
@pytest.mark.parametrize("solver", ["tabu", "sa", "exact"])
def test_one_worker_and_two_make_the_same_rounds(solver, ranges):
    """Tests that seed and rounds decide everything, timings aside."""
    problem = random_problem(rows=300, weight_bits=2, **ranges)
    options = {"seed": 3, "solver": solver, "initial": "random", "max_bits": 12}
    runs = [real_run(problem, 12, workers=workers, **options)[0] for workers in (1, 2, 2)]
    for other in runs[1:]:
        assert [facts(r) for r in other.rounds] == [facts(r) for r in runs[0].rounds]
        np.testing.assert_array_equal(other.codes, runs[0].codes)
        assert other.objective == runs[0].objective
        assert (other.weights.tolist(), other.bias) == (runs[0].weights.tolist(), runs[0].bias)


@pytest.mark.parametrize("options", [{"sample_rows": 60}, {"neighbourhoods": 3, "most_rows": 80}])
def test_samples_repeat_themselves_too(options):
    """Tests the same seed with samples of the data and with several neighbourhoods."""
    params = EngineParams(walk_moves=50, **options)
    first, second = (real_run(random_problem(), 20, params=params, workers=w)[0] for w in (1, 2))
    assert [facts(r) for r in first.rounds] == [facts(r) for r in second.rounds]


def test_a_longer_run_begins_like_a_shorter_one():
    """Tests that the number of rounds is no part of the seed."""
    short, long = (real_run(random_problem(), rounds)[0] for rounds in (5, 10))
    assert [facts(r) for r in long.rounds[:5]] == [facts(r) for r in short.rounds]


def test_other_seeds_make_other_rounds():
    """Tests that the seed matters."""
    first, second = (real_run(random_problem(), seed=seed)[0] for seed in (0, 1))
    assert [facts(r) for r in first.rounds] != [facts(r) for r in second.rounds]


# ---- samples and walks ----


def test_samples_are_judged_on_the_whole():
    """Tests that a round which looks at some of 400 examples is accepted by the objective of all of them."""
    problem = random_problem(rows=400)
    params = EngineParams(walk_moves=50, sample_rows=40, most_rows=100)
    result, _ = real_run(problem, rounds=25, initial="random", params=params)
    for record in result.rounds:
        assert record.rows == (40 if record.neighbourhoods[0].kind == "walk" else 100)
        assert record.best <= min(one.objective for one in record.neighbourhoods) + 1e-9
    assert {record.rows for record in result.rounds} == {40, 100}
    assert result.objective == pytest.approx(recomputed(problem, result.codes), abs=1e-9)


def test_only_walks_look_at_a_small_sample():
    """Tests the rows of each kind, that parts are made once, and that they end with the data."""
    problem = random_problem(rows=400)
    point = np.zeros(7)
    parts = Parts(problem, EngineParams(sample_rows=40, most_rows=100), 0, point)
    looks = {"walk": 40, "window": 100, "hop": 100, "fusion": 100}
    assert {kind: parts(kind).rows for kind in looks} == looks
    assert parts("window") is parts("hop")
    for few in (10**6, 399):  # not worth a copy
        assert Parts(problem, EngineParams(sample_rows=few), 0, point)("walk").problem is problem


def test_examples_of_a_sample_are_rows_of_the_data():
    """Tests that a record names examples by their rows in the whole data, not in the sample."""
    params = EngineParams(kinds=("window",), most_rows=20)
    result, _ = real_run(random_problem(rows=400), rounds=20, params=params)
    named = {int(s) for r in result.rounds for one in r.neighbourhoods for s in one.examples}
    assert named
    assert max(named) >= 20


def test_walks_are_as_long_as_they_may():
    """Tests their length without a time limit, and that a share of a time limit bounds it."""
    problem = random_problem()
    part, params = Part(problem, 10**6, 0, np.zeros(6), 0.0), EngineParams(walk_moves=7)
    walk, window = Choice("walk", np.empty(0, dtype=np.intp), heat=1.0), Choice("window", np.array([0]))
    assert engine.moves_of(part, walk, params, None) == 7 * 6
    assert engine.moves_of(part, window, params, None) == 0
    seconds = 1e-9 * 20 * part.walker.move_work / params.walk_share
    assert engine.moves_of(part, walk, params, 1.01 * seconds) == 20
    assert engine.moves_of(part, walk, params, 1e-12) == 1


def test_walks_that_lose_are_remembered(ladder):
    """Tests that the ends of all walks of a round are kept, best first, with their objectives."""
    problem, c = ladder
    script = Script([c[5], c[3]])
    search, _, _, _ = play(problem, c[7], script, select=OneChoice("walk"), neighbourhoods=2)
    elites = codes_of(problem, search)
    assert all(c[k] in elites for k in (3, 5, 7))
    values = [value for value, _ in search.elites]
    assert values == sorted(values) == pytest.approx([recomputed(problem, codes) for codes in elites])


def test_elites_are_few_different_and_sorted(ladder):
    """Tests the memory of a search."""
    problem, c = ladder
    search = Search(curr=problem.state(np.array(c[0])), best=problem.state(np.array(c[0])))
    for k in (4, 2, 4, 6, 2, 0, 5):
        search.remember(recomputed(problem, c[k]), problem.point(np.array(c[k])), 3)
    assert codes_of(problem, search) == [c[0], c[2], c[4]]
    assert [value for value, _ in search.elites] == pytest.approx(
        [recomputed(problem, c[k]) for k in (0, 2, 4)]
    )


def test_an_acceptance_that_refuses_everything_ends_in_peace(ladder):
    """Tests that a run of nothing but rejections keeps its start."""
    problem, c = ladder

    def never(best, curr, cand, rng):
        return Outcome.REJECT

    search, records, _, _ = play(problem, c[3], Script(*[c[0]] * 6), never)
    assert search.best.codes.tolist() == c[3]
    assert {r.outcome for r in records} == {"reject"}


# ---- stopping ----


def test_a_target_stops_as_soon_as_it_is_reached(ladder):
    """Tests that the round which reaches the target is the last one."""
    problem, c = ladder
    rule = stop.target(recomputed(problem, c[2]) + 1e-12)
    _, records, reason, _ = play(problem, c[7], Script(c[5], c[3], c[2], c[1]), rule=rule)
    assert (len(records), reason) == (3, "target")


def test_a_target_reached_by_the_start_needs_no_round(ladder):
    """Tests that nothing is done for nothing."""
    problem, c = ladder
    search, records, reason, _ = play(problem, c[0], Script(), rule=stop.target(1e9))
    assert (records, reason) == ([], "target")
    assert search.best.codes.tolist() == c[0]


@pytest.mark.parametrize(("limit", "rounds"), [(1, 2), (2, 5), (3, 9)])
def test_no_improvement_counts_rounds_without_a_new_best(ladder, limit, rounds):
    """Tests that so many rounds after the last best one are the last ones: bests in rounds 0, 2 and 5."""
    problem, c = ladder
    script = Script(c[5], c[6], c[4], c[6], c[6], c[3], *[c[6]] * 10)
    _, records, reason, _ = play(problem, c[7], script, rule=stop.no_improvement(limit))
    assert (len(records), reason) == (rounds, "no_improvement")


def test_no_improvement_counts_from_the_start(ladder):
    """Tests a run that never finds anything better than its start."""
    problem, c = ladder
    _, records, reason, _ = play(problem, c[0], Script(*[c[6]] * 9), rule=stop.no_improvement(3))
    assert (len(records), reason) == (3, "no_improvement")


def overrun(problem, limit, **options):
    """Seconds beyond 5 % + 0.2 s; the better of two runs after a warm-up, as the machine may be busy."""
    lns.solve(problem, max_rounds=1, time_limit=limit, **options)  # compiled, warm start found
    late = []
    while len(late) < 2 and (not late or late[-1] > 0):
        began = perf_counter()
        result = lns.solve(problem, time_limit=limit, **options)
        late.append(perf_counter() - began - 1.05 * limit - 0.2)
        assert result.stop_reason == "time_limit"
        assert result.wall_time >= limit
    return min(late)


@pytest.mark.slow  # looks at the clock
@pytest.mark.parametrize("ranges", [{}, AUTOMATIC], ids=["given", "automatic"])
@pytest.mark.parametrize(
    "options", [{}, {"solver": "sa"}, {"workers": 1}, {"mode": "rounds"}, {"mode": "paper"}]
)
def test_a_time_limit_is_kept(options, ranges):
    """Tests every kind of round on a small problem."""
    assert overrun(random_problem(rows=2000, features=20, **ranges), 0.4, **options) <= 0


@pytest.mark.slow  # looks at the clock
@pytest.mark.parametrize(
    ("rows", "features", "neighbourhoods"), [(100, 500, 2), (50, 100, 12), (20_000, 20, 2)]
)
def test_a_time_limit_is_kept_however_many_walks_one_worker_has(rows, features, neighbourhoods):
    """Tests walks that follow each other, on few and on many rows."""
    params = EngineParams(neighbourhoods=neighbourhoods)
    assert overrun(random_problem(rows=rows, features=features), 0.4, workers=1, params=params) <= 0


def test_a_time_limit_that_has_passed_gives_the_start():
    """Tests that there is always an answer."""
    problem = random_problem()
    result = lns.solve(problem, time_limit=1e-9)
    assert (result.rounds, result.stop_reason) == ([], "time_limit")
    assert result.objective == result.start_objective == pytest.approx(recomputed(problem, result.codes))
    assert "rounds       0" in result.summary()


def test_an_interrupt_ends_the_run_with_what_it_has():
    """Tests that Ctrl-C gives a result with its reason, and that the next run is not disturbed."""

    class Interrupt(lns.Callbacks):
        def on_round(self, record):
            if record.round == 2:
                raise KeyboardInterrupt

    problem = random_problem()
    result = lns.solve(problem, max_rounds=10, callbacks=[Interrupt()], params=SHORT)
    assert (len(result.rounds), result.stop_reason) == (3, "interrupted")
    assert result.objective == pytest.approx(recomputed(problem, result.codes))
    assert len(lns.solve(problem, max_rounds=3, params=SHORT).rounds) == 3


# ---- callbacks and parameters ----


def test_callbacks_hear_of_everything_in_order():
    """Tests the calls of a run, and that every watcher gets the same."""

    class Diary(lns.Callbacks):
        def __init__(self):
            self.pages = []

        def on_start(self, problem, objective):
            self.pages.append(("start", objective))

        def on_round(self, record):
            self.pages.append(("round", record.round))

        def on_best(self, record, weights, bias):
            self.pages.append(("best", record.round))

        def on_end(self, result):
            self.pages.append(("end", result.objective))

    first, second = Diary(), Diary()
    result = lns.solve(
        random_problem(), max_rounds=6, initial="random", callbacks=[first, second], params=SHORT
    )
    assert first.pages == second.pages
    expected = [("start", result.start_objective)]
    for record in result.rounds:
        expected += [("round", record.round)] + [("best", record.round)] * (record.outcome == "best")
    assert first.pages == [*expected, ("end", result.objective)]


@pytest.mark.parametrize(
    ("name", "bad", "edge"),
    [
        ("neighbourhoods", 0, 1),
        ("elites", 0, 1),
        ("sample_rows", 0, 1),
        ("most_rows", 0, 1),
        ("walk_moves", -1, 0),
    ],
)
def test_parameters_out_of_range_are_refused(name, bad, edge):
    """Tests just outside and on the edge, and that the message names parameter and value."""
    with pytest.raises(InvalidInput, match=rf"^{name} must be at least {edge}\. Got {bad}\.$"):
        EngineParams(**{name: bad})
    params = EngineParams(**{"walk_moves": 20, name: edge})
    assert len(lns.solve(random_problem(rows=30), max_rounds=4, params=params).rounds) == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kinds": ("walks",)}, r"Unknown kind 'walks' in kinds\. Choose from window, .*stored"),
        ({"kinds": ()}, "kinds and heats must not be empty"),
        ({"heats": ()}, "kinds and heats must not be empty"),
    ],
)
def test_kinds_that_are_not_there_are_refused(options, message):
    """Tests names, and that there is something to draw from."""
    with pytest.raises(InvalidInput, match=message):
        EngineParams(**options)


def test_the_backend_keeps_the_order_of_its_tasks():
    """Tests that results belong to their tasks, whichever is done first."""
    problem = random_problem()
    codes = random_codes(problem)
    part = Part(problem, 10**6, 0, *problem.values(codes))

    def slow_first(sub, start, seed):
        sleep(0.02 if sub.num_weight_bits == 2 else 0.0)
        return start[None, :]

    tasks = [
        Task(codes, problem.grids, Choice("window", np.arange(k)), 0, np.random.SeedSequence(k))
        for k in (1, 2, 3)
    ]
    with LocalBackend(slow_first, 3) as backend:
        proposals = backend(part, tasks, math.inf)
    assert [len(p.choice.weights) for p in proposals] == [1, 2, 3]
    assert all(p.choice is t.choice for p, t in zip(proposals, tasks, strict=True))
