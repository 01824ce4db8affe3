"""Embeddings on disk: found once per chip and shape, then only loaded."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lns.embedding.embedding import Embedding
from lns.embedding.errors import InvalidEmbedding
from lns.embedding.shape import Shape

if TYPE_CHECKING:
    from lns.embedding.chip import Chip

_log = logging.getLogger("lns.embedding")

#: Part of every file and path: files of another format are never read.
FORMAT = 1

_DAMAGED = (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, InvalidEmbedding)


def cache_dir() -> Path:
    """Return the directory of the user's cache: ``LNS_CACHE_DIR``, or ``qlns`` in the usual place."""
    own = os.environ.get("LNS_CACHE_DIR")
    if own:
        return Path(own).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "qlns"


class Store:
    """Embeddings and sizes, kept on disk and in memory.

    A file is written under another name, flushed to disk and renamed: a reader sees the old file, the new one
    or none, whatever happens to the writer. Files carry a checksum and every embedding read is verified
    against the chip; a damaged one counts as absent and is written anew. Where nothing can be written, what
    is found is kept in memory only, and a warning is logged once.

    Parameters
    ----------
    root
        The directory; created when something is written. None keeps everything in memory.

    Examples
    --------
    >>> from lns.embedding import Chip, Shape, embed
    >>> store, chip = Store(None), Chip.from_name("chimera:2")
    >>> found = embed(chip, Shape(2, 1, 2), store=store)
    >>> store.load(chip, Shape(2, 1, 2)) is found
    True
    """

    def __init__(self, root: str | os.PathLike[str] | None) -> None:
        self.root = None if root is None else Path(root)
        self._memory: dict[tuple[str, str], Any] = {}
        self._warned = False

    def load(self, chip: Chip, shape: Shape) -> Embedding | None:
        """Return the embedding of a shape on a chip, verified, or None if there is none."""
        key = (chip.hash, _name(shape))
        if key not in self._memory:
            path = self._path(*key, ".npz")
            if path is None or not os.path.exists(path):
                return None
            try:
                self._memory[key] = _read(path, chip, shape)
            except _DAMAGED as error:
                _log.warning("The stored embedding %s is damaged (%s) and will be made anew.", path, error)
                return None
        return self._memory[key]

    def save(self, embedding: Embedding) -> None:
        """Keep an embedding, in place of an older one of the same shape."""
        key = (embedding.chip.hash, _name(embedding.shape))
        self._memory[key] = embedding
        meta = {
            "format": FORMAT,
            "chip": embedding.chip.hash,
            "shape": _name(embedding.shape),
            "route": embedding.route,
            "sha256": _checksum(embedding.qubits, embedding.offsets),
        }
        text = np.frombuffer(json.dumps(meta, sort_keys=True).encode(), dtype=np.uint8)
        arrays: dict[str, Any] = {"qubits": embedding.qubits, "offsets": embedding.offsets, "meta": text}
        self._write(self._path(*key, ".npz"), lambda file: np.savez(file, **arrays))

    def load_size(self, chip: Chip, request: str) -> Shape | None:
        """Return the shape that a request for the largest round was answered with, or None."""
        key = (chip.hash, request)
        if key not in self._memory:
            path = self._path(*key, ".json")
            if path is None or not os.path.exists(path):
                return None
            try:
                content = json.loads(path.read_text(encoding="utf-8"))
                numbers = content["shape"]
                if content["format"] != FORMAT or content["sha256"] != _checksum(np.array(numbers)):
                    raise ValueError("its checksum is wrong")
                self._memory[key] = Shape(*numbers)
            except _DAMAGED as error:
                _log.warning("The stored size %s is damaged (%s) and will be made anew.", path, error)
                return None
        return self._memory[key]

    def save_size(self, chip: Chip, request: str, shape: Shape) -> None:
        """Keep the answer to a request for the largest round."""
        self._memory[chip.hash, request] = shape
        numbers = [shape.weights, shape.examples, shape.target_bits]
        content = {"format": FORMAT, "shape": numbers, "sha256": _checksum(np.array(numbers))}
        text = json.dumps(content, sort_keys=True).encode()
        self._write(self._path(chip.hash, request, ".json"), lambda file: file.write(text))

    @contextlib.contextmanager
    def building(self, chip: Chip, what: str) -> Iterator[None]:
        """Hold other processes back while one of them finds an embedding that all of them want.

        The lock goes with the process that holds it. Without locks (other systems, some network file systems)
        the same embedding may be found twice; nothing else is lost.
        """
        path = self._path(chip.hash, what, ".lock")
        with contextlib.ExitStack() as stack:
            if path is not None:
                with contextlib.suppress(ImportError, OSError):
                    import fcntl

                    path.parent.mkdir(parents=True, exist_ok=True)
                    file = stack.enter_context(open(path, "ab"))
                    fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _path(self, chip_hash: str, name: str, suffix: str) -> Path | None:
        if self.root is None:
            return None
        return self.root / f"embeddings-{FORMAT}" / chip_hash[:32] / f"{name}{suffix}"

    def _write(self, path: Path | None, write: Any) -> None:
        """Write a file in one step, or warn once."""
        if path is None:
            return
        name = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(prefix=".new-", dir=path.parent)
            with os.fdopen(descriptor, "wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, path)
        except OSError as error:
            if name is not None:
                with contextlib.suppress(OSError):
                    os.unlink(name)
            if not self._warned:
                self._warned = True
                _log.warning(
                    "Embeddings cannot be kept in %s (%s): they stay in memory, and the next process "
                    "finds them again. Set LNS_CACHE_DIR to a directory that can be written.",
                    self.root,
                    error,
                )


_stores: dict[Path | None, Store] = {}


def default_store() -> Store:
    """Return the store in the user's cache directory, one per process and directory."""
    root: Path | None
    try:
        root = cache_dir()
    except RuntimeError as error:  # containers run under user numbers that have no home
        root = None
        if root not in _stores:
            _log.warning("Embeddings stay in memory (%s). To keep them, set LNS_CACHE_DIR.", error)
    if root not in _stores:
        _stores[root] = Store(root)
    return _stores[root]


def _name(shape: Shape) -> str:
    return f"w{shape.weights}-n{shape.examples}-t{shape.target_bits}"


def _checksum(*arrays: Any) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array, dtype="<i8").tobytes())
    return digest.hexdigest()


def _read(path: Path, chip: Chip, shape: Shape) -> Embedding:
    """Return the embedding in a file; any of _DAMAGED if it is not whole or not the one asked for."""
    with np.load(path, allow_pickle=False) as file:
        qubits, offsets = file["qubits"], file["offsets"]
        meta = json.loads(file["meta"].tobytes())
    expected = {
        "format": FORMAT,
        "chip": chip.hash,
        "shape": _name(shape),
        "sha256": _checksum(qubits, offsets),
    }
    for key, value in expected.items():
        if meta[key] != value:
            raise ValueError(f"its {key} is {meta[key]!r}, not {value!r}")
    found = Embedding(chip, shape, qubits.astype(np.int32), offsets.astype(np.int32), str(meta["route"]))
    return found.verify()
