"""One data set: which units are needed, and what their results say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from lns.flip_rates import FlipRates
from lns.paper.folds import FOLDS, HELD_OUT, Fold, Source
from lns.paper.outputs.cells import CLEANLAB, CLEANLAB_BEST, Flips
from lns.paper.plans import Plan, QSetting
from lns.paper.protocols import (
    ESTIMATED,
    KNOWN,
    PAPER,
    Rank,
    best,
    by_clean_error,
    by_corrected_error,
    by_expected_flips,
    known_rates,
)
from lns.paper.rivals import LAMBDAS, RIVALS, TODAY
from lns.paper.scores import Score, Summary, key_of, summaries
from lns.paper.units import Q_LOSS, Q_PER_CLASS, Unit

Q_METHODS = (Q_LOSS, Q_PER_CLASS)
OTHERS = {**RIVALS, **TODAY}
FLIPS = "flips"
KEPT = 4  # settings that are trained on all rows of every fold of large sets
FINALISTS = {name: KEPT if name in RIVALS else 2 for name in OTHERS}


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
        return LAMBDAS[::4] if self.quick else LAMBDAS


@dataclass
class Cell:
    """A data set at one noise level, in four steps.

    Settings are compared on some folds and rows. The best of them, by clean errors for the paper's protocol
    and by noisy ones for the honest protocol, are trained on these folds, of small sets on every fold. The
    best of the former are then trained on the other folds, too; the best of the latter on all of the 70 %,
    and scored on the rest.

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
    rates: dict[str, FlipRates] = field(default_factory=dict)
    tried: dict[str, list[Summary]] = field(default_factory=dict)  # by method, in the first step
    shortlisted: dict[str, list[Summary]] = field(default_factory=dict)  # by method, on the same folds
    trained: dict[str, list[Summary]] = field(default_factory=dict)  # by method, on every fold
    validated: dict[tuple[str, str], list[Summary]] = field(default_factory=dict)  # and by purpose, on few

    @property
    def is_large(self) -> bool:
        """Whether settings are compared on some of the rows, and the best trained on all."""
        return self.train_rows > self.effort.choice_rows

    def _unit(self, kind: str, fold: Fold, method: str = Q_LOSS, **more: Any) -> Unit:
        if kind in ("choose", "train"):
            more["plan"] = self.plan
        return Unit(kind, self.source, self.noise_percent, fold, method, **more)

    @property
    def few_folds(self) -> range:
        """Folds that settings are compared on."""
        return range(min(self.effort.folds, self.plan.choice_folds))

    @property
    def shortlist_folds(self) -> range:
        """Folds that the best settings are trained on: where training is quick, all."""
        return self.few_folds if self.is_large else range(self.effort.folds)

    # ---- the first step --------------------------------------------------------------------------------

    def first(self) -> list[Unit]:
        """Compare settings, and estimate the flip rates."""
        effort, grid = self.effort, tuple(setting.as_dict() for setting in self.plan.settings())
        units = [self._unit("rates", HELD_OUT)]
        units += [self._unit("choose", k, settings=grid, max_rows=effort.choice_rows) for k in self.few_folds]
        for name, rival in OTHERS.items():
            settings, limit = tuple(rival.grid(effort.lams)), effort.choice_rows if self.is_large else None
            units += [
                self._unit("rival", k, name, settings=settings, max_rows=limit) for k in self.shortlist_folds
            ]
        return units

    def hear_first(self, units: Sequence[Unit], results: Sequence[dict[str, Any]]) -> None:
        """Remember what was found."""
        self.rates = {KNOWN: known_rates(self.noise_percent)}
        for unit, result in zip(units, results, strict=True):
            if unit.kind == "rates":
                self.rates[ESTIMATED] = FlipRates(result["negative"], result["positive"])
        self.tried = _by_method(units, results)

    # ---- the second step -------------------------------------------------------------------------------

    def finalists(self, method: str, rank: Rank, count: int) -> list[dict[str, Any]]:
        """The best settings by the first step, of q-loss in every way that they can be trained."""
        found = [one.setting for one in best(self.tried[method], rank, count)]
        if method not in Q_METHODS:
            return found
        return [one.as_dict() for one in self.plan.variants(QSetting(**values) for values in found)]

    def for_paper(self, method: str) -> list[dict[str, Any]]:
        """What is trained for the paper's protocol."""
        if method in Q_METHODS:
            return self.finalists(method, by_clean_error, self.plan.shortlist)
        return self.finalists(method, by_clean_error, FINALISTS[method])

    def ranks(self) -> dict[str, Rank]:
        """What the noisy labels are asked for."""
        ranks = {protocol: by_corrected_error(self.rates[protocol]) for protocol in (KNOWN, ESTIMATED)}
        return {**ranks, FLIPS: by_expected_flips(self.rates[ESTIMATED])}

    def second(self) -> list[Unit]:
        """Train the best; a setting is trained once on a fold, whoever chose it."""
        wanted: dict[tuple[Fold, str], Unit] = {}

        def want(unit: Unit) -> None:
            wanted[unit.fold, f"{unit.method} {[*map(key_of, unit.settings)]}"] = unit

        for method in Q_METHODS:
            settings = self.for_paper(method)
            for rank in self.ranks().values():
                settings += self.finalists(method, rank, self.plan.honest_shortlist)
            for setting in settings:
                for k in self.shortlist_folds:
                    want(self._unit("train", k, method, settings=(setting,)))
        if self.is_large:
            for name in OTHERS:
                for k in range(self.effort.folds):
                    want(self._unit("rival", k, name, settings=tuple(self.for_paper(name))))
        return list(wanted.values())

    def hear_second(self, units: Sequence[Unit], results: Sequence[dict[str, Any]]) -> None:
        """Remember what was found, apart for the two protocols: they may not look at each other's choice."""
        found = _by_method(units, results)
        for method in Q_METHODS:
            self.shortlisted[method] = _only(found[method], self.for_paper(method))
            for purpose, rank in self.ranks().items():
                settings = self.finalists(method, rank, self.plan.honest_shortlist)
                self.validated[method, purpose] = _only(found[method], settings)
        for name in OTHERS:
            self.trained[name] = found.get(name, self.tried[name])
            for purpose in (KNOWN, ESTIMATED):
                self.validated[name, purpose] = self.tried[name]

    # ---- the third step --------------------------------------------------------------------------------

    def kept(self, method: str) -> list[Summary]:
        """What stays for the paper's protocol; where training is quick, all."""
        shortlisted = self.shortlisted[method]
        return best(shortlisted, by_clean_error, KEPT if self.is_large else len(shortlisted))

    def third(self) -> list[Unit]:
        """Train the best on the other folds, if there are any."""
        others = range(len(self.shortlist_folds), self.effort.folds)
        return [
            self._unit("train", k, method, settings=(one.setting,))
            for method in Q_METHODS
            for one in self.kept(method)
            for k in others
        ]

    def hear_third(self, units: Sequence[Unit], results: Sequence[dict[str, Any]]) -> None:
        """Remember what was found."""
        more = _by_method(units, results)
        for method in Q_METHODS:
            rest = {key_of(one.setting): one.scores for one in more.get(method, ())}
            everywhere = [
                Summary(one.scores + rest.get(key_of(one.setting), ())) for one in self.kept(method)
            ]
            if method == Q_PER_CLASS:  # one q is a case of one q per class
                everywhere = [*self.trained[Q_LOSS], *everywhere]
            self.trained[method] = everywhere

    # ---- the fourth step -------------------------------------------------------------------------------

    def honest(self, method: str, purpose: str) -> dict[str, Any]:
        """The setting that noisy labels choose."""
        tried = self.validated[method, purpose]
        if method == Q_PER_CLASS:
            tried = [*tried, *self.validated[Q_LOSS, purpose]]
        return best(tried, self.ranks()[purpose], 1)[0].setting

    def fourth(self) -> list[Unit]:
        """Train what noisy labels chose on all of the 70 %."""
        units = [self._unit("cleanlab", HELD_OUT, "cleanlab")] if self.noise_percent else []
        purposes = (KNOWN, ESTIMATED, *([FLIPS] if self.noise_percent else []))
        for method in Q_METHODS:
            settings = _distinct(self.honest(method, purpose) for purpose in purposes)
            units += [self._unit("train", HELD_OUT, method, settings=(setting,)) for setting in settings]
        for name in OTHERS:
            settings = _distinct(self.honest(name, protocol) for protocol in (KNOWN, ESTIMATED))
            units += [self._unit("rival", HELD_OUT, name, settings=(setting,)) for setting in settings]
        return units

    def rows(
        self, units: Sequence[Unit], results: Sequence[dict[str, Any]]
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Rows of ``folds.csv`` and of ``flips.csv``."""
        held_out = {
            (unit.method, key_of(one["setting"])): Score.from_dict(one)
            for unit, result in zip(units, results, strict=True)
            for one in result.get("scores", ())
        }
        rows = []
        flips = []
        for unit, result in zip(units, results, strict=True):
            if unit.kind == "cleanlab":
                ways = [Flips(*(way[name] for name in Flips._fields)) for way in result["ways"]]
                flips.append(self._flips(CLEANLAB, ways[0]))
                flips.append(self._flips(CLEANLAB_BEST, max(ways, key=lambda way: way.f1)))
        for method in (*Q_METHODS, *OTHERS):
            (chosen,) = best(self.trained[method], by_clean_error, 1)
            rows += [self._row(PAPER, method, fold, one) for fold, one in enumerate(chosen.scores)]
            for protocol in (KNOWN, ESTIMATED):
                one = held_out[method, key_of(self.honest(method, protocol))]
                rows.append(self._row(protocol, method, HELD_OUT, one))
            if method in Q_METHODS and self.noise_percent:
                one = held_out[method, key_of(self.honest(method, FLIPS))]
                flips.append(self._flips(method, Flips(one.injected, one.flagged, one.found, one.train_rows)))
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

    def _flips(self, method: str, counts: Flips) -> dict[str, Any]:
        about = {"dataset": self.source.name, "noise_percent": self.noise_percent, "method": method}
        return {**about, **counts._asdict()}


def _by_method(units: Iterable[Unit], results: Iterable[dict[str, Any]]) -> dict[str, list[Summary]]:
    """Scores by method and setting; settings of q-loss by whether they have one q or two."""
    found: dict[str, list[tuple[Fold, Score]]] = {}
    for unit, result in zip(units, results, strict=True):
        for values in result.get("scores", ()):
            one, method = Score.from_dict(values), unit.method
            if method in Q_METHODS:
                method = Q_LOSS if QSetting(**one.setting).is_even else Q_PER_CLASS
            found.setdefault(method, []).append((unit.fold, one))
    return {
        method: summaries(one for _, one in sorted(scores, key=lambda pair: int(pair[0])))
        for method, scores in found.items()
    }


def _distinct(settings: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({key_of(setting): setting for setting in settings}.values())


def _only(found: Iterable[Summary], settings: Iterable[dict[str, Any]]) -> list[Summary]:
    """What was found for these settings, in their order."""
    by_key = {key_of(one.setting): one for one in found}
    return [by_key[key_of(setting)] for setting in settings]
