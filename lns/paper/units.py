"""Units of work: each is one call that depends on its own arguments alone, and returns plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from time import perf_counter
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from lns.paper.folds import HELD_OUT, Fold, Part, Source, sheet
from lns.paper.paths import Solution
from lns.paper.plans import Plan, QSetting
from lns.paper.protocols import estimated_rates
from lns.paper.qloss import quick_fits, train
from lns.paper.scores import Score, by_label, score
from lns.problem import QLossProblem

Q_LOSS = "q-loss"
Q_PER_CLASS = "q-loss per class"


@dataclass(frozen=True)
class Unit:
    """One piece of work.

    Parameters
    ----------
    kind
        ``"choose"`` (q-loss, quick fits of the whole grid), ``"train"`` (q-loss, the search), ``"rival"``,
        ``"rates"`` (flip rates of the 70 %), ``"cleanlab"`` (label issues of the 70 %) or ``"risk"`` (the
        paper's first figure).
    source, noise_percent, fold
        The rows.
    method
        Name of a rival.
    settings
        The settings to go through, as plain values.
    plan
        How much work a search of q-loss is.
    max_rows
        Rows to train on at most; None for all.
    """

    kind: str
    source: Source
    noise_percent: int
    fold: Fold
    method: str = Q_LOSS
    settings: tuple[dict[str, Any], ...] = ()
    plan: Plan | None = None
    max_rows: int | None = None

    @property
    def seed(self) -> int:
        """Seed of everything random in it."""
        return self.source.seed_of(4, FOLD_NUMBER if self.fold == HELD_OUT else int(self.fold))

    @property
    def title(self) -> str:
        """For people."""
        where = "held-out" if self.fold == HELD_OUT else f"fold {self.fold}"
        return f"{self.source.name} {self.noise_percent} %, {where}, {self.method}: {self.kind}"

    def content(self) -> dict[str, Any]:
        """What its result depends on, besides the code and the data."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values["source"] = {k: v for k, v in asdict(self.source).items() if k != "data_dir"}
        values["plan"] = None if self.plan is None else asdict(self.plan)
        return values


FOLD_NUMBER = 1_000_000  # of the held-out part, for seeds


def run_unit(unit: Unit) -> dict[str, Any]:
    """Do the work."""
    # One thread each: units run side by side, and sums come out the same on every machine.
    with threadpool_limits(1):
        part = sheet(unit.source).part(unit.noise_percent, unit.fold).limited(unit.max_rows, unit.seed)
        return KINDS[unit.kind](unit, part)


def _choose(unit: Unit, part: Part) -> dict[str, Any]:
    assert unit.plan is not None
    settings = [QSetting(**values) for values in unit.settings]
    scores, began = [], perf_counter()
    for setting, problem, solution in quick_fits(part, settings, unit.plan, unit.seed):
        scores.append(_score_of(part, setting, problem, solution, perf_counter() - began))
        began = perf_counter()
    return {"scores": [one.as_dict() for one in scores]}


def _train(unit: Unit, part: Part) -> dict[str, Any]:
    assert unit.plan is not None
    scores = []
    for values in unit.settings:
        setting, began = QSetting(**values), perf_counter()
        problem, solution = train(part, setting, unit.plan, unit.seed)
        scores.append(_score_of(part, setting, problem, solution, perf_counter() - began))
    return {"scores": [one.as_dict() for one in scores]}


def _score_of(
    part: Part, setting: QSetting, problem: QLossProblem, solution: Solution, seconds: float
) -> Score:
    w, b = solution
    flagged = problem.flagged(w, b)
    scores = np.asarray(part.test.X @ w).ravel() + b
    noisy = np.empty(0) if part.noisy is None else part.noisy
    validated = scores[: len(noisy)]
    return score(
        part, np.sign(scores), setting.as_dict(), seconds,
        low=by_label(validated <= setting.q_pos, noisy), high=by_label(-validated <= setting.q_neg, noisy),
        injected=int(part.flipped.sum()), flagged=int(flagged.sum()),
        found=int((flagged & part.flipped).sum()), objective=problem.objective(w, b),
    )  # fmt: skip


def _rival(unit: Unit, part: Part) -> dict[str, Any]:
    from lns.paper.rivals import RIVALS, TODAY

    rival = {**RIVALS, **TODAY}[unit.method]
    settings, began = list(unit.settings), perf_counter()
    models = rival.fit_path(part.train.X, part.y, settings, unit.seed)
    each = (perf_counter() - began) / max(1, len(settings))
    return {
        "scores": [
            score(part, model.predict(part.test.X), setting, each).as_dict()
            for setting, model in zip(settings, models, strict=True)
        ]
    }


def _rates(unit: Unit, part: Part) -> dict[str, Any]:
    rates = estimated_rates(part, unit.seed)
    return {"negative": rates.negative, "positive": rates.positive}


def _cleanlab(unit: Unit, part: Part) -> dict[str, Any]:
    from lns.paper.recovery import cleanlab_issues

    same = {"injected": int(part.flipped.sum()), "train_rows": len(part.train)}
    return {
        "ways": [
            {**same, "way": way, "flagged": int(flagged.sum()), "both": int((flagged & part.flipped).sum())}
            for way, flagged in cleanlab_issues(part, unit.seed)
        ]
    }


def _risk(unit: Unit, part: Part) -> dict[str, Any]:
    from lns.paper.risk import trace

    assert unit.plan is not None
    (case,) = unit.settings
    return {"steps": trace(part, unit.source, unit.noise_percent, unit.plan, case["interval"], case["q"])}


KINDS: Mapping[str, Callable[[Unit, Part], dict[str, Any]]] = {
    "choose": _choose,
    "train": _train,
    "rival": _rival,
    "rates": _rates,
    "cleanlab": _cleanlab,
    "risk": _risk,
}
