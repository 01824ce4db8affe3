"""Tests of records as columns."""

from __future__ import annotations

import json
from dataclasses import fields

import numpy as np
import pytest
from search_cases import random_problem

import lns
from lns.engine import EngineParams
from lns.records import from_columns, to_columns


def plain(record):
    """All of a record, timings included, as values that can be compared."""
    if isinstance(record, np.ndarray):
        return record.dtype.str, record.tolist()
    if isinstance(record, tuple):
        return [plain(one) for one in record]
    if hasattr(record, "__slots__"):
        return {field.name: plain(getattr(record, field.name)) for field in fields(record)}
    return type(record), record


@pytest.mark.parametrize("rounds", [0, 1, 30])
def test_records_come_back_as_they_were(rounds):
    """Tests every field of every record, types included."""
    params = EngineParams(walk_moves=20, neighbourhoods=3)
    records = lns.solve(random_problem(), max_rounds=rounds, time_limit=None, params=params).rounds
    assert len(records) == rounds
    assert [plain(one) for one in from_columns(to_columns(records))] == [plain(one) for one in records]


def test_what_a_chip_said_comes_back():
    """Tests the records of calls of an emulated annealer."""
    options = {
        "solver": "emulator",
        "solver_options": {"topology": "chimera:4", "num_reads": 2, "num_sweeps": 5},
    }
    records = lns.solve(random_problem(), max_rounds=3, time_limit=None, mode="rounds", **options).rounds
    assert records[0].neighbourhoods[0].chip[0]["num_qubits"] > 0
    assert [plain(one) for one in from_columns(to_columns(records))] == [plain(one) for one in records]


@pytest.mark.parametrize(("old", "now"), [({}, []), ({"num_qubits": 3}, [{"num_qubits": 3}])])
def test_files_of_one_call_a_neighbourhood_can_be_read(old, now):
    """Tests records from before a neighbourhood could ask several sub-QUBOs."""
    (record,) = lns.solve(random_problem(), max_rounds=1, time_limit=None).rounds
    columns = to_columns([record])
    before = json.dumps([old] * len(record.neighbourhoods))
    columns["one.chip"] = np.frombuffer(before.encode(), dtype=np.uint8)
    assert [one.chip for one in from_columns(columns)[0].neighbourhoods] == [now] * len(record.neighbourhoods)


def test_several_calls_come_back():
    """Tests a neighbourhood that asked twice."""
    (record,) = lns.solve(random_problem(), max_rounds=1, time_limit=None).rounds
    record.neighbourhoods[0].chip.extend([{"qpu_time": 0.5}, {"qpu_time": 0.25}])
    (back,) = from_columns(to_columns([record]))
    assert [one.chip for one in back.neighbourhoods] == [one.chip for one in record.neighbourhoods]


def test_thousands_of_rounds_are_a_few_arrays_without_objects():
    """Tests that the number of columns does not depend on that of rounds, and that none needs pickle."""
    params = EngineParams(walk_moves=20)
    records = lns.solve(random_problem(), max_rounds=8, time_limit=None, params=params).rounds
    few, many = to_columns(records), to_columns(records * 500)
    assert few.keys() == many.keys()
    assert not any(column.dtype.hasobject for column in many.values())
    assert len(from_columns(many)) == 4000
