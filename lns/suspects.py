"""Which labels look wrong: the margins of the training examples in brief, and all flagged examples."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

BINS = 60  # of the histogram, about
MOST = 100  # rows named one by one


@dataclass(frozen=True)
class Labels:
    """The training examples by where they are from.

    Parameters
    ----------
    rows
        Their rows in the data set, counted from 0.
    y
        The labels trained with, -1 or +1.
    classes
        What the source calls the two.
    flipped
        Which of them were flipped on purpose; None if labels are as they were given.
    """

    rows: NDArray[np.integer]
    y: NDArray[Any]
    classes: tuple[Any, Any]
    flipped: NDArray[np.bool_] | None = None

    def describe(self, i: int, margin: float) -> dict[str, Any]:
        """One example; rows are counted from 1, as in messages about files."""
        about = {
            "row": int(self.rows[i]) + 1,
            "label": self.classes[int(self.y[i] > 0)],
            "margin": round(float(margin), 6),
        }
        return about if self.flipped is None else {**about, "flipped": bool(self.flipped[i])}


def summarise(margins: NDArray[np.float64], q: NDArray[np.float64], labels: Labels) -> dict[str, Any]:
    """What a report needs of the margins: their histogram, counts, and the rows most suspicious.

    The suspicion of an example is how far its margin lies below its q; those at or below it are flagged.
    """
    flagged = margins <= q
    depth = depths(margins, q)
    most = np.argsort(depth, kind="stable")[:MOST]
    edges = histogram_edges(margins, q)
    inside = np.clip(margins, edges[0], edges[-1])
    return {
        "examples": len(margins),
        "flagged": int(flagged.sum()),
        "by_class": [int((labels.y == label).sum()) for label in (-1, 1)],
        "flagged_by_class": [int((flagged & (labels.y == label)).sum()) for label in (-1, 1)],
        "flipped": None if labels.flipped is None else int(labels.flipped.sum()),
        "found": None if labels.flipped is None else int((labels.flipped & flagged).sum()),
        "histogram": {
            "edges": [round(float(edge), 9) for edge in edges],
            "kept": np.histogram(inside[~flagged], edges)[0].tolist(),
            "flagged": np.histogram(inside[flagged], edges)[0].tolist(),
            "beyond": bool(margins.min() < edges[0] or margins.max() > edges[-1]),
        },
        "suspicious": [
            {**labels.describe(int(i), margins[i]), "flagged": bool(flagged[i])} for i in most.tolist()
        ],
    }


def depths(margins: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far margins lie above their q, the most suspicious lowest; without a q, by the margin alone."""
    return margins - np.maximum(q, -1e6)


def histogram_edges(margins: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    """Edges of equal bins around nearly all margins, and around 1 and q unless q is far away.

    1 is an edge, and so is the largest q if there is a bin between the two.
    """
    low, high = (float(end) for end in np.quantile(margins, [0.002, 0.998]))
    near = q[q >= min(low, 1.0) - max(high - low, 2.0)]  # -inf and the like mark nothing
    gap = 1.0 - float(near.max()) if len(near) else 1.0
    low = min(low, 1.0 - 1.25 * gap, float(near.min()) - gap / 4 if len(near) else low)
    high = max(high, 1.0 + gap / 4)
    ideal = (high - low) / BINS
    step = gap / round(gap / ideal) if gap > ideal else gap * np.ceil(ideal / gap)
    first, last = np.floor((low - 1) / step), np.ceil((high - 1) / step)
    return 1 + step * np.arange(first, last + 1)


def flagged_csv(margins: NDArray[np.float64], q: NDArray[np.float64], labels: Labels) -> str:
    """All flagged examples as a table, the most suspicious first."""
    where = np.flatnonzero(margins <= q)
    text = io.StringIO()
    columns = ["row", "label", "margin"] + ([] if labels.flipped is None else ["flipped"])
    table = csv.DictWriter(text, columns, lineterminator="\n")
    table.writeheader()
    for i in where[np.argsort(depths(margins, q)[where], kind="stable")].tolist():
        row = labels.describe(i, margins[i])
        if labels.flipped is not None:
            row["flipped"] = int(row["flipped"])
        table.writerow(row)
    return text.getvalue()
