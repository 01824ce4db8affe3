"""How the search went: objective, test error, neighbourhoods, sizes, time."""

from __future__ import annotations

from collections import Counter

from lns.report.charts import Bars, Line, histogram, line_chart, share_bar, thin
from lns.report.html import Raw, details, figure, legend, section, table, text
from lns.report.numbers import count, duration, percent, plain
from lns.report.story import OUTCOMES, Round, Story

KINDS = {
    "walk": "walks",
    "window": "windows of levels",
    "hop": "hops",
    "fusion": "fusion of solutions",
    "stored": "stored bits",
}
STEPS = {
    "walk": ("blue", "walks"),
    "solve": ("orange", "solving sub-QUBOs"),
    "descent": ("grey", "descents off the grid"),
    "build": ("teal", "building sub-QUBOs"),
    "merge": ("violet", "merging and deciding"),
    "rank": ("gold", "ranking answers"),
    "select": ("green", "choosing neighbourhoods"),
    "objective": ("red", "objectives"),
}


def search_section(story: Story) -> str:
    rounds = story.rounds
    if not rounds:
        return ""
    start = float(story.start["objective"]) if story.start else rounds[0].objective
    best = [(0.0, start)] + [(one.seconds, one.best) for one in _new_bests(rounds)]
    by_round = [(0.0, start)] + [(one.number + 1.0, one.best) for one in _new_bests(rounds)]
    ends = (rounds[-1].seconds, rounds[-1].best), (rounds[-1].number + 1.0, rounds[-1].best)
    low, high, note = _objective_range(start, rounds)
    if start > high:
        del best[0], by_round[0]
    fell = f"from {plain(start, 5)} to {plain(rounds[-1].best, 5)}"
    charts = []
    for title, line, end, x_axis, places in (
        ("Objective over time", best, ends[0], "time", [(one.seconds, one.objective) for one in rounds]),
        ("Objective over rounds", by_round, ends[1], "rounds",
         [(one.number + 1.0, one.objective) for one in rounds]),
    ):  # fmt: skip
        chart = line_chart(
            f"{title}: the best fell {fell}.",
            [
                Line("current", "sky", thin(places, 500), dots=True),
                Line("best", "blue", [*thin(line, 500), end]),
            ],
            x_axis="" if x_axis == "time" else x_axis,
            y_range=(low, high),
            seconds=x_axis == "time",
        )  # fmt: skip
        steps = [
            (duration(x) if x_axis == "time" else count(x), plain(y, 7)) for x, y in thin([*line, end], 60)
        ]
        numbers = details("Numbers", table("Best objective", (x_axis, "best objective"), steps, "numbers"))
        words = f"Mean loss of the training examples, as they are labelled, plus λ Σ w²: {fell}.{note}"
        if x_axis == "rounds":
            found = count(len(_new_bests(rounds)))
            words = f"The same by rounds: {found} of {count(len(rounds))} found a new best."
        keys = legend([("blue", "best so far"), ("sky", "after each round")])
        charts.append(figure(title, words, chart, keys, numbers, wide=x_axis == "time"))
    halves = [charts[1], _test_curve(story), _kinds(rounds), _sizes(rounds)]
    odd = sum(bool(one) for one in halves) % 2 == 0
    charts = [charts[0], *halves, _times(rounds, wide=odd)]
    return section(
        "search",
        "How the search went",
        "A round frees some weights, asks a solver for better ones, and keeps what the true objective likes.",
        "".join(charts),
    )


def _new_bests(rounds: list[Round]) -> list[Round]:
    return [one for one in rounds if one.outcome == "best"]


def _objective_range(start: float, rounds: list[Round]) -> tuple[float, float, str]:
    """Ends of the vertical axis, and a word if the start is above it.

    A first round that does nearly everything would flatten all that comes after it.
    """
    last, first = rounds[-1].best, rounds[0].best
    top, note = max(start, first), ""
    if len(rounds) > 5 and start - last > 12 * (first - last) > 0:
        top, note = first + 0.1 * (first - last), f" The start, {plain(start, 4)}, lies above the picture."
    span = (top - last) or abs(last) * 1e-3 or 1.0
    return last - 0.06 * span, top + 0.06 * span, note


