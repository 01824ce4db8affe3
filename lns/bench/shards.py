"""A training on data in shards, on three nodes of this machine, and what memory it took."""

from __future__ import annotations

import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import lns
from lns.backends.shards import nodes_here
from lns.bench.processes import family
from lns.bench.scale import make_data
from lns.engine import EngineParams
from lns.errors import DataError

NODES = 3
TIMES = 10  # covertype so many times over
ROWS = TIMES * 581_012
JITTER = 0.01
WALK_MOVES = 200  # per weight


def measure(count: int, rows: int | None, max_rounds: int, data_dir: str | None) -> dict[str, Any]:
    """Write the shards, train on them, and look at every process before it ends."""
    with tempfile.TemporaryDirectory(prefix="lns-shards-") as folder:
        # In another process: the memory of this one is measured.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as writer:
            name, paths = writer.submit(write, folder, count, rows, data_dir).result()
        with nodes_here(NODES):
            begin = time.perf_counter()
            with lns.ShardedProblem(paths) as problem:
                read = time.perf_counter() - begin
                result = lns.solve(
                    problem,
                    time_limit=None,
                    max_rounds=max_rounds,
                    params=EngineParams(walk_moves=WALK_MOVES),
                )
                processes = family()
    data_mb = problem.num_examples * problem.num_features * 4 / 2**20
    return {
        "data": name,
        "rows": problem.num_examples,
        "features": problem.num_features,
        "shards": count,
        "nodes": NODES,
        "data_mb": data_mb,
        "limit_mb": data_mb / 2,
        "peak_mb": max(process.peak_mb for process in processes),
        "read_seconds": read,
        "start_seconds": result.start_time,
        "seconds": result.wall_time,
        "rounds": len(result.rounds),
        "sample_rows": max(record.rows for record in result.rounds),
        "bytes_per_round": float(np.median([record.moved_bytes for record in result.rounds])),
        "start_objective": result.start_objective,
        "objective": result.objective,
        "rebuilt": result.rebuilt,
        "processes": [asdict(process) for process in processes],
    }


def write(folder: str, count: int, rows: int | None, data_dir: str | None) -> tuple[str, list[str]]:
    """So many files with equal parts of the rows."""
    try:
        if rows is not None:
            raise DataError("not wanted")
        data = lns.load_dataset("covertype", data_dir, download_if_missing=False)
        name, X, y = f"covertype, {TIMES} times over, jittered", data.X, data.y
    except DataError:
        X, y = make_data(min(rows or ROWS, ROWS // TIMES))
        name = "made up"
    numbers = np.array_split(np.arange(rows or ROWS), count)
    paths = []
    for k, part in enumerate(numbers):
        rng = np.random.default_rng(k)
        taken = np.ascontiguousarray(X[part % len(y)])
        taken += JITTER * rng.random(taken.shape, dtype=np.float32) * (taken > 0)
        paths.append(str(Path(folder) / f"part-{k:03}.npz"))
        np.savez(paths[-1], X=np.asfortranarray(taken), y=y[part % len(y)])
    return name, paths


def table(result: dict[str, Any]) -> str:
    """The result of `measure` for people."""
    from lns.bench.ray import memory_lines

    verdict = "below" if result["peak_mb"] < result["limit_mb"] else "NOT BELOW"
    return "\n".join(
        [
            f"{result['data']}: {result['rows']:,} x {result['features']} in {result['shards']} shards on "
            f"{result['nodes']} nodes, {result['data_mb']:,.0f} MB",
            f"objective    {result['objective']:.6f}  (start {result['start_objective']:.6f})",
            f"rounds       {result['rounds']}, on at most {result['sample_rows']:,} rows, judged on all",
            f"time         {result['read_seconds']:.0f} s to read, {result['start_seconds']:.0f} s to start, "
            f"{result['seconds']:.0f} s in all",
            f"moved        {result['bytes_per_round'] / 1024:,.0f} kB in a round",
            f"peak memory  {result['peak_mb']:,.0f} MB in the largest process, {verdict} half of the data "
            f"({result['limit_mb']:,.0f} MB)",
            "",
            *memory_lines(result["processes"]),
        ]
    )
