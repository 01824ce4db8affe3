"""Tests of `lns bench quality` and `lns bench scale`: that they run and say what they measured.

What they measure depends on the machine and is not tested.
"""

import json

import numpy as np
import pytest

from lns.bench import quality, scale
from lns.problem import QLossProblem


def test_panel_names_are_unique():
    """Tests that every instance can be picked by its name."""
    names = [instance.name for instance in quality.panel()]
    assert len(set(names)) == len(names) == 28


def test_comparison(capsys):
    """Tests that the engine, its rival and the continuous path are in the row, and the verdict below."""
    argv = ["--instances", "long-servedio 20% 2bit", "--seconds", "0.3", "--seeds", "1", "--no-others"]
    assert quality.main(argv) == 0
    head, row, verdict = capsys.readouterr().out.splitlines()
    assert {"engine", "rival", "continuous", "rounded"} < set(head.split())
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


def test_ablation(capsys):
    """Tests that every ingredient is switched off in turn, and that the row says what QUBO rounds add."""
    argv = ["--instances", "long-servedio 20% 2bit", "--seconds", "0.1", "--seeds", "1", "--ablate", "--json"]
    assert quality.main(argv) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert {*quality.ABLATIONS, *quality.ROUNDS_ADD} < set(row)


def test_instances_without_gain_are_named():
    """Tests the sentences below the table of the ablation."""
    first, second = quality.ROUNDS_ADD
    rows = [
        {"instance": "a", first: "0.0100 %", second: "0.0200 %"},
        {"instance": "b", first: "0.0300 %", second: "nothing"},
    ]
    assert quality.what_rounds_add(rows).splitlines() == [
        "QUBO rounds add to polish alone on 2 of 2 instances",
        "QUBO rounds add to all else on 1 of 2 instances; not on b",
    ]


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
