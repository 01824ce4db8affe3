"""Tests of the loop: what it keeps, what it records, when it stops."""

from __future__ import annotations

import math
from dataclasses import replace
from time import perf_counter

import numpy as np
import pytest
from search_cases import (
    KINDS,
    NO_WEIGHTS,
    every_code,
    facts,
    proposal_of,
    random_codes,
    random_problem,
    recomputed,
)

import lns
from lns import engine, stop
from lns.accept import Outcome, RecordToRecord, greedy
from lns.backends.local import LocalBackend
from lns.engine import EngineParams, Search
from lns.errors import EnergyMismatchError, InvalidInput
from lns.progress import AtNewBests
from lns.rounds import Choice, Part
from lns.solvers import make_solver

SHORT = EngineParams(opening=50, polish=5, patience=4)
TIMINGS = {"objective", "settle", "build", "solve", "rank", "polish"}


class OneChoice:
    """A selector that always chooses the first weight, and remembers its rewards."""

    def __init__(self):
        self.rewards = []

    def __call__(self, view, count, rng):
        return [Choice("random", np.array([0])) for _ in range(count)]

    def update(self, rewards):
        self.rewards.append(rewards)


class Script:
    """A backend that returns prepared codes: for each round, one for each task."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    def __call__(self, part, tasks, deadline):
        self.asked.append(tasks)
        codes = self.answers[len(self.asked) - 1]
        codes = [codes] * len(tasks) if np.ndim(codes[0]) == 0 else codes
        return [proposal_of(task, c) for task, c in zip(tasks, codes, strict=True)]


def play(problem, start, script, accept=greedy, rule=None, select=None, **params):
    """Run the loop on a script: the search, its records, the reason, and (curr, best) of each round."""
    seen = []

    def watch(record, search):
        seen.append((search.curr.codes.tolist(), search.best.codes.tolist()))

    count = params.get("neighbourhoods", 1)
    settings = EngineParams(**{"neighbourhoods": count, "walks": count, "patience": 100, **params})
    search, records, reason = engine.run(
        problem, np.asarray(start, dtype=np.int32), select or OneChoice(), accept, script,
        rule or stop.max_rounds(len(script.answers)), params=settings, seed=0, began=perf_counter(),
        on_round=watch,
    )  # fmt: skip
    return search, records, reason, seen


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


def test_a_record_to_record_trajectory(ladder):
    """Tests that worse candidates may become current without touching the best."""
    problem, c = ladder
    script = Script(c[2], c[4], c[3], c[2], c[1], c[6])
    search, records, _, seen = play(problem, c[7], script, RecordToRecord(100.0))
    assert [r.outcome for r in records] == ["best", "accept", "better", "better", "best", "accept"]
    assert [curr for curr, _ in seen] == [c[2], c[4], c[3], c[2], c[1], c[6]]
    assert [best for _, best in seen] == [c[2], c[2], c[2], c[2], c[1], c[1]]
    assert search.best.codes.tolist() == c[1]


def test_an_opening_replaces_even_a_better_current_solution(ladder):
    """Tests that a new episode begins where its walks end, while the best solution stays."""
    problem, c = ladder
    script = Script(c[2], c[3], c[5], c[4])
    _, records, _, seen = play(problem, c[7], script, patience=1)
    assert [r.outcome for r in records] == ["best", "reject", "better", "better"]
    assert [r.episode for r in records] == [1, 1, 2, 2]
    assert [curr for curr, _ in seen] == [c[2], c[2], c[5], c[4]]
    assert [best for _, best in seen] == [c[2]] * 4


def test_an_opening_worse_than_the_start_does_not_lose_it(ladder):
    """Tests that the best solution of a run is never worse than its start."""
    problem, c = ladder
    search, records, _, _ = play(problem, c[0], Script(c[6]))
    assert records[0].outcome == "better"
    assert search.best.codes.tolist() == c[0]
    assert search.curr.codes.tolist() == c[6]


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
    script = Script([[0, 0, 0], [0, 0, 0]], [[1, 0, 0], [0, 1, 0]])
    search, records, _, _ = play(problem, [0, 0, 0], script, neighbourhoods=2)
    assert search.best.codes.tolist() == [1, 1, 0]
    assert records[1].objective == 0.0
    assert [one.objective for one in records[1].neighbourhoods] == [0.5, 0.5]


def test_tasks_start_from_the_current_solution_and_have_seeds_of_their_own(ladder):
    """Tests what the backend is asked for."""
    problem, c = ladder
    script = Script(c[5], c[3], c[2])
    play(problem, c[7], script, neighbourhoods=2)
    froms = [[task.codes.tolist() for task in tasks] for tasks in script.asked]
    assert froms == [[c[7]] * 2, [c[5]] * 2, [c[3]] * 2]
    states = [tuple(task.seed.generate_state(2)) for tasks in script.asked for task in tasks]
    assert len(set(states)) == len(states)


def test_rewards_go_to_those_who_helped(ladder):
    """Tests that only a neighbourhood better than the current solution earns anything."""
    problem, c = ladder
    select = OneChoice()
    play(problem, c[7], Script(c[5], [c[2], c[6]], [c[4], c[4]]), select=select, neighbourhoods=2)
    assert len(select.rewards) == 2
    assert select.rewards[0][0] > 0
    assert select.rewards[0][1] == 0
    assert select.rewards[1] == [0.0, 0.0]


# ---- honesty ----


@pytest.mark.parametrize("lie", [1e-6, -1e-6])
def test_a_merge_that_lies_is_found_out(ladder, monkeypatch, lie):
    """Tests that an objective which recomputation does not confirm stops the run."""
    problem, c = ladder
    honest = engine.merge

    def lying(*arguments, **options):
        codes, value, alone = honest(*arguments, **options)
        return codes, value + lie, alone

    monkeypatch.setattr(engine, "merge", lying)
    with pytest.raises(
        EnergyMismatchError, match=r"kept by the merge is .* recomputing it gives .* This is a bug"
    ):
        play(problem, c[7], Script(c[1]))


def test_rounding_in_a_merge_is_no_lie(ladder, monkeypatch):
    """Tests the other side of the tolerance."""
    problem, c = ladder
    honest = engine.merge

    def rounding(*arguments, **options):
        codes, value, alone = honest(*arguments, **options)
        return codes, value + 1e-12, alone

    monkeypatch.setattr(engine, "merge", rounding)
    search, _, _, _ = play(problem, c[7], Script(c[1]))
    assert search.best.objective == pytest.approx(recomputed(problem, c[1]), rel=1e-15)


def test_an_error_of_a_solver_reaches_the_caller():
    """Tests that nothing is swallowed on the way out of a thread."""

    def broken(sub, start, seed):
        raise RuntimeError("chip on fire")

    with pytest.raises(RuntimeError, match="chip on fire"):
        lns.solve(random_problem(), max_rounds=5, solver=broken, params=SHORT)


def real_run(problem, rounds=12, seed=0, **options):
    """A run with all its parts, and the codes after each round."""
    codes = []

    class Watch(lns.Callbacks):
        def on_best(self, record, weights, bias):
            codes.append((record, weights.copy(), bias))

    return lns.solve(
        problem, max_rounds=rounds, seed=seed, callbacks=[Watch()], **{"params": SHORT, **options}
    ), codes


@pytest.mark.parametrize("kind", KINDS)
def test_every_recorded_objective_equals_its_recomputation(kind, monkeypatch):
    """Tests current and best objective of every round, and of every proposal, to 1e-9."""
    problem = random_problem(kind, sample_weight=np.linspace(0.5, 2, 120), q={-1: -1.0, 1: -0.2})
    rows, checked = [], []
    honest = engine.merge

    def spy(state, proposals, *rest, **options):
        rows.append([recomputed(problem, codes) for codes in proposals])
        return honest(state, proposals, *rest, **options)

    monkeypatch.setattr(engine, "merge", spy)

    def check(record, search):
        now, best = recomputed(problem, search.curr.codes), recomputed(problem, search.best.codes)
        assert record.objective == pytest.approx(now, abs=1e-9)
        assert record.best == pytest.approx(best, abs=1e-9)
        assert [one.objective for one in record.neighbourhoods] == pytest.approx(rows[-1], abs=1e-9)
        checked.append(record.round)

    from lns.select import AdaptiveSelector

    selector = AdaptiveSelector(
        7, max_bits=12, bits_per_weight=2, max_examples=4, background="curvature", coding="window"
    )
    with LocalBackend(make_solver("tabu"), 2) as backend:
        engine.run(
            problem, random_codes(problem), selector, RecordToRecord(), backend, stop.max_rounds(15),
            params=SHORT, seed=0, began=perf_counter(), on_round=check,
        )  # fmt: skip
    assert checked == list(range(15))


def test_a_result_is_what_it_says():
    """Tests objective, weights, bias, codes and flags of a result against the problem."""
    problem = random_problem()
    result, bests = real_run(problem)
    assert result.objective == pytest.approx(problem.objective(result.weights, result.bias), abs=1e-9)
    np.testing.assert_array_equal(problem.values(result.codes)[0], result.weights)
    np.testing.assert_array_equal(result.flagged, problem.flagged(result.weights, result.bias))
    assert result.objective == result.rounds[-1].best <= result.start_objective
    for record, weights, bias in bests:
        assert record.outcome == "best"
        assert record.best == pytest.approx(problem.objective(weights, bias), abs=1e-9)


# ---- records ----


def test_every_round_is_accounted_for():
    """Tests that each round has a record with choice, sizes, background, timings and outcome."""
    problem = random_problem()
    result, _ = real_run(problem, rounds=20)
    assert [r.round for r in result.rounds] == list(range(20))
    assert result.rounds[0].neighbourhoods[0].kind == "opening"
    for record in result.rounds:
        assert record.outcome in {o.value for o in Outcome}
        assert record.rows == 120
        assert min(record.select_time, record.solve_time, record.merge_time) >= 0
        opening = record.neighbourhoods[0].kind == "opening"
        assert len(record.neighbourhoods) == (SHORT.walks if opening else SHORT.neighbourhoods)
        for one in record.neighbourhoods:
            assert set(one.timings) <= TIMINGS
            assert math.isfinite(one.objective)
            if one.kind == "opening":
                assert (len(one.weights), one.num_variables) == (0, 0)
                continue
            assert one.background == "curvature"
            assert one.coding in ("window", "fusion", "relaxed")
            assert len(one.weights) >= 1
            assert ((one.weights >= 0) & (one.weights < 7)).all()
            assert ((one.examples >= 0) & (one.examples < 120)).all()
            assert one.num_variables >= len(one.weights) + problem.target_bits * len(one.examples)
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
    assert set(result.times()) <= TIMINGS | {"select", "merge"}
    assert all(value >= 0 for value in result.times().values())


def test_overhead_is_what_solvers_and_walks_do_not_take():
    """Tests a round of which a quarter is choosing and merging, and a third of the rest is building."""
    result, _ = real_run(random_problem(), rounds=2)
    opening, real = result.rounds
    ones = tuple(
        replace(one, timings={"objective": 1.0, "build": 3.0, "solve": 2.0, "rank": 1.0, "polish": 2.0})
        for one in real.neighbourhoods
    )
    rounds = [replace(real, select_time=1.0, solve_time=9.0, merge_time=2.0, neighbourhoods=ones)]
    assert replace(result, rounds=rounds).overhead == pytest.approx((1 + 2 + 3) / 12)
    walks = replace(opening, select_time=1.0, solve_time=9.0, merge_time=2.0)
    assert replace(result, rounds=[*rounds, walks]).overhead == pytest.approx((6 + 3) / 24)
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


@pytest.mark.parametrize("solver", ["tabu", "sa", "exact"])
def test_one_worker_and_two_make_the_same_rounds(solver):
    """Tests that seed and rounds decide everything, timings aside."""
    problem = random_problem(rows=300)
    runs = [
        lns.solve(
            problem, max_rounds=15, seed=3, solver=solver, workers=workers, initial="random", params=SHORT
        )
        for workers in (1, 2, 2)
    ]
    for other in runs[1:]:
        assert [facts(r) for r in other.rounds] == [facts(r) for r in runs[0].rounds]
        np.testing.assert_array_equal(other.codes, runs[0].codes)
        assert other.objective == runs[0].objective


@pytest.mark.parametrize("options", [{"sample_rows": 60}, {"patience": 2, "neighbourhoods": 3}])
def test_samples_and_episodes_repeat_themselves_too(options):
    """Tests the same seed with samples of the data and with several openings."""
    params = EngineParams(opening=50, polish=5, **{"patience": 3, **options})
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


# ---- samples and episodes ----


def test_samples_are_judged_on_the_whole():
    """Tests that a round which looks at 40 of 400 examples is accepted by the objective of all of them."""
    problem = random_problem(rows=400)
    params = EngineParams(opening=50, polish=5, patience=1, sample_rows=40)
    result, _ = real_run(problem, rounds=25, initial="random", params=params)
    rows = [r.rows for r in result.rounds]
    assert rows[0] == 40
    assert rows == sorted(rows)
    assert set(rows) <= {40, 80, 160, 320, 400}
    assert len(set(rows)) > 1  # it grew once it no longer helped
    assert result.objective == pytest.approx(recomputed(problem, result.codes), abs=1e-9)
    for record in result.rounds:
        assert record.best <= min(one.objective for one in record.neighbourhoods) + 1e-9


def test_samples_grow_no_further_than_asked_for():
    """Tests that the last step of growth is cut short, and that episodes go on from there."""
    problem = random_problem(rows=400)
    params = EngineParams(opening=50, polish=5, patience=1, sample_rows=40, most_rows=100)
    result, _ = real_run(problem, rounds=25, initial="random", params=params)
    assert {r.rows for r in result.rounds} == {40, 80, 100}
    last = [r.episode for r in result.rounds if r.rows == 100]
    assert last[-1] > last[0]


@pytest.mark.parametrize(
    ("found", "rows"),
    [
        ([5, 7, 7, 7], [2, 2, 3, 3]),  # the first walk found something, its rounds did not
        ([5, 3, 7, 5, 7, 7], [2, 2, 2, 2, 2, 3]),  # its rounds did, the second episode did not
        ([5, 3, 7, 1, 7, 7], [2, 2, 2, 2, 2, 2]),  # both did
    ],
)
def test_a_sample_grows_when_an_episode_no_longer_pays(ladder, found, rows):
    """Tests that an episode that found something is followed by another one on the same sample.

    That the first walk is better than the start, as any walk would be, does not count.
    """
    problem, c = ladder
    script = Script(*(c[k] for k in found))
    _, records, _, _ = play(problem, c[7], script, patience=1, least_gain=0.0, sample_rows=2)
    assert [record.rows for record in records] == rows


@pytest.mark.parametrize(("rows", "hotter"), [(300, 1.0), (20_000, 1.0), (50_000, 2.5)])
def test_walks_begin_hotter_on_more_examples(rows, hotter):
    """Tests that an opening is as hot for 20,000 examples as for fewer, and in proportion for more."""
    problem = random_problem(rows=rows, features=3)
    codes = random_codes(problem)  # bad: nearly everybody has a loss
    assert engine.heat_needed(Part(problem, codes, rows, 0), codes) == pytest.approx(hotter)


def test_walks_begin_hotter_where_few_examples_bear_the_loss():
    """Tests 4 of 100 examples with a loss of 2.25 each: 25 times the average, 3 of which are usual."""
    X, y = np.ones((100, 1)), np.repeat([1.0, -1.0], [96, 4])
    problem = lns.QLossProblem(X, y, q=-0.5, lam=0.0, weight_range=(0.0, 2.0), bias_range=(-1.0, 1.0))
    codes = np.array([15, 255], dtype=np.int32)  # a score of 3 for all
    assert problem.state(codes).objective == pytest.approx(0.09)
    assert engine.heat_needed(Part(problem, codes, 100, 0), codes) == pytest.approx(
        math.sqrt(25 / 3), rel=1e-5
    )


def test_no_loss_at_all_asks_for_no_more_heat():
    """Tests an objective of zero."""
    X = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    problem = lns.QLossProblem(X, X[:, 0], lam=0.0, weight_range=(0.0, 2.0), bias_range=(-0.5, 0.5))
    codes = np.array([15, 128], dtype=np.int32)  # margins of about 2
    assert problem.state(codes).objective == 0.0
    assert engine.heat_needed(Part(problem, codes, 4, 0), codes) == 1.0


def test_examples_of_a_sample_are_rows_of_the_data():
    """Tests that a record names examples by their rows in the whole data, not in the sample."""
    problem = random_problem(rows=400)
    params = EngineParams(opening=50, polish=5, sample_rows=20)
    result, _ = real_run(problem, rounds=20, params=params)
    named = {int(s) for r in result.rounds if r.rows == 20 for one in r.neighbourhoods for s in one.examples}
    assert named
    assert max(named) >= 20


ON_SAMPLES = EngineParams(opening=50, polish=40, sample_rows=60, patience=50)


def test_rounds_on_samples_end_with_a_walk_on_all_rows():
    """Tests that it lowers the objective of what samples have found, and that rounds know nothing of it."""
    problem = random_problem(rows=3000, features=8)
    result = lns.solve(problem, max_rounds=4, time_limit=None, params=ON_SAMPLES)
    longer = lns.solve(problem, max_rounds=6, time_limit=None, params=ON_SAMPLES)
    assert result.objective < result.rounds[-1].best - 1e-6
    assert result.objective == pytest.approx(recomputed(problem, result.codes), abs=1e-12)
    assert 0 < result.times()["closing"] == result.closing_time < result.wall_time
    assert [facts(r) for r in longer.rounds[:4]] == [facts(r) for r in result.rounds]


@pytest.mark.parametrize(
    ("limits", "params"),
    [
        ({"max_rounds": 0}, ON_SAMPLES),
        ({"max_rounds": 3, "target": 10.0}, ON_SAMPLES),
        ({"max_rounds": 3}, replace(ON_SAMPLES, sample_rows=3000)),
        ({"max_rounds": 3}, replace(ON_SAMPLES, polish=0)),
    ],
)
def test_there_is_no_walk_at_the_end_where_none_is_due(limits, params):
    """Tests runs without rounds, that met a target, that looked at all rows, and that do not polish."""
    problem = random_problem(rows=3000, features=8)
    result = lns.solve(problem, time_limit=None, params=params, initial="zero", **limits)
    assert result.objective == (result.rounds[-1].best if result.rounds else result.start_objective)
    assert result.closing_time == 0


def test_a_walk_that_has_no_time_left_is_left_out(monkeypatch):
    """Tests that a time limit holds: what cannot even be copied in time is not begun."""
    monkeypatch.setattr(engine, "seconds_to_begin", lambda problem, rows: 10.0)
    problem = random_problem(rows=3000, features=8)
    result = lns.solve(problem, time_limit=0.5, params=ON_SAMPLES)
    assert result.objective == result.rounds[-1].best
    assert result.wall_time < 0.5 * 1.05 + 0.2


def test_the_last_walk_gets_the_time_it_needs():
    """Tests 3000 rows of 8 columns, 40 moves for each of 9 codes: as long as that takes, within limits."""
    problem = random_problem(rows=3000, features=8)
    begin = engine.seconds_to_begin(problem, 3000)
    walk = 1e-9 * 40 * 9 * (110 + 0.25 * 3000)
    for seconds, kept in ((1.0, begin + walk), (3 * begin, 0.0), (5 * begin, 1.25 * begin)):
        assert engine.seconds_to_close(problem, ON_SAMPLES, 3000, seconds) == pytest.approx(kept)
    assert 1.25 * begin < begin + walk


def test_ctrl_c_in_the_last_walk_loses_nothing(monkeypatch):
    """Tests that the result of the rounds is returned."""
    problem = random_problem(rows=3000, features=8)
    part = engine.Part

    def interrupt(problem, codes, rows, seed):
        if rows == 3000:
            raise KeyboardInterrupt
        return part(problem, codes, rows, seed)

    monkeypatch.setattr(engine, "Part", interrupt)
    result = lns.solve(problem, max_rounds=3, time_limit=None, params=ON_SAMPLES)
    assert len(result.rounds) == 3
    assert result.objective == result.rounds[-1].best
    assert result.stop_reason == "interrupted"


def test_callbacks_hear_of_what_the_last_walk_found():
    """Tests that whoever looks at new best solutions does not miss the one that is returned."""
    problem, seen = random_problem(rows=3000, features=8), []
    watcher = AtNewBests(lambda weights, bias: seen.append(problem.objective(weights, bias)))
    result = lns.solve(problem, max_rounds=4, time_limit=None, params=ON_SAMPLES, callbacks=[watcher])
    assert result.closing_time > 0
    assert seen[-1] == pytest.approx(result.objective, abs=1e-12)


def test_a_run_that_goes_on_never_returns_less_than_before(monkeypatch, tmp_path):
    """Tests that what the last walk found is kept for a run that has no time for one of its own."""
    problem, kept = random_problem(rows=3000, features=8), tmp_path / "run.ckpt"
    first = lns.solve(problem, max_rounds=2, time_limit=None, params=ON_SAMPLES, checkpoint=kept)
    monkeypatch.setattr(engine, "seconds_to_begin", lambda problem, rows: math.inf)
    second, third = (lns.resume(kept, max_rounds=rounds, time_limit=9) for rounds in (3, 4))
    assert second.rounds[-1].best > first.objective
    assert second.objective == third.objective == first.objective


def test_a_new_episode_opens_after_rounds_without_a_better_solution(ladder):
    """Tests that patience counts rounds, from the last improvement of the episode on."""
    problem, c = ladder
    script = Script(c[5], c[6], c[4], c[6], c[6], c[6], c[5], c[6], c[6], c[6])
    _, records, _, _ = play(problem, c[7], script, patience=3, least_gain=0.0)
    openings = [r.round for r in records if r.neighbourhoods[0].kind == "opening"]
    assert openings == [0, 6]
    assert [r.episode for r in records] == [1] * 6 + [2] * 4


def test_small_gains_do_not_keep_an_episode_going(ladder):
    """Tests that a gain below `least_gain` of an average example's loss counts as none, one above as one."""
    problem, c = ladder
    gain, loss = recomputed(problem, c[6]) - recomputed(problem, c[5]), recomputed(problem, c[5])
    share = gain / (loss / problem.num_examples)  # of an average example's loss
    for least, openings in ((1.01 * share, [0, 2]), (0.99 * share, [0, 3])):
        script = Script(c[6], c[5], c[7], c[7], c[7])
        _, records, _, _ = play(problem, c[7], script, patience=2, least_gain=least)
        opened = [r.round for r in records if r.neighbourhoods[0].kind == "opening"]
        assert opened[:2] == [openings[0], openings[1] + 1]


