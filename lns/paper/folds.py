"""The rows of an experiment: 70 % in folds, 30 % held out, labels of negatives flipped in what is trained on.

The noisy labels are drawn once for the 70 %, exactly the wanted share of the negatives, with flips at a lower
rate among those at a higher rate. A model of fold k is trained on the noisy labels of all other folds; scored
on the clean labels of fold k it counts for the paper's protocol, on the noisy labels of fold k for the honest
one.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lns.cross_fit import stratified_folds
from lns.datasets.dataset import Dataset
from lns.datasets.load import load_dataset
from lns.datasets.noise import flip_labels
from lns.datasets.split import subsample, train_test_split

HELD_OUT = "held-out"
FOLDS = 10  # that the 70 % are divided into, however many of them are scored
Fold = int | str


@dataclass(frozen=True)
class Source:
    """Where the rows of an experiment come from.

    Parameters
    ----------
    name
        A data set.
    seed
        Of the rows, the folds and the flips.
    max_rows
        Rows used of larger sets; None for all.
    data_dir
        Where to look first for files.
    """

    name: str
    seed: int = 0
    max_rows: int | None = None
    data_dir: str | None = None

    def seed_of(self, *key: int) -> int:
        """A seed for one purpose; data sets do not share theirs."""
        words = np.random.SeedSequence([self.seed, zlib.crc32(self.name.encode()), *key]).generate_state(1)
        return int(words[0] >> 1)


@dataclass(frozen=True)
class Part:
    """What one model is trained on and scored on.

    Parameters
    ----------
    train
        Features, with the clean labels that no method may look at.
    y, flipped
        The labels to train with, and which of them were flipped.
    test
        Examples to score, with clean labels.
    noisy
        Their labels with noise; None for those held out, which have none.
    """

    train: Dataset
    y: NDArray[np.int8]
    flipped: NDArray[np.bool_]
    test: Dataset
    noisy: NDArray[np.int8] | None

    def limited(self, rows: int | None, seed: int) -> Part:
        """The same with at most so many training rows, at random."""
        if rows is None or rows >= len(self.train):
            return self
        kept = np.sort(np.random.default_rng(seed).choice(len(self.train), rows, replace=False))
        return Part(self.train.take(kept), self.y[kept], self.flipped[kept], self.test, self.noisy)


@dataclass(frozen=True)
class Sheet:
    """A data set, divided: the 70 % with their folds, and the rest."""

    source: Source
    inside: Dataset
    outside: Dataset
    fold: NDArray[np.intp]

    def part(self, noise_percent: int, fold: Fold) -> Part:
        """Training and test rows of one fold, or of the held-out 30 %."""
        # Exactly this share: of 700 negatives draws at 40 % may flip 43 %, and convex losses show it.
        y, flipped = flip_labels(self.inside.y, noise_percent / 100, seed=self.source.seed_of(3), exact=True)
        if fold == HELD_OUT:
            return Part(self.inside, y, flipped, self.outside, None)
        rest, rows = np.flatnonzero(self.fold != fold), np.flatnonzero(self.fold == fold)
        return Part(self.inside.take(rest), y[rest], flipped[rest], self.inside.take(rows), y[rows])


@lru_cache(maxsize=1)  # a worker goes through one data set before the next
def sheet(source: Source) -> Sheet:
    """Load a data set and divide it."""
    data = load_dataset(source.name, source.data_dir)
    if source.max_rows is not None and len(data) > source.max_rows:
        data = subsample(data, source.max_rows, source.seed_of(0))
    inside, outside = (data.take(rows) for rows in train_test_split(data, seed=source.seed_of(1)))
    return Sheet(source, inside, outside, stratified_folds(inside.y, FOLDS, source.seed_of(2)))


def wrong_side(weights: NDArray[np.float64], bias: float, X: Any, y: NDArray) -> NDArray[np.bool_]:
    """Which examples a linear model puts on the other side, or on the boundary."""
    return y * (np.asarray(X @ weights).ravel() + bias) <= 0
