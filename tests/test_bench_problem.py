"""Tests of the speed benchmark itself, on little data; its figures are not asserted."""

from __future__ import annotations

import copy
import json

import pytest

from lns.bench import problem as bench


@pytest.fixture(scope="module")
def result():
    """One small run."""
    return bench.run(rows=2000, features=5, repeats=1)


def timed(case):
    """How many times as long as a plain pass each step takes."""
    return {name: figure["ratio"] for name, figure in case.items() if isinstance(figure, dict)}


def test_every_case_has_every_figure(result):
    """Tests that both memory orders and sparse data are measured."""
    assert list(result["cases"]) == ["dense, by rows", "dense, by columns", "sparse"]
    for case in result["cases"].values():
        assert {"objective", "gradient"} <= timed(case).keys()
        assert min(timed(case).values()) > 0
        assert case["extra_vectors"] > 1
    assert result["to_bqm_seconds"] > 0


def test_the_result_is_plain_data(result):
    """Tests that the result can be written as JSON."""
    assert json.loads(json.dumps(result)) == result


def test_a_miss_is_marked(result):
    """Tests that a figure above its limit is visible in the table, and one on the limit is not."""
    made_up = copy.deepcopy(result)
    for case in made_up["cases"].values():
        case["extra_vectors"] = bench.MEMORY_LIMIT
        for key in timed(case):
            case[key]["ratio"] = bench.LIMIT
    made_up["to_bqm_seconds"] = bench.BQM_LIMIT
    assert bench.passed(made_up)
    made_up["cases"]["sparse"]["gradient"]["ratio"] = bench.LIMIT + 0.01
    assert not bench.passed(made_up)
    assert bench.format(made_up).count("!") == 1
