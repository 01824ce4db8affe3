"""Charts as HTML and SVG.

The drawing stretches with the page while words and lines keep their size: shapes are SVG in a square of 1000
by 1000 that is scaled without regard to its aspect, labels are HTML placed by per cent. Colours are CSS
variables.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from lns.report.html import text
from lns.report.numbers import count, duration, percent, plain, tick_texts, ticks

SIDE = 1000


@dataclass(frozen=True)
class Scale:
    """Values to places of the drawing."""

    low: float
    high: float

    def part(self, value: float) -> float:
        """From 0 at the low end to 1 at the high end."""
        return (value - self.low) / ((self.high - self.low) or 1.0)

    def x(self, value: float) -> str:
        """Place from the left."""
        return _short(SIDE * self.part(value))

    def y(self, value: float) -> str:
        """Place from the top."""
        return _short(SIDE * (1 - self.part(value)))


def thin(points: Sequence[tuple[float, float]], most: int) -> list[tuple[float, float]]:
    """At most so many points, evenly chosen, the first and the last among them."""
    if len(points) <= most:
        return list(points)
    return [points[round(k * (len(points) - 1) / (most - 1))] for k in range(most)]


# ---- lines -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """A series of a line chart: steps, or dots."""

    name: str
    colour: str
    points: list[tuple[float, float]]
    dots: bool = False


def line_chart(
    label: str,
    lines: Sequence[Line],
    *,
    x_axis: str,
    y_range: tuple[float, float],
    seconds: bool = False,
    percents: bool = False,
) -> str:
    """Lines over a common axis that begins at 0; a pointer or the arrow keys read values off."""
    across = Scale(0.0, max((x for line in lines for x, _ in line.points), default=1.0) or 1.0)
    up = Scale(*y_range)
    y_ticks = ticks(*y_range, 4)
    x_ticks, x_words = time_ticks(across.high) if seconds else _count_ticks(across.high)
    shapes = [_grid_lines(up, y_ticks)]
    for line in lines:
        inside = [(x, min(max(y, up.low), up.high)) for x, y in line.points]
        if line.dots:
            dots = [(x, y) for (x, y), (_, real) in zip(inside, line.points, strict=True) if y == real]
            d = "".join(f"M{across.x(x)} {up.y(y)}h0" for x, y in dots)
        else:
            d = "".join(
                f"M{across.x(x)} {up.y(y)}" if k == 0 else f"H{across.x(x)}V{up.y(y)}"
                for k, (x, y) in enumerate(inside)
            )
            d += f"H{SIDE}"
        shapes.append(f'<path class="{"dots" if line.dots else "line"} {line.colour}" d="{d}"/>')
    texts = tick_texts([100 * value for value in y_ticks] if percents else y_ticks)
    y_labels = [f"{one} %" for one in texts] if percents else texts
    first = next(line for line in lines if not line.dots)
    readings = [
        [round(across.part(x), 4), f"{duration(x) if seconds else f'round {count(x)}'}: "
         f"{percent(y, 2) if percents else plain(y, 6)}"]
        for x, y in thin(first.points, 200)
    ]  # fmt: skip
    return _plot(
        label, "".join(shapes), [(up.part(v), w) for v, w in zip(y_ticks, y_labels, strict=True)],
        [(across.part(v), w) for v, w in zip(x_ticks, x_words, strict=True)], x_axis, readings=readings,
    )  # fmt: skip


def time_ticks(longest: float) -> tuple[list[float], list[str]]:
    """Ticks of a time axis, in the unit that suits it."""
    unit, name = next(
        (size, name) for size, name, limit in ((1, "s", 180), (60, "min", 180 * 60), (3600, "h", 1e99))
        if longest <= limit
    )  # fmt: skip
    places = ticks(0.0, longest / unit, 6)
    return [unit * place for place in places], [f"{word} {name}" for word in tick_texts(places)]


def _count_ticks(most: float) -> tuple[list[float], list[str]]:
    places = [place for place in ticks(0.0, most, 6) if place == int(place)]
    return places, [count(place) for place in places]


# ---- histograms ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bars:
    """A series of a histogram, stacked on those before it."""

    name: str
    colour: str
    counts: Sequence[int]


def histogram(
    label: str,
    edges: Sequence[float],
    series: Sequence[Bars],
    *,
    x_axis: str,
    marks: Sequence[tuple[float, str]] = (),
    whole: bool = False,
) -> str:
    """Stacked bars and marked values of the axis below; the last is named on its right, others left."""
    across = Scale(edges[0], edges[-1])
    totals = [sum(bars.counts[k] for bars in series) for k in range(len(edges) - 1)]
    up = Scale(0.0, 1.04 * max([*totals, 1]))
    shapes = [_grid_lines(up, y_ticks := ticks(0.0, up.high, 4))]
    least = up.high / 180  # a single example among thousands is still seen
    for k, (left, right) in enumerate(pairwise(edges)):
        base = 0.0
        for bars in series:
            if not bars.counts[k]:
                continue
            height = max(float(bars.counts[k]), least)
            x, width = SIDE * across.part(left), SIDE * (across.part(right) - across.part(left))
            shapes.append(
                f'<rect class="{bars.colour}" x="{_short(x + 0.06 * width)}" width="{_short(0.88 * width)}" '
                f'y="{up.y(base + height)}" height="{_short(SIDE * height / up.high)}">'
                f"<title>{_bin(left, right, whole)}: {count(bars.counts[k])} {text(bars.name)}</title></rect>"
            )
            base += height
    labels = []
    rows: dict[str, list[float]] = {"": [], " left": []}  # names near each other stand one above the other
    for value, name in sorted(marks):
        if not across.low <= value <= across.high:
            continue
        place = across.part(value)
        side = " left" if value < max(marks)[0] and place > 0.2 else ""
        taken = rows[side]
        row = next((r for r, before in enumerate(taken) if place - before > 0.3), len(taken))
        taken[row : row + 1] = [place]
        shapes.append(f'<path class="mark" d="M{across.x(value)} {-80 * row - 60}V{SIDE}"/>')
        labels.append(
            f'<span class="marked{side}" '
            f'style="left:{100 * place:.2f}%;bottom:calc(100% + {1.35 * row:.2f}em)">'
            f"{text(name)}</span>"
        )
    places = ticks(across.low, across.high, 6)
    if whole:
        places = [place for place in places if place == int(place)]
    return _plot(
        label, "".join(shapes), [(up.part(v), count(v)) for v in y_ticks if v == int(v)],
        [(across.part(v), w) for v, w in zip(places, tick_texts(places), strict=True)], x_axis,
        over="".join(labels), above=max(map(len, rows.values())),
    )  # fmt: skip


def _bin(left: float, right: float, whole: bool) -> str:
    if whole:
        low, high = round(left + 0.5), round(right - 0.5)
        return count(low) if low == high else f"{count(low)} to {count(high)}"
    return f"{plain(left, 3)} to {plain(right, 3)}"


# ---- shares ----------------------------------------------------------------------------------------------


def share_bar(shares: Sequence[tuple[str, str, float]]) -> str:
    """One bar cut in parts, as (colour, name, value); the names are said elsewhere."""
    whole = sum(value for _, _, value in shares) or 1.0
    parts = "".join(
        f'<i class="{colour}" style="width:{100 * value / whole:.2f}%" '
        f'title="{text(name)}: {percent(value / whole)}"></i>'
        for colour, name, value in shares
        if value > 0
    )
    return f'<span class="shares" aria-hidden="true">{parts}</span>'


# ---- grids of weights --------------------------------------------------------------------------------------


def level_track(across: Scale, low: float, high: float, bits: int, value: float) -> str:
    """A weight on its grid: the interval, its levels if they can be told apart, zero, and the value."""
    levels = 2**bits
    marks = ""
    if levels <= 32:
        steps = [low + (high - low) * k / (levels - 1) for k in range(levels)]
        marks = '<path class="levels" d="' + "".join(f"M{across.x(v)} 330V670" for v in steps) + '"/>'
    return (
        f'<svg class="track" viewBox="0 0 {SIDE} {SIDE}" preserveAspectRatio="none" aria-hidden="true">'
        f'<path class="zero" d="M{across.x(0.0)} 0V{SIDE}"/>'
        f'<path class="interval" d="M{across.x(low)} 500H{across.x(high)}"/>{marks}'
        f'<path class="stem" d="M{across.x(0.0)} 500H{across.x(value)}"/>'
        f'<path class="value" d="M{across.x(value)} 500h0"/></svg>'
    )


# ----------------------------------------------------------------------------------------------------------


def _plot(
    label: str,
    shapes: str,
    y_labels: Sequence[tuple[float, str]],
    x_labels: Sequence[tuple[float, str]],
    x_axis: str,
    *,
    over: str = "",
    above: int = 0,
    readings: Sequence[Sequence[object]] = (),
) -> str:
    left = "".join(f'<span class="ty" style="bottom:{100 * at:.2f}%">{text(w)}</span>' for at, w in y_labels)
    below = "".join(f'<span class="tx" style="left:{100 * at:.2f}%">{text(w)}</span>' for at, w in x_labels)
    widest = max((len(word) for _, word in y_labels), default=1)
    read = f" tabindex=\"0\" data-readings='{escape(json.dumps(readings))}'" if readings else ""
    return (
        f'<div class="plot" style="--left:{0.62 * widest + 0.9:.2f}em;--above:{1.35 * above:.2f}em">'
        f'<div class="area"{read}><svg viewBox="0 0 {SIDE} {SIDE}" preserveAspectRatio="none" role="img" '
        f'aria-label="{text(label)}">{shapes}</svg>{over}'
        f'<span aria-hidden="true">{left}{below}</span></div>'
        f'<p class="axis" aria-hidden="true">{text(x_axis)}</p></div>'
    )


def _grid_lines(up: Scale, values: Sequence[float]) -> str:
    return '<path class="grid" d="' + "".join(f"M0 {up.y(value)}H{SIDE}" for value in values) + '"/>'


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
