"""Paired t-tests of q-loss against the closest convex rival, fold by fold, as in the paper's supplement."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from lns.paper.outputs.cells import Run
from lns.paper.rivals import RIVALS

LEVEL = 0.05


class Comparison(NamedTuple):
    """Mean difference (rival minus q-loss) in points, and the probability of one so large by chance."""

    rival: str
    difference: float
    p: float

    @property
    def significant(self) -> bool:
        """Whether chance is rejected; where no fold differs there is nothing to reject."""
        return self.p < LEVEL


def closest_convex(run: Run, dataset: str) -> str | None:
    """The convex rival with the lowest error over all noise levels of this run."""
    sums = {
        name: [run.mean(dataset, noise, name) for noise in run.noises]
        for name, rival in RIVALS.items()
        if rival.convex
    }
    means = {name: [one for one in row if one is not None] for name, row in sums.items()}
    most = max(map(len, means.values()))
    candidates = {name: float(np.mean(row)) for name, row in means.items() if row and len(row) == most}
    return min(candidates, key=candidates.__getitem__) if candidates else None


def compare(run: Run, dataset: str, noise: int, rival: str, method: str = "q-loss") -> Comparison | None:
    """The paired test in one cell, on the folds that both have; none with fewer than two."""
    from scipy.stats import ttest_rel

    ours, theirs = run.cell(dataset, noise, method), run.cell(dataset, noise, rival)
    if ours is None or theirs is None:
        return None
    folds = sorted(ours.errors.keys() & theirs.errors.keys())
    if len(folds) < 2:
        return None
    a, b = (np.array([cell.errors[fold] for fold in folds]) for cell in (theirs, ours))
    differences = a - b
    if np.ptp(differences) < 1e-12:  # the same in every fold: no doubt, unless it is zero
        p = 1.0 if abs(differences[0]) < 1e-12 else 0.0
    else:
        p = float(ttest_rel(a, b).pvalue)
    return Comparison(rival, float(differences.mean()), 1.0 if math.isnan(p) else p)
