"""Numbers as people read them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

MINUS, BLANK = "−", "\N{NO-BREAK SPACE}"


def count(value: float) -> str:
    """12,345."""
    return f"{value:,.0f}".replace("-", MINUS)


def percent(share: float, digits: int = 1) -> str:
    """12.3 %; a share that is not quite 0 or 1 does not look as if it were."""
    text = f"{100 * share:.{digits}f}"
    least = 10.0**-digits
    if share > 0 and float(text) == 0:
        text = f"< {least:.{digits}f}"
    elif share < 1 and float(text) == 100:
        text = f"> {100 - least:.{digits}f}"
    return f"{text}{BLANK}%"


def plain(value: float, digits: int = 4) -> str:
    """Some significant digits, without an exponent where that can be read."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value).replace("-", MINUS).replace("inf", "∞")
    if 1e-4 <= abs(value) < 1e6:
        decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
        text = f"{value:,.{decimals}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    else:
        text = re.sub(r"e([-+])0+", r"e\1", f"{value:.{digits}g}").replace("e+", "e")
    return text.replace("-", MINUS)


def alike(values: Sequence[float], digits: int = 4) -> list[str]:
    """Numbers with the same number of decimals, so many significant digits for the largest."""
    largest = max((abs(value) for value in values), default=0.0)
    decimals = max(0, digits - 1 - math.floor(math.log10(largest))) if largest else 0
    return [f"{value + 0.0:,.{decimals}f}".replace("-", MINUS) for value in values]


def duration(seconds: float) -> str:
    """0.4 s, 12 s, 3 min 20 s, 2 h 5 min."""
    if seconds < 10:
        return f"{seconds:.1f}{BLANK}s"
    if seconds < 120:
        return f"{seconds:.0f}{BLANK}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 120:
        return f"{minutes}{BLANK}min" + (f" {rest}{BLANK}s" if rest else "")
    return f"{minutes // 60}{BLANK}h {minutes % 60}{BLANK}min"


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round values between two ends."""
    if not high > low:
        return [low]
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)]


def tick_texts(values: list[float]) -> list[str]:
    """The ticks in words, all with the same number of decimals."""
    step = values[1] - values[0] if len(values) > 1 else abs(values[0]) or 1.0
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return [f"{value + 0.0:,.{decimals}f}".replace("-", MINUS) for value in values]


def class_name(name: object) -> str:
    """A class as its source calls it; +1 and −1 with their signs."""
    if isinstance(name, float) and name.is_integer():
        name = int(name)
    return f"{name:+d}".replace("-", MINUS) if isinstance(name, int) and name in (-1, 1) else str(name)
