"""``lns bench classifier``: the default classifier beside those of scikit-learn, trained on noisy labels.

Every set is split (70 % to train), labels of one class of the training part are flipped, and all classifiers
get the same features, scaled to [0, 1], and their default parameters. Errors are those on clean test labels.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from lns.classifier import QLossClassifier
from lns.commands.parser import Parser
from lns.datasets.dataset import Dataset
from lns.datasets.load import load_dataset
from lns.datasets.noise import flip_labels
from lns.datasets.scaling import fit_scaling
from lns.datasets.split import train_test_split

SETS = ("breast-cancer", "digits", "adult9")
SIDES = {"none": None, "negative": -1, "positive": 1}


def load(name: str, data_dir: str | None = None) -> Dataset:
    """A set of scikit-learn (digits: odd against even), or any other."""
    if name == "breast-cancer":
        X, y = load_breast_cancer(return_X_y=True)
        return Dataset(name, X, np.where(y == 1, 1, -1))
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return Dataset(name, X, np.where(y % 2 == 1, 1, -1))
    return load_dataset(name, data_dir)


@dataclass(frozen=True)
class Comparison:
    """Clean test errors of one run, as shares."""

    dataset: str
    flipped: str
    seed: int
    logistic: float
    linear_svc: float
    q_loss: float
    seconds: float

    @property
    def ahead(self) -> bool:
        """Whether ours is no worse than the better of the others."""
        return self.q_loss <= min(self.logistic, self.linear_svc)


def compare(data: Dataset, side: str, noise: float, seed: int) -> Comparison:
    """One split, one noise, three classifiers."""
    train, test = (data.take(rows) for rows in train_test_split(data, seed=seed))
    scaling = fit_scaling(train.X)
    X, X_test = scaling.apply(train.X), scaling.apply(test.X)
    y = train.y if SIDES[side] is None else flip_labels(train.y, noise, SIDES[side], seed)[0]

    def error(model: Any) -> float:
        guess: NDArray = model.fit(X, y).predict(X_test)
        return float((guess != test.y).mean())

    # More iterations than the default of 100 only spare it a warning.
    others = error(LogisticRegression(max_iter=1000)), error(LinearSVC())
    began = perf_counter()
    ours = error(QLossClassifier())
    return Comparison(data.name, side, seed, *others, ours, perf_counter() - began)


def run(sets: list[str], noise: float, seeds: int, data_dir: str | None = None) -> Iterator[Comparison]:
    """Every set, side and seed in turn."""
    for name in sets:
        data = load(name, data_dir)
        for side in SIDES:
            for seed in range(seeds):
                yield compare(data, side, noise, seed)


def main(argv: list[str]) -> int:
    """Entry point of ``lns bench classifier``; fails if ours is worse in the mean of a set with noise."""
    parser = Parser(prog="lns bench classifier", description=__doc__)
    parser.add_argument(
        "--sets", default=",".join(SETS), help=f"separated by commas (default {','.join(SETS)})"
    )
    parser.add_argument(
        "--noise", type=float, default=0.3, help="share of the class that is flipped (default 0.3)"
    )
    parser.add_argument("--seeds", type=int, default=3, help="splits of each set (default 3)")
    parser.add_argument("--data-dir", help="where to look first for the files of a named data set")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    args = parser.parse_args(argv)
    found: list[Comparison] = []
    if not args.json:
        print(
            f"{'data set':15}{'flipped':10}{'seed':>4}{'logistic':>10}{'LinearSVC':>11}{'q-loss':>8}{'s':>7}"
        )
    for one in run(args.sets.split(","), args.noise, args.seeds, args.data_dir):
        found.append(one)
        if not args.json:
            errors = f"{100 * one.logistic:10.2f}{100 * one.linear_svc:11.2f}{100 * one.q_loss:8.2f}"
            mark = "" if one.ahead else "  !"
            print(f"{one.dataset:15}{one.flipped:10}{one.seed:4}{errors}{one.seconds:7.1f}{mark}", flush=True)
    if args.json:
        print(
            json.dumps({"noise": args.noise, "runs": [asdict(one) | {"ahead": one.ahead} for one in found]})
        )
    return 0 if ahead_in_the_mean(found) else 1


def ahead_in_the_mean(found: list[Comparison]) -> bool:
    """Whether, for every set and flipped class, the mean error is no higher than that of the better other."""
    for key in {(one.dataset, one.flipped) for one in found if SIDES[one.flipped] is not None}:
        group = [one for one in found if (one.dataset, one.flipped) == key]
        best = np.mean([min(one.logistic, one.linear_svc) for one in group])
        if np.mean([one.q_loss for one in group]) > best:
            return False
    return True
