"""Text files, compressed or not, as blocks of lines and as numbers."""

from __future__ import annotations

import bz2
import gzip
import re
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from lns.errors import DataError

__all__ = ["NotNumbers", "blocks", "decompressed", "open_content", "to_numbers"]

_BLOCK = 1 << 22


class NotNumbers(ValueError):
    """A piece of text is not a plain list of numbers."""


def decompressed(stream: BinaryIO) -> BinaryIO:
    """Return the content of a seekable stream that is plain, gzip or bzip2, whatever its name says."""
    magic = stream.read(3)
    stream.seek(0)
    if magic[:2] == b"\x1f\x8b":
        return cast(BinaryIO, gzip.GzipFile(fileobj=stream, mode="rb"))
    if magic == b"BZh":
        return cast(BinaryIO, bz2.BZ2File(stream, mode="rb"))
    return stream


@contextmanager
def open_content(path: Path, source: str = "") -> Iterator[BinaryIO]:
    """Open the content of a file, compressed or not; `source` is where it can be got from.

    Raises
    ------
    DataError
        If the file cannot be opened, is truncated or is damaged; also for what is read later in the
        ``with`` block.
    """
    again = f" from {source}" if source else ""
    try:
        with path.open("rb") as raw, decompressed(raw) as content:
            yield content
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"The file {path} is truncated or damaged ({error}): get it again{again}.") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataError(f"The file {path} cannot be read: {reason}.") from error


def blocks(stream: BinaryIO, size: int = _BLOCK) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the lines of a stream in lists of about ``size`` bytes, each with the number of its first line.

    Blanks around a line and a byte order mark are removed, empty lines are kept.
    """
    number, rest, start = 1, b"", True
    while chunk := stream.read(size):
        if start:
            chunk, start = chunk.removeprefix(b"\xef\xbb\xbf"), False
        head, newline, tail = chunk.rpartition(b"\n")
        if not newline:
            rest += tail
            continue
        lines = [line.strip() for line in (rest + head).split(b"\n")]
        yield number, lines
        number += len(lines)
        rest = tail
    if rest.strip():
        yield number, [rest.strip()]


def to_numbers(text: bytes, sep: str) -> np.ndarray:
    """Return the numbers in a text, as int64 if all of them are whole and as float64 otherwise.

    Parameters
    ----------
    text
        Numbers with ``sep`` between them.
    sep
        A comma, or a blank for any white space.

    Raises
    ------
    NotNumbers
        If anything in the text is not a number.
    """
    if sep != " " and (b" " in text or b"\t" in text):
        # numpy takes a field of blanks for a number; an empty field it refuses.
        text = re.sub(rb"[ \t]*" + sep.encode() + rb"[ \t]*", sep.encode(), text)
    whole = not text.translate(None, b"0123456789+-, \t\n")
    values = _parse(text, sep, np.dtype(np.int64 if whole else np.float64))
    limits = np.iinfo(np.int64)
    if whole and values.size and (values.max() == limits.max or values.min() == limits.min):
        return _parse(text, sep, np.dtype(np.float64))  # too long for an integer
    return values


def _parse(text: bytes, sep: str, dtype: np.dtype) -> np.ndarray:
    with warnings.catch_warnings():
        # Older numpy only warns about text that is no number, and stops there.
        warnings.simplefilter("error", DeprecationWarning)
        try:
            return np.fromstring(text, dtype=dtype, sep=sep)
        except (DeprecationWarning, ValueError) as error:
            raise NotNumbers(str(error)) from error
