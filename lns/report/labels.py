"""Which labels look wrong: the margins, and the rows at their far end."""

from __future__ import annotations

from typing import Any

from lns.report.charts import Bars, histogram
from lns.report.html import Raw, details, figure, legend, section, table
from lns.report.numbers import class_name, count, percent, plain
from lns.report.story import Story

SHOWN = 20


def labels_section(story: Story) -> str:
    margins = story.margins
    if not margins:
        return ""
    classes = story.config["data"]["classes"]
    by_class = " and ".join(
        f"{count(number)} labelled {class_name(name)}"
        for number, name in zip(margins["flagged_by_class"], classes, strict=True)
    )
    bins = margins["histogram"]
    q = (story.model or {}).get("training", {}).get("q")
    marks = [(1.0, "1")]
    if isinstance(q, dict):
        signs = ("-1", classes[0]), ("1", classes[1])
        marks += [(q[key], f"q {plain(q[key])} ({class_name(name)})") for key, name in signs]
    elif q is not None:
        marks.append((q, f"q {plain(q)}"))
    words = (
        "Right of 1 an example is safely on its side; left of 0 it is on the wrong one; at q or below it is "
        f"given up and flagged: {by_class}."
        + (" The outermost bars hold what lies beyond." if bins["beyond"] else "")
    )
    chart = histogram(
        f"Histogram of the margins of {count(margins['examples'])} training examples; "
        f"{count(margins['flagged'])} are flagged.",
        bins["edges"],
        [Bars("flagged", "orange", bins["flagged"]), Bars("kept", "blue", bins["kept"])],
        x_axis="margin y (w·x + b)",
        marks=marks,
    )
    rows = [
        (f"{plain(a, 4)} to {plain(b, 4)}", count(kept), count(flagged))
        for a, b, kept, flagged in zip(
            bins["edges"], bins["edges"][1:], bins["kept"], bins["flagged"], strict=False
        )
        if kept or flagged
    ]
    numbers = details("Numbers", table("Margins", ("margin", "kept", "flagged"), rows, "numbers"))
    keys = legend([("orange", "flagged"), ("blue", "kept")])
    picture = figure("Margins of the training examples", words, chart, keys, numbers, wide=True)
    return section(
        "labels",
        "Which labels look wrong",
        "The margin of a training example says how clearly the classifier agrees with its label. Labels far "
        "on the wrong side are more likely mistaken than the classifier.",
        picture + _suspicious(story, margins) + _counts(margins, classes),
        loose=True,
    )


def _suspicious(story: Story, margins: dict[str, Any]) -> str:
    known = margins["flipped"] is not None
    head = ["#", "row", "label", "margin", "flagged"] + (["flipped"] if known else [])
    rows = [
        [k, count(one["row"]), class_name(one["label"]), f"{one['margin']:.3f}".replace("-", "−"),
         _pill(one["flagged"], "yes")] + ([_pill(one["flipped"], "hit")] if known else [])
        for k, one in enumerate(margins["suspicious"], 1)
    ]  # fmt: skip
    if not rows:
        return ""
    name = story.config["data"]["name"]
    words = f"Rows of {name}, counted from 1; those furthest below q come first."
    if story.end is not None and margins["flagged"]:
        words += " All flagged rows are in flagged.csv of the run folder."
    content = table("The most suspicious training rows", head, rows[:SHOWN], "wrongs")
    if len(rows) > SHOWN:
        content += details(f"{len(rows) - SHOWN} more", table("Further rows", head, rows[SHOWN:], "wrongs"))
    return figure("The most suspicious training rows", words, content)


def _counts(margins: dict[str, Any], classes: list[Any]) -> str:
    rows = [
        (class_name(name), count(whole), count(part), percent(part / whole) if whole else "")
        for name, whole, part in zip(classes, margins["by_class"], margins["flagged_by_class"], strict=True)
    ]
    content = table("Flagged by label", ("label", "examples", "flagged", "share"), rows, "numbers")
    if not margins["flipped"]:
        return figure(
            "Flagged by label",
            "Noise is often one-sided. Look at the first rows of the list: if they are mistakes, correct or "
            "drop the flagged rows; if not, a lower q gives up fewer.",
            content,
        )  # fmt: skip
    found, flipped, flagged = margins["found"], margins["flipped"], margins["flagged"]
    clean = margins["examples"] - flipped
    hits = [
        ("flipped on purpose", count(found), count(flipped - found)),
        ("as they were", count(flagged - found), count(clean - (flagged - found))),
    ]
    others = "none of the others."
    if flagged > found:
        others = f"{percent((flagged - found) / clean)} of the others: wrong from the start, or hard to tell."
    return figure(
        "Flagged by label, and by what is true",
        f"{percent(found / flipped)} of the flipped labels are flagged, and {others}",
        content,
        '<div class="gap"></div>',
        table("Flips found and missed", ("labels", "flagged", "kept"), hits, "numbers"),
    )


def _pill(value: bool, kind: str) -> Raw:
    return Raw(f'<span class="pill {kind if value else "no"}">{"yes" if value else "no"}</span>')
