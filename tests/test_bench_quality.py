"""Tests of `lns bench quality` and `lns bench scale`: that they run and say what they measured.

What they measure depends on the machine and is not tested.
"""

import json

import pytest

from lns.bench import quality, scale


def test_panel_names_are_unique():
    """Tests that every instance can be picked by its name."""
    names = [instance.name for instance in quality.panel()]
    assert len(set(names)) == len(names) == 28


def test_comparison(capsys):
    """Tests that the engine, the rival and the general solvers are all in the row, and the verdict below."""
    assert quality.main(["--instances", "long-servedio 20% 2bit", "--seconds", "0.3", "--seeds", "1"]) == 0
    head, row, verdict = capsys.readouterr().out.splitlines()
    for name in ("engine", "rival", "full-QUBO SA", "full-QUBO Tabu", "dwave-hybrid", "continuous"):
        assert name in head
    assert row.strip().startswith("long-servedio 20% 2bit")
    assert "of 1, worst seed" in verdict


def test_ablation(capsys):
    """Tests that every ingredient is switched off in turn, and that the row says what QUBO rounds add."""
    argv = ["--instances", "long-servedio 20% 2bit", "--seconds", "0.1", "--seeds", "1", "--ablate", "--json"]
    assert quality.main(argv) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert set(quality.ABLATIONS) < set(row)
    assert "QUBO rounds add" in row


@pytest.mark.parametrize(
    ("worth", "words"),
    [
        (["0.0100 %", "nothing"], "on 1 of 2 instances; not on b"),
        (["0.0100 %", "0.2000 %"], "on 2 of 2 instances"),
    ],
)
def test_instances_without_gain_are_named(worth, words):
    """Tests the sentence below the table of the ablation."""
    rows = [{"instance": name, "QUBO rounds add": one} for name, one in zip("ab", worth, strict=True)]
    assert quality.what_rounds_add(rows) == f"QUBO rounds add to polish alone {words}"


def test_nothing_to_compare(capsys):
    """Tests that a name that no instance has is an error that lists the names."""
    with pytest.raises(SystemExit):
        quality.main(["--instances", "nothing of the kind"])
    assert "web8 40% 4bit per-class q" in capsys.readouterr().err


def test_scale(monkeypatch, capsys):
    """Tests that two sizes give three slopes."""
    monkeypatch.setattr(scale, "SIZES", (1_000, 2_000))
    assert scale.main(["--seconds", "1", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [row["rows"] for row in result["rows"]] == [1_000, 2_000]
    assert set(result["slopes"]) == set(scale.SLOPES)


def test_slope():
    """Tests the exponent on a power law."""
    rows = [{"rows": float(n), "seconds": 3.0 * n**0.7} for n in (10, 100, 1000)]
    assert scale.slope(rows, "seconds") == pytest.approx(0.7)
