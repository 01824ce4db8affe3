"""Parts and key figures of a data set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lns.datasets.checks import check_fraction, generator
from lns.datasets.dataset import Dataset
from lns.errors import InvalidInput

__all__ = ["Summary", "describe", "subsample", "subsample_rows", "train_test_split"]


@dataclass(frozen=True)
class Summary:
    """The columns of the paper's data summary.

    ``density_percent`` is the share of non-zero entries of ``X``; ``baseline_error_percent`` is the error
    of always answering the more frequent class.
    """

    name: str
    rows: int
    features: int
    density_percent: float
    baseline_error_percent: float


def describe(dataset: Dataset) -> Summary:
    """Return rows, features, density and baseline error of a data set.

    Parameters
    ----------
    dataset
        Any data set.

    Examples
    --------
    >>> from lns.datasets.synthetic import mease_wyner
    >>> summary = describe(mease_wyner(n=50))
    >>> summary.rows, summary.features, summary.density_percent
    (50, 20, 100.0)
    """
    X = dataset.X
    # The transposed view of a column-major array is contiguous, which makes counting fast.
    entries = np.count_nonzero(X.T) if isinstance(X, np.ndarray) else X.count_nonzero()
    positive = int(np.count_nonzero(dataset.y == 1))
    return Summary(
        name=dataset.name,
        rows=dataset.num_examples,
        features=dataset.num_features,
        density_percent=100.0 * float(entries) / max(1, X.shape[0] * X.shape[1]),
        baseline_error_percent=100.0 * min(positive, len(dataset) - positive) / max(1, len(dataset)),
    )


def train_test_split(
    dataset: Dataset, test_fraction: float = 0.3, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Split the rows at random, 70 % to 30 % as in the paper.

    Parameters
    ----------
    dataset
        The data set to split.
    test_fraction
        Share of the test rows, in (0, 1); their number is rounded.
    seed
        Seed of the split.

    Returns
    -------
    train_rows, test_rows
        Ascending row numbers; together every row once.

    Raises
    ------
    InvalidInput
        If ``test_fraction`` is outside (0, 1) or leaves one side without rows.

    Examples
    --------
    >>> from lns.datasets.synthetic import mease_wyner
    >>> train_rows, test_rows = train_test_split(mease_wyner(n=2000))
    >>> len(train_rows), len(test_rows)
    (1400, 600)
    """
    fraction = check_fraction("test_fraction", test_fraction, zero=False)
    n = len(dataset)
    count = round(n * fraction)
    if not 0 < count < n:
        raise InvalidInput(f"test_fraction={test_fraction} of {n} rows leaves one side of the split empty.")
    order = generator(seed).permutation(n)
    return np.sort(order[count:]), np.sort(order[:count])


def subsample(dataset: Dataset, rows: int, seed: int = 0) -> Dataset:
    """Return a random part of a data set, without replacement and in the original order.

    Parameters
    ----------
    dataset
        The data set to draw from.
    rows
        Number of rows to keep, at most all.
    seed
        Seed of the draw.

    Raises
    ------
    InvalidInput
        If ``rows`` is not between 1 and the number of rows.
    """
    return dataset.take(subsample_rows(dataset, rows, seed))


def subsample_rows(dataset: Dataset, rows: int, seed: int = 0) -> np.ndarray:
    """The ascending row numbers that `subsample` keeps."""
    n = len(dataset)
    if isinstance(rows, bool) or not isinstance(rows, (int, np.integer)) or not 1 <= rows <= n:
        raise InvalidInput(
            f"The 'rows' parameter of subsample must be an int in [1, {n}]. Got {rows!r} instead."
        )
    return np.sort(generator(seed).choice(n, size=int(rows), replace=False))
