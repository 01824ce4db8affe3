"""Tests of shards on a real cluster: the same bits as without one, whatever is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from shard_cases import ShardsHere, write_shards

import lns
from lns.engine import EngineParams
from lns.errors import DataError

pytestmark = pytest.mark.ray
PARAMS = EngineParams(walk_moves=50, sample_rows=100, most_rows=200)


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    """300 noisy rows in three files."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 5))
    y = np.where(X @ rng.normal(size=5) + rng.normal(size=300) > 0, 1, -1)
    return write_shards(tmp_path_factory.mktemp("shards"), X, y, 3)


@pytest.fixture(scope="module")
def problem(ray_cluster, paths):
    """The rows in three actors."""
    with lns.ShardedProblem(paths, q={-1: -1.0, 1: -0.25}) as problem:
        yield problem


@pytest.fixture(scope="module")
def undisturbed(paths):
    """What a search finds without any cluster."""
    calm = lns.ShardedProblem(paths, q={-1: -1.0, 1: -0.25}, holder=ShardsHere)
    return lns.solve(calm, max_rounds=6, time_limit=None, params=PARAMS)


class Disturb(lns.Callbacks):
    """Does something to the problem after some rounds."""

    def __init__(self, action, rounds):
        self.action, self.rounds = action, rounds

    def on_round(self, record):
        if record.round in self.rounds:
            self.action(record.round)


def search(problem, *callbacks):
    """The search that all of these tests run."""
    return lns.solve(problem, max_rounds=6, time_limit=None, params=PARAMS, callbacks=callbacks)


def keeper_pid(problem, k):
    """The process of a shard."""
    import ray

    actor = problem._shards._actors[k]
    return ray.get(actor.__ray_call__.remote(lambda self: __import__("os").getpid()))


def test_the_search_is_the_same_bit_by_bit(problem, undisturbed):
    """Tests that answers are added in the order of the shards, whenever they arrive."""
    result = search(problem)
    np.testing.assert_array_equal(result.codes, undisturbed.codes)
    assert [record.objective for record in result.rounds] == [r.objective for r in undisturbed.rounds]
    np.testing.assert_array_equal(result.flagged, undisturbed.flagged)


def test_killed_shards_are_read_again(problem, undisturbed):
    """Tests that shards killed between rounds change nothing but the count."""
    before = problem.rebuilt

    def kill(round):
        for k in (0, 2):
            os.kill(keeper_pid(problem, k), signal.SIGKILL)

    result = search(problem, Disturb(kill, (2,)))
    assert problem.rebuilt - before == result.rebuilt == 2
    assert [record.round for record in result.rounds if record.rebuilt] == [3]
    assert "2 shards were lost and read again" in result.summary()
    assert [record.objective for record in result.rounds] == [r.objective for r in undisturbed.rounds]


def test_a_source_that_changed_is_not_read_again(ray_cluster, paths, tmp_path):
    """Tests that a lost shard is not replaced by other data."""
    copy = tmp_path / "copy.npz"
    copy.write_bytes(paths[1].read_bytes())
    with lns.ShardedProblem([copy]) as problem:
        with np.load(copy) as archive:
            np.savez(copy, X=archive["X"] + 1.0, y=archive["y"])
        os.kill(keeper_pid(problem, 0), signal.SIGKILL)
        with pytest.raises(DataError, match=r"copy\.npz has changed since the search began"):
            problem.objective(np.zeros(5), 0.0)


def test_an_unreadable_shard_is_named(ray_cluster, tmp_path):
    """Tests that an error in an actor arrives as it was raised there."""
    with pytest.raises(DataError, match=r"^There is no file .*lost\.npz\.$"):
        lns.ShardedProblem([tmp_path / "lost.npz"])


NODES = """
import json, logging, os, signal, sys
import ray
from ray.cluster_utils import Cluster
import lns
from lns.engine import EngineParams

cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
cluster.wait_for_nodes()
ray.init(address=cluster.address, log_to_driver=False)

class Remove(lns.Callbacks):
    def on_round(self, record):
        if record.round == 2:
            cluster.remove_node(nodes[0], allow_graceful=False)
            for home, pid in homes:  # a machine that is lost takes its processes along
                if home == nodes[0].node_id:
                    os.kill(pid, signal.SIGKILL)

with lns.ShardedProblem(sys.argv[1:], q={-1: -1.0, 1: -0.25}) as problem:
    where = lambda self: (__import__("ray").get_runtime_context().get_node_id(), __import__("os").getpid())
    homes = [ray.get(actor.__ray_call__.remote(where)) for actor in problem._shards._actors]
    params = EngineParams(walk_moves=50, sample_rows=100, most_rows=200)
    result = lns.solve(problem, max_rounds=6, time_limit=None, params=params, callbacks=[Remove()])
    print(json.dumps({"homes": len({home for home, _ in homes}), "rebuilt": problem.rebuilt,
                      "objectives": [record.objective for record in result.rounds]}))
ray.shutdown()
cluster.shutdown()
"""


@pytest.mark.slow
def test_a_node_lost_in_the_middle(paths, undisturbed):
    """Tests that shards are spread over three nodes, and that removing one of these changes nothing."""
    environment = {**os.environ, "PYTHONPATH": str(Path(lns.__file__).parent.parent)}
    words = [sys.executable, "-c", NODES, *map(str, paths)]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    seen = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    assert seen["homes"] == 3
    assert seen["rebuilt"] >= 1
    assert seen["objectives"] == [record.objective for record in undisturbed.rounds]


def test_a_problem_here_does_not_import_ray(paths):
    """Tests that the class itself costs nothing of Ray."""
    code = "import sys, lns; lns.ShardedProblem, lns.solve; print('ray' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
