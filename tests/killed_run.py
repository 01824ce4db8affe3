"""A run in a process of its own, to be killed: ``python killed_run.py CHECKPOINT OUT [BACKEND]``.

Goes on from the checkpoint if there is one; when it reaches the last round, it writes what happened to OUT.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

from search_cases import facts, random_problem

import lns
from lns import keeper
from lns.engine import EngineParams

ROUNDS = 120
PARAMS = EngineParams(walk_moves=100, sample_rows=800, most_rows=2000)


def problem():
    """Large enough for rounds that take a few milliseconds, and for samples; its levels follow the search."""
    return random_problem(rows=3000, features=12, weight_range="auto", bias_range="auto")


def summary(result):
    """All that must not depend on what happened to the process."""
    return {
        "objective": result.objective,
        "codes": result.codes.tolist(),
        "weights": result.weights.tolist(),
        "start_objective": result.start_objective,
        "flagged": int(result.flagged.sum()),
        "rounds": [facts(record) for record in result.rounds],
    }


def main(checkpoint, out, backend="local"):
    """Begin or go on."""
    keeper.MOST = math.inf  # a checkpoint after every round, whatever it costs
    options = {"backend": backend, "workers": 2, "checkpoint_every": 1e-3, "callbacks": [Ready()]}
    if Path(checkpoint).exists():
        result = lns.resume(checkpoint, time_limit=None, **options)
    else:
        options |= {"time_limit": None, "max_rounds": ROUNDS, "params": PARAMS, "checkpoint": checkpoint}
        result = lns.solve(problem(), **options)
    Path(out).write_text(json.dumps(summary(result)))


class Ready(lns.Callbacks):
    """Says when the rounds begin, and when each ends."""

    def on_start(self, problem, objective):
        print("ready", flush=True)

    def on_round(self, record):
        print(record.round, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
