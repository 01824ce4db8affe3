"""What q-loss is compared with: the paper's seven rivals, and three methods people use today.

>>> list(RIVALS)
['liblinear', 'logistic', 'square', 't-logistic', 'sigmoid', 'probit', 'smoothed-hinge']
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lns.paper.rivals import fit, liblinear, losses, today
from lns.paper.rivals.fit import Fitted
from lns.paper.rivals.today import clean_learning

__all__ = ["LAMBDAS", "RIVALS", "TODAY", "TS", "Classifier", "Fitted", "Rival", "clean_learning"]

Settings: TypeAlias = list[dict[str, float]]

# The ten values offered to cross-validation, as the paper prints them.
LAMBDAS = (0.000001, 0.000005, 0.000025, 0.000126, 0.000632, 0.003167, 0.015875, 0.079583, 0.398965, 2.000090)
TS = (1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2.0)


class Classifier(Protocol):
    """What a rival returns."""

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of every row, -1 or +1."""
        ...


@dataclass(frozen=True)
class Rival:
    """A method with hyper-parameters.

    Parameters
    ----------
    name
        As the tables call it.
    convex
        Whether its training problem has one minimum; only those meet q-loss in the tests of significance.
    grid
        The settings to choose from, given the values of λ.
    fit_path
        ``(X, y, settings, seed)``: one classifier for every setting, in the order of the settings.
    """

    name: str
    convex: bool
    grid: Callable[[Sequence[float]], Settings]
    fit_path: Callable[[Any, NDArray[Any], Settings, int], Sequence[Classifier]]


def thin(values: Sequence[float], most: int) -> list[float]:
    """At most so many of the values, evenly chosen, both ends among them."""
    if len(values) <= most:
        return list(values)
    return [values[k] for k in np.linspace(0, len(values) - 1, most).round().astype(int)]


def _by_lam(lams: Sequence[float]) -> Settings:
    return [{"lam": lam} for lam in lams]


def _by_few_lams(lams: Sequence[float]) -> Settings:
    return _by_lam(thin(lams, 4))


def _by_lam_and_t(lams: Sequence[float]) -> Settings:
    """Every λ with every t; where λ is coarse, t is as coarse."""
    return [{"lam": lam, "t": t} for lam in lams for t in thin(TS, len(lams))]


def _with_and_without_average(lams: Sequence[float]) -> Settings:
    return [{**one, "average": average} for one in _by_few_lams(lams) for average in (0, 1)]


def _one_setting(lams: Sequence[float]) -> Settings:
    return [{}]


def _by_gradient(name: str, starts: int, loss_of: Callable[[dict[str, float]], losses.Loss]) -> Rival:
    def fit_path(X: Any, y: NDArray[Any], settings: Settings, seed: int) -> list[Fitted]:
        order = sorted(range(len(settings)), key=lambda k: (-settings[k]["lam"], settings[k].get("t", 0.0)))
        path = [(loss_of(settings[k]), settings[k]["lam"]) for k in order]
        ends = dict(zip(order, fit.fit_path(X, y, path, starts, seed), strict=True))
        return [ends[k] for k in range(len(settings))]

    return Rival(name, starts == 1, _by_lam_and_t if name == "t-logistic" else _by_lam, fit_path)


RIVALS = {
    rival.name: rival
    for rival in (
        Rival("liblinear", True, _by_lam, liblinear.fit_path),
        _by_gradient("logistic", 1, lambda setting: losses.logistic),
        _by_gradient("square", 1, lambda setting: losses.square),
        _by_gradient("t-logistic", 2, lambda setting: losses.t_logistic(setting["t"])),
        _by_gradient("sigmoid", 12, lambda setting: losses.sigmoid),
        _by_gradient("probit", 12, lambda setting: losses.probit),
        _by_gradient("smoothed-hinge", 1, lambda setting: losses.smoothed_hinge),
    )
}

TODAY = {
    rival.name: rival
    for rival in (
        Rival("cleanlab", False, _by_few_lams, today.cleanlab_path),
        Rival("SGD modified Huber", True, _with_and_without_average, today.modified_huber_path),
        Rival("boosting", False, _one_setting, today.boosting_path),
    )
}