def _test_curve(story: Story) -> str:
    points = [(one.seconds, one.test_error) for one in story.rounds if one.test_error is not None]
    final = story.test_error
    if len(points) < 2 or final is None:
        return ""
    points.append((story.rounds[-1].seconds, final))
    values = [value for _, value in points]
    low, high = min(values), max(values)
    pad = max(0.1 * (high - low), 0.005 - (high - low) / 2)  # noise is not to look like a trend
    words = f"On held-out examples, looked at when a new best was found: {percent(final, 2)} at the end."
    chart = line_chart(
        f"Test error over time: from {percent(values[0], 2)} to {percent(final, 2)}.",
        [Line("test error", "orange", thin(points, 400))],
        x_axis="", y_range=(max(0.0, low - pad), high + pad), seconds=True, percents=True,
    )  # fmt: skip
    rows = [(duration(x), percent(y, 2)) for x, y in thin(points, 60)]
    numbers = details("Numbers", table("Test error over time", ("time", "test error"), rows, "numbers"))
    return figure("Test error over time", words, chart, numbers)


def _kinds(rounds: list[Round]) -> str:
    tried: dict[str, Counter[str]] = {}
    for one in rounds:
        for move in one.moves:
            tried.setdefault(move.kind, Counter())[move.outcome] += 1
    if not tried:
        return ""
    colours = dict(zip(OUTCOMES, ("blue", "sky", "teal", "faint"), strict=True))
    names = dict(
        zip(
            OUTCOMES,
            ("new best", "better than before", "accepted though not better", "rejected"),
            strict=True,
        )
    )
    rows = []
    for kind, found in sorted(tried.items(), key=lambda item: -item[1].total()):
        bar = share_bar([(colours[key], names[key], found[key]) for key in OUTCOMES])
        accepted = found.total() - found["reject"]
        rows.append((
            KINDS.get(kind, kind), Raw(bar), count(found["best"]), count(accepted), count(found.total())
        ))  # fmt: skip
    words = "What became of the neighbourhoods of each kind; several run side by side in a round."
    return figure(
        "Accepted moves by kind of neighbourhood", words,
        table("Neighbourhoods by kind", ("kind", "share", "best", "accepted", "tried"), rows, "bars"),
        legend([(colours[key], names[key]) for key in OUTCOMES]),
    )  # fmt: skip


def _sizes(rounds: list[Round]) -> str:
    sizes = sorted(move.variables for one in rounds for move in one.moves if move.variables)
    if not sizes:
        return ""
    couplers = max(move.couplers for one in rounds for move in one.moves)
    width = max(1, -(-(sizes[-1] - sizes[0] + 1) // 30))
    bins = (sizes[-1] - sizes[0]) // width + 1
    counts = Counter((size - sizes[0]) // width for size in sizes)
    edges = [sizes[0] - 0.5 + width * k for k in range(bins + 1)]
    median = sizes[len(sizes) // 2]
    words = (
        f"{count(len(sizes))} sub-QUBOs of {count(sizes[0])} to {count(sizes[-1])} variables, half of them "
        f"up to {count(median)}; at most {count(couplers)} couplers."
    )
    chart = histogram(
        f"Sizes of sub-QUBOs: {words}", edges, [Bars("sub-QUBOs", "blue", [counts[k] for k in range(bins)])],
        x_axis="variables", whole=True,
    )  # fmt: skip
    return figure("Sizes of the sub-QUBOs", words, chart)


def _times(rounds: list[Round], wide: bool) -> str:
    total: Counter[str] = Counter()
    for one in rounds:
        total.update(one.timings)
    whole = sum(total.values()) or 1.0
    steps = sorted(total.items(), key=lambda item: -item[1])
    parts = [(STEPS.get(name, ("grey", name)), value) for name, value in steps]
    rows = [(name, percent(value / whole), duration(value)) for (_, name), value in parts]
    bar = share_bar([(colour, name, value) for (colour, name), value in parts])
    keys = [
        (Raw(f'<i class="key {colour}"></i>{text(name)}'), share, seconds)
        for ((colour, name), _), (_, share, seconds) in zip(parts, rows, strict=True)
    ]
    words = "Summed over what ran side by side, so the sum can exceed the time on the clock."
    return figure(
        "Where the time went", words,
        f'<div class="tall">{bar}</div>', table("Time by step", ("step", "share", "time"), keys, "numbers"),
        wide=wide,
    )  # fmt: skip
