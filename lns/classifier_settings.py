"""The parameters of the classifier, checked and put in terms of the classes of the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array, check_random_state

from lns.errors import InvalidInput
from lns.flip_rates import FlipRates, check_rates


@dataclass(frozen=True)
class Settings:
    """What was given; None is what has to be chosen."""

    q: NDArray[np.float64] | None  # one per class
    lam: float | None
    rates: FlipRates | None
    seed: int

    @classmethod
    def read(cls, parameters: Mapping[str, Any], classes: list) -> Settings:
        """Check the parameters that nothing further down checks, before anything long is done."""
        for name in ("max_rounds", "patience"):
            check_count(name, parameters[name])
        if parameters["time_limit"] is not None:
            check_real("time_limit", parameters["time_limit"], "a number of seconds above 0, or None")
        lam = parameters["lam"]
        return cls(
            read_q(parameters["q"], classes),
            None if is_auto(lam) else check_real("lam", lam, '"auto" or a number of at least 0'),
            read_rates(parameters["flip_rates"], classes),
            read_seed(parameters["random_state"]),
        )


def read_q(given: Any, classes: list) -> NDArray[np.float64] | None:
    """One q per class, or None for "auto"."""
    if is_auto(given):
        return None
    rule = '"auto", a number of at most 0, or {label: number} with every class'
    q = by_class("q", given, classes) if isinstance(given, Mapping) else [check_real("q", given, rule)]
    if max(q) > 0:
        raise InvalidInput(f"q must be at most 0. Got {max(q)}.")
    return np.broadcast_to(np.array(q), (len(classes),)).copy()


def read_rates(given: Any, classes: list) -> FlipRates | None:
    """Flip rates of the first and of the second class, or None for "auto"."""
    if is_auto(given):
        return None
    if not isinstance(given, Mapping):
        raise InvalidInput(f'flip_rates must be "auto" or {{label: rate}} with both labels. Got {given!r}.')
    if len(classes) > 2:
        raise InvalidInput(
            f'flip_rates can be given for two classes only: leave it at "auto". Got {len(classes)} classes.'
        )
    return check_rates(by_class("flip_rates", given, classes))


def read_seed(random_state: Any) -> int:
    """A seed for `lns.solve`."""
    if isinstance(random_state, (int, np.integer)) and random_state >= 0:
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def is_auto(value: Any) -> bool:
    """Whether a parameter says "auto"."""
    return isinstance(value, str) and value == "auto"


def by_class(name: str, given: Mapping[Any, float], classes: list) -> list[float]:
    """The numbers of a mapping in the order of the classes."""
    if set(given) != set(classes):
        raise InvalidInput(f"{name} as a mapping must have the keys {classes}. Got {list(given)}.")
    return [check_real(f"{name}[{label!r}]", given[label], "a number") for label in classes]


def check_real(name: str, value: Any, rule: str) -> float:
    """A real number, infinite ones included."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real) or np.isnan(float(value)):
        raise InvalidInput(f"{name} must be {rule}. Got {value!r}.")
    return float(value)


def check_count(name: str, value: Any) -> None:
    """A whole number of at least 1, or None."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, Integral) or value < 1):
        raise InvalidInput(f"{name} must be a whole number of at least 1, or None. Got {value!r}.")


def check_weight(sample_weight: ArrayLike | None, rows: int) -> NDArray[np.float64]:
    """One weight per example, some of them above 0."""
    if sample_weight is None:
        return np.ones(rows)
    weight = check_array(sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    if weight.shape != (rows,):
        raise InvalidInput(f"sample_weight must be {rows} numbers, one per row. Got shape {weight.shape}.")
    if (weight < 0).any():
        raise InvalidInput(f"sample_weight must be at least 0. Got {weight.min()}.")
    if not weight.any():
        raise InvalidInput("sample_weight must hold a weight above 0. Got only zero weights.")
    return weight
