"""Venn diagrams of labels flipped on purpose and labels flagged, areas to scale."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from scipy.optimize import brentq

from lns.paper import printed
from lns.paper.outputs.cells import Flips, Run
from lns.pictures import new_figure
from lns.report.numbers import count

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INJECTED, FLAGGED, BOTH = "#7aa6d8", "#c9c9c9", "#f28e2b"  # what was recovered is orange, as in the paper


def draw_venn(run: Run, method: str) -> Figure:
    """A diagram for every data set and noise level at which a method's flags were counted."""
    noises = sorted({noise for _, noise, name in run.flips if name == method})
    datasets = [name for name in printed.DATASETS if any(key[0] == name for key in run.flips)]
    figure = new_figure(
        figsize=(max(6.5, 2.5 * len(datasets)), 2.9 * len(noises) + 0.5), layout="constrained"
    )
    # After the figure, which says what to install where matplotlib is missing.
    from matplotlib.patches import Patch

    panels = figure.subplots(len(noises), len(datasets), squeeze=False)
    for line, noise in zip(panels, noises, strict=True):
        for axes, dataset in zip(line, datasets, strict=True):
            axes.set_axis_off()
            axes.set_aspect("equal")
            axes.set_xlim(-0.55, 0.55)
            axes.set_ylim(-0.68, 0.66)
            axes.text(
                0, 0.59, f"{printed.DATASETS[dataset]}, {noise} %", ha="center", va="center", fontsize=10
            )
            found = run.flips.get((dataset, noise, method))
            if found is not None:
                _diagram(axes, found)
    handles = [
        Patch(color=INJECTED, label="flipped, not flagged"),
        Patch(color=BOTH, label="flipped and flagged"),
        Patch(color=FLAGGED, label="flagged, not flipped"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    return figure


def lens_area(r: float, s: float, distance: float) -> float:
    """The area that two circles of radii r and s share."""
    if distance >= r + s:
        return 0.0
    if distance <= abs(r - s):
        return math.pi * min(r, s) ** 2
    alpha = math.acos(_unit((distance**2 + r**2 - s**2) / (2 * distance * r)))
    beta = math.acos(_unit((distance**2 + s**2 - r**2) / (2 * distance * s)))
    return r**2 * (alpha - math.sin(2 * alpha) / 2) + s**2 * (beta - math.sin(2 * beta) / 2)


def circles(found: Flips) -> tuple[float, float, float]:
    """Radii of the injected and of the flagged, and the distance at which they share the right area."""
    r, s = (math.sqrt(number / math.pi) for number in (found.injected, found.flagged))
    if found.both == 0:
        return r, s, r + s
    if found.both >= min(found.injected, found.flagged):
        return r, s, abs(r - s)
    return r, s, float(brentq(lambda d: lens_area(r, s, d) - found.both, abs(r - s), r + s))


def _diagram(axes: Any, found: Flips) -> None:
    from matplotlib.patches import Circle

    r, s, distance = circles(found)
    size = max(r + s + distance, 2 * r, 2 * s) or 1.0
    r, s, distance = r / size, s / size, distance / size
    centre = (r + s + distance) / 2
    left, right = (r - centre, 0.0), (r - centre + distance, 0.0)
    axes.add_patch(Circle(left, r, color=INJECTED, linewidth=0))
    axes.add_patch(Circle(right, s, color=FLAGGED, linewidth=0))
    overlap = Circle(left, r, color=BOTH, linewidth=0)
    axes.add_patch(overlap)
    overlap.set_clip_path(Circle(right, s, transform=axes.transData))
    for place, radius in ((left, r), (right, s)):
        axes.add_patch(Circle(place, radius, fill=False, color="#444444", linewidth=0.8))
    missed, extra = found.injected - found.both, found.flagged - found.both
    words = f"{count(missed)}  |  {count(found.both)}  |  {count(extra)}"
    axes.text(0, -0.62, words, ha="center", va="center", fontsize=9)


def _unit(value: float) -> float:
    return min(1.0, max(-1.0, value))