def test_walks_that_lose_are_remembered(ladder):
    """Tests that an opening keeps the ends of all its walks among the elites."""
    problem, c = ladder
    script = Script([c[5], c[3]])
    search, _, _, _ = play(problem, c[7], script, neighbourhoods=2, fuse=False)
    assert [codes.tolist() for _, codes in search.elites] == [c[3], c[5], c[7]]
    assert [value for value, _ in search.elites] == [
        pytest.approx(recomputed(problem, c[k])) for k in (3, 5, 7)
    ]


def test_hot_walks_begin_at_the_start_and_cool_ones_at_elites(ladder):
    """Tests two episodes: all walks of the first from the start; of the second only those that begin hot."""
    problem, c = ladder
    params = EngineParams(walks=2, heats=(engine.HOT, 1.0))
    search = Search.begin(problem, np.array(c[7], dtype=np.int32), params)
    search.elites = [(0.5, np.array(c[0], dtype=np.int32))]
    rng = np.random.default_rng(0)
    for episode, (hot, cool) in enumerate([(c[7], c[7]), (c[7], c[0])]):
        assert search.episode == episode
        first, second = engine.open_episode(search, search.curr.codes, 3.0, 10, params, 0, rng)
        assert [first.codes.tolist(), second.codes.tolist()] == [hot, cool]
        assert [first.choice.heat, second.choice.heat] == [3 * engine.HOT, 1.0]  # only hot ones are hotter


