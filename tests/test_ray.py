"""Tests of rounds on a Ray cluster: the same as local ones, whatever happens to the workers."""

from __future__ import annotations

import subprocess
import sys
from time import perf_counter

import pytest
import ray_cases
from ray_cases import PARAMS, Faulty, Refuses, Unsendable, problem
from search_cases import KINDS, assert_same_run, random_problem

import lns
from lns.engine import EngineParams
from lns.errors import InvalidInput
from lns.rounds import Part

pytestmark = pytest.mark.ray


@pytest.fixture(autouse=True, scope="module")
def send_solvers_by_value():
    """The workers do not have the modules of the tests."""
    from ray import cloudpickle

    cloudpickle.register_pickle_by_value(ray_cases)
    yield
    cloudpickle.unregister_pickle_by_value(ray_cases)


@pytest.fixture
def backend(ray_cluster):
    """The module of the backend, whose constants some tests change."""
    import lns.backends.ray

    return lns.backends.ray


@pytest.fixture
def no_warm_up(backend, monkeypatch):
    """Let the first call of a solver be that of a round."""
    monkeypatch.setattr(backend.RayBackend, "_warm_up", lambda self, part, task: None)


def solve(rounds=12, **options):
    """A short run with a round limit only."""
    given = {"problem": problem(), "time_limit": None, "params": PARAMS, "workers": 2, **options}
    return lns.solve(max_rounds=rounds, **given)


@pytest.fixture(scope="module")
def local():
    """The run of most tests, without a cluster."""
    return solve()


# ---- the same search ----


@pytest.mark.parametrize(
    "ranges", [{}, {"weight_range": "auto", "bias_range": "auto"}], ids=["given", "auto"]
)
@pytest.mark.parametrize("kind", KINDS)
def test_the_search_is_the_local_one(kind, ranges, ray_cluster):
    """Tests rounds and result bit for bit, with one worker and with two, on samples and levels laid anew."""
    options = {"max_rounds": 12, "time_limit": None, "params": PARAMS}

    def fresh():
        return random_problem(kind, 300, weight_bits=2, **ranges)

    here = lns.solve(fresh(), workers=1, **options)
    assert {record.rows for record in here.rounds} == {120, 250}
    for workers in (1, 2):
        there = lns.solve(fresh(), workers=workers, backend="ray", **options)
        assert_same_run(there, here)
        assert there.retries == 0


