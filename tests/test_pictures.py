"""Tests of the pictures: what is in them, not how they look."""

from __future__ import annotations

import numpy as np
import pytest
from search_cases import random_problem

import lns
from lns.embedding import Chip, Shape, Store, embed
from lns.errors import InvalidInput

pytest.importorskip("matplotlib")

from lns import pictures


@pytest.fixture(scope="module")
def embedding():
    """A small round on a small chip."""
    return embed(Chip.from_name("chimera:4"), Shape(6, 2, 3), timeout=0.0, store=Store(None))


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """A short run on an emulated chip."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LNS_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        options = {"topology": "chimera:4", "num_reads": 2, "num_sweeps": 20}
        return lns.solve(
            random_problem("dense", seed=1), mode="rounds", max_rounds=4, solver="emulator",
            solver_options=options,
        )  # fmt: skip


def test_the_chip_shows_every_qubit_once(embedding):
    """Tests the dots of weights, targets and idle qubits, and the words beside them."""
    figure = pictures.draw_chip(embedding)
    (axes,) = figure.axes
    dots = [c.get_offsets() for c in axes.collections if type(c).__name__ == "PathCollection"]
    weights, targets = embedding.weight_chain_lengths.sum(), embedding.target_chain_lengths.sum()
    assert [len(d) for d in dots] == [embedding.chip.num_qubits - weights - targets, targets, weights]
    assert len(np.unique(np.concatenate(dots), axis=0)) == embedding.chip.num_qubits
    words = [text.get_text() for text in axes.get_legend().get_texts()]
    assert words == ["chains of 6 weight bits", "chains of 6 target bits (2 examples)", "idle qubits"]


def test_the_histogram_counts_every_chain(embedding):
    """Tests the heights of the bars."""
    (axes,) = pictures.draw_chain_lengths(embedding).axes
    heights = np.array([[bar.get_height() for bar in group] for group in axes.containers])
    expected = [
        np.bincount(lengths, minlength=embedding.max_chain + 1)[1:]
        for lengths in (embedding.weight_chain_lengths, embedding.target_chain_lengths)
    ]
    np.testing.assert_array_equal(heights, expected)


def test_objective_against_qpu_time(result):
    """Tests the numbers, from a result and from its records, with QPU time put into them."""
    for record in result.rounds:
        for one in record.neighbourhoods:
            for call in one.chip:
                call["qpu_time"] = 0.25
    seconds, best = pictures.objective_against_qpu_time(result)
    calls = [sum(len(one.chip) for one in record.neighbourhoods) for record in result.rounds]
    np.testing.assert_allclose(seconds, 0.25 * np.cumsum(calls))
    assert best[-1] == result.objective
    (axes,) = pictures.draw_objective_against_qpu_time(result.rounds).axes
    np.testing.assert_array_equal(axes.lines[0].get_xydata(), np.column_stack([seconds, best]))
    assert axes.get_title() == ""


def test_a_run_without_qpu_time_says_so():
    """Tests the picture of nothing."""
    (axes,) = pictures.draw_objective_against_qpu_time([]).axes
    assert axes.get_title() == "no QPU time was spent"


def test_pictures_are_written_or_refused(embedding, tmp_path):
    """Tests the formats, and a place where nothing can be written."""
    figure = pictures.draw_chain_lengths(embedding)
    for ending, start in ((".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")):
        pictures.save(figure, tmp_path / f"picture{ending}")
        assert (tmp_path / f"picture{ending}").read_bytes().startswith(start)
    with pytest.raises(InvalidInput, match="cannot be written"):
        pictures.save(figure, tmp_path / "missing" / "picture.png")


def test_the_summary_has_a_line_about_the_chip(result):
    """Tests the totals of an emulated run."""
    chip = result.chip()
    calls = [call for record in result.rounds for one in record.neighbourhoods for call in one.chip]
    assert chip["calls"] == len(calls) > 0
    assert chip["num_qubits"] == pytest.approx(np.mean([call["num_qubits"] for call in calls]))
    assert chip["fallbacks"] == chip["retries"] == 0
    assert f"\nchip         {len(calls)} sub-QUBOs on " in result.summary()
    plain = lns.solve(random_problem("dense", seed=1), max_rounds=2)
    assert plain.chip() == {}
    assert "chip" not in plain.summary()
