"""Tests of runs that are stopped, interrupted, killed, and go on."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import killed_run
import numpy as np
import pytest
from search_cases import KINDS, assert_same_run, random_problem

import lns
from lns import checkpoint as files
from lns import keeper
from lns.accept import Outcome
from lns.engine import EngineParams
from lns.errors import InvalidInput
from lns.solvers import Tabu

SAMPLES = EngineParams(walk_moves=50, sample_rows=50, most_rows=110)
AUTOMATIC = {"weight_range": "auto", "bias_range": "auto"}


def solve(problem=None, rounds=10, **options):
    """A short run with a round limit only."""
    problem = problem or random_problem()
    return lns.solve(problem, max_rounds=rounds, **{"time_limit": None, "params": SAMPLES, **options})


@pytest.fixture
def path(tmp_path):
    """Where checkpoints go."""
    return tmp_path / "run.ckpt"


# ---- the same way ----


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ranges", [{}, AUTOMATIC], ids=["given", "automatic"])
def test_a_run_in_pieces_is_the_undisturbed_run(kind, ranges, path):
    """Tests rounds and result, bit for bit, through samples, levels laid anew and other worker counts."""
    start = {"initial": "random"}
    whole = solve(random_problem(kind, 300, **ranges), 50, workers=2, **start)
    assert {record.rows for record in whole.rounds} == {50, 110}
    assert len({record.neighbourhoods[0].kind for record in whole.rounds}) > 1
    assert len({record.outcome for record in whole.rounds}) > 1
    solve(random_problem(kind, 300, **ranges), 7, checkpoint=path, workers=1, **start)
    for rounds in (7, 8, 23):
        part = lns.resume(path, max_rounds=rounds, time_limit=None, workers=2)
        assert len(part.rounds) == rounds
    assert_same_run(lns.resume(path, max_rounds=50, time_limit=None, workers=1), whole)


@pytest.mark.parametrize(
    "options",
    [
        {"solver": "sa", "solver_options": {"num_reads": 2, "num_sweeps": 20}},
        {"mode": "paper", "examples": 2, "max_bits": 24},
        {"mode": "rounds", "params": EngineParams(neighbourhoods=3, elites=2)},
        {"initial": "random", "seed": 7},
        {"initial": (np.full(6, 0.3), -0.2), "accept": "greedy"},
    ],
)
def test_every_setting_is_kept(options, path):
    """Tests that a run goes on with the arguments it was begun with."""
    whole = solve(rounds=16, **options)
    solve(rounds=5, checkpoint=path, **options)
    assert_same_run(lns.resume(path, max_rounds=16, time_limit=None), whole)


def test_the_time_limit_of_the_beginning_sizes_the_walks(path):
    """Tests that another limit of the second part does not change its walks."""
    params = EngineParams(kinds=("walk",), walk_moves=10**6, walk_share=1e-8, neighbourhoods=1, heats=(0.3,))
    problem, start = random_problem(rows=200, features=30), {"initial": "random"}
    whole = solve(problem, 14, time_limit=1000.0, params=params, **start)
    other = solve(problem, 14, time_limit=4000.0, params=params, **start)
    assert [r.objective for r in whole.rounds] != [r.objective for r in other.rounds]
    solve(problem, 4, time_limit=1000.0, params=params, checkpoint=path, **start)
    lns.resume(path, max_rounds=9, time_limit=4000.0)
    assert_same_run(lns.resume(path, max_rounds=14, time_limit=None), whole)


def test_the_problem_at_hand_serves_as_well_as_the_file(path):
    """Tests that a given problem is used, even on other levels than those of the run, and not changed."""
    whole = solve(random_problem(**AUTOMATIC), 12)
    solve(random_problem(**AUTOMATIC), 5, checkpoint=path)
    files.data_path(path).unlink()
    given = random_problem(**AUTOMATIC)
    given._warm_start = (np.ones(6), 3.0)  # the start of another, hurried run
    levels = given.weight_grid.lo.copy()
    assert_same_run(lns.resume(path, max_rounds=12, time_limit=None, problem=given), whole)
    np.testing.assert_array_equal(given.weight_grid.lo, levels)


def test_objects_that_a_file_cannot_keep_are_given_again(path):
    """Tests a solver and an acceptance with a memory of its own."""

    class Every:
        """Accepts every third candidate."""

        def __init__(self):
            self.count = 0

        def __call__(self, best, curr, cand, rng):
            self.count += 1
            if cand < best:
                return Outcome.BEST
            return Outcome.ACCEPT if self.count % 3 == 0 else Outcome.REJECT

        def state(self):
            return self.count

        def restore(self, state):
            self.count = state

    whole = solve(rounds=16, solver=Tabu(num_reads=2), accept=Every())
    solve(rounds=7, solver=Tabu(num_reads=2), accept=Every(), checkpoint=path)
    with pytest.raises(
        InvalidInput, match="an object as solver, which a file cannot keep: pass solver= again"
    ):
        lns.resume(path, max_rounds=16, accept=Every())
    with pytest.raises(InvalidInput, match="pass accept= again"):
        lns.resume(path, max_rounds=16, solver=Tabu(num_reads=2))
    again = lns.resume(path, max_rounds=16, time_limit=None, solver=Tabu(num_reads=2), accept=Every())
    assert_same_run(again, whole)


def test_a_named_solver_is_not_replaced(path):
    """Tests that a solver given needlessly is refused: the run would take another way."""
    solve(rounds=2, checkpoint=path)
    with pytest.raises(InvalidInput, match="goes on with its own solver, 'tabu'"):
        lns.resume(path, max_rounds=3, solver="sa")


# ---- limits ----


def test_limits_of_the_beginning_hold_until_they_are_reached(path):
    """Tests rounds: an old limit holds while it can, a new one counts all rounds, a reached one is gone."""
    solve(rounds=9, checkpoint=path, target=-1.0, no_improvement=1000)
    stopped = solve(rounds=9, checkpoint=path, callbacks=[StopAt(4)])
    assert (len(stopped.rounds), stopped.stop_reason) == (4, "interrupted")
    assert len(lns.resume(path, time_limit=None).rounds) == 9
    with pytest.raises(InvalidInput, match="Give at least one of time_limit"):
        lns.resume(path, time_limit=None)
    assert len(lns.resume(path, time_limit=None, max_rounds=11).rounds) == 11
    assert lns.resume(path, time_limit=0.2).stop_reason == "time_limit"


def test_the_time_limit_is_for_what_is_to_come(path):
    """Tests that seconds spent before do not count against it, and do count in the times of the result."""
    first = lns.solve(random_problem(), time_limit=0.5, checkpoint=path, params=SAMPLES)
    second = lns.resume(path, time_limit=0.5)
    assert second.stop_reason == "time_limit"
    assert len(second.rounds) > len(first.rounds)
    assert second.wall_time >= 0.99
    assert [r.seconds for r in second.rounds] == sorted(r.seconds for r in second.rounds)
    assert second.rounds[len(first.rounds)].seconds >= first.rounds[-1].seconds


@pytest.mark.parametrize(
    "options", [{"time_limit": 0}, {"workers": 0}, {"backend": "no"}, {"max_rounds": -1}]
)
def test_bad_arguments_are_refused(options, path):
    """Tests that they are found before the search goes on."""
    solve(rounds=1, checkpoint=path)
    with pytest.raises(InvalidInput):
        lns.resume(path, **{"max_rounds": 3, **options})


# ---- what can be wrong with the files ----


def test_another_problem_is_refused(path):
    """Tests that both fingerprints are in the message, whether the problem was given or lies beside."""
    solve(rounds=2, checkpoint=path)
    with pytest.raises(lns.WrongProblem, match=r"belongs to the problem [0-9a-f]{32}, but .*[0-9a-f]{32}"):
        lns.resume(path, problem=random_problem(lam=0.5))
    other = path.with_name("other.ckpt")
    solve(random_problem(seed=1), 2, checkpoint=other)
    os.replace(files.data_path(other), files.data_path(path))
    with pytest.raises(lns.WrongProblem, match=r"run\.ckpt\.data\.npz holds"):
        lns.resume(path)


def test_missing_data_is_named_with_the_remedy(path):
    """Tests a checkpoint that was moved without the file beside it."""
    solve(rounds=2, checkpoint=path)
    files.data_path(path).unlink()
    with pytest.raises(
        lns.DataError, match=r"run\.ckpt\.data\.npz, the data of this checkpoint, is missing.*problem="
    ):
        lns.resume(path)


def test_a_checkpoint_that_lacks_something_is_damaged(path):
    """Tests a file of the right form with the wrong contents."""
    solve(rounds=2, checkpoint=path)
    header, arrays = files.read_checkpoint(path)
    for missing in ("curr", "start", "elites", "curr.weight_lo", "best.bias_hi", "record.round.outcome"):
        files.write_checkpoint(path, header, {name: arrays[name] for name in arrays if name != missing})
        with pytest.raises(lns.DamagedCheckpoint, match="lacks a part"):
            lns.resume(path)
    files.write_checkpoint(path, {name: header[name] for name in header if name != "search"}, arrays)
    with pytest.raises(lns.DamagedCheckpoint, match="lacks a part"):
        lns.resume(path)


@pytest.mark.parametrize("where", ["no/such/folder/run.ckpt", "."])
def test_an_impossible_path_is_refused_before_any_work(where, tmp_path):
    """Tests folders that are not there, and folders instead of files."""
    problem = random_problem(**AUTOMATIC)
    with pytest.raises(InvalidInput, match="checkpoint must name a file in an existing folder"):
        solve(problem, checkpoint=tmp_path / where)
    assert problem._warm_start is None
    with pytest.raises(InvalidInput, match="checkpoint_every must be above 0"):
        solve(problem, checkpoint=tmp_path / "run.ckpt", checkpoint_every=0)


def test_a_full_disk_at_the_start_is_an_error(path, monkeypatch):
    """Tests that nobody waits for a run that cannot be kept."""
    monkeypatch.setattr(os, "fsync", out_of_space)
    problem = random_problem(**AUTOMATIC)
    with pytest.raises(InvalidInput, match=r"checkpoint cannot be written to .*No space left on device"):
        solve(problem, checkpoint=path)
    assert problem._warm_start is None


def test_a_full_disk_later_is_one_warning(path, monkeypatch):
    """Tests that the run goes on to the same result, and that the last good file is still good."""
    whole = solve(rounds=12)
    real = os.fsync
    monkeypatch.setattr(keeper, "MOST", np.inf)  # write after every round, whatever it costs

    class FillsUp(lns.Callbacks):
        def on_round(self, record):
            monkeypatch.setattr(os, "fsync", out_of_space if 3 <= record.round < 11 else real)

    with pytest.warns(lns.CheckpointWarning, match="could not be written .*No space left") as caught:
        kept = solve(rounds=8, checkpoint=path, checkpoint_every=1e-9, callbacks=[FillsUp()])
    assert len([one for one in caught if one.category is lns.CheckpointWarning]) == 1
    assert len(kept.rounds) == 8
    monkeypatch.setattr(os, "fsync", real)
    header, _ = files.read_checkpoint(path)
    assert header["search"]["rounds"] == 4
    assert_same_run(lns.resume(path, max_rounds=12, time_limit=None), whole)


def out_of_space(*_args):
    """A disk without room."""
    raise OSError(errno.ENOSPC, "No space left on device")


# ---- when it is written ----


class StopAt(lns.Callbacks):
    """Ctrl-C at the end of a round."""

    def __init__(self, rounds):
        self.rounds = rounds

    def on_round(self, record):
        if record.round + 1 == self.rounds:
            raise KeyboardInterrupt


def test_the_start_is_kept(path, monkeypatch):
    """Tests that a run that dies in its first round does not have to find its start again."""

    def die(*_args, **_options):
        raise RuntimeError("lights out")

    problem = random_problem(**AUTOMATIC)
    with pytest.raises(RuntimeError, match="lights out"):
        solve(problem, checkpoint=path, solver=die, mode="paper")
    monkeypatch.setattr(lns.QLossProblem, "find_warm_start", die)
    found = lns.resume(path, max_rounds=0, solver=die)
    assert found.rounds == []
    assert found.objective == pytest.approx(problem.objective(*problem.warm_start), rel=1e-9)


class Interrupts:
    """A solver during whose so-many-th call Ctrl-C is pressed."""

    def __init__(self, at):
        self.at, self.calls = at, 0

    def __call__(self, sub, start, seed):
        self.calls += 1
        if self.calls == self.at:
            signal.raise_signal(signal.SIGINT)
            time.sleep(0.3)
        return Tabu()(sub, start, seed)


@pytest.mark.parametrize("at", [1, 6, 15])
def test_an_interrupt_in_the_middle_of_a_round_is_kept_at_its_beginning(at, path):
    """Tests that half a round is never in the file: it is done again, and comes out the same."""
    whole = solve(rounds=14, mode="rounds")
    result = solve(rounds=14, mode="rounds", solver=Interrupts(at), checkpoint=path, workers=1)
    assert result.stop_reason == "interrupted"
    assert len(result.rounds) < 14
    assert_same_run(lns.resume(path, max_rounds=14, time_limit=None, solver=Tabu()), whole)


def test_an_interrupt_while_the_round_is_taken_down(path, monkeypatch):
    """Tests the worst moment: the records have the round already, the rest has not."""
    whole = solve(rounds=10)
    state, calls = keeper.Selector.state, []

    def interrupted(self):
        calls.append(1)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return state(self)

    monkeypatch.setattr(keeper.Selector, "state", interrupted)
    assert solve(rounds=10, checkpoint=path).stop_reason == "interrupted"
    assert files.read_checkpoint(path)[0]["search"]["rounds"] == 4
    assert_same_run(lns.resume(path, time_limit=None), whole)


def test_writes_are_rare_if_they_are_slow(path, monkeypatch):
    """Tests that checkpoints take at most a twentieth of the time, however often they are asked for."""
    written = []

    def slow(where, header, arrays):
        written.append(header["search"]["rounds"])
        time.sleep(0.05)

    monkeypatch.setattr(keeper, "write_checkpoint", slow)
    lns.solve(random_problem(), time_limit=1.5, checkpoint=path, checkpoint_every=1e-9, params=SAMPLES)
    assert len(written) <= 4


def test_sigterm_ends_a_run_with_its_result(path):
    """Tests that the run ends as by Ctrl-C, goes on from its file, and that the old handler is back."""
    heard = []
    before = signal.signal(signal.SIGTERM, lambda *_: heard.append("mine"))
    try:
        whole = solve(rounds=30)

        class Terminate(lns.Callbacks):
            def on_round(self, record):
                if record.round == 11:
                    os.kill(os.getpid(), signal.SIGTERM)

        result = solve(rounds=30, checkpoint=path, callbacks=[Terminate()])
        assert result.stop_reason == "interrupted"
        assert not heard
        signal.raise_signal(signal.SIGTERM)
        assert heard == ["mine"]
        assert_same_run(lns.resume(path, time_limit=None), whole)
        solve(rounds=14, callbacks=[Terminate()])  # without a checkpoint nothing is caught
        assert heard == ["mine", "mine"]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_run_in_a_thread_leaves_signals_alone(path):
    """Tests that checkpoints work where no handler can be set."""
    results = []
    thread = threading.Thread(target=lambda: results.append(solve(rounds=5, checkpoint=path)))
    thread.start()
    thread.join()
    assert len(results[0].rounds) == 5
    assert_same_run(lns.resume(path, max_rounds=9, time_limit=None), solve(rounds=9))


# ---- killed ----


def killed_and_resumed(folder, kills, seed, backend="local"):
    """Kill a run so many times, each time after a few rounds, and let it go on; what it wrote at its end."""
    rng = np.random.default_rng(seed)
    checkpoint, out, done = folder / "run.ckpt", folder / "out.json", 0
    script = Path(killed_run.__file__)
    roots = os.pathsep.join([str(script.parent), str(script.parent.parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": roots}
    command = [sys.executable, str(script), str(checkpoint), str(out), backend]
    rounds = []
    while not out.exists():
        child = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True)
        if done < kills:
            for _ in range(
                rng.integers(7)
            ):  # lines: the first says that rounds begin, the others that one ended
                child.stdout.readline()
            time.sleep(rng.exponential(0.02))
            child.kill()
            done += 1
            if checkpoint.exists():
                rounds.append(files.read_checkpoint(checkpoint)[0]["search"]["rounds"])
        child.communicate()
        assert done < kills or child.returncode in (0, -signal.SIGKILL)
    assert rounds == sorted(rounds)
    return json.loads(out.read_text()), rounds


def undisturbed():
    """What the killed runs would have found, worked out here."""
    result = lns.solve(
        killed_run.problem(), time_limit=None, max_rounds=killed_run.ROUNDS, params=killed_run.PARAMS
    )
    return json.loads(json.dumps(killed_run.summary(result)))


def test_a_killed_run_ends_as_the_undisturbed_one(tmp_path):
    """Tests kill -9 at two moments."""
    found, rounds = killed_and_resumed(tmp_path, 2, 0)
    assert rounds
    assert found == undisturbed()


@pytest.mark.slow
def test_a_run_killed_twenty_times_ends_as_the_undisturbed_one(tmp_path):
    """Tests kill -9 at twenty random moments: in the start, in rounds, in writes."""
    found, rounds = killed_and_resumed(tmp_path, 20, 1)
    assert len(set(rounds)) > 5
    assert found == undisturbed()


# ---- the problem itself ----


def test_a_hurried_start_leaves_no_trace():
    """Tests that a start cut short by a time limit is found anew, levels included, by the next run."""
    calm = random_problem(rows=400, features=20, **AUTOMATIC)
    expected = solve(calm, 6)
    hurried = random_problem(rows=400, features=20, **AUTOMATIC)
    first = lns.solve(hurried, time_limit=1e-4, params=SAMPLES)
    assert hurried.objective(first.weights, first.bias) == pytest.approx(first.objective)
    assert hurried.on_levels(*first.grids).state(first.codes).objective == pytest.approx(first.objective)
    assert (hurried.warm_start[0] != calm.warm_start[0]).any()
    assert_same_run(solve(hurried, 6), expected)


def test_the_time_limit_holds_for_the_levels_of_a_given_start():
    """Tests that automatic ranges are found within the time of the run, also if the start is given."""
    problem = random_problem(rows=400, features=20, **AUTOMATIC)
    lns.solve(problem, time_limit=1e-4, initial="zero", params=SAMPLES)
    calm = random_problem(rows=400, features=20, **AUTOMATIC)
    assert (problem.warm_start[0] != calm.warm_start[0]).any()
