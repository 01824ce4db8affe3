"""The problems of ``lns bench quality``: the panel, and those in which answers of sub-QUBOs should matter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lns.datasets.load import load_dataset
from lns.datasets.noise import flip_labels
from lns.datasets.split import subsample, train_test_split
from lns.problem import QLossProblem

MAX_ROWS = 20_000

# One q per class, where label noise is one-sided: (q of negatives, q of positives).
CLASS_Q = {"covertype": (-0.7, 0.0), "adult9": (-0.5, 0.0), "web8": (-2.0, -0.2), "mushrooms": (-1.0, 0.0)}
SYNTHETIC = {
    "long-servedio": {"lam": 0.003, "bias_range": (-2.0, 2.0), 2: (0.0, 1.0), 4: (-1.0, 1.0)},
    "mease-wyner": {"lam": 0.000126, "bias_range": (-24.0, 24.0), 2: (0.0, 8.0), 4: (-8.0, 8.0)},
}


@dataclass(frozen=True)
class Instance:
    """A training problem of the panel."""

    dataset: str
    noise: float
    bits: int
    per_class: bool = False
    given_range: bool = False

    @property
    def name(self) -> str:
        """Short name, as in the table."""
        words = [self.dataset, f"{100 * self.noise:.0f}%", f"{self.bits}bit"]
        words += ["per-class q"] * self.per_class + ["given range"] * self.given_range
        return " ".join(words)

    def make(self, data_dir: str | None) -> QLossProblem:
        """70 % of the data (at most 20,000 rows), negatives flipped."""
        data = load_dataset(self.dataset, data_dir)
        data = data.take(train_test_split(data, 0.3, seed=0)[0])
        if data.num_examples > MAX_ROWS:
            data = subsample(data, MAX_ROWS, seed=0)
        y, _ = flip_labels(data.y, self.noise, seed=1)
        if self.dataset in SYNTHETIC:
            known: Mapping[Any, Any] = SYNTHETIC[self.dataset]
            return QLossProblem(
                data.X, y, q=-0.5, lam=known["lam"], weight_bits=self.bits, weight_range=known[self.bits],
                bias_range=known["bias_range"],
            )  # fmt: skip
        q: Any = -0.5
        if self.per_class:
            q = dict(zip((-1, 1), CLASS_Q[self.dataset], strict=True))
        ranges: Any = {"weight_range": (-3.0, 3.0), "bias_range": (-8.0, 8.0)} if self.given_range else {}
        return QLossProblem(data.X, y, q=q, lam=1e-6, weight_bits=self.bits, **ranges)


def panel() -> list[Instance]:
    """All instances, synthetic ones first."""
    noises = (0.0, 0.2, 0.4)
    synthetic = [Instance(name, noise, bits) for name in SYNTHETIC for noise in noises for bits in (2, 4)]
    real = [Instance(name, noise, 4) for name in CLASS_Q for noise in noises]
    per_class = [Instance(name, 0.4, 4, per_class=True) for name in CLASS_Q]
    low = [
        Instance(name, 0.4, bits, given_range=given)
        for name in CLASS_Q for bits in (1, 2) for given in (False, True)
    ]  # fmt: skip
    return synthetic + real + per_class + low


def many_rows(data_dir: str | None) -> QLossProblem:
    """Covertype, 406,708 rows, 40 % flipped, one q per class, 2 bits in a given range."""
    data = load_dataset("covertype", data_dir)
    data = data.take(train_test_split(data, 0.3, seed=0)[0])
    y, _ = flip_labels(data.y, 0.4, seed=1)
    q = dict(zip((-1, 1), CLASS_Q["covertype"], strict=True))
    return QLossProblem(data.X, y, q=q, weight_bits=2, weight_range=(-3, 3), bias_range=(-8, 8))


def coupled(data_dir: str | None, features: int = 600, rows: int = 6000, bits: int = 1) -> QLossProblem:
    """Nine tenths of the variance of all columns come from thirty common factors; planted weights of ±1."""
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((rows, 30)) @ rng.standard_normal((30, features)) / np.sqrt(30)
    X = np.sqrt(0.9) * factors + np.sqrt(0.1) * rng.standard_normal((rows, features))
    X /= np.sqrt(features)
    y = np.where(X @ rng.choice([-1.0, 1.0], features) > 0, 1, -1)
    y, _ = flip_labels(y, 0.2, seed=1)
    return QLossProblem(
        X, y, q={-1: -1.0, 1: -0.3}, weight_bits=bits, weight_range=(-3, 3), bias_range=(-4, 4)
    )  # fmt: skip


def small_integers(data_dir: str | None) -> QLossProblem:
    """Breast cancer in quartile bins, 30 % of the negatives flipped: points of a card from -3 to 4."""
    from sklearn.datasets import load_breast_cancer

    X, target = load_breast_cancer(return_X_y=True)
    bins = [cut < X for cut in np.quantile(X, [0.25, 0.5, 0.75], axis=0)]
    y, _ = flip_labels(np.where(target > 0, 1, -1), 0.3, seed=1)
    return QLossProblem(
        np.hstack(bins).astype(float), y, q={-1: -1.0, 1: -0.2}, lam=1e-4, weight_bits=3,
        weight_range=(-0.6, 0.8), bias_bits=6, bias_range=(-6.3, 6.3),
    )  # fmt: skip


REGIMES: dict[str, Callable[[str | None], QLossProblem]] = {
    "many rows": many_rows,
    "coupled, 1 bit": lambda data_dir: coupled(data_dir, rows=2000),
    "coupled, 1 bit, more rows": coupled,
    "coupled, 2 bits": lambda data_dir: coupled(data_dir, 300, 3000, 2),
    "small integers": small_integers,
    "no walk: long-servedio": Instance("long-servedio", 0.4, 4).make,
    "no walk: mease-wyner": Instance("mease-wyner", 0.2, 4).make,
}
