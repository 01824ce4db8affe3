"""Label noise as in the paper: labels of one class flipped at random."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from lns.datasets.checks import check_fraction, check_signs, generator
from lns.errors import InvalidInput

__all__ = ["flip_labels"]


def flip_labels(
    y: ArrayLike, rate: float, flip_class: int | None = -1, seed: int = 0, *, exact: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Flip each label of one class independently with a given probability, or a given share of them.

    The paper's noise is not symmetric: its percentage is the probability with which the label of a
    *negative* example is flipped, positive ones stay clean. With one seed, the flips at a lower rate are
    among those at a higher rate, so that curves over the rate compare like with like.

    Parameters
    ----------
    y
        Labels, -1 or +1. They are not changed.
    rate
        Probability of a flip, in [0, 1).
    flip_class
        The class whose labels are flipped, -1 or +1; ``None`` flips both classes (symmetric noise).
    seed
        Seed of the flips.
    exact
        Flip the share ``rate`` of the class, to the nearest whole number, instead of drawing for each label:
        on small data the share that draws flip can be points away from the rate.

    Returns
    -------
    y_noisy, flipped
        The labels with noise, in the type of ``y``, and the mask of those that were flipped.

    Raises
    ------
    InvalidInput
        If ``rate`` is outside [0, 1), a label is not -1 or +1, or ``flip_class`` is none of the three.

    Examples
    --------
    >>> y_noisy, flipped = flip_labels([-1, -1, 1, 1], rate=0.5, seed=1)
    >>> bool((y_noisy[2:] == 1).all()), bool((y_noisy[flipped] == 1).all())
    (True, True)
    """
    labels = check_signs(np.asarray(y))
    rate = check_fraction("rate", rate, zero=True)
    if flip_class is not None and flip_class not in (-1, 1):
        raise InvalidInput(
            f"The 'flip_class' parameter of flip_labels must be -1, +1 or None. Got {flip_class!r} instead."
        )
    # A draw for every label, also for those that cannot be flipped: row i keeps its draw whatever the class.
    draws: np.ndarray = generator(seed).random(labels.shape)
    flipped = np.zeros(labels.shape, dtype=bool)
    for sign in (-1, 1) if flip_class is None else (flip_class,):
        rows = np.flatnonzero(labels == sign)
        if exact:
            rows = rows[np.argsort(draws[rows], kind="stable")][: round(rate * len(rows))]
        else:
            rows = rows[draws[rows] < rate]
        flipped[rows] = True
    return np.where(flipped, -labels, labels), flipped
