"""Tests of looking for files, downloads and the cache."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import logging
import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pytest

from lns.datasets.cache import atomic_write, load_parsed, store_parsed, user_cache
from lns.datasets.lookup import locate
from lns.datasets.remote import REMOTES, DownloadFailed, Remote, check_content, download
from lns.errors import DataError

CONTENT = b"1 1:1\n-1 2:1\n" * 50
REMOTE = Remote(
    "toy.gz", ("https://first.example/toy", "https://second.example/toy"), hashlib.sha256(CONTENT).hexdigest()
)


def _serve(**bodies: bytes | Exception) -> Callable[..., io.BytesIO]:
    """Return a fake ``urlopen`` with one body or error per host."""

    def opener(url: str, timeout: float) -> io.BytesIO:
        assert timeout > 0
        body = bodies[url.split("/")[2].split(".")[0]]
        if isinstance(body, Exception):
            raise body
        return io.BytesIO(body)

    return opener


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, bytes], ids=["gzip", "bzip2", "plain"])
def test_download_any_packing(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """Tests that a file is stored as gzip however it is served."""
    path = download(REMOTE, tmp_path / "new", _serve(first=pack(CONTENT)))
    assert path == tmp_path / "new" / "toy.gz"
    assert gzip.decompress(path.read_bytes()) == CONTENT


def test_download_leaves_nothing_else(tmp_path: Path) -> None:
    """Tests that no temporary file stays behind."""
    download(REMOTE, tmp_path, _serve(first=CONTENT))
    assert os.listdir(tmp_path) == ["toy.gz"]


@pytest.mark.parametrize(
    "first",
    [URLError("down"), TimeoutError("slow"), b"<html>login</html>", gzip.compress(CONTENT)[:-9], b"\x1f\x8b"],
)
def test_download_tries_the_next_address(tmp_path: Path, first: bytes | Exception) -> None:
    """Tests that an error, a wrong page and a truncated body lead to the next address."""
    path = download(REMOTE, tmp_path, _serve(first=first, second=CONTENT))
    assert gzip.decompress(path.read_bytes()) == CONTENT


def test_download_failure_lists_all(tmp_path: Path) -> None:
    """Tests that a failed download says what happened at each address and stores nothing."""
    with pytest.raises(
        DownloadFailed, match=r"first.example/toy: .*down.*; .*second.example/toy: wrong content"
    ):
        download(REMOTE, tmp_path, _serve(first=URLError("down"), second=b"something else"))
    assert os.listdir(tmp_path) == []


def test_download_into_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """Tests that a cache in the way of a file is a clear error."""
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"The folder .* cannot be written .*: set XDG_CACHE_HOME"):
        download(REMOTE, tmp_path / "file", _serve(first=CONTENT))


def test_order_of_places(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests the order: data_dir, LNS_DATA_DIR, user cache, download."""
    argument, variable = tmp_path / "argument", tmp_path / "variable"
    monkeypatch.setenv("LNS_DATA_DIR", str(variable))
    opener = _serve(first=CONTENT)
    for folder in (argument, variable):
        folder.mkdir()
    assert locate(REMOTE, argument, opener=opener) == cache / "toy.gz"
    for folder in (variable, argument):
        (folder / "toy.gz").write_bytes(b"")
        assert locate(REMOTE, argument, opener=opener) == folder / "toy.gz"


def test_cached_file_needs_no_network(cache: Path) -> None:
    """Tests that a file is downloaded once."""
    assert locate(REMOTE, opener=_serve(first=CONTENT)) == locate(REMOTE, opener=_serve())


@pytest.mark.parametrize("name", ["toy.gz", "toy", "toy.bz2"])
def test_other_packings_are_found(tmp_path: Path, name: str) -> None:
    """Tests that a plain or differently compressed copy in a folder is used."""
    (tmp_path / name).write_bytes(b"")
    assert locate(REMOTE, tmp_path) == tmp_path / name


