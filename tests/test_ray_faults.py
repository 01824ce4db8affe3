"""Tests of long runs on a cluster that is being taken apart: slow, each on a cluster of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ray_cases import PARAMS, problem
from search_cases import facts

import lns

pytestmark = [pytest.mark.ray, pytest.mark.slow]

HEAD = """
import json, os, random, signal, sys, threading, time
import ray
import psutil  # Ray brings it along
from ray.cluster_utils import Cluster
import lns
import ray_cases
from ray_cases import PARAMS, problem
from search_cases import facts
ray.cloudpickle.register_pickle_by_value(ray_cases)

def workers(of):
    "Processes that run tasks, below one node manager (which ends with its agents)."
    found = psutil.Process(of.all_processes["raylet"][0].process.pid).children()
    titles = [(one, " ".join(one.cmdline())) for one in found]
    return [one for one, title in titles if "ray::" in title and "Agent" not in title]

def kill(processes):
    killed = 0
    for one in processes:
        try:
            one.kill()
            killed += 1
        except psutil.NoSuchProcess:
            pass
    return killed

def tell(result, **more):
    told = [facts(record) for record in result.rounds]
    print(json.dumps({"rounds": told, "retries": result.retries, **more}, default=str))

"""

KILLED = """
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 4, "include_dashboard": False})
ray.init(address=cluster.address, log_to_driver=False)
rng, over, killed = random.Random(0), threading.Event(), 0

def killer():
    global killed
    while not over.wait(rng.uniform(0.2, 1.5)):
        there = workers(cluster.head_node)
        killed += kill(rng.sample(there, -(-len(there) // 2)))

thread = threading.Thread(target=killer)
thread.start()
result = lns.solve(problem(), backend="ray", workers=4, max_rounds=200, time_limit=None, params=PARAMS)
over.set()
thread.join()
tell(result, killed=killed)
ray.shutdown()
cluster.shutdown()
"""

REMOVED = """
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
cluster.wait_for_nodes()
ray.init(address=cluster.address, log_to_driver=False)

def remove():
    lost = workers(nodes[0])
    cluster.remove_node(nodes[0], allow_graceful=False)
    kill(lost)  # a machine that is lost takes its processes along

class Remove(lns.Callbacks):
    def on_round(self, record):
        if record.round == 2:
            threading.Timer(0.25, remove).start()  # in the middle of the next round

solver = ray_cases.Slow(0.5)
result = lns.solve(problem(), backend="ray", workers=3, max_rounds=8, time_limit=None, params=PARAMS,
                   solver=solver, callbacks=[Remove()])
cluster.wait_for_nodes()  # until the loss is known to all
tell(result, nodes=sum(node["Alive"] for node in ray.nodes()))
ray.shutdown()
cluster.shutdown()
"""


def run(script):
    """What a script says on its last line, run in a process of its own."""
    path = [str(Path(lns.__file__).parent.parent), str(Path(__file__).parent)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    words = [sys.executable, "-c", HEAD + script]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=550)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))


def told(result):
    """The rounds of a run as a script tells them."""
    return json.loads(json.dumps([facts(record) for record in result.rounds], default=str))


def test_half_of_the_workers_killed_throughout_200_rounds():
    """Tests that every round and the result are those of an undisturbed run, and that losses are counted."""
    seen = run(KILLED)
    calm = lns.solve(problem(), max_rounds=200, time_limit=None, params=PARAMS)
    assert seen["killed"] >= 20
    assert seen["retries"] > 0
    assert seen["rounds"] == told(calm)


def test_a_node_removed_in_the_middle_of_a_round():
    """Tests the loss of one node of three: the same rounds on the others."""
    seen = run(REMOVED)
    calm = lns.solve(problem(), max_rounds=8, time_limit=None, params=PARAMS)
    assert seen["nodes"] == 2
    assert seen["retries"] > 0
    assert seen["rounds"] == told(calm)
