"""The errors that this package raises on purpose."""

from __future__ import annotations


class LNSError(Exception):
    """Base of every error of this package."""


class InvalidInput(LNSError, ValueError):
    """An argument breaks a rule; the message names the argument, the rule and the value."""


class DataError(LNSError):
    """A data file is missing, damaged or not what it should be."""


class EnergyMismatchError(LNSError):
    """An objective kept incrementally differs from its recomputation: a bug, never ignored."""

    def __init__(self, expected: float, got: float, where: str) -> None:
        super().__init__(
            f"The objective kept by {where} is {got!r} but recomputing it gives {expected!r}. "
            "This is a bug in qlns: please report it with the seed of the run."
        )
        self.expected, self.got, self.where = expected, got, where


class AnnealerError(LNSError):
    """A quantum annealer cannot be reached or gives no answer; the message has no credentials in it."""
