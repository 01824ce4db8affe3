"""The figures of the results page; each function returns a matplotlib figure (extra ``plot``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lns.paper import printed
from lns.paper.outputs.cells import Run, Step
from lns.paper.outputs.checks import ONE_Q, TWO_Q
from lns.pictures import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Distinct for most kinds of colour blindness; the two of q-loss are the strongest.
STYLES = {
    ONE_Q: ("#d62728", "o"),
    TWO_Q: ("#000000", "s"),
    "liblinear": ("#1f77b4", "^"),
    "logistic": ("#7f7f7f", "v"),
    "square": ("#8c564b", "x"),
    "t-logistic": ("#ff9d2e", "D"),
    "sigmoid": ("#9467bd", "<"),
    "probit": ("#17becf", "p"),
    "smoothed-hinge": ("#2ca02c", "*"),
    "cleanlab": ("#1f77b4", "^"),
    "SGD modified Huber": ("#ff9d2e", "D"),
    "boosting": ("#2ca02c", "*"),
}


def draw_errors(run: Run, methods: Sequence[str]) -> Figure:
    """Test error against noise, a panel for every data set: ours solid with error bars, printed dashed."""
    figure = new_figure(figsize=(11, 12), layout="constrained")
    # After the figure, which says what to install where matplotlib is missing.
    from matplotlib.lines import Line2D

    panels = figure.subplots(3, 2)
    shown = {}
    any_printed = False
    for axes, (dataset, title) in zip(panels.flat, printed.DATASETS.items(), strict=True):
        for method in methods:
            colour, mark = STYLES[method]
            strong = method in (ONE_Q, TWO_Q)
            theirs = [printed.errors().get((dataset, method, noise)) for noise in printed.NOISES]
            if all(theirs):
                any_printed = True
                axes.plot(
                    printed.NOISES,
                    [one[0] for one in theirs if one],
                    "--",
                    color=colour,
                    linewidth=1.4 if strong else 0.8,
                    alpha=0.6,
                )
            cells = {noise: cell for noise in run.noises if (cell := run.cell(dataset, noise, method))}
            if cells:
                shown[method] = Line2D([], [], color=colour, marker=mark, label=method)
                means, bars = zip(*((cell.mean, cell.std) for cell in cells.values()), strict=True)
                axes.errorbar(
                    list(cells), means, bars, color=colour, marker=mark, markersize=6 if strong else 4.5,
                    linewidth=2.2 if strong else 1.1, elinewidth=0.8, capsize=2.5, zorder=3 if strong else 2,
                )  # fmt: skip
        axes.set_title(title)
        axes.set_xticks(sorted({*printed.NOISES, *run.noises}))
        axes.set_ylim(bottom=0 if axes.get_ylim()[0] < 5 else None)
        _tidy(axes)
    for axes in panels[-1]:
        axes.set_xlabel("flipped negatives in the training folds (%)")
    for axes in panels[:, 0]:
        axes.set_ylabel("test error (%)")
    handles: list[Any] = list(shown.values())
    if any_printed:
        handles.append(
            Line2D([], [], color="#555555", linestyle="--", linewidth=0.9, label="as printed in the paper")
        )
    figure.legend(handles=handles, loc="outside upper center", ncols=5, frameon=False)
    return figure


def draw_risk(run: Run) -> Figure:
    """Training error against the inverse of the risk while a loss is minimised: the paper's Figure 1.

    With a loss that suits the data the error falls as the risk does: the curve goes down to the right.
    """
    losses = sorted({key[2] for key in run.risk}, key=lambda name: (name != "square", name))
    rows = sorted(
        {key[:2] for key in run.risk}, key=lambda row: (list(printed.DATASETS).index(row[0]), row[1])
    )
    figure = new_figure(figsize=(4.6 * len(losses), 3.0 * len(rows)), layout="constrained")
    panels = figure.subplots(len(rows), len(losses), squeeze=False)
    for line, (dataset, noise) in zip(panels, rows, strict=True):
        for axes, loss in zip(line, losses, strict=True):
            inverse, error = inverse_risk(run.risk.get((dataset, noise, loss), []))
            colour = STYLES[loss][0] if loss in STYLES else "#444444"
            axes.plot(inverse, error, "-", color=colour, linewidth=0.8, alpha=0.6)
            axes.plot(inverse, error, "o", color=colour, markersize=3.5)
            axes.plot(inverse[-1:], error[-1:], "o", color=colour, markersize=8, markerfacecolor="white")
            axes.set_title(f"{loss}, {printed.DATASETS[dataset]}, {noise} % noise", fontsize=10)
            _tidy(axes)
        line[0].set_ylabel("training error (%)")
    for axes in panels[-1]:
        axes.set_xlabel("1 / risk (the open dot is the end)")
    return figure


def inverse_risk(steps: Sequence[Step]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """1 / risk and training error of every step that has a risk above zero."""
    real = [step for step in steps if step.risk > 0]
    return np.array([1.0 / step.risk for step in real]), np.array([step.error for step in real])


def _tidy(axes: Any) -> None:
    axes.grid(color="#e3e3e3", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
