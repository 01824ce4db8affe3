"""The two synthetic sets of the paper."""

from __future__ import annotations

import numpy as np

from lns.datasets.checks import generator
from lns.datasets.dataset import Dataset
from lns.errors import InvalidInput

__all__ = ["PAPER_SEEDS", "long_servedio", "mease_wyner"]

# The smallest seeds whose 2,000 labels have the class counts of the paper's data summary: 1,000 positives of
# Long-Servedio (baseline error 50.00 %), 996 of Mease-Wyner (49.80 %).
PAPER_SEEDS = {"long-servedio": 202, "mease-wyner": 68}


def long_servedio(n: int = 2000, seed: int = 0) -> Dataset:
    """Draw examples on which every convex loss fails once labels are flipped.

    The label y is -1 or +1 with equal probability. With probability 1/4 all 21 features equal y (large
    margin); with probability 1/4 the first 11 equal y and the last 10 equal -y (pullers); with probability
    1/2, 5 random ones of the first 11 and 6 random ones of the last 10 equal y, the others -y (penalizers).
    Equal weights on all features classify every example.

    Features are -1 or +1, as in the original and in the paper (whose density of 100 % leaves no zeros);
    this set alone is not in [0, 1].

    Parameters
    ----------
    n
        Number of examples.
    seed
        Seed of the draw.

    References
    ----------
    P. Long and R. Servedio, Random classification noise defeats all convex potential boosters, Machine
    Learning 78, 2010, https://doi.org/10.1007/s10994-009-5165-z.

    Examples
    --------
    >>> data = long_servedio(n=100, seed=1)
    >>> bool(((data.X.sum(axis=1) > 0) == (data.y == 1)).all())
    True
    """
    _check_count(n)
    rng = generator(seed)
    y = rng.choice(np.array([-1, 1], dtype=np.int8), size=n)
    kind = rng.choice(3, size=n, p=[0.25, 0.25, 0.5])
    agrees = np.ones((n, 21), dtype=bool)
    agrees[kind == 1, 11:] = False
    penalizers = kind == 2
    agrees[penalizers, :11] = _random_subsets(rng, int(penalizers.sum()), 11, 5)
    agrees[penalizers, 11:] = _random_subsets(rng, int(penalizers.sum()), 10, 6)
    X = np.where(agrees, y[:, None], -y[:, None]).astype(np.float32)
    return Dataset("long-servedio", X, y)


def mease_wyner(n: int = 2000, seed: int = 0) -> Dataset:
    """Draw examples uniformly in the unit cube of 20 dimensions, five of which decide.

    The label is +1 if the first five features sum to more than 2.5, and -1 otherwise.

    Parameters
    ----------
    n
        Number of examples.
    seed
        Seed of the draw.

    References
    ----------
    D. Mease and A. Wyner, Evidence contrary to the statistical view of boosting, Journal of Machine
    Learning Research 9, 2008, https://www.jmlr.org/papers/v9/mease08a.html.

    Examples
    --------
    >>> mease_wyner(n=10).X.shape
    (10, 20)
    """
    _check_count(n)
    X = generator(seed).random((n, 20), dtype=np.float32)
    y = np.where(X[:, :5].sum(axis=1, dtype=np.float64) > 2.5, 1, -1)
    return Dataset("mease-wyner", X, y)


def _random_subsets(rng: np.random.Generator, count: int, size: int, chosen: int) -> np.ndarray:
    """Return ``count`` random masks of ``size`` entries, ``chosen`` of them true."""
    mask = np.zeros((count, size), dtype=bool)
    mask[:, :chosen] = True
    return rng.permuted(mask, axis=1)


def _check_count(n: int) -> None:
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise InvalidInput(f"The number of examples n must be a positive int. Got {n!r} instead.")
