"""One data set: which units are needed, and what their results say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from lns.flip_rates import FlipRates
from lns.paper.folds import FOLDS, HELD_OUT, Fold, Source
from lns.paper.plans import Plan, QSetting
from lns.paper.protocols import (
    ESTIMATED,
    KNOWN,
    PAPER,
    choice_for_recovery,
    honest_choice,
    known_rates,
    shortlist,
)
from lns.paper.rivals import LAMBDAS, RIVALS, TODAY
from lns.paper.scores import Score, Summary, key_of, summaries
from lns.paper.units import Q_LOSS, Q_PER_CLASS, Unit

Q_METHODS = (Q_LOSS, Q_PER_CLASS)
OTHERS = {**RIVALS, **TODAY}
FINALISTS = {name: 2 if name in RIVALS else 1 for name in OTHERS}  # trained on all rows of large sets


@dataclass(frozen=True)
class Effort:
    """How much of the whole is done.

    Parameters
    ----------
    folds
        How many of the ten folds are scored.
    choice_rows
        Rows to compare settings on; data with more training rows is cut down for that.
    quick
        A coarse grid.
    """

    folds: int = FOLDS
    choice_rows: int = 20_000
    quick: bool = False

    @property
    def lams(self) -> Sequence[float]:
        """λ of the rivals."""
        return LAMBDAS[::3] if self.quick else LAMBDAS


@dataclass
class Cell:
    """A data set at one noise level, in two steps: compare settings, then train the best of them.

    Parameters
    ----------
    source, noise_percent, plan, effort
        What is done.
    train_rows
        Training rows of a fold.
    """

    source: Source
    noise_percent: int
    plan: Plan
    effort: Effort
    train_rows: int
    tried: dict[str, list[Summary]] = field(default_factory=dict)  # by method, on the folds of the choice
    rates: dict[str, FlipRates] = field(default_factory=dict)

    @property
    def is_large(self) -> bool:
        """Whether settings are compared on some of the rows, and the best trained on all."""
        return self.train_rows > self.effort.choice_rows

    def _unit(self, kind: str, fold: Fold, method: str = Q_LOSS, **more: Any) -> Unit:
        if kind in ("choose", "train"):
            more["plan"] = self.plan
        return Unit(kind, self.source, self.noise_percent, fold, method, **more)

    def first(self) -> list[Unit]:
        """Compare settings, and estimate the flip rates."""
        effort, grid = self.effort, tuple(setting.as_dict() for setting in self.plan.settings())
        few = range(min(effort.folds, self.plan.choice_folds))
        units = [self._unit("rates", HELD_OUT)]
        units += [self._unit("choose", k, settings=grid, max_rows=effort.choice_rows) for k in few]
        for name, rival in OTHERS.items():
            settings, limit = tuple(rival.grid(effort.lams)), effort.choice_rows if self.is_large else None
            folds = few if self.is_large else range(effort.folds)
            units += [self._unit("rival", k, name, settings=settings, max_rows=limit) for k in folds]
        return units

    def hear_first(self, units: Iterable[Unit], results: Iterable[dict[str, Any]]) -> None:
        """Remember what was found."""
        scores: dict[str, list[Score]] = {}
        for unit, result in zip(units, results, strict=True):
            if unit.kind == "rates":
                self.rates[ESTIMATED] = FlipRates(result["negative"], result["positive"])
            else:
                scores.setdefault(unit.method, []).extend(map(Score.from_dict, result["scores"]))
        self.rates[KNOWN] = known_rates(self.noise_percent)
        self.tried = {method: summaries(found) for method, found in scores.items()}
        # One q is a case of one q per class: whatever is found with it counts for both.
        self.tried[Q_PER_CLASS] = self.tried[Q_LOSS]
        self.tried[Q_LOSS] = [one for one in self.tried[Q_LOSS] if is_even(one.setting)]

    def finalists(self, method: str) -> list[dict[str, Any]]:
        """Settings that are trained on every fold."""
        tried = self.tried[method]
        if method == Q_LOSS:
            return [one.setting for one in shortlist(tried, self.plan.shortlist)]
        if method == Q_PER_CLASS:
            pairs = shortlist(tried, self.plan.shortlist, lambda one: not is_even(one.setting))
            return [*self.finalists(Q_LOSS), *(one.setting for one in pairs)]
        return [one.setting for one in shortlist(tried, FINALISTS[method] if self.is_large else len(tried))]

    def honest(self, method: str, protocol: str) -> dict[str, Any]:
        """The setting that noisy labels choose."""
        return honest_choice(self.tried[method], self.rates[protocol]).setting

    def for_recovery(self, method: str) -> dict[str, Any]:
        """The setting to find flips with."""
        return choice_for_recovery(self.tried[method], self.rates[ESTIMATED]).setting

    def second(self) -> list[Unit]:
        """Train what was chosen; the same setting is trained once, whoever chose it."""
        units: list[Unit] = []
        folds = range(self.effort.folds)
        for setting in self.finalists(Q_PER_CLASS):
            units += [self._unit("train", k, settings=(setting,)) for k in folds]
        held_out = [self.honest(method, p) for method in Q_METHODS for p in (KNOWN, ESTIMATED)]
        if self.noise_percent:
            held_out += [self.for_recovery(method) for method in Q_METHODS]
            units.append(self._unit("cleanlab", HELD_OUT, "cleanlab"))
        units += [self._unit("train", HELD_OUT, settings=(setting,)) for setting in _distinct(held_out)]
        for name in OTHERS:
            if self.is_large:
                settings = tuple(self.finalists(name))
                units += [self._unit("rival", k, name, settings=settings) for k in folds]
            honest = _distinct(self.honest(name, p) for p in (KNOWN, ESTIMATED))
            units += [self._unit("rival", HELD_OUT, name, settings=(setting,)) for setting in honest]
        return units

    def rows(
        self, units: Sequence[Unit], results: Sequence[dict[str, Any]]
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Rows of ``folds.csv`` and of ``flips.csv``."""
        scores: dict[tuple[str, bool], list[tuple[Fold, Score]]] = {}
        flips = []
        for unit, result in zip(units, results, strict=True):
            if unit.kind == "cleanlab":
                flips.append(self._flips("cleanlab", result))
                continue
            found = [(unit.fold, Score.from_dict(one)) for one in result["scores"]]
            scores.setdefault((unit.method, unit.fold == HELD_OUT), []).extend(found)
        rows = []
        for method in (*Q_METHODS, *OTHERS):
            family = Q_LOSS if method in Q_METHODS else method
            inside, outside = scores.get((family, False)), {one.key: one for _, one in scores[family, True]}
            finalists = self.tried[method] if inside is None else _only(inside, self.finalists(method))
            (best,) = shortlist(finalists, 1)
            rows += [self._row(PAPER, method, fold, one) for fold, one in enumerate(best.scores)]
            for protocol in (KNOWN, ESTIMATED):
                one = outside[key_of(self.honest(method, protocol))]
                rows.append(self._row(protocol, method, HELD_OUT, one))
            if method in Q_METHODS and self.noise_percent:
                one = outside[key_of(self.for_recovery(method))]
                found_here = {"injected": one.injected, "flagged": one.flagged, "both": one.found}
                flips.append(self._flips(method, {**found_here, "train_rows": one.train_rows}))
        return rows, flips

    def _row(self, protocol: str, method: str, fold: Fold, one: Score) -> dict[str, Any]:
        about = {"dataset": self.source.name, "noise_percent": self.noise_percent, "protocol": protocol}
        more: dict[str, Any] = {name: one.setting.get(name) for name in ("q_neg", "q_pos", "lam", "t")}
        if method in Q_METHODS:
            more["interval"] = QSetting(**one.setting).label
        return {
            **about, "method": method, "fold": fold, "test_error_percent": one.error_percent, **more,
            "objective": one.objective, "train_rows": one.train_rows, "seconds": round(one.seconds, 3),
        }  # fmt: skip

    def _flips(self, method: str, counts: dict[str, Any]) -> dict[str, Any]:
        names = ("injected", "flagged", "both", "train_rows")
        about = {"dataset": self.source.name, "noise_percent": self.noise_percent, "method": method}
        return {**about, **{name: counts[name] for name in names}}


def is_even(setting: dict[str, Any]) -> bool:
    """Whether a setting of q-loss has one q for both classes."""
    return bool(setting["q_neg"] == setting["q_pos"])


def _distinct(settings: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({key_of(setting): setting for setting in settings}.values())


def _only(found: Iterable[tuple[Fold, Score]], settings: Iterable[dict[str, Any]]) -> list[Summary]:
    """What was found for these settings, folds in order."""
    wanted = {key_of(setting) for setting in settings}
    in_order = sorted((pair for pair in found if pair[1].key in wanted), key=lambda pair: int(pair[0]))
    return summaries(one for _, one in in_order)
