"""The results of a run as one Markdown file and one HTML file, made from the run's CSV files alone."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from lns.errors import DataError
from lns.files import write_text
from lns.paper.outputs import cells, tables, words
from lns.paper.outputs.cells import FIGURES
from lns.paper.outputs.cells_table import write_cells
from lns.paper.outputs.checks import ONE_Q, TWO_Q, check
from lns.paper.outputs.figures import draw_errors, draw_risk
from lns.paper.outputs.table import Table
from lns.paper.outputs.venn import draw_venn
from lns.paper.rivals import RIVALS, TODAY
from lns.pictures import save
from lns.report import html

TITLE = "Robust classification with q-loss: the paper's experiments, run again"


@dataclass(frozen=True)
class Picture:
    """A figure and the name of its file."""

    name: str
    words: str
    figure: Any


@dataclass(frozen=True)
class Section:
    """A heading, a paragraph, and tables and pictures."""

    key: str
    title: str
    words: str
    content: tuple[Table | Picture | None, ...]


def write(out: Path) -> None:
    """Write ``results.md``, ``results.html``, ``cells.csv`` and the pictures into the folder of a run.

    Raises
    ------
    DataError
        If the folder holds no run, or a damaged one.
    InvalidInput
        If matplotlib is missing.
    """
    run = cells.read(out)
    if not run.cells:
        raise DataError(
            f"There is no folds.csv with rows in {out}: give the folder that 'lns paper --out' has written."
        )
    write_cells(run, out / "cells.csv")
    sections = list(_sections(run))
    (out / FIGURES).mkdir(exist_ok=True)
    for section in sections:
        for part in section.content:
            if isinstance(part, Picture):
                save(part.figure, out / FIGURES / f"{part.name}.png")
    write_text(out / "results.md", _markdown(sections))
    write_text(out / "results.html", _html(sections, out))


# ---- content ---------------------------------------------------------------------------------------------


def _sections(run: cells.Run) -> Iterator[Section]:
    made = (tables.calls_table(run), tables.effort_table(run)) if run.calls else ()
    yield Section("run", "This run", words.RUN if made else words.NOT_RECORDED, made)
    checks = check(run)
    claims = (tables.checks_table(checks), tables.misses_table(checks), tables.reasons_table(run))
    yield Section("claims", "What had to be shown", words.CLAIMS, claims)
    yield Section(
        "errors", "Test error against label noise", words.ERRORS,
        (
            Picture("errors", "Test error against label noise: this run solid, the paper dashed.",
                    draw_errors(run, (ONE_Q, TWO_Q, *RIVALS))),
            *(tables.errors_table(run, dataset) for dataset in tables.datasets_of(run)),
        ),
    )  # fmt: skip
    if any(key[3] in TODAY for key in run.cells):
        picture = Picture(
            "today", "Test error against label noise.", draw_errors(run, (ONE_Q, TWO_Q, *TODAY))
        )
        yield Section("today", "Beside what people use today", words.TODAY, (picture,))
    if (honest := tables.honest_table(run)) is not None:
        rates = tables.rates_table(run) if run.calls else None
        yield Section("honest", "Chosen honestly", words.HONEST, (tables.protocols_table(run), honest, rates))
    chosen = tuple(tables.settings_table(run, dataset) for dataset in tables.datasets_of(run))
    yield Section("settings", "Chosen settings", words.SETTINGS, chosen)
    if run.flips:
        flaggers = [name for name in tables.FLAGGERS if any(key[2] == name for key in run.flips)]
        found = (tables.flips_table(run), *(_venn(run, name) for name in flaggers))
        yield Section("flips", "Flipped labels found", words.FLIPS, found)
    if (tests := tables.significance_table(run)) is not None:
        yield Section("significance", "Significance", words.SIGNIFICANCE, (tests,))
    if run.risk:
        picture = Picture("risk", "Training error against the inverse of the risk.", draw_risk(run))
        yield Section("risk", "Training error against risk", words.RISK, (picture,))


def _venn(run: cells.Run, name: str) -> Picture:
    about = (
        f"{name}: flipped and flagged labels, areas to scale; below, flipped only, both, and flagged only."
    )
    return Picture(f"venn-{name.replace(',', '').replace(' ', '-')}", about, draw_venn(run, name))


# ---- forms -----------------------------------------------------------------------------------------------


def _markdown(sections: list[Section]) -> str:
    parts = [f"# {TITLE}"]
    for section in sections:
        parts += [f"## {section.title}", section.words]
        for part in section.content:
            if isinstance(part, Picture):
                parts.append(f"![{part.words}]({FIGURES}/{part.name}.png)")
            elif part is not None:
                parts += [f"**{part.caption}**", part.markdown()]
    return "\n\n".join(parts) + "\n"


def _html(sections: list[Section], out: Path) -> str:
    style = (files("lns.report") / "page.css").read_text(encoding="utf-8")
    body = "".join(
        html.section(
            section.key, section.title, section.words,
            "".join(_card(part, out) for part in section.content if part is not None), loose=True,
        )
        for section in sections
    )  # fmt: skip
    links = "".join(
        f'<li><a href="#{section.key}">{html.text(section.title)}</a></li>' for section in sections
    )
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<title>{TITLE}</title><style>{style}\nimg{{max-width:100%;height:auto;background:#fff}}</style></head>"
        f'<body><div class="page"><a class="skip" href="#main">Skip to the content</a>'
        f'<header><p class="eyebrow">lns paper</p><h1>{TITLE}</h1></header>'
        f'<nav aria-label="Sections"><ul>{links}</ul></nav><main id="main">'
        f"{body}</main></div></body></html>\n"
    )


def _card(part: Table | Picture, out: Path) -> str:
    if isinstance(part, Table):
        return html.figure(part.caption, "", part.html(), wide=True)
    data = base64.b64encode((out / FIGURES / f"{part.name}.png").read_bytes()).decode()
    return html.figure(
        part.words, "", f'<img alt="{html.text(part.words)}" src="data:image/png;base64,{data}">', wide=True
    )
