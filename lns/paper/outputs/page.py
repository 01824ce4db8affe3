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
from lns.paper.outputs import cells, tables
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
    words = "What it takes to get the same numbers" + ("." if run.calls else " was not recorded.")
    yield Section("run", "This run", words, (tables.calls_table(run) if run.calls else None,))
    checks = check(run)
    yield Section(
        "claims", "What had to be shown",
        "Every claim is counted over the cells of this run. A cell is a data set at a noise level.",
        (tables.checks_table(checks), tables.misses_table(checks)),
    )  # fmt: skip
    yield Section(
        "errors", "Test error against label noise",
        "The paper's protocol: folds of 70 % of the data, negatives flipped in the training folds "
        "only, clean test folds, and the setting with the lowest mean test error. Mean and standard "
        "deviation over the folds; in brackets the paper's. The lowest error among q-loss and the paper's "
        "rivals is bold.",
        (
            Picture("errors", "Test error against label noise: this run solid, the paper dashed.",
                    draw_errors(run, (ONE_Q, TWO_Q, *RIVALS))),
            *(tables.errors_table(run, dataset) for dataset in tables.datasets_of(run)),
        ),
    )  # fmt: skip
    if any(key[3] in TODAY for key in run.cells):
        yield Section(
            "today", "Beside what people use today",
            "These methods are not in the paper. Boosting is not linear: it is a yardstick for what the "
            "features allow.",
            (Picture("today", "Test error against label noise.", draw_errors(run, (ONE_Q, TWO_Q, *TODAY))),),
        )  # fmt: skip
    if (honest := tables.honest_table(run)) is not None:
        yield Section(
            "honest", "Chosen honestly",
            "Settings chosen on noisy validation folds by the noise-corrected error, with the flip rates "
            "known or estimated, and scored once on the clean 30 % that nothing else has seen.",
            (tables.protocols_table(run), honest),
        )  # fmt: skip
    yield Section(
        "settings", "Chosen settings",
        "Under the paper's protocol; the paper's choice in brackets. Two values of q are for negatives and "
        "positives. λ multiplies ‖w‖² beside the mean loss; the paper's λ of liblinear is 1/C beside the "
        "sum of losses, so that it is not on the same scale.",
        tuple(tables.settings_table(run, dataset) for dataset in tables.datasets_of(run)),
    )  # fmt: skip
    if run.flips:
        flaggers = [name for name in tables.FLAGGERS if any(key[2] == name for key in run.flips)]
        yield Section(
            "flips", "Flipped labels found",
            "Training labels flipped on purpose, and those that each method flags as wrong.",
            (
                tables.flips_table(run),
                *(_venn(run, name) for name in flaggers),
            ),
        )  # fmt: skip
    if (tests := tables.significance_table(run)) is not None:
        yield Section(
            "significance", "Significance",
            "Paired t-tests over the folds at the 5 % level: Y if q-loss and the convex rival with the "
            "lowest error differ, by how many points the rival is worse, and p. The paper's verdict in "
            "brackets.",
            (tests,),
        )  # fmt: skip
    if run.risk:
        yield Section(
            "risk", "Training error against risk",
            "While a loss is minimised the training error should fall with the risk: a curve that goes down "
            "to the right. One that goes up shows that a lower risk does not mean a better classifier.",
            (Picture("risk", "Training error against the inverse of the risk.", draw_risk(run)),),
        )  # fmt: skip


def _venn(run: cells.Run, name: str) -> Picture:
    words = (
        f"{name}: flipped and flagged labels, areas to scale; below, flipped only, both, and flagged only."
    )
    return Picture(f"venn-{name.replace(' ', '-')}", words, draw_venn(run, name))


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
