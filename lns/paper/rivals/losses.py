"""The losses of the paper's rivals as functions of the margin m = y(w·x + b).

Each takes an array of margins and returns the losses and their derivatives. None overflows, however large a
margin is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from lns.errors import InvalidInput

Floats: TypeAlias = NDArray[np.float64]
Loss: TypeAlias = Callable[[Floats], tuple[Floats, Floats]]


def logistic(m: Floats) -> tuple[Floats, Floats]:
    """log(1 + exp(-m))."""
    small = np.exp(-np.abs(m))
    return np.log1p(small) + np.maximum(-m, 0.0), -np.where(m > 0, small, 1.0) / (1.0 + small)


def square(m: Floats) -> tuple[Floats, Floats]:
    """(1 - m)²: margins above 1 are punished, too."""
    return np.square(1.0 - m), 2.0 * (m - 1.0)


def smoothed_hinge(m: Floats) -> tuple[Floats, Floats]:
    """0 above 1, ½(1 - m)² between 0 and 1, ½ - m below (Rennie and Srebro 2005)."""
    slope = np.clip(m - 1.0, -1.0, 0.0)
    return 0.5 * np.square(slope) + np.maximum(-m, 0.0), slope


def sigmoid(m: Floats) -> tuple[Floats, Floats]:
    """1 / (1 + exp(m)), a smooth step."""
    value = expit(-m)
    return value, value * (value - 1.0)


def probit(m: Floats) -> tuple[Floats, Floats]:
    """Φ(-m), the step smoothed by a normal distribution.

    The paper counts its probit loss among the losses that are not convex; -log Φ(m) is convex.
    """
    return ndtr(-m), -np.exp(-0.5 * np.square(m)) / np.sqrt(2.0 * np.pi)


# ---- t-logistic ------------------------------------------------------------------------------------------


def exp_t(x: Floats, t: float) -> Floats:
    """The t-exponential [1 + (1 - t) x]₊^(1/(1-t)) for t > 1 and x ≤ 0; it has a heavy tail."""
    return (1.0 + (1.0 - t) * x) ** (1.0 / (1.0 - t))


def t_partition(u: Floats, t: float) -> tuple[Floats, Floats]:
    """Z and exp_t(ã) of a label's two scores 0 and -u, u ≥ 0, by the fixed point of Ding and Vishwanathan.

    ã = Z^(1-t)·(-u) with Z = 1 + exp_t(ã). The likelier label then has probability 1/Z, the other exp_t(ã)/Z,
    and G_t = u/2 - log_t(1/Z), without the cancellation that computing G_t first would bring.
    """
    Z = np.full_like(u, 2.0)
    for _ in range(500):
        tail = exp_t(-u * Z ** (1.0 - t), t)
        before, Z = Z, 1.0 + tail
        if np.max(np.abs(Z - before), initial=0.0) < 1e-15:
            break
    return Z, tail


def t_logistic_exactly(m: Floats, t: float) -> tuple[Floats, Floats]:
    """-log p of the right label, p = exp_t(m/2 - G_t(m)); the slope is -p^(t-1) times the other's escort."""
    u = np.abs(m)
    Z, tail = t_partition(u, t)
    right = m >= 0
    log_tail = np.log1p((t - 1.0) * u * Z ** (1.0 - t)) / (1.0 - t)
    value = np.log1p(tail) - np.where(right, 0.0, log_tail)
    p = np.where(right, 1.0, tail) / Z
    escort = np.where(right, tail**t, 1.0) / (1.0 + tail**t)
    return value, -(p ** (t - 1.0)) * escort


REACH = 1e6  # margins beyond it count as if they were on it
KNOTS = 4096  # per side


@cache
def t_logistic(t: float) -> Loss:
    """The loss of t-logistic regression (Ding and Vishwanathan 2010), 1 < t ≤ 2.

    The fixed point is solved once on a fine grid; margins are looked up by cubics through values and slopes,
    to about 1e-11, because a fit asks for it a hundred times for every example.
    """
    if not 1.0 < t <= 2.0:
        raise InvalidInput(f"The 't' of t-logistic regression must be in (1, 2]. Got {t!r} instead.")
    # Even steps of asinh m: fine around 0, where the loss bends, and coarse in the tails.
    top = np.arcsinh(REACH)
    z, step = np.linspace(-top, top, 2 * KNOTS + 1, retstep=True)
    value, slope = t_logistic_exactly(np.sinh(z), t)
    rise = slope * np.cosh(z) * step
    gap = np.diff(value)
    cubic = np.stack(
        [value[:-1], rise[:-1], 3 * gap - 2 * rise[:-1] - rise[1:], rise[:-1] + rise[1:] - 2 * gap], axis=1
    )

    def look_up(m: Floats) -> tuple[Floats, Floats]:
        at = (np.arcsinh(np.clip(m, -REACH, REACH)) + top) / step
        left = np.minimum(at.astype(np.intp), 2 * KNOTS - 1)
        x = at - left
        c0, c1, c2, c3 = cubic[left].T
        losses = c0 + x * (c1 + x * (c2 + x * c3))
        slopes = (c1 + x * (2 * c2 + 3 * x * c3)) / (step * np.sqrt(1.0 + np.square(m)))
        return losses, np.where(np.abs(m) <= REACH, slopes, 0.0)

    return look_up