def test_cool_walks_begin_at_any_elite():
    """Tests that each of them draws its own."""
    problem = random_problem()
    codes = random_codes(problem)
    script = Script(*[random_codes(problem, k).tolist() for k in range(60)])
    play(problem, codes, script, patience=1, neighbourhoods=2, heats=(1.0,))
    opened = [t.codes.tolist() for tasks in script.asked for t in tasks if t.choice.kind == "opening"]
    given = [codes.tolist(), *script.answers]
    assert opened[:2] == [codes.tolist()] * 2
    assert all(o in given for o in opened)
    assert len({tuple(o) for o in opened[2:]}) > 1


def test_walks_are_twice_as_long_after_the_first_episode():
    """Tests their length without a time limit, and that a time limit bounds it."""
    problem = random_problem()
    codes = random_codes(problem)
    part, params = Part(problem, codes, 10**6, 0), EngineParams(opening=7)
    each = 7 * len(codes)
    lengths = [engine.opening_moves(part, params, episode, 0.1, None) for episode in range(4)]
    assert lengths == [each, 2 * each, 2 * each, 2 * each]
    seconds = 1.5 * each * part.working.seconds_per_move
    lengths = [engine.opening_moves(part, params, episode, 0.1, seconds / 0.1) for episode in range(2)]
    assert lengths[0] == each
    assert lengths[1] == pytest.approx(1.5 * each, abs=1)


