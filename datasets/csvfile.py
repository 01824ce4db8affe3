"""Readers of comma-separated files."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from lns.datasets.table import Table, check_finite, label_column
from lns.datasets.text import NotNumbers, blocks, open_content, to_numbers
from lns.errors import DataError

__all__ = ["read_csv", "read_integers"]


def read_integers(path: Path, columns: int) -> np.ndarray:
    """Read a file of small integers without a header as an int16 array in column-major order.

    Parameters
    ----------
    path
        The file, plain or compressed.
    columns
        Number of columns that each line must have.

    Raises
    ------
    DataError
        If a line has another number of columns, or a value is not an integer of 16 bits.
    """
    parts = []
    with open_content(path) as stream:
        for number, lines in blocks(stream):
            values = _numeric_block(path, number, lines, columns, None)
            if values.size and (values.dtype.kind != "i" or values.min() < -(2**15) or values.max() >= 2**15):
                raise DataError(f"The file {path} has values that are not integers of 16 bits.")
            parts.append(values.astype(np.int16))
    table = np.empty((sum(len(part) for part in parts), columns), dtype=np.int16, order="F")
    start = 0
    for part in parts:
        table[start : start + len(part)] = part
        start += len(part)
    return table


def read_csv(path: Path, num_features: int | None = None) -> Table:
    """Read a file of numbers with one label column, which may hold text.

    The first line is a header if it holds no number at all, or text above a number. The label column is
    the one called label, y or target, otherwise the last.

    Parameters
    ----------
    path
        The file, plain or compressed.
    num_features
        If known: a file with exactly so many columns has no labels.

    Raises
    ------
    DataError
        If lines differ in their number of columns, a feature is text, missing or infinite, or there are
        no examples.
    """
    features, labels = [], []
    names: list[str] | None = None
    columns, text_labels = 0, False
    label_at: int | None = None
    with open_content(path) as stream:
        for number, lines in blocks(stream):
            if not any(lines):
                continue
            if not columns:
                first = [_fields(path, line) for line in lines if line][:2]
                names = first[0] if _is_header(first) else None
                columns = len(first[0])
                if columns != num_features:
                    label_at = label_column(first[0] if names else [""] * columns)
                if columns < 2 and label_at is not None:
                    raise DataError(
                        f"The file {path} must have at least two columns separated by commas but has one."
                    )
                if names:
                    at = next(i for i, line in enumerate(lines) if line)
                    lines, number = lines[at + 1 :], number + at + 1
                text_labels = label_at is not None and any(
                    not _is_number(row[label_at]) for row in first[bool(names) :] if len(row) == columns
                )
            if text_labels or any(b'"' in line for line in lines):
                rows, texts = _text_block(path, number, lines, columns, label_at, names)
                features.append(rows)
                labels.append(texts)
            else:
                values = _numeric_block(path, number, lines, columns, names)
                features.append(values if label_at is None else np.delete(values, label_at, axis=1))
                labels.append(np.empty(0) if label_at is None else values[:, label_at])
    if not sum(len(part) for part in features):
        raise DataError(f"The file {path} has no examples.")
    X = np.concatenate(features)
    if names and label_at is not None:
        names = names[:label_at] + names[label_at + 1 :]
    check_finite(X, str(path), names)
    return Table(X, None if label_at is None else _join_labels(labels), tuple(names) if names else None)


def _numeric_block(
    path: Path, number: int, lines: list[bytes], columns: int, names: Sequence[str] | None
) -> np.ndarray:
    """Return some lines as numbers, one row per line that is not empty."""
    filled = [line for line in lines if line]
    if not filled:
        return np.empty((0, columns))
    if {line.count(b",") for line in filled} == {columns - 1}:
        try:
            values = to_numbers(b",".join(filled), ",")
            if values.size == len(filled) * columns:
                return values.reshape(-1, columns)
        except NotNumbers:
            pass
    for at, row in _rows(path, number, lines, columns):
        for column, field in enumerate(row):
            if not _is_number(field):
                raise _text_error(path, at, column, field, names)
    raise DataError(f"The file {path} is not a table of {columns} columns of numbers around line {number}.")


def _text_block(
    path: Path,
    number: int,
    lines: list[bytes],
    columns: int,
    label_at: int | None,
    names: Sequence[str] | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return features and labels of lines with quotes or text labels; slower than `_numeric_block`."""
    rows, labels = [], []
    for at, row in _rows(path, number, lines, columns):
        if label_at is not None:
            labels.append(row.pop(label_at).strip())
        try:
            rows.append([_to_number(field) for field in row])
        except ValueError:
            column = next(i for i, field in enumerate(row) if not _is_number(field))
            before = columns if label_at is None else label_at
            raise _text_error(path, at, column + (column >= before), row[column], names) from None
    width = columns - (label_at is not None)
    return np.array(rows, dtype=np.float64).reshape(-1, width), np.array(labels, dtype=str)


def _rows(path: Path, number: int, lines: list[bytes], columns: int) -> Iterator[tuple[int, list[str]]]:
    for at, line in enumerate(lines, start=number):
        if line:
            row = _fields(path, line)
            if len(row) != columns:
                raise DataError(f"Line {at} of {path} has {len(row)} columns where {columns} are expected.")
            yield at, row


def _fields(path: Path, line: bytes) -> list[str]:
    try:
        return next(csv.reader([line.decode("utf-8")], skipinitialspace=True))
    except UnicodeDecodeError as error:
        raise DataError(f"The file {path} is not text in UTF-8.") from error
    except csv.Error as error:
        raise DataError(f"The file {path} is not comma-separated text ({error}).") from error


def _is_number(field: str) -> bool:
    try:
        _to_number(field)
    except ValueError:
        return False
    return True


def _to_number(field: str) -> float:
    if "_" in field:  # Python reads 1_000 as a number, but in a file it is text
        raise ValueError(field)
    return float(field)


def _is_header(first: list[list[str]]) -> bool:
    if not any(_is_number(field) for field in first[0]):
        return True
    below = first[1] if len(first) > 1 else []
    return any(
        top.strip() and not _is_number(top) and _is_number(field)
        for top, field in zip(first[0], below, strict=False)
    )


def _text_error(path: Path, line: int, column: int, field: str, names: Sequence[str] | None) -> DataError:
    label = repr(names[column]) if names else str(column + 1)
    if not field.strip():
        return DataError(
            f"Column {label} of {path} has a missing value in line {line}: fill in or drop such rows first."
        )
    return DataError(
        f"Column {label} of {path} holds text ({field.strip()[:40]!r} in line {line}): "
        "encode it as numbers (for instance one column per value) or drop it."
    )


def _join_labels(parts: list[np.ndarray]) -> np.ndarray:
    """Join the labels of all blocks: numbers if every one is a number, else text."""
    joined = np.concatenate([part for part in parts if part.size])
    if joined.dtype.kind != "U":
        return joined
    try:
        return joined.astype(np.float64)
    except ValueError:
        return joined
