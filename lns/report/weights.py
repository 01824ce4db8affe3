"""The model: every weight on its grid."""

from __future__ import annotations

from lns.report.charts import Scale, level_track
from lns.report.html import Raw, details, figure, section, table
from lns.report.numbers import alike, class_name, count, plain
from lns.report.story import Story

SHOWN, LISTED = 40, 1000


def model_section(story: Story) -> str:
    if not story.model:
        return ""
    model, grid = story.model, story.model["training"]["weight_grid"]
    weights, names = model["weights"], model["feature_names"]
    order = sorted(range(len(weights)), key=lambda i: (-abs(weights[i]), i))
    shown = order[:SHOWN]
    ends = [grid[end][i] for end in ("lo", "hi") for i in shown]
    across = Scale(min([*ends, 0.0]), max([*ends, 0.0]))
    rows = [
        (
            _feature(names, i),
            Raw(level_track(across, grid["lo"][i], grid["hi"][i], grid["bits"], weights[i])),
            value,
        )
        for i, value in zip(shown, alike([weights[i] for i in shown]), strict=True)
    ]
    zero = sum(weight == 0 for weight in weights)
    fine = f"{2 ** grid['bits']} levels each" + (", marked" if grid["bits"] <= 5 else "")
    words = f"{count(len(weights))} weights, {fine}; {count(zero)} are zero."
    words += f" The bias is {plain(model['bias'], 4)}."
    if len(order) > len(shown):
        words += f" These are the {len(shown)} largest."
    content = table("Weights on their grids", ("feature", "grid and value", "weight"), rows, "weights")
    every = [
        (_feature(names, i), plain(weights[i], 6), plain(grid["lo"][i], 4), plain(grid["hi"][i], 4))
        for i in order[:LISTED]
    ]
    title = "Numbers" if len(order) <= LISTED else f"Numbers of the {LISTED:,} largest"
    content += details(
        title, table("Weights", ("feature", "weight", "lowest level", "highest level"), every, "numbers")
    )
    negative, positive = map(class_name, model["classes"])
    return section(
        "model",
        "The model",
        f"It says {positive} where the weighted sum of the features plus the bias is above 0, and {negative} "
        "elsewhere.",
        figure("Weights on their grids", words, content, wide=True),
    )


def _feature(names: list[str] | None, i: int) -> str:
    return names[i] if names else f"feature {i + 1}"