@pytest.mark.parametrize("options", [{"solver": "emulator", "solver_options": {"topology": "chimera:4"}}])
def test_solvers_with_a_memory_are_built_where_they_work(options, ray_cluster):
    """Tests an emulated annealer: sent as its options, and what it says of its calls comes back."""
    options = {"mode": "rounds", **options}
    here, there = solve(3, **options), solve(3, backend="ray", **options)
    plain = [{k: v for k, v in call.items() if not k.endswith("_seconds")} for result in (here, there)
             for one in result.rounds[-1].neighbourhoods for call in one.chip]  # fmt: skip
    assert plain[: len(plain) // 2] == plain[len(plain) // 2 :]
    assert plain[0]["num_qubits"] > 0
    assert here.codes.tolist() == there.codes.tolist()


def test_a_run_may_change_between_threads_and_cluster(local, ray_cluster, tmp_path):
    """Tests a run that is begun on the cluster, goes on in threads, and ends on the cluster."""
    path = tmp_path / "run.ckpt"
    solve(3, backend="ray", checkpoint=path)
    lns.resume(path, time_limit=None, max_rounds=7, workers=2)
    assert_same_run(lns.resume(path, time_limit=None, max_rounds=12, backend="ray", workers=1), local)


def test_messages_are_small(ray_cluster):
    """Tests that the data is not in them: ten times the rows, the same bytes."""
    few, many = (
        solve(6, backend="ray", problem=random_problem(rows=rows), params=EngineParams(walk_moves=20))
        for rows in (300, 3000)
    )
    for one, other in zip(few.rounds, many.rounds, strict=True):
        assert 0 < one.moved_bytes < 20_000
        assert other.moved_bytes < 1.5 * one.moved_bytes + 500
    assert solve(2).rounds[-1].moved_bytes == 0


def test_the_time_limit_holds(ray_cluster):
    """Tests that deadlines reach the workers: a walk without end is cut."""
    params = EngineParams(walk_moves=10**9, walk_share=1e6)
    began = perf_counter()
    result = lns.solve(problem(), time_limit=1.5, params=params, backend="ray", workers=2)
    assert result.stop_reason == "time_limit"
    assert result.wall_time < 1.5 + 5.0
    assert perf_counter() - began < 60


def test_the_cluster_of_others_stays(ray_cluster):
    """Tests that a connection that was there before is there afterwards."""
    solve(1, backend="ray")
    assert ray_cluster.is_initialized()
    assert ray_cluster.cluster_resources()["CPU"] == 2


# ---- errors ----


def test_an_error_of_the_solver_is_raised_as_it_was(ray_cluster):
    """Tests that a task that fails is not taken for a lost worker."""
    with pytest.raises(ZeroDivisionError, match="no such thing"):
        solve(backend="ray", solver=Refuses())


def test_a_solver_that_cannot_be_sent_is_refused(ray_cluster):
    """Tests that the reason is told before anything begins."""
    with pytest.raises(
        InvalidInput, match="cannot be sent to the workers of a cluster: cannot pickle a conn"
    ):
        solve(backend="ray", solver=Unsendable())


def test_an_address_goes_with_ray():
    """Tests that a cluster is not forgotten silently."""
    with pytest.raises(InvalidInput, match='address goes with backend="ray"'):
        solve(address="auto")


def test_a_cluster_that_is_not_there():
    """Tests that an unreachable address is told in one line, in a process without Ray."""
    code = """
import lns
from ray_cases import problem
try:
    lns.solve(problem(), backend="ray", address="127.0.0.1:1", max_rounds=1)
except lns.InvalidInput as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=roots()
    )
    assert "No Ray cluster can be reached at '127.0.0.1:1'" in done.stdout
    assert len(done.stdout.splitlines()) == 1


def test_ray_is_not_imported_by_those_who_do_not_ask():
    """Tests a local run with a checkpoint, in a new process."""
    code = """
import sys, tempfile, lns
from ray_cases import PARAMS, problem
path = tempfile.mkdtemp() + "/run.ckpt"
lns.solve(problem(), max_rounds=2, params=PARAMS, checkpoint=path)
lns.resume(path, max_rounds=3)
print([name for name in sys.modules if name.split(".")[0] in ("ray", "sklearn", "hybrid", "matplotlib")])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=roots()
    )
    assert done.stdout.strip() == "[]"


def roots():
    """The environment of a process that finds the package and the tests."""
    import os

    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


# ---- faults ----


def test_lost_workers_change_nothing_but_the_count(local, ray_cluster, no_warm_up, tmp_path):
    """Tests workers that are killed in the middle of their tasks: the same rounds, and each loss counted."""
    result = solve(backend="ray", solver=Faulty("die", tmp_path, share=0.1))
    died = len(list(tmp_path.iterdir()))
    assert died > 0
    assert result.retries == died == sum(record.retries for record in result.rounds)
    assert_same_run(result, local)
    assert f"faults       {died} neighbourhoods were run again" in result.summary()
    assert "faults" not in local.summary()


def test_what_kills_every_worker_is_run_here(ray_cluster, no_warm_up, tmp_path, backend, monkeypatch):
    """Tests that a task is not sent for ever: after some attempts the driver does it itself."""
    monkeypatch.setattr(backend, "ATTEMPTS", 2)
    options = {"mode": "rounds", "params": EngineParams(neighbourhoods=1)}
    result = solve(1, backend="ray", solver=Faulty("die", tmp_path, share=1.0, times=99), **options)
    assert_same_run(result, solve(1, **options))
    assert [record.retries for record in result.rounds] == [2]


def test_hanging_tasks_are_begun_again_elsewhere(local, no_warm_up, tmp_path, backend, monkeypatch):
    """Tests tasks that never end, without any time limit: the same rounds, and the workers are free again."""
    monkeypatch.setattr(backend, "PATIENCE", 1.5)
    result = solve(backend="ray", solver=Faulty("hang", tmp_path, share=0.1))
    hung = len(list(tmp_path.iterdir()))
    assert hung > 0
    assert result.retries >= hung
    assert_same_run(result, local)


def test_what_hangs_everywhere_is_run_here(ray_cluster, no_warm_up, tmp_path, backend, monkeypatch):
    """Tests one worker that hangs in every task: the driver does not wait for a free one."""
    monkeypatch.setattr(backend, "PATIENCE", 0.5)
    faulty = Faulty("hang", tmp_path, share=1.0, times=99)
    result = solve(1, backend="ray", workers=1, solver=faulty, mode="rounds")
    assert_same_run(result, solve(1, mode="rounds"))
    assert result.rounds[0].retries >= PARAMS.neighbourhoods


