"""The user's cache folder: atomic writes, and parsed copies of large files."""

from __future__ import annotations

import logging
import os
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

__all__ = ["atomic_write", "load_parsed", "store_parsed", "user_cache"]

logger = logging.getLogger("lns")


def user_cache() -> Path:
    """Return ``$XDG_CACHE_HOME/qlns``, or ``~/.cache/qlns`` without that variable. It may not exist."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification says that relative paths are to be ignored.
    return Path(base if os.path.isabs(base) else os.path.expanduser("~/.cache")) / "qlns"


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Open a file that appears under ``path`` when the block ends well, and not at all otherwise.

    Several processes may write the same file: each writes its own, the last one stays.

    Raises
    ------
    OSError
        If the folder cannot be created or written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield cast(BinaryIO, stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def _parsed_path(name: str, digest: str) -> Path:
    return user_cache() / "parsed" / f"{name}-{digest[:32]}.npz"


def store_parsed(name: str, digest: str, values: np.ndarray) -> None:
    """Keep the parsed content of a file; a cache that cannot be written is only noted in the log.

    Parameters
    ----------
    name
        Name of the data set.
    digest
        SHA-256 of the file that was parsed.
    values
        Its content.
    """
    path = _parsed_path(name, digest)
    try:
        with atomic_write(path) as stream:
            np.savez(stream, values=values)
    except OSError as error:
        logger.debug("No parsed copy of %s is kept: %s cannot be written (%s).", name, path, error)


def load_parsed(name: str, digest: str, columns: int, dtype: type[np.generic]) -> np.ndarray | None:
    """Return the parsed content of a file, or ``None`` if there is no intact copy.

    The archive's own CRC-32 covers every byte of the values.

    Parameters
    ----------
    name, digest
        As for `store_parsed`.
    columns, dtype
        What the copy must have.
    """
    path = _parsed_path(name, digest)
    try:
        with np.load(path, allow_pickle=False) as archive:
            values: np.ndarray = archive["values"]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, NotImplementedError) as error:
        logger.debug("The parsed copy %s is damaged and will be built again (%s).", path, error)
        return None
    if values.ndim != 2 or values.shape[1] != columns or values.dtype != dtype:
        logger.debug("The parsed copy %s is not what it should be and will be built again.", path)
        return None
    return values
