"""Records of rounds as columns and back: thousands of rounds in a few arrays."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lns.result import NeighbourhoodRecord, RoundRecord

RAGGED = ("weights", "examples")  # fields that hold an array of their own in every record
ROUND = tuple(field.name for field in fields(RoundRecord) if field.name != "neighbourhoods")
PLAIN = tuple(
    field.name for field in fields(NeighbourhoodRecord) if field.name not in (*RAGGED, "timings", "chip")
)


def to_columns(records: Sequence[RoundRecord]) -> dict[str, NDArray]:
    """One array for each field of all rounds and of all their neighbourhoods."""
    each = [one for record in records for one in record.neighbourhoods]
    columns = {f"round.{name}": np.array([getattr(record, name) for record in records]) for name in ROUND}
    columns["round.count"] = np.array([len(record.neighbourhoods) for record in records], dtype=np.int64)
    columns |= {f"one.{name}": np.array([getattr(one, name) for one in each]) for name in PLAIN}
    for name in RAGGED:
        arrays = [getattr(one, name) for one in each]
        columns[f"one.{name}.size"] = np.array([len(array) for array in arrays], dtype=np.int64)
        columns[f"one.{name}"] = np.concatenate([np.empty(0, dtype=np.int64), *arrays])
    for name in sorted({name for one in each for name in one.timings}):
        columns[f"timing.{name}"] = np.array([one.timings.get(name, np.nan) for one in each])
    chips = [one.chip for one in each] if any(one.chip for one in each) else []
    columns["one.chip"] = np.frombuffer(json.dumps(chips, default=_plain).encode(), dtype=np.uint8)
    return columns


def from_columns(columns: dict[str, NDArray]) -> list[RoundRecord]:
    """The records that `to_columns` was given."""
    counts = columns["round.count"].tolist()
    each = _neighbourhoods(columns, sum(counts))
    rows = zip(*(columns[f"round.{name}"].tolist() for name in ROUND), strict=True)
    records, first = [], 0
    for count, row in zip(counts, rows, strict=True):
        values: dict[str, Any] = dict(zip(ROUND, row, strict=True))
        records.append(RoundRecord(**values, neighbourhoods=tuple(each[first : first + count])))
        first += count
    return records


def _neighbourhoods(columns: dict[str, NDArray], total: int) -> list[NeighbourhoodRecord]:
    whole: dict[str, list[Any]] = {name: columns[f"one.{name}"].tolist() for name in PLAIN}
    for name in RAGGED:
        ends = np.cumsum(columns[f"one.{name}.size"])[:-1]
        whole[name] = np.split(columns[f"one.{name}"].astype(np.intp), ends) if total else []
    timings = {
        name.removeprefix("timing."): column.tolist()
        for name, column in columns.items()
        if name.startswith("timing.")
    }
    whole["timings"] = [
        {name: column[k] for name, column in timings.items() if column[k] == column[k]} for k in range(total)
    ]
    whole["chip"] = [calls(chip) for chip in json.loads(columns["one.chip"].tobytes()) or [[]] * total]
    return [NeighbourhoodRecord(**{name: whole[name][k] for name in whole}) for k in range(total)]


def calls(chip: list[dict[str, Any]] | dict[str, Any]) -> list[dict[str, Any]]:
    """What the calls of a chip said; older files have one for each neighbourhood, or an empty dict."""
    if isinstance(chip, dict):
        return [chip] if chip else []
    return list(chip)


def _plain(value: Any) -> Any:
    """numpy's numbers as Python's, for JSON."""
    return value.item() if isinstance(value, np.generic) else str(value)
