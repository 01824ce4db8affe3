"""What is remembered of one model: errors on clean and on noisy labels, and which flips it found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lns.flip_rates import FlipRates, corrected_error
from lns.paper.folds import Part

Counts = tuple[int, int]


@dataclass(frozen=True)
class Score:
    """One model on one fold.

    Parameters
    ----------
    setting
        Its hyper-parameters, as plain values.
    errors, tests
        Wrong answers on clean labels, of so many.
    noisy_wrong, noisy_tests
        The same on noisy labels, by label: -1, +1. Zeros where there are none.
    low, high
        Test examples by noisy label that would be flagged if they were labelled +1 (score at most q of the
        positives), and if they were labelled -1. Zeros for other losses.
    injected, flagged, found
        Flipped training examples, those given up, and those in both.
    objective
        Of the training problem, if it is q-loss.
    train_rows, seconds
        Rows trained on, and the time it took.
    """

    setting: dict[str, Any]
    errors: int
    tests: int
    noisy_wrong: Counts
    noisy_tests: Counts
    train_rows: int
    seconds: float
    low: Counts = (0, 0)
    high: Counts = (0, 0)
    injected: int = 0
    flagged: int = 0
    found: int = 0
    objective: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Score:
        """The score that `as_dict` was asked for."""
        plain: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
        return cls(**plain)

    @property
    def error_percent(self) -> float:
        """Error on clean labels."""
        return 100.0 * self.errors / self.tests

    @property
    def key(self) -> str:
        """The setting as a name."""
        return key_of(self.setting)


def key_of(setting: Mapping[str, Any]) -> str:
    """A setting as a name, whatever the order of its values."""
    return ", ".join(f"{name}={setting[name]}" for name in sorted(setting))


def by_label(which: NDArray[np.bool_], y: NDArray) -> Counts:
    """How many of them are labelled -1, and +1."""
    return int((which & (y < 0)).sum()), int((which & (y > 0)).sum())


def score(part: Part, guess: NDArray, setting: Mapping[str, Any], seconds: float, **more: Any) -> Score:
    """The score of a model that answers the test examples by `guess` (0 counts as wrong)."""
    noisy = np.empty(0) if part.noisy is None else part.noisy
    answers = guess[: len(noisy)]
    return Score(
        setting=dict(setting),
        errors=int((guess * part.test.y <= 0).sum()),
        tests=len(guess),
        noisy_wrong=by_label(answers * noisy <= 0, noisy),
        noisy_tests=by_label(np.ones(len(noisy), dtype=bool), noisy),
        train_rows=len(part.train),
        seconds=seconds,
        **more,
    )


@dataclass(frozen=True)
class Summary:
    """One setting over all folds that it was trained on.

    Parameters
    ----------
    scores
        One for each fold.
    """

    scores: tuple[Score, ...]

    @property
    def setting(self) -> dict[str, Any]:
        """The hyper-parameters."""
        return self.scores[0].setting

    @property
    def error(self) -> float:
        """Mean error of the folds on clean labels, in per cent: what the paper prints."""
        return float(np.mean([one.error_percent for one in self.scores]))

    def _sum(self, name: str) -> NDArray[np.int64]:
        return np.sum([getattr(one, name) for one in self.scores], axis=0)

    def corrected(self, rates: FlipRates) -> float:
        """Error on clean labels as estimated from noisy ones, as a share."""
        wrong, tests = self._sum("noisy_wrong"), self._sum("noisy_tests")
        return corrected_error(wrong[0] / tests[0], wrong[1] / tests[1], tests[0] / tests.sum(), rates)

    def expected_f1(self, rates: FlipRates) -> float:
        """How well its flags meet the flips, as estimated from noisy labels and the rates.

        Noise does not look at features. So wherever a model says "labels +1 are wrong here", the number of
        true negatives T₋ follows from the labels there, n₋ = (1 - ρ₋) T₋ + ρ₊ T₊ and n₊ = ρ₋ T₋ +
        (1 - ρ₊) T₊, and ρ₋ T₋ of those labelled +1 are flips; likewise for labels -1.
        """
        low, high, tests = self._sum("low"), self._sum("high"), self._sum("noisy_tests")
        found = _flips(low, rates)[0] + _flips(high, rates)[1]
        together = sum(_flips(tests, rates)) + low[1] + high[0]
        return 2 * found / together if together > 0 else 0.0


def _flips(labelled: NDArray[np.int64], rates: FlipRates) -> tuple[float, float]:
    """Of so many examples labelled -1 and +1, how many are negatives labelled +1, and the other way."""
    negatives = ((1 - rates.positive) * labelled[0] - rates.positive * labelled[1]) / rates.remaining
    negatives = min(max(negatives, 0.0), float(labelled.sum()))
    return rates.negative * negatives, rates.positive * (float(labelled.sum()) - negatives)


def summaries(scores: Iterable[Score]) -> list[Summary]:
    """The scores by setting, in the order in which settings first appear."""
    groups: dict[str, list[Score]] = {}
    for one in scores:
        groups.setdefault(one.key, []).append(one)
    return [Summary(tuple(group)) for group in groups.values()]
