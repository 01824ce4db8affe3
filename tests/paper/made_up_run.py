"""A run that never took place: its numbers are made up, to test tables and figures. Never to be published."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np

from lns.paper import printed
from lns.paper.outputs.cells import COLUMNS
from lns.paper.rivals import RIVALS, TODAY

METHODS = ("q-loss", "q-loss per class", *RIVALS, *TODAY)


def made_up_error(dataset: str, method: str, noise: int) -> float:
    """The printed error, or that of the next lower noise; one q per class is clean whatever the noise."""
    like = {
        "q-loss per class": "q-loss",
        "cleanlab": "logistic",
        "SGD modified Huber": "square",
        "boosting": "square",
    }
    at = 0 if method == "q-loss per class" else max(one for one in printed.NOISES if one <= noise)
    return printed.errors()[dataset, like.get(method, method), at][0]


def write_made_up_run(
    out: Path, datasets=tuple(printed.DATASETS), noises=printed.NOISES, folds: int = 4
) -> Path:
    """A folder with the files that a run writes."""
    rng = np.random.default_rng(0)
    out.mkdir(parents=True, exist_ok=True)
    rows = []
    for dataset in datasets:
        for noise in noises:
            for method in METHODS:
                error = made_up_error(dataset, method, noise)
                q = ("-0.5", "0.0" if "class" in method else "-0.5") if "q-loss" in method else ("", "")
                t = "1.5" if method == "t-logistic" else ""
                lam = "" if method == "boosting" else "0.000126"
                more = (*q, lam, t, "per weight" if "q-loss" in method else "", "0.5", "366037", "1.5")
                # Pairs of folds above and below the mean, so that the mean is exact.
                wiggle = 0.01 * error * np.tile([1, -1], folds)[:folds] * rng.uniform(0.9, 1.1, folds)
                wiggle -= wiggle.mean()
                for fold in range(folds):
                    rows.append((dataset, noise, "paper", method, fold, error + wiggle[fold], *more))
                for protocol in ("honest-known", "honest-estimated"):
                    rows.append((dataset, noise, protocol, method, "held-out", error, *more))
    _write(out / "folds.csv", COLUMNS, rows)
    flips = [
        (dataset, noise, method, 1000, flagged, both, 10_000)
        for dataset in datasets
        for noise in (20, 40)
        for method, flagged, both in (
            ("q-loss per class", 1010, 980),
            ("q-loss", 1500, 800),
            ("cleanlab", 700, 500),
        )
    ]
    _write(
        out / "flips.csv",
        ("dataset", "noise_percent", "method", "injected", "flagged", "both", "train_rows"),
        flips,
    )
    risk = [
        (loss, datasets[0], 20, step, 20 + sign * step + (step % 3) * 0.4, 1 / (1 + 0.1 * step))
        for loss, sign in (("square", 0.5), ("q-loss", -1.0))
        for step in range(12)
    ]
    _write(
        out / "risk.csv", ("loss", "dataset", "noise_percent", "step", "training_error_percent", "risk"), risk
    )
    about = {
        "seed": 7, "commits": ["made-up-commit"], "command": "made up, not a command", "wall_seconds": 366.0,
        "workers": 2, "noise_percent": list(noises), "versions": {"made-up": "0"},
        "folds": 10, "quick": False, "rows_for_choice": 20_000,
        "flipped": {str(noise): noise / 100 for noise in noises},
        "estimated_rates": {str(noise): [noise / 100, 0.0] for noise in noises},
    }  # fmt: skip
    info = {"calls": [{"dataset": dataset, **about} for dataset in datasets]}
    (out / "run.json").write_text(json.dumps(info))
    return out


def _write(path: Path, head, rows) -> None:
    with path.open("w", newline="") as lines:
        writer = csv.writer(lines)
        writer.writerow(head)
        writer.writerows(rows)