def test_what_hangs_past_the_deadline_is_given_up(no_warm_up, tmp_path, backend, monkeypatch):
    """Tests that the run ends a grace after its time limit."""
    monkeypatch.setattr(backend, "GRACE", 0.5)
    result = lns.solve(
        problem(), time_limit=3.0, params=PARAMS, backend="ray", workers=2, mode="rounds",
        solver=Faulty("hang", tmp_path, share=1.0, times=99),
    )  # fmt: skip
    assert result.stop_reason == "time_limit"
    assert result.retries > 0
    assert result.wall_time < 30


def test_workers_that_do_not_start_are_not_waited_for(local, tmp_path, backend, monkeypatch):
    """Tests a worker that hangs before the run: a warning, and the run begins without it."""
    monkeypatch.setattr(backend, "SLOW_START", 2.0)
    with pytest.warns(lns.ClusterWarning, match=r"of 2 workers were not ready within 2 s"):
        result = solve(backend="ray", solver=Faulty("hang", tmp_path, share=1.0, times=1, calls=1))
    assert_same_run(result, local)


def test_a_full_object_store_is_one_warning(local, ray_cluster, backend, monkeypatch):
    """Tests that rounds whose data finds no room run here."""
    put = backend.Parcel.put

    def full(value):
        if isinstance(value, Part) and value.rows > 2:
            raise backend.ObjectStoreFullError("no room\nat all")
        return put(value)

    monkeypatch.setattr(backend.Parcel, "put", full)
    with pytest.warns(lns.ClusterWarning, match=r"object store .* is full \(.*no room.*\)") as caught:
        result = solve(backend="ray")
    assert len(caught) == 1
    assert_same_run(result, local)
    assert result.retries == sum(len(record.neighbourhoods) for record in result.rounds)


def test_data_lost_from_the_store_is_put_there_again(local, no_warm_up, backend, monkeypatch):
    """Tests that a task which reports lost data is sent again with new data."""
    opened, lost, forgotten = backend._open, [], []

    def lose(ref):
        answer = opened(ref)
        if len(lost) < 3:
            lost.append(ref)
            raise backend.ObjectLostError("00" * 14, None, "")
        return answer

    forget = backend.RayBackend.forget_parcels
    monkeypatch.setattr(
        backend.RayBackend, "forget_parcels", lambda self: (forgotten.append(1), forget(self))
    )
    monkeypatch.setattr(backend, "_open", lose)
    result = solve(backend="ray")
    assert (len(forgotten), result.retries) == (3, 3)
    assert_same_run(result, local)


def test_an_interrupt_leaves_a_result_and_free_workers(local, ray_cluster, tmp_path):
    """Tests Ctrl-C between rounds and a run after it."""

    class Stop(lns.Callbacks):
        def on_round(self, record):
            if record.round == 4:
                raise KeyboardInterrupt

    path = tmp_path / "run.ckpt"
    result = solve(backend="ray", callbacks=[Stop()], checkpoint=path)
    assert (result.stop_reason, len(result.rounds)) == ("interrupted", 5)
    assert_same_run(lns.resume(path, time_limit=None, backend="ray"), local)


def test_an_interrupt_cancels_the_tasks_of_the_round(ray_cluster, no_warm_up, tmp_path):
    """Tests Ctrl-C while tasks hang: the run ends at once, and the workers are there for the next."""
    import signal
    import threading

    alarm = threading.Timer(3.0, lambda: signal.raise_signal(signal.SIGINT))
    alarm.start()
    result = solve(backend="ray", solver=Faulty("hang", tmp_path, share=1.0), mode="rounds")
    assert result.stop_reason == "interrupted"
    assert result.wall_time < 30
    assert len(solve(2, backend="ray").rounds) == 2


def test_workers_find_the_next_task_waiting(ray_cluster, backend):
    """Tests that more tasks are sent than run at once, unless that would make more of them run."""
    for workers, under_way in ((1, 1), (2, 4), (3, 6)):  # on two CPUs
        with backend.RayBackend(lns.solvers.Tabu(), workers, None, ()) as one:
            assert one.most_under_way == under_way