def test_offline_names_everything(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that the error of a missing file names the file, every place, the reason and the remedy."""
    variable = tmp_path / "variable"
    variable.mkdir()
    monkeypatch.setenv("LNS_DATA_DIR", str(variable))
    with pytest.raises(DataError) as caught:
        locate(REMOTE, tmp_path)
    message = str(caught.value)
    assert message.startswith(
        f"Cannot find toy.gz: it is not in data_dir {tmp_path}, LNS_DATA_DIR {variable}, "
    )
    assert f"the user cache {cache}, and the download failed" in message
    assert "network is down" in message
    assert "get it from https://first.example/toy" in message
    assert "\n" not in message


def test_offline_says_what_is_not_set() -> None:
    """Tests that places that are not set are named as such."""
    with pytest.raises(
        DataError, match=r"data_dir \(not given\), LNS_DATA_DIR \(not set\), the user cache /"
    ):
        locate(REMOTE)


def test_home_folder_in_data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a tilde means the home folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "toy.gz").write_bytes(b"")
    assert locate(REMOTE, "~") == tmp_path / "toy.gz"


def test_download_can_be_forbidden() -> None:
    """Tests that without permission there is no download."""
    with pytest.raises(DataError, match="downloads are off"):
        locate(REMOTE, download_if_missing=False, opener=_serve(first=CONTENT))


def test_data_dir_that_is_no_folder(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Tests that a mistyped folder is noted, although the file is found elsewhere."""
    with caplog.at_level(logging.WARNING, logger="lns"):
        locate(REMOTE, tmp_path / "typo", opener=_serve(first=CONTENT))
    assert "typo, which is not a folder" in caplog.text


def test_wrong_checksum(tmp_path: Path) -> None:
    """Tests that another content is refused in one sentence with both checksums and the remedy."""
    path = tmp_path / "toy.gz"
    path.write_bytes(gzip.compress(CONTENT + b"\n"))
    with pytest.raises(
        DataError, match=rf"not have the right content .*expected {REMOTE.sha256}\): delete it and get"
    ):
        check_content(path, REMOTE)


def test_right_checksum(tmp_path: Path) -> None:
    """Tests that the checksum is that of the content, not of its packing."""
    path = tmp_path / "toy.gz"
    for level in (1, 9):
        path.write_bytes(gzip.compress(CONTENT, level))
        check_content(path, REMOTE)


def test_truncated_file(tmp_path: Path) -> None:
    """Tests that a truncated file is said to be truncated."""
    path = tmp_path / "toy.gz"
    path.write_bytes(gzip.compress(CONTENT)[:-12])
    with pytest.raises(DataError, match=r"toy\.gz is truncated or damaged"):
        check_content(path, REMOTE)


def test_table_of_remotes() -> None:
    """Tests that every file has https addresses and a full checksum."""
    for name, remote in REMOTES.items():
        assert name == remote.filename
        assert remote.urls
        assert all(url.startswith("https://") for url in remote.urls)
        assert len(bytes.fromhex(remote.sha256)) == 32


def test_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that XDG_CACHE_HOME decides if it is absolute, and the home folder otherwise."""
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert user_cache() == Path("/elsewhere/qlns")
    for value in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", value)
        assert user_cache() == Path("/home/someone/.cache/qlns")


def test_atomic_write_keeps_the_old_file(tmp_path: Path) -> None:
    """Tests that a write that fails leaves the old content and no temporary file."""
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def fail() -> None:
        with atomic_write(path) as stream:
            stream.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def _write_many(path: Path, letter: bytes) -> None:
    for _ in range(20):
        with atomic_write(path) as stream:
            stream.write(letter * 100_000)


def test_atomic_write_from_several_processes(tmp_path: Path) -> None:
    """Tests that writers at the same time leave one whole file of one of them."""
    path = tmp_path / "a"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_many, args=(path, letter)) for letter in (b"x", b"y")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert path.read_bytes() in (b"x" * 100_000, b"y" * 100_000)
    assert os.listdir(tmp_path) == ["a"]


VALUES = np.arange(600, dtype=np.int16).reshape(200, 3)


def test_parsed_copy() -> None:
    """Tests that a parsed copy is read back, and only under its own key."""
    store_parsed("toy", "a" * 64, VALUES)
    np.testing.assert_array_equal(load_parsed("toy", "a" * 64, 3, np.int16), VALUES)
    assert load_parsed("toy", "b" * 64, 3, np.int16) is None


def test_parsed_copy_of_another_shape() -> None:
    """Tests that a copy with other columns or another type is not used."""
    store_parsed("toy", "a" * 64, VALUES)
    assert load_parsed("toy", "a" * 64, 4, np.int16) is None
    assert load_parsed("toy", "a" * 64, 3, np.int32) is None


@pytest.mark.parametrize("place", [0, 0.3, 0.6])
def test_damaged_parsed_copy(cache: Path, place: float) -> None:
    """Tests that a copy with a wrong byte in its head or in its values is not used."""
    store_parsed("toy", "a" * 64, VALUES)
    (path,) = (cache / "parsed").iterdir()
    content = bytearray(path.read_bytes())
    content[int(len(content) * place)] ^= 0x55
    path.write_bytes(content)
    assert load_parsed("toy", "a" * 64, 3, np.int16) is None


@pytest.mark.parametrize("keep", [0, 10, 700])
def test_truncated_parsed_copy(cache: Path, keep: int) -> None:
    """Tests that a truncated copy is not used."""
    store_parsed("toy", "a" * 64, VALUES)
    (path,) = (cache / "parsed").iterdir()
    path.write_bytes(path.read_bytes()[:keep])
    assert load_parsed("toy", "a" * 64, 3, np.int16) is None


def test_cache_that_cannot_be_written(cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Tests that a cache that cannot be written is only noted in the log."""
    cache.write_text("in the way")
    with caplog.at_level(logging.DEBUG, logger="lns"):
        store_parsed("toy", "a" * 64, VALUES)
    assert "No parsed copy of toy is kept" in caplog.text
    assert load_parsed("toy", "a" * 64, 3, np.int16) is None
