"""Reader of the LIBSVM / SVMlight text format: ``label index:value index:value ...``."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from scipy import sparse

from lns.datasets.table import Table, check_finite
from lns.datasets.text import NotNumbers, blocks, open_content, to_numbers
from lns.errors import DataError

__all__ = ["read_svmlight"]

_LINE = re.compile(rb"\S+(\s+\d+:\S+)*")
_MAX_FEATURES = 100_000_000


def read_svmlight(path: Path, num_features: int | None = None) -> Table:
    """Read a file in LIBSVM format as a CSR matrix and raw labels.

    Indices count from 1, unless index 0 occurs. Text after ``#`` is ignored. The file is read in blocks of
    lines and each block is converted at once.

    Parameters
    ----------
    path
        The file, plain or compressed.
    num_features
        Number of columns; without it, the largest index decides.

    Raises
    ------
    DataError
        If a line is not in this format, an index occurs twice in a line or is larger than
        ``num_features``, or there are no examples.
    """
    found: tuple[list[np.ndarray], ...] = ([], [], [], [])
    with open_content(path) as stream:
        for number, lines in blocks(stream):
            try:
                parts = _parse_block(lines)
            except NotNumbers as error:
                raise _blame(path, number, lines) from error
            if parts is not None:
                for target, part in zip(found, parts, strict=True):
                    target.append(part)
    if not found[0]:
        raise DataError(f"The file {path} has no examples.")
    labels, counts, columns, data = (np.concatenate(parts) for parts in found)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    first_index = 1 if columns.size and columns.min() > 0 else 0
    columns -= first_index
    largest = int(columns.max()) + 1 if columns.size else 0
    width = largest if num_features is None else num_features
    if largest > width or largest > _MAX_FEATURES:
        raise DataError(
            f"The file {path} has feature {largest} but may have at most {min(width, _MAX_FEATURES)}."
        )
    X = sparse.csr_matrix(
        (data.astype(np.float64), columns.astype(np.int32), indptr), shape=(indptr.size - 1, width)
    )
    X.sort_indices()
    _check_unique(X, path)
    check_finite(X, str(path))
    X.eliminate_zeros()
    return Table(X, labels, first_index=first_index)


def _parse_block(lines: list[bytes]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
    """Return labels, entries per line, indices and values of some lines; ``None`` if they are all empty."""
    joined = b"\n".join(lines)
    if b"#" in joined:
        lines = [line.partition(b"#")[0].strip() for line in lines]
    lines = [line for line in lines if line]
    if not lines:
        return None
    text = b"\n".join(lines).replace(b"\t", b" ")
    _check_layout(text)
    counts = np.array([line.count(b":") for line in lines], dtype=np.int64)
    numbers = to_numbers(text.replace(b":", b" "), " ")
    if numbers.size != counts.size + 2 * counts.sum():
        raise NotNumbers("numbers without blanks between them")
    label_at = np.arange(counts.size) + 2 * (np.cumsum(counts) - counts)
    pairs = np.delete(numbers, label_at).reshape(-1, 2)
    indices = pairs[:, 0].astype(np.int64)
    if np.any(indices != pairs[:, 0]) or np.any(indices < 0):
        raise NotNumbers("an index is not a whole number")
    return numbers[label_at], counts, indices, pairs[:, 1]


def _check_layout(text: bytes) -> None:
    """Check that after the label of a line, index and value alternate."""
    separators = np.zeros(256, dtype=np.uint8)
    separators[list(b"\n :")] = list(b"\n :")
    kinds = separators[np.frombuffer(b"\n" + text, dtype=np.uint8)]
    # The separator in front of each number says what the number should be.
    before = kinds[:-1][(kinds[:-1] != 0) & (kinds[1:] == 0)]
    is_index, is_value = before == ord(" "), before == ord(":")
    colons = np.count_nonzero(kinds == ord(":"))
    if is_index[-1] or np.any(is_index[:-1] != is_value[1:]) or colons != np.count_nonzero(is_value):
        raise NotNumbers("indices and values do not alternate")


def _blame(path: Path, number: int, lines: list[bytes]) -> DataError:
    """Return the error about the first line that breaks the format."""
    for line in lines:
        try:
            if _parse_block([line]) is not None and not _LINE.fullmatch(line.partition(b"#")[0].strip()):
                break
        except NotNumbers:
            break
        number += 1
    shown = line[:60].decode("utf-8", errors="replace")
    return DataError(f"Line {number} of {path} is not of the form 'label index:value ...': {shown!r}.")


def _check_unique(X: sparse.csr_matrix, path: Path) -> None:
    same = np.flatnonzero(X.indices[1:] == X.indices[:-1]) + 1
    same = same[~np.isin(same, X.indptr)]
    if same.size:
        row = int(np.searchsorted(X.indptr, same[0], side="right"))
        raise DataError(f"Example {row} of {path} has feature {int(X.indices[same[0]]) + 1} twice.")
