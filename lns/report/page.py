"""The page: what a person wants to know of a run, in the order of asking."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from lns.report.chip import chip_section
from lns.report.html import figure, section, table, text
from lns.report.labels import labels_section
from lns.report.numbers import BLANK, count, duration, percent, plain
from lns.report.search import search_section
from lns.report.story import Story
from lns.report.weights import model_section

STOPS = {
    "time_limit": "stopped by the time limit",
    "max_rounds": "stopped by the limit of rounds",
    "target": "reached the target",
    "no_improvement": "stopped without further improvement",
}


def render(story: Story, *, every: float | None = None) -> str:
    """The whole page.

    Parameters
    ----------
    story
        The run.
    every
        For a page that is served: seconds after which it asks for its next version, as long as the run is
        going on.
    """
    here = files("lns.report")
    style, script = ((here / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    live = every if every and story.status == "unfinished" else None
    name = story.config["data"]["name"]
    sections = [
        ("search", "Search", search_section(story)),
        ("labels", "Labels", labels_section(story)),
        ("model", "Model", model_section(story)),
        ("chip", "Chip", chip_section(story)),
        ("settings", "Settings", _settings(story)),
    ]
    links = "".join(f'<li><a href="#{key}">{title}</a></li>' for key, title, body in sections if body)
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>{text(name)} – lns report</title><style>{style}</style></head>"
        f"<body{f' data-every={chr(34)}{live:g}{chr(34)}' if live else ''}>"
        f'<div class="page"><a class="skip" href="#main">Skip to the content</a>{_header(story, bool(live))}'
        f'<nav aria-label="Sections"><ul><li><a href="#result">Result</a></li>{links}</ul></nav>'
        f'<main id="main">{_result(story)}{"".join(body for _, _, body in sections)}</main>{_footer(story)}'
        f"</div><script>{script}</script></body></html>\n"
    )


# ---- the head --------------------------------------------------------------------------------------------


def _header(story: Story, live: bool) -> str:
    config, data = story.config["options"], story.config["data"]
    status = "running" if live else story.status
    facts = [
        f"{count(data['training_rows'])} training and {count(data['test_rows'])} test examples",
        f"{count(data['features'])} features", _q_words(config["q"]), f"λ {plain(config['lam'], 3)}",
        f"{config['weight-bits']}-bit weights", f"solver {config['solver']}", f"seed {config['seed']}",
    ]  # fmt: skip
    return (
        f'<header><p class="eyebrow">lns report <span class="badge {status}">{status}</span></p>'
        f'<h1>{text(data["name"])}</h1><p class="lede">{text(_in_words(story, live))}</p>'
        f'<p class="facts">{text(" · ".join(facts))}</p></header>'
    )


def _q_words(q: Any) -> str:
    if isinstance(q, list):
        return f"q {plain(float(q[0]))} for negatives and {plain(float(q[1]))} for positives"
    return f"q {plain(float(q))}"


def _in_words(story: Story, live: bool) -> str:
    """The result in a sentence or two."""
    end, margins = story.end or {}, story.margins
    words = []
    error = story.test_error
    if error is not None:
        words.append(
            f"The classifier is wrong on {percent(error)} of {count(story.config['data']['test_rows'])} test "
            "examples that it has not seen."
        )
    if margins:
        share = margins["flagged"] / margins["examples"]
        sentence = (
            f"It gives up on {count(margins['flagged'])} training labels ({percent(share)}) as probably wrong"
        )
        if margins["flipped"]:
            sentence += (
                f"; {count(margins['found'])} of the {count(margins['flipped'])} that had been flipped"
            )
            sentence += " on purpose are among them"
        words.append(sentence + ".")
    if story.status == "failed":
        words.append(f"The run ended with an error: {end.get('error')}.")
    elif story.status == "interrupted":
        words.append("The run was interrupted; this is what it had found until then.")
    elif story.status == "unfinished":
        words.append(
            "The run is going on." if live else "The run has not said that it has ended: it is going on, or "
            "was killed."
        )  # fmt: skip
    return " ".join(words) or "Nothing has been found yet."


# ---- result ----------------------------------------------------------------------------------------------


def _result(story: Story) -> str:
    tiles = []
    error, margins, rounds = story.test_error, story.margins, story.rounds
    if error is not None:
        trained = (story.end or {}).get("train_error")
        note = "on clean labels" if story.config["options"].get("noise") else "on rows not trained on"
        if trained is not None:
            note += f"; {percent(trained)} on the labels trained with"
        tiles.append(("Test error", percent(error, 2), note, True))
    objective = story.objective
    if objective is not None and (story.start or rounds):
        start = story.start["objective"] if story.start else rounds[0].objective
        note = f"{plain(start, 5)} at the start"
        if start > 0:
            note += f", {percent((start - objective) / start)} lower now"
        if rounds and plain(objective, 5) != plain(rounds[-1].best, 5):
            note += f"; {plain(rounds[-1].best, 5)} at the end of the rounds"
        tiles.append(("Objective", plain(objective, 5), note, False))
    if margins:
        share = percent(margins["flagged"] / margins["examples"])
        note = f"{share} of {count(margins['examples'])} training labels look wrong"
        tiles.append(("Flagged", count(margins["flagged"]), note, False))
        if margins["flipped"]:
            precise = margins["found"] / margins["flagged"] if margins["flagged"] else None
            note = f"{count(margins['found'])} of {count(margins['flipped'])}"
            if precise is not None:
                note += f"; {percent(precise)} of the flagged are flips"
            tiles.append(("Flips found", percent(margins["found"] / margins["flipped"]), note, False))
    if rounds:
        accepted = sum(one.outcome != "reject" for one in rounds) / len(rounds)
        rate = len(rounds) / max(story.seconds, 1e-9)
        note = f"{plain(rate, 2)} a second, {percent(accepted, 0)} accepted"
        tiles.append(("Rounds", count(len(rounds)), note, False))
    so_far = "so far" if story.status == "unfinished" else story.status
    reason = STOPS.get((story.end or {}).get("stop_reason", ""), so_far)
    memory = (story.end or {}).get("peak_memory_mb")
    note = reason + ("" if memory is None else f"; {count(memory)} MB at most")
    tiles.append(("Time", duration(story.seconds), note, False))
    body = "".join(
        f'<div class="tile{" main" if main else ""}"><dt>{text(name)}</dt>'
        f'<dd class="big{" long" if len(value) > 8 else ""}">{_small_unit(value)}</dd>'
        f'<dd class="note">{text(note)}</dd></div>'
        for name, value, note, main in tiles
    )
    return f'<section id="result" aria-label="Result"><dl class="tiles">{body}</dl></section>'


def _small_unit(value: str) -> str:
    number, blank, unit = value.rpartition(BLANK)
    return f"{text(number)}<small> {text(unit)}</small>" if blank and unit in ("%", "s") else text(value)


# ---- settings --------------------------------------------------------------------------------------------


def _settings(story: Story) -> str:
    config = story.config
    folder = str(story.path)
    commands = [f"lns predict {folder} NEW.csv"]
    if story.status != "finished":
        commands.append(f"lns train --out {folder} --resume")
    options = [(name, _option(value)) for name, value in config["options"].items()]
    data = config["data"]
    about = [
        ("data", f"{data['name']}: {count(data['rows'])} rows, {count(data['features'])} features"),
        ("checksum", f"SHA-256 {data['sha256']}"),
        ("begun", config["created"].replace("T", " ").replace("+00:00", " UTC")),
        *config["versions"].items(),
    ]
    return section(
        "settings",
        "Settings",
        "What it takes to repeat the run, and what to do with it next.",
        f'<pre class="wide">{text(chr(10).join(commands))}</pre>'
        + figure(
            "Options", "As they stand in config.json.",
            table("Options", ("option", "value"), options, "settings"),
        )
        + figure(
            "Data and versions", "Results can differ in the last digit between versions.",
            table("Data and versions", ("what", "value"), about, "settings"),
        ),
    )  # fmt: skip


def _option(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(str(one) for one in value)
    if isinstance(value, dict):
        return ", ".join(f"{name} = {one}" for name, one in value.items())
    return str(value)


def _footer(story: Story) -> str:
    starts = "" if story.starts < 2 else f" It was begun once and gone on with {story.starts - 1} times."
    return f"<footer>Written by lns {text(story.config['versions'].get('qlns', ''))}.{starts}</footer>"
