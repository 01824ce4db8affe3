"""The numbers that the paper prints, under the names that this package uses.

>>> errors()["covertype", "q-loss", 40]
(31.6934, 0.917)
>>> closest_convex()["covertype"]
'liblinear'
"""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files

__all__ = ["DATASETS", "NOISES", "bits", "closest_convex", "errors", "lam", "q", "significant", "t"]

# In the order of the paper's figure.
DATASETS = {
    "long-servedio": "Long-Servedio",
    "mease-wyner": "Mease-Wyner",
    "covertype": "covertype",
    "mushrooms": "mushrooms",
    "adult9": "adult9",
    "web8": "web8",
}
NOISES = (0, 10, 20, 30, 40)
_METHODS = {"q": "q-loss", "smooth hinge": "smoothed-hinge", "smoothed hinge": "smoothed-hinge"}
_NAMES = {"Long-Sevedio": "long-servedio", **{title: name for name, title in DATASETS.items()}}


def _rows(name: str) -> list[dict[str, str]]:
    text = (files("lns.paper") / "printed" / f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def _by_noise(name: str) -> dict[tuple[str, int], float]:
    return {(_NAMES[row["name"]], noise): float(row[str(noise)]) for row in _rows(name) for noise in NOISES}


@cache
def errors() -> dict[tuple[str, str, int], tuple[float, float]]:
    """Test error and its standard deviation over the folds, in %, by data set, method and noise in %."""
    return {
        (row["dataset"], row["method"], int(row["noise_percent"])): (
            float(row["test_error_percent"]),
            float(row["std"]),
        )
        for row in _rows("test_error_vs_noise")
    }


@cache
def q() -> dict[tuple[str, int], float]:
    """The q picked by cross-validation, by data set and noise."""
    return _by_noise("q_picked")


@cache
def t() -> dict[tuple[str, int], float]:
    """The t of t-logistic regression picked by cross-validation, by data set and noise."""
    return _by_noise("t_picked_t_logistic")


@cache
def lam() -> dict[tuple[str, str, int], float]:
    """The λ picked by cross-validation, by data set, method and noise; liblinear's is 1/C."""
    picked = {
        (_NAMES[row["name"]], _METHODS.get(method, method), noise): float(value)
        for noise in NOISES
        for row in _rows(f"lambda_picked_noise{noise}")
        for method, value in row.items()
        if method != "name"
    }
    picked |= {
        (name, "liblinear", noise): 1 / C for (name, noise), C in _by_noise("c_liblinear_picked").items()
    }
    return picked


@cache
def closest_convex() -> dict[str, str]:
    """The convex rival that the paper tests q-loss against, by data set."""
    return {
        _NAMES[row["name"]]: _METHODS.get(rival := row["compared"].split(" vs ")[0], rival)
        for row in _rows("significance")
    }


@cache
def significant() -> dict[tuple[str, int], bool]:
    """Whether the paper found q-loss and that rival to differ, by data set and noise."""
    return {
        (_NAMES[row["name"]], noise): row[str(noise)] == "Y"
        for row in _rows("significance")
        for noise in NOISES
    }


@cache
def bits() -> dict[str, int]:
    """Bits of a weight, by data set."""
    return {_NAMES[row["name"]]: int(row["d_w"]) for row in _rows("data_summary")}
