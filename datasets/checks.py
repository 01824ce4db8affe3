"""Checks of arguments that several modules share."""

from __future__ import annotations

import numbers

import numpy as np

from lns.errors import InvalidInput

__all__ = ["check_fraction", "check_signs", "generator"]


def generator(seed: int) -> np.random.Generator:
    """Return the random generator of a seed.

    Parameters
    ----------
    seed
        A non-negative integer.

    Raises
    ------
    InvalidInput
        If ``seed`` is anything else.
    """
    if isinstance(seed, bool) or not isinstance(seed, numbers.Integral) or seed < 0:
        raise InvalidInput(f"The 'seed' parameter must be a non-negative int. Got {seed!r} instead.")
    return np.random.default_rng(int(seed))


def check_fraction(name: str, value: float, *, zero: bool) -> float:
    """Return ``value`` as a float if it lies in [0, 1), or in (0, 1) when ``zero`` is false."""
    interval = "[0, 1)" if zero else "(0, 1)"
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number or not 0 <= value < 1 or (value == 0 and not zero):
        raise InvalidInput(f"The '{name}' parameter must be a number in {interval}. Got {value!r} instead.")
    return float(value)


def check_signs(y: np.ndarray) -> np.ndarray:
    """Return ``y`` if it is one-dimensional and holds nothing but -1 and +1."""
    if y.ndim != 1:
        raise InvalidInput(f"The labels y must be one-dimensional. Got an array of shape {y.shape} instead.")
    if y.dtype.kind not in "iuf" or not np.all((y == 1) | (y == -1)):
        found = ", ".join(repr(value) for value in np.unique(y)[:5].tolist())
        raise InvalidInput(f"The labels y must be -1 or +1. Got the values {found} instead.")
    return y
