"""Tests of the file of a checkpoint: what is read is what was written, and nothing else is read."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import pickle

import numpy as np
import pytest

import lns
from lns.checkpoint import MAGIC, VERSION, read_checkpoint, write_atomically, write_checkpoint

HEADER = {"seconds": 0.1, "best": float("inf"), "names": ["a", "b"]}


@pytest.fixture
def path(tmp_path):
    """A good checkpoint."""
    where = tmp_path / "run.ckpt"
    write_checkpoint(where, HEADER, {"codes": np.arange(5, dtype=np.int32), "empty": np.empty((0, 3))})
    return where


def test_what_is_read_is_what_was_written(path):
    """Tests header and arrays, types and shapes included."""
    header, arrays = read_checkpoint(path)
    assert header == HEADER
    assert set(arrays) == {"codes", "empty"}
    assert arrays["codes"].dtype == np.int32
    assert arrays["codes"].tolist() == [0, 1, 2, 3, 4]
    assert arrays["empty"].shape == (0, 3)


def test_a_file_cut_short_anywhere_is_damaged(path):
    """Tests every length below the whole, the empty file included."""
    whole = path.read_bytes()
    for length in [*range(120), *range(120, len(whole), 97), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(lns.DamagedCheckpoint, match=r"cut short|damaged"):
            read_checkpoint(path)


def test_a_changed_byte_anywhere_is_noticed(path):
    """Tests one changed byte in each part of the file."""
    whole = path.read_bytes()
    for at in [*range(len(MAGIC) + 90), *range(200, len(whole), 53)]:
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        with pytest.raises(lns.CheckpointError):
            read_checkpoint(path)


@pytest.mark.parametrize(
    "contents", [b"PK\x03\x04 a zip file", b"weights\n1 2 3\n", b"\x00" * 500, b"qlns model 1"]
)
def test_a_foreign_file_is_called_so(path, contents):
    """Tests files of other programs, and other files of this one."""
    path.write_bytes(contents)
    with pytest.raises(lns.ForeignCheckpoint, match="is not a checkpoint of qlns"):
        read_checkpoint(path)


def test_a_newer_version_is_called_so(path):
    """Tests that a later format is told from damage, whatever it holds."""
    path.write_bytes(MAGIC + f"{VERSION + 1} something else entirely\n".encode() + b"future")
    with pytest.raises(lns.NewerCheckpoint, match=f"format {VERSION + 1}; this version of qlns reads up to"):
        read_checkpoint(path)


def test_no_file_and_a_folder_are_named(tmp_path):
    """Tests paths that cannot be read at all."""
    with pytest.raises(lns.CheckpointError, match=r"There is no checkpoint .*gone\.ckpt"):
        read_checkpoint(tmp_path / "gone.ckpt")
    with pytest.raises(lns.CheckpointError, match="cannot be read"):
        read_checkpoint(tmp_path)


class Bomb:
    """Pickled, it would create a file when it is read."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return open, (str(self.target), "w")


def test_a_stranger_s_file_runs_no_code(path, tmp_path):
    """Tests a well-formed file, checksum and all, whose array is a pickled object."""
    target = tmp_path / "exploded"
    buffer = io.BytesIO()
    np.savez(buffer, header=np.frombuffer(b"{}", dtype=np.uint8), bomb=np.array([Bomb(target)], dtype=object))
    assert b"exploded" in buffer.getvalue()
    digest = hashlib.sha256(buffer.getvalue()).hexdigest()
    first = MAGIC + f"{VERSION} {digest} {len(buffer.getvalue())}\n".encode()
    path.write_bytes(first + buffer.getvalue())
    with pytest.raises(lns.DamagedCheckpoint):
        read_checkpoint(path)
    assert not target.exists()
    pickle.loads(pickle.dumps(Bomb(target))).close()
    assert target.exists()  # it would have


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_file(path, monkeypatch, step):
    """Tests a full disk before and after the contents are written: nothing is lost and nothing left over."""

    def full(*_args):
        raise OSError(errno.ENOSPC, "No space left on device")

    before = path.read_bytes()
    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="No space"):
        write_checkpoint(path, {}, {})
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["run.ckpt"]


def test_the_old_file_is_there_until_the_new_one_is_whole(path):
    """Tests that a reader in the middle of a write sees the old contents, and the disk has the new first."""
    before, seen = path.read_bytes(), []

    def write(file):
        file.write(b"new")
        seen.append(path.read_bytes())

    write_atomically(path, write)
    assert seen == [before]
    assert path.read_bytes() == b"new"
