"""Tests of the committed results: the page says what the tables say, and how to get them again."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from lns import cli
from lns.paper import printed
from lns.paper.outputs import cells, page
from lns.paper.outputs.checks import ONE_Q, TWO_Q
from lns.paper.rivals import RIVALS

RESULTS = Path(__file__).parents[2] / "docs" / "paper-results"
TABLES = ("folds.csv", "flips.csv", "risk.csv", "run.json")


@pytest.fixture(scope="module")
def run():
    return cells.read(RESULTS)


def test_the_page_is_made_from_its_tables(tmp_path, monkeypatch):
    """Tests that nothing on the page was changed by hand."""
    for name in TABLES:
        shutil.copy(RESULTS / name, tmp_path)
    monkeypatch.setattr(page, "save", lambda figure, path: None)
    monkeypatch.setattr(page, "_html", lambda sections, out: "")
    page.write(tmp_path)
    for name in ("results.md", "cells.csv"):
        assert (tmp_path / name).read_text("utf-8") == (RESULTS / name).read_text("utf-8")


def test_every_cell_has_a_call_behind_it(run):
    """Tests that commands are understood, commits are clean, and no cell is without either."""
    for call in run.calls:
        program, *words = shlex.split(call["command"])
        assert program == "lns"
        assert cli.build_parser().parse_args(words).parser.prog == "lns paper"
        assert call["commits"]
        assert all(re.fullmatch("[0-9a-f]{40}", commit) for commit in call["commits"])
    made = {(call["dataset"], noise) for call in run.calls for noise in call["noise_percent"]}
    assert {key[:2] for key in run.cells} == made


def test_a_data_set_took_two_hours_at_most(run):
    """Tests the wall times on the two workers of the run."""
    assert all(call["wall_seconds"] <= 7200 and call["workers"] == 2 for call in run.calls)


def test_the_table_of_the_readme_is_from_these_results(run):
    """Tests every number of the README's table of the paper's experiments."""
    text = (RESULTS.parents[1] / "README.md").read_text("utf-8")
    lines = [line for line in text.splitlines() if line.startswith("| ") and " of seven rivals" in line]
    (head,) = lines
    rows = text.split(head)[1].split("\n\n")[0].splitlines()[2:]
    assert len(rows) == len(printed.DATASETS)
    for row, (dataset, title) in zip(rows, printed.DATASETS.items(), strict=True):
        errors = [run.mean(dataset, 40, method) for method in RIVALS]
        ours = [run.mean(dataset, 40, method) for method in (ONE_Q, TWO_Q)]
        honest = run.mean(dataset, 40, TWO_Q, "honest-estimated")
        theirs, _ = printed.errors()[dataset, ONE_Q, 40]
        wanted = [min(errors), theirs, *ours, honest]
        assert [cell.strip().strip("*") for cell in row.strip("|").split("|")] == [
            title,
            *(f"{one:.1f}" for one in wanted),
        ]
