"""The file of a checkpoint: one line that says what it is, then arrays and a JSON header.

The first line is ``qlns checkpoint VERSION SHA256 LENGTH``, so that a file of another kind, of a later
version, cut short or altered is told apart before anything in it is used. The rest is an ``.npz`` without
pickled objects: a checkpoint from a stranger cannot run code.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from lns.errors import CheckpointError, DamagedCheckpoint, ForeignCheckpoint, NewerCheckpoint

VERSION = 2
MAGIC = b"qlns checkpoint "
LONGEST_LINE = 256


def data_path(path: Path) -> Path:
    """The file beside a checkpoint that holds the problem, written once."""
    return path.with_name(path.name + ".data.npz")


def write_atomically(path: Path, write: Callable[[IO[bytes]], None]) -> None:
    """Replace a file by what `write` writes, or leave it as it was: there is no moment in between.

    The new file is made in the same folder, forced to the disk, and takes the old one's name in one step.
    """
    fresh = path.with_name(path.name + ".tmp")
    try:
        with open(fresh, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    except BaseException:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise
    with contextlib.suppress(OSError):  # some file systems have no folders that can be forced
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def write_checkpoint(path: Path, header: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> None:
    """Write a checkpoint in one step."""
    buffer = io.BytesIO()
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    np.savez(buffer, header=text, **arrays)  # type: ignore[arg-type]
    payload = buffer.getbuffer()
    digest = hashlib.sha256(payload).hexdigest()

    def write(file: IO[bytes]) -> None:
        file.write(MAGIC + f"{VERSION} {digest} {len(payload)}\n".encode())
        file.write(payload)

    write_atomically(path, write)


def read_checkpoint(path: Path) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """Header and arrays of a checkpoint, or an error that says what is wrong with the file."""
    try:
        with open(path, "rb") as file:
            line = file.readline(LONGEST_LINE)
            _check_kind(path, line)
            payload = file.read()
    except FileNotFoundError:
        raise CheckpointError(f"There is no checkpoint {path}.") from None
    except OSError as error:
        raise CheckpointError(f"The checkpoint {path} cannot be read: {error.strerror}.") from error
    _check_whole(path, line, payload)
    try:
        with np.load(io.BytesIO(payload), allow_pickle=False) as file:
            arrays = dict(file)
        return json.loads(arrays.pop("header").tobytes()), arrays
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise DamagedCheckpoint(f"The checkpoint {path} is damaged: {error}.") from error


def _check_kind(path: Path, line: bytes) -> None:
    if not line.startswith(MAGIC[: len(line)]):
        raise ForeignCheckpoint(f"{path} is not a checkpoint of qlns.")
    if len(line) <= len(MAGIC):
        raise DamagedCheckpoint(f"The checkpoint {path} is cut short: its first line is missing.")
    version = line[len(MAGIC) :].split(b" ")[0]
    if version.isdigit() and int(version) > VERSION:
        raise NewerCheckpoint(
            f"The checkpoint {path} has format {int(version)}; this version of qlns reads up to {VERSION}. "
            "Use the version that wrote it, or a later one."
        )


def _check_whole(path: Path, line: bytes, payload: bytes) -> None:
    words = line.decode("ascii", "replace").split()
    if not line.endswith(b"\n") or len(words) != 5 or not (words[2] + words[4]).isdigit():
        raise DamagedCheckpoint(f"The checkpoint {path} is damaged: its first line is not complete.")
    if len(payload) != int(words[4]):
        raise DamagedCheckpoint(
            f"The checkpoint {path} is cut short or has grown: it has {len(payload):,} bytes of contents, "
            f"and {int(words[4]):,} were written."
        )
    if hashlib.sha256(payload).hexdigest() != words[3]:
        raise DamagedCheckpoint(
            f"The checkpoint {path} is damaged: its contents do not match their checksum."
        )