def test_an_episode_has_one_place_among_the_elites(ladder):
    """Tests that what an episode finds takes the place of what it had found before, and of nothing else."""
    problem, c = ladder
    search = Search.begin(problem, np.array(c[7], dtype=np.int32), EngineParams())
    for k, opening in ((6, True), (5, False), (4, False), (6, True), (3, False)):
        search.opening = opening
        search.adopt(np.array(c[k]), recomputed(problem, c[k]), Outcome.BETTER, EngineParams(patience=99))
    assert [codes.tolist() for _, codes in search.elites] == [c[3], c[4], c[7]]
    search.adopt(np.array(c[5]), recomputed(problem, c[5]), Outcome.ACCEPT, EngineParams(patience=99))
    assert [codes.tolist() for _, codes in search.elites] == [c[3], c[4], c[7]]


def test_elites_are_few_different_and_sorted(ladder):
    """Tests the memory of a search."""
    problem, c = ladder
    search = Search(curr=problem.state(np.array(c[0])), best=problem.state(np.array(c[0])))
    for k in (4, 2, 4, 6, 2, 0, 5):
        search.remember(np.array(c[k]), recomputed(problem, c[k]), 3)
    assert [codes.tolist() for _, codes in search.elites] == [c[0], c[2], c[4]]
    assert [value for value, _ in search.elites] == pytest.approx(
        [recomputed(problem, c[k]) for k in (0, 2, 4)]
    )


