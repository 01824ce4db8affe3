"""Scores of examples by models that were not trained on them: quick fits for choosing, not for keeping.

Every fold shares what does not depend on q: its data, the coordinates in which the problem is round, and the
minimum of the convex loss (q = -∞) from which every path begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lns.errors import InvalidInput
from lns.problem import QLossProblem
from lns.quick_fit import minimise, whitening

Solution = tuple[NDArray[np.float64], float]

# A path of few stages: enough to tell a good q from a bad one.
STAGES = (1.0, 0.25, 0.0)
ITERATIONS = 25
CONVEX_ITERATIONS = 60
NEVER = -1000.0  # a q that no margin reaches: the convex loss


def stratified_folds(y: NDArray, folds: int, seed: int) -> NDArray[np.intp]:
    """The fold of every example, drawn such that each fold has its share of both classes."""
    rng = np.random.default_rng(seed)
    fold = np.empty(len(y), dtype=np.intp)
    for label in (-1, 1):
        rows = rng.permutation(np.flatnonzero(y == label))
        fold[rows] = np.arange(len(rows)) % folds
    return fold


@dataclass
class _Fold:
    """One part of the data, and the rest to train on."""

    rest: QLossProblem
    test: Any
    rows: NDArray[np.intp]
    convex: dict[float, tuple[Solution, NDArray]] = field(default_factory=dict)

    def problem(self, q: Any, lam: float) -> QLossProblem:
        return QLossProblem(self.rest.matrix.X, self.rest.y, q=q, lam=lam, sample_weight=self.rest.share)

    def fit(self, q: Any, lam: float) -> Solution:
        """Weights and bias for this q, on the rest of the data."""
        if lam not in self.convex:
            convex = self.problem(-np.inf, lam)
            transform = whitening(convex)
            zero = np.zeros(convex.num_features)
            start = minimise(convex, zero, 0.0, transform, iterations=CONVEX_ITERATIONS)
            self.convex[lam] = start, transform
        (w, b), transform = self.convex[lam]
        problem = self.problem(q, lam)
        if (problem.q > NEVER).any():
            for shift in STAGES:
                w, b = minimise(problem, w, b, transform, shift, ITERATIONS)
        return w, b


class CrossFit:
    """Out-of-fold scores of one data set for any q and λ.

    Parameters
    ----------
    X, y, sample_weight
        As for `lns.QLossProblem`.
    folds
        Number of parts; each class needs at least so many examples.
    seed
        Seed of the parts.
    """

    def __init__(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, folds: int = 4, seed: int = 0
    ) -> None:
        whole = QLossProblem(X, y, sample_weight=sample_weight)
        fewest = min(int((whole.y < 0).sum()), int((whole.y > 0).sum()))
        if not 2 <= folds <= fewest:
            raise InvalidInput(
                f"folds must be from 2 to {fewest}, the examples of the smaller class. Got {folds}."
            )
        self.y, self.share = whole.y, whole.share
        fold = stratified_folds(whole.y, folds, seed)
        # An example as heavy as several stands for copies of one, and copies spread over all folds.
        heavy = whole.share >= folds * np.median(whole.share)
        self._times = np.where(heavy, folds, 1)
        self._folds = []
        for k in range(folds):
            kept = np.flatnonzero((fold != k) | heavy)
            rest = whole.subset(kept)
            rest.share = np.where(heavy[kept], (folds - 1) / folds, 1.0) * rest.share
            rows = np.flatnonzero((fold == k) | heavy)
            self._folds.append(_Fold(rest, whole.matrix.take(rows), rows))

    def scores(self, q: float | Mapping[int, float], lam: float) -> NDArray[np.float64]:
        """w·x + b of every example, by the model trained without its fold."""
        out = np.zeros(len(self.y))
        for fold in self._folds:
            w, b = fold.fit(q, lam)
            out[fold.rows] += fold.test.dot(w) + b
        return out / self._times

    def wrong(self, scores: NDArray[np.float64]) -> tuple[float, float]:
        """Shares of the examples labelled -1, and of those labelled +1, that are on the other side."""
        found = [self.share[(self.y == side) & (scores * side <= 0)].sum() for side in (-1, 1)]
        whole = [self.share[self.y == side].sum() for side in (-1, 1)]
        return float(found[0] / whole[0]), float(found[1] / whole[1])
