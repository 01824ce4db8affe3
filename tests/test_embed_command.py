"""Tests of ``lns embed``, ``lns bench embedding`` and ``lns train --topology``."""

from __future__ import annotations

import builtins
import json

import pytest

from lns import cli


@pytest.fixture
def run(capfd, tmp_path, monkeypatch):
    """Run a command in this process with an empty cache: exit code, standard output, standard error."""
    monkeypatch.setenv("LNS_CACHE_DIR", str(tmp_path / "cache"))

    def run(*words):
        code = cli.main(words)
        out, err = capfd.readouterr()
        return code, out, err

    return run


def test_embed_says_capacity_and_keeps_the_embedding(run, tmp_path):
    """Tests the summary of the 512-qubit chip, and that the store is warm afterwards."""
    code, out, err = run("embed", "--topology", "chimera:8")
    assert (code, err) == (0, "")
    assert "chimera:8: 512 qubits, 1,472 couplers" in out
    assert "12 weight bits x 10 examples of 4 target bits: 52 variables (template)" in out
    assert "12 weight bits x 8 examples" in out
    assert "at most 21" in out
    assert len(list((tmp_path / "cache").rglob("*.npz"))) == 2
    assert run("embed", "--topology", "chimera:8")[1] == out


def test_embed_takes_weights_target_bits_and_a_bound(run):
    """Tests the options that shape a round."""
    code, out, _ = run("embed", "--topology", "chimera:8", "--weights", "8", "--target-bits", "2")
    assert code == 0
    assert "8 weight bits x " in out
    assert "examples of 2 target bits" in out
    assert "at most 9;" in run("embed", "--topology", "chimera:8", "--max-chain", "9")[1]


def test_embed_draws(run, tmp_path):
    """Tests that a picture appears, on each topology."""
    pytest.importorskip("matplotlib")
    for chip in ("chimera:3", "pegasus:3", "zephyr:2"):
        path = tmp_path / f"{chip[:3]}.png"
        lengths = path.with_suffix(".svg")
        code, out, err = run("embed", "--topology", chip, "--draw", str(path), "--histogram", str(lengths))
        assert code == 0, err
        assert path.read_bytes().startswith(b"\x89PNG")
        assert b"<svg" in lengths.read_bytes()
        assert str(path) in out
        assert str(lengths) in out


def test_embed_takes_a_damaged_chip(run):
    """Tests dead qubits: as many as asked for, and a smaller round."""
    code, out, err = run("embed", "--topology", "chimera:4", "--dead", "0.1")
    assert code == 0, err
    assert "chimera:4: 115 qubits, 13 dead, " in out


def test_embed_without_matplotlib_names_the_extra(run, tmp_path, monkeypatch):
    """Tests the error where matplotlib is not installed."""
    real = builtins.__import__

    def without(name, *args, **options):
        if name.split(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    code, out, err = run("embed", "--topology", "chimera:2", "--draw", str(tmp_path / "x.png"))
    assert (code, out) == (2, "")
    assert "qlns[plot]" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["embed", "--topology", "hexagon:3"], "no chip called 'hexagon:3'. Valid names are"),
        (["embed", "--topology", "chimera:99"], "must be in [1, 64]"),
        (["embed", "--weights", "0"], "at least 1"),
        (["embed", "--draw", "chip.bmp"], "must end in .png"),
        (["embed", "--histogram", "chip.bmp"], "must end in .png"),
        (["embed", "--dead", "1"], "a rate from 0 to below 1"),
        (["embed", "--draw", "/no/such/folder/chip.png"], "a folder that is not there"),
        (["embed", "--wieghts", "3"], "did you mean '--weights'?"),
        (["bench", "embedding", "--dead", "2"], "a rate from 0 to below 1"),
        (["bench", "embedding", "--timeout", "soon"], "must be a number"),
        (["bench", "embedding", "--chip", "hexagon:3"], "no chip called"),
        (["train", "--solver", "emulator", "--topology", "hexagon:3"], "no chip called 'hexagon:3'"),
        (["train", "--topology", "chimera:8"], "--topology goes with --solver emulator"),
        (["train", "--solver", "emulator", "--topologie", "chimera:8"], "did you mean '--topology'?"),
    ],
)
def test_errors_are_one_line(run, words, message):
    """Tests wrong words: exit code 2, nothing on standard output, one line on standard error."""
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_bench_embedding_prints_a_table(run):
    """Tests a row for each route, on a chip of the list and on another."""
    code, out, err = run("bench", "embedding", "--chip", "chimera:8", "--timeout", "0")
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert lines[0][:5] == ["chip", "dead", "weights", "route", "examples"]
    assert [line[:6] for line in lines[1:3]] == [
        ["chimera:8", "0", "8", "clique", "6", "32"],
        ["chimera:8", "0", "8", "template", "14", "64"],
    ]
    assert len(lines) == 1 + 6 + 1


def test_bench_embedding_as_json(run):
    """Tests the JSON object, with the search and dead qubits."""
    code, out, _ = run(
        "bench", "embedding", "--chip", "chimera:3", "--dead", "0.05", "--timeout", "1", "--json"
    )
    assert code == 0
    values = json.loads(out)
    assert values["dead"] == 0.05
    assert [row["route"] for row in values["rows"]] == ["clique", "search", "template"]
    assert all(row["dead_qubits"] == 4 for row in values["rows"])


def test_train_on_the_emulator(run):
    """Tests a short run on a small chip, from the command line."""
    code, out, err = run(
        *("train", "long-servedio", "--rows", "300", "--time-limit", "none", "--max-rounds", "2", "--json"),
        *("--solver", "emulator", "--topology", "chimera:4"),
    )
    assert code == 0, err
    assert json.loads(out)["solver"] == "emulator"
