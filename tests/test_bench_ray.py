"""Tests of the benchmark of clusters: its numbers on threads, and a small run in shards on three nodes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from ray_head import environment
from search_cases import NO_WEIGHTS

from lns.bench import processes, ray, shards
from lns.result import NeighbourhoodRecord, RoundRecord


def round_record(solve_time, *work):
    """A round whose neighbourhoods worked so many seconds."""
    ones = tuple(
        NeighbourhoodRecord(
            "window", "curvature", 1.0, NO_WEIGHTS, NO_WEIGHTS, 0, 0, 0, {"solve": w}, [], 0.0
        )
        for w in work
    )
    return RoundRecord(0, 10, "reject", 1.0, 1.0, 0.0, 0.25, solve_time, 0.25, ones)


def test_costs():
    """Tests throughput and overhead by hand: work is spread over the workers."""
    rounds = [
        round_record(1.5, 1.0, 1.0),  # 2 s, of which 0.5 s beyond the work on two workers
        round_record(3.5, 3.0, 1.0),  # 4 s, of which 0.5 s beyond the longer one
    ]
    costs = ray.costs(rounds, workers=2)
    assert costs["rounds_per_second"] == pytest.approx(2 / 6)
    assert costs["overhead_ms"] == pytest.approx(500)
    assert costs["bytes_per_round"] == 0


def test_the_family_has_the_children():
    """Tests that a child of a child is counted, with its memory."""
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    try:
        for _ in range(200):
            family = processes.family(child.pid)
            if len(family) == 2:
                break
        assert [one.role for one in family].count("driver") == 1
        assert all(one.peak_mb >= one.private_mb > 0 for one in family)
    finally:
        child.communicate(b"\n")


@pytest.fixture
def bench(capsys):
    """Run the benchmark in this process; the exit code and what it prints."""

    def run(*words):
        code = ray.main(words)
        return code, capsys.readouterr().out

    return run


def test_the_table_and_the_object(bench):
    """Tests that both forms have a row for each number of workers, and one result."""
    options = ("--backend", "local", "--rows", "2000", "--max-rounds", "3", "--neighbourhoods", "2")
    code, text = bench(*options, "--json")
    result = json.loads(text)
    assert code == 0
    assert [run["workers"] for run in result["runs"]] == [1, 2]
    assert result["same_result"]
    assert result["processes"][0]["peak_mb"] > 0
    table = ray.table(result)
    assert "2,000 rows; 3 rounds of 2 neighbourhoods on local" in table
    assert "the same result in all runs: yes" in table
    assert "driver" in table


def test_shards_hold_all_rows(tmp_path):
    """Tests that the files of the benchmark have the rows asked for, and both classes."""
    name, paths = shards.write(str(tmp_path), 3, 1000, None)
    assert name == "made up"
    assert len(paths) == 3
    import numpy as np

    rows = [np.load(path)["X"].shape for path in paths]
    assert sum(shape[0] for shape in rows) == 1000
    assert {shape[1] for shape in rows} == {54}


@pytest.mark.ray
@pytest.mark.slow
def test_a_training_in_shards_on_three_nodes():
    """Tests the whole benchmark of shards, on few rows: too few to be below half of anything."""
    words = [
        sys.executable,
        "-m",
        "lns",
        "bench",
        "ray",
        "--shards",
        "3",
        "--rows",
        "3000",
        "--max-rounds",
        "3",
        "--json",
    ]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=600)
    result = json.loads(done.stdout.splitlines()[-1])
    assert done.returncode == 1
    assert (result["rows"], result["shards"], result["nodes"], result["rounds"]) == (3000, 3, 3, 3)
    assert result["objective"] <= result["start_objective"]
    assert 0 < result["bytes_per_round"] < 2**20
    assert shards.table(result)
