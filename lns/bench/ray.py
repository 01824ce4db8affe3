"""``lns bench ray``: what a Ray cluster brings and costs.

``workers``  Rounds a second with 1, 2, ... workers, the same rounds each time: same seed, same
             neighbourhoods, same result. Overhead is what a round takes beyond the work of its
             neighbourhoods, were that spread evenly; bytes are those moved besides the data, which is sent
             once.
``--shards`` Instead: data that no process holds, in shards on three nodes of this machine, and the peak
             memory of every process that took part in a training on it.

The data is the training part of covertype (ten times over, jittered, for ``--shards``) where its file is
found, or made up. Workers of one machine share its cores: measure where nothing else runs.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

import lns
from lns.backends.cluster import Cluster
from lns.bench import shards as sharded
from lns.bench.processes import family
from lns.bench.scale import make_data
from lns.commands.parser import Parser
from lns.engine import EngineParams
from lns.errors import DataError
from lns.result import RoundRecord


def main(argv: Sequence[str]) -> int:
    """Entry point of ``lns bench ray``."""
    parser = Parser(
        prog="lns bench ray", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--workers", type=int, nargs="+", default=[1, 2], metavar="N", help="default 1 2")
    add("--neighbourhoods", type=int, default=4, metavar="N", help="in every round; default 4")
    add("--max-rounds", type=int, default=60, metavar="N", help="of every run; default 60")
    add("--restarts", type=int, default=4, metavar="N", help="of tabu search for every sub-QUBO; default 4")
    add("--rows", type=int, metavar="N", help="so many made-up rows instead of covertype")
    add("--data-dir", metavar="DIR", help="where to look first for the file of covertype")
    add("--backend", choices=("ray", "local"), default="ray", help="local: threads, to compare with")
    add("--address", metavar="HOST:PORT", help="of a running cluster; default: one for this benchmark")
    add("--shards", type=int, metavar="N", help="measure data in so many shards; 12 are good for covertype")
    add("--json", action="store_true", help="one JSON object on standard output")
    args = parser.parse_args(argv)
    if args.shards is not None:
        result = sharded.measure(args.shards, args.rows, args.max_rounds, args.data_dir)
        print(json.dumps(result) if args.json else sharded.table(result))
        return 0 if result["peak_mb"] < result["limit_mb"] else 1
    result = measure(args)
    print(json.dumps(result) if args.json else table(result))
    return 0


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """One run for each number of workers."""
    name, problem = _problem(args.rows, args.data_dir)
    problem.find_warm_start()
    runs, processes = [], []
    for workers in args.workers:
        # A cluster of so many CPUs, kept until its processes have been looked at.
        cluster = Cluster(args.address, workers) if args.backend == "ray" else None
        try:
            runs.append(_run(problem, workers, args))
            processes = [asdict(process) for process in family()]
        finally:
            if cluster is not None:
                cluster.close()
    return {
        "data": name,
        "rows": problem.num_examples,
        "backend": args.backend,
        "neighbourhoods": args.neighbourhoods,
        "rounds": args.max_rounds,
        "runs": runs,
        "same_result": len({run["objective"] for run in runs}) == 1,
        "processes": processes,
    }


def _run(problem: lns.QLossProblem, workers: int, args: argparse.Namespace) -> dict[str, Any]:
    result = lns.solve(
        problem,
        time_limit=None,
        max_rounds=args.max_rounds,
        backend=args.backend,
        workers=workers,
        solver_options={"num_restarts": args.restarts},
        params=EngineParams(neighbourhoods=args.neighbourhoods),
        mode="rounds",
    )
    return {"workers": workers, "objective": result.objective, **costs(result.rounds, workers)}


def costs(rounds: Sequence[RoundRecord], workers: int) -> dict[str, float]:
    """Throughput, overhead and traffic of a run, walks left out."""
    rounds = [record for record in rounds if record.neighbourhoods[0].kind != "walk"]
    seconds, overheads = [], []
    for record in rounds:
        work = [sum(one.timings.values()) for one in record.neighbourhoods]
        seconds.append(record.select_time + record.solve_time + record.merge_time)
        overheads.append(record.solve_time - max(max(work), sum(work) / workers))
    return {
        "rounds_per_second": len(seconds) / sum(seconds),
        "overhead_ms": 1e3 * float(np.median(overheads)),
        "bytes_per_round": float(np.median([record.moved_bytes for record in rounds])),
    }


def table(result: dict[str, Any]) -> str:
    """The result of `measure` for people."""
    first = result["runs"][0]["rounds_per_second"]
    lines = [
        f"{result['data']}, {result['rows']:,} rows; {result['rounds']} rounds of "
        f"{result['neighbourhoods']} neighbourhoods on {result['backend']}",
        "",
        f"{'workers':>8}{'rounds/s':>12}{'gain':>8}{'overhead':>12}{'moved':>14}{'objective':>14}",
    ]
    for run in result["runs"]:
        lines.append(
            f"{run['workers']:8}{run['rounds_per_second']:12.2f}{run['rounds_per_second'] / first:8.2f}"
            f"{run['overhead_ms']:9.1f} ms{run['bytes_per_round'] / 1024:11.1f} kB{run['objective']:14.6f}"
        )
    lines += ["", "the same result in all runs: " + ("yes" if result["same_result"] else "NO"), ""]
    return "\n".join(lines + memory_lines(result["processes"]))


def memory_lines(processes: Sequence[dict[str, Any]]) -> list[str]:
    """Memory per process."""
    lines = [f"{'process':28}{'peak MB':>12}{'own MB':>12}"]
    lines += [f"{one['role'][:27]:28}{one['peak_mb']:12.0f}{one['private_mb']:12.0f}" for one in processes]
    return lines


def _problem(rows: int | None, data_dir: str | None) -> tuple[str, lns.QLossProblem]:
    from lns.datasets.split import train_test_split

    if rows is None:
        try:
            data = lns.load_dataset("covertype", data_dir, download_if_missing=False)
        except DataError:
            rows = 406_708  # as many as covertype has for training
        else:
            part = data.take(train_test_split(data)[0])
            return data.name, lns.QLossProblem(part.X, part.y)
    return "made up", lns.QLossProblem(*make_data(rows))
