"""Where the files of the real data sets come from."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import shutil
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast
from urllib.request import urlopen

from lns.datasets.cache import atomic_write
from lns.datasets.text import decompressed, open_content
from lns.errors import DataError

__all__ = ["REMOTES", "DownloadFailed", "Remote", "check_content", "download"]

Opener = Callable[..., BinaryIO]

_TIMEOUT = 30.0
_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"


@dataclass(frozen=True)
class Remote:
    """A public file.

    Parameters
    ----------
    filename
        Its name in a data folder.
    urls
        Public addresses, the first that works is used; each may serve it plain, gzip or bzip2.
    sha256
        SHA-256 of the *uncompressed* content, which is the same however it was compressed.
    """

    filename: str
    urls: tuple[str, ...]
    sha256: str

    @property
    def names(self) -> tuple[str, ...]:
        """The names under which a data folder may hold the file: compressed by gzip or bzip2, or plain."""
        stem = self.filename.removesuffix(".gz")
        return self.filename, stem, stem + ".bz2"


REMOTES = {
    remote.filename: remote
    for remote in (
        Remote(
            "covtype.data.gz",
            (
                "https://archive.ics.uci.edu/ml/machine-learning-databases/covtype/covtype.data.gz",
                "https://ndownloader.figshare.com/files/5976039",
            ),
            "0a9371cef7c964b5475d6053cc3e0894a5aa6f65ad1ed3ecb01c45aa96217945",
        ),
        Remote(
            "mushrooms.gz",
            (_LIBSVM + "mushrooms",),
            "f39a4eb628dc61a7d43760815b061c9e497aa728ce1ad8bde57a09ef6043b538",
        ),
        Remote(
            "a9a.gz", (_LIBSVM + "a9a",), "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906"
        ),
        Remote(
            "a9a.t.gz",
            (_LIBSVM + "a9a.t",),
            "1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9",
        ),
        Remote(
            "w8a.gz", (_LIBSVM + "w8a",), "6a9fa8fd5f524303240a5db07d4b3d4a51e8b7b4b20a914105d8e3e8c81640f2"
        ),
        Remote(
            "w8a.t.gz",
            (_LIBSVM + "w8a.t",),
            "618929ecb01bebb841daec4cae4aa07b97832d29b08652452775598929547fde",
        ),
    )
}


class DownloadFailed(Exception):
    """No address delivered the file; the message lists what happened at each."""


def check_content(path: Path, remote: Remote) -> None:
    """Check the content of a file against its checksum.

    Raises
    ------
    DataError
        If the file cannot be read, is truncated or has another content.
    """
    with open_content(path, remote.urls[0]) as content:
        found = _digest(content)
    if found != remote.sha256:
        raise DataError(
            f"The file {path} does not have the right content (SHA-256 {found}, expected {remote.sha256}): "
            f"delete it and get it again from {remote.urls[0]}."
        )


def download(remote: Remote, folder: Path, opener: Opener | None = None) -> Path:
    """Fetch a file into a folder, compressed by gzip, and check its content.

    Parameters
    ----------
    remote
        The file.
    folder
        Where it is put; created if needed.
    opener
        Replaces `urllib.request.urlopen`.

    Raises
    ------
    DownloadFailed
        If no address delivers the right content.
    DataError
        If the folder cannot be written.
    """
    failures = []
    target = folder / remote.filename
    for url in remote.urls:
        with tempfile.TemporaryFile() as body:
            try:
                with (opener or urlopen)(url, timeout=_TIMEOUT) as response:
                    shutil.copyfileobj(response, body)
                body.seek(0)
                found = _digest(decompressed(cast(BinaryIO, body)))
            except (OSError, EOFError, zlib.error, http.client.HTTPException) as error:
                failures.append(f"{url}: {error}")
                continue
            if found != remote.sha256:
                failures.append(f"{url}: wrong content, SHA-256 {found}, expected {remote.sha256}")
                continue
            body.seek(0)
            try:
                _store(cast(BinaryIO, body), target)
            except OSError as error:
                raise DataError(
                    f"The folder {folder} cannot be written ({error.strerror}): "
                    "set XDG_CACHE_HOME to one that can."
                ) from error
            return target
    raise DownloadFailed("; ".join(failures))


def _digest(content: BinaryIO) -> str:
    digest = hashlib.sha256()
    while block := content.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()


def _store(body: BinaryIO, target: Path) -> None:
    content = decompressed(body)
    with atomic_write(target) as stream:
        if isinstance(content, gzip.GzipFile):
            shutil.copyfileobj(body, stream)
        else:
            with gzip.GzipFile(filename="", fileobj=stream, mode="wb", mtime=0) as packed:
                shutil.copyfileobj(content, packed)
