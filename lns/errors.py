"""The errors that this package raises on purpose."""

from __future__ import annotations


class LNSError(Exception):
    """Base of every error of this package."""


class InvalidInput(LNSError, ValueError):
    """An argument breaks a rule; the message names the argument, the rule and the value."""


class DataError(LNSError):
    """A data file is missing, damaged or not what it should be."""


class CheckpointError(DataError):
    """A checkpoint cannot be gone on with; what is wrong with it is the subclass."""


class DamagedCheckpoint(CheckpointError):
    """A checkpoint is cut short or altered."""


class ForeignCheckpoint(CheckpointError):
    """A file is no checkpoint of this package."""


class NewerCheckpoint(CheckpointError):
    """A checkpoint has the format of a later version of this package."""


class WrongProblem(CheckpointError):
    """A checkpoint belongs to another problem: other data or other parameters."""


class CheckpointWarning(RuntimeWarning):
    """A checkpoint could not be written; the run goes on, and the last good one stays."""


class ClusterWarning(RuntimeWarning):
    """Part of a cluster was lost; the run goes on without it."""


class ClusterError(LNSError):
    """A cluster cannot be reached, or does not do what it is asked; the message says what helps."""


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
