"""Tests of `lns bench quality` and `lns bench scale`: that they run and say what they measured.

What they measure depends on the machine and is not tested.
"""

import json

import numpy as np
import pytest

from lns import walk
from lns.bench import ablation, quality, scale
from lns.problem import QLossProblem


def test_panel_names_are_unique():
    """Tests that every instance can be picked by its name."""
    names = [instance.name for instance in quality.panel()]
    assert len(set(names)) == len(names) == 44


def test_comparison(capsys):
    """Tests that the engine, its rival and the continuous path are in the row, and the verdict below."""
    argv = ["--instances", "long-servedio 20% 2bit", "--seconds", "0.3", "--seeds", "1", "--no-others"]
    assert quality.main(argv) == 0
    head, row, verdict = capsys.readouterr().out.splitlines()
    assert {"engine", "rival", "continuous", "start"} < set(head.split())
    assert row.strip().startswith("long-servedio 20% 2bit")
    assert "of 1, worst seed" in verdict


def test_general_solvers_get_the_whole_qubo():
    """Tests that their answers are scored by the true objective, which few codes can have here."""
    rng = np.random.default_rng(0)
    problem = QLossProblem(rng.random((12, 2)), rng.choice([-1, 1], 12), weight_bits=2, bias_bits=2)
    found = quality.whole_qubo(problem, 0.1, seed=0)
    assert set(found) == {"full-QUBO SA", "full-QUBO Tabu", "dwave-hybrid"}
    codes = np.stack(np.meshgrid(*(np.arange(4),) * 3), axis=-1).reshape(-1, 3)
    possible = np.array([problem.state(one).objective for one in codes])
    for value in found.values():
        assert np.abs(possible - value).min() < 1e-12


def test_ablation(capsys, monkeypatch):
    """Tests that mechanisms are switched off in turn, by settings and by patches that are taken back."""
    chosen = {name: ablation.ABLATIONS[name] for name in ("engine", "no walk", "no partners")}
    monkeypatch.setattr(ablation, "ABLATIONS", chosen)
    pairs = walk.PAIRS
    argv = ["--instances", "long-servedio 20% 2bit", "--seconds", "0.1", "--seeds", "1", "--ablate", "--json"]
    assert quality.main(argv) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert set(row) == {"problem", *chosen}
    assert walk.PAIRS == pairs > 0


def test_the_null_test(capsys):
    """Tests that rounds alone stay at the start with the null solver; the row says how sure the order is."""
    argv = ["--instances", "no walk: long*", "--seconds", "0.2", "--seeds", "1", "--null", "--json"]
    assert quality.main(argv) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert {*ablation.NULL_TEST, "rounds below null", "by chance", "default worse by chance"} < set(row)
    assert row["rounds"] <= row["start"]


def test_the_null_solver_changes_nothing():
    """Tests that it returns the bits as they stand."""
    start = np.array([0, 1, 1], dtype=np.int8)
    assert (ablation.null(None, start, 0) == start).all()


def test_chance():
    """Tests the sign test: ten of ten pairs are 1 in 1,024, and pairs that are equal say nothing."""
    lower, higher = np.zeros(10), np.ones(10)
    assert ablation.chance(lower, higher) == pytest.approx(2**-10)
    assert ablation.chance(lower, lower) == 1.0


def test_nothing_to_compare(capsys):
    """Tests that a name that no instance has is an error that lists the names."""
    with pytest.raises(SystemExit):
        quality.main(["--instances", "nothing of the kind"])
    assert "web8 40% 4bit per-class q" in capsys.readouterr().err


def test_scale(monkeypatch, capsys):
    """Tests both tables: two sizes of the first give its slopes, each beside scikit-learn's times."""
    monkeypatch.setattr(scale, "SIZES", (1_000, 2_000))
    monkeypatch.setattr(scale, "TEXT", ((500, 2_000, 1.0),))
    assert scale.main(["--seconds", "1", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [row["rows"] for row in result["rows"]] == [1_000, 2_000]
    assert all(row["logistic_s"] > 0 and row["svc_s"] > 0 for row in result["rows"])
    assert set(result["slopes"]) == set(scale.SLOPES)
    (text,) = result["text"]
    assert (text["rows"], text["features"]) == (500, 2_000)


def test_slope():
    """Tests the exponent on a power law."""
    rows = [{"rows": float(n), "seconds": 3.0 * n**0.7} for n in (10, 100, 1000)]
    assert scale.slope(rows, "seconds") == pytest.approx(0.7)