def test_an_acceptance_that_refuses_everything_ends_in_peace(ladder):
    """Tests that a run of nothing but rejections, openings included, keeps its start."""
    problem, c = ladder

    def never(best, curr, cand, rng):
        return Outcome.REJECT

    search, records, _, _ = play(problem, c[3], Script(*[c[0]] * 6), never, patience=1)
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
@pytest.mark.parametrize(
    "options", [{}, {"solver": "sa"}, {"workers": 1}, {"background": "pairwise"}, {"coding": "stored"}]
)
def test_a_time_limit_is_kept(options):
    """Tests every kind of round on a small problem."""
    assert overrun(random_problem(rows=2000, features=20), 0.4, **options) <= 0


@pytest.mark.slow  # looks at the clock
@pytest.mark.parametrize(
    ("rows", "features", "neighbourhoods"), [(100, 500, 2), (50, 100, 12), (20_000, 20, 2)]
)
def test_a_time_limit_is_kept_however_many_walks_one_worker_has(rows, features, neighbourhoods):
    """Tests openings that follow each other, on few and on many rows."""
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
        ("patience", 0, 1),
        ("elites", 0, 1),
        ("sample_rows", 0, 1),
        ("most_rows", 0, 1),
        ("polish", -1, 0),
        ("opening", -1, 0),
    ],
)
def test_parameters_out_of_range_are_refused(name, bad, edge):
    """Tests just outside and on the edge, and that the message names parameter and value."""
    with pytest.raises(InvalidInput, match=rf"^{name} must be at least {edge}\. Got {bad}\.$"):
        EngineParams(**{name: bad})
    params = EngineParams(**{"opening": 20, "polish": 2, name: edge})
    assert len(lns.solve(random_problem(rows=30), max_rounds=4, params=params).rounds) == 4


def test_the_backend_keeps_the_order_of_its_tasks():
    """Tests that results belong to their tasks, whichever is done first."""
    from time import sleep

    from lns.rounds import Part, Task

    problem = random_problem()
    codes = random_codes(problem)
    part = Part(problem, codes, 10**6, 0)

    def slow_first(sub, start, seed):
        sleep(0.02 if sub.num_weight_bits == 2 else 0.0)
        return start[None, :]

    tasks = [
        Task(codes, Choice("random", np.arange(k), heat=0.0), 0, np.random.SeedSequence(k)) for k in (1, 2, 3)
    ]
    with LocalBackend(slow_first, 3) as backend:
        proposals = backend(part, tasks, math.inf)
    assert [len(p.choice.weights) for p in proposals] == [1, 2, 3]
    assert all(p.choice is t.choice for p, t in zip(proposals, tasks, strict=True))


def test_an_opening_has_no_weights():
    """Tests the choice that begins an episode."""
    choice = Choice.opening(3.0)
    assert (choice.kind, choice.heat) == ("opening", 3.0)
    np.testing.assert_array_equal(choice.weights, NO_WEIGHTS)
