"""Where a file of a real data set is on this machine, or how it gets there."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from lns.datasets.cache import user_cache
from lns.datasets.remote import DownloadFailed, Opener, Remote, download
from lns.errors import DataError

__all__ = ["DATA_DIR_VARIABLE", "locate"]

DATA_DIR_VARIABLE = "LNS_DATA_DIR"
logger = logging.getLogger("lns")


def locate(
    remote: Remote,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    download_if_missing: bool = True,
    opener: Opener | None = None,
) -> Path:
    """Find a file in ``data_dir``, then ``$LNS_DATA_DIR``, then the user cache, else download it there.

    Parameters
    ----------
    remote
        The file. A folder may hold it compressed by gzip or bzip2, or plain.
    data_dir
        The folder to look in first.
    download_if_missing
        Whether to use the network.
    opener
        Replaces `urllib.request.urlopen`.

    Returns
    -------
    path
        A file whose content is checked only if it was downloaded now.

    Raises
    ------
    DataError
        If it is in none of these places and cannot be downloaded; the message names all of them.
    """
    looked_in: list[str] = []
    wrong: list[str] = []
    variable = os.environ.get(DATA_DIR_VARIABLE)
    for label, folder in (
        ("data_dir", data_dir),
        (DATA_DIR_VARIABLE, variable),
        ("the user cache", user_cache()),
    ):
        if not folder:
            looked_in.append(f"{label} (not given)" if label == "data_dir" else f"{label} (not set)")
            continue
        for name in remote.names:
            # os.path, because pathlib raises where a folder may not be searched.
            if os.path.isfile(path := Path(folder).expanduser() / name):
                return _found(path, wrong)
        if label != "the user cache" and not os.path.isdir(Path(folder).expanduser()):
            wrong.append(f"{label} is {folder}, which is not a folder")
            looked_in.append(f"{label} {folder} (not a folder)")
        else:
            looked_in.append(f"{label} {folder}")
    if download_if_missing:
        try:
            return _found(download(remote, user_cache(), opener), wrong)
        except DownloadFailed as error:
            outcome = f"the download failed ({error})"
    else:
        outcome = "downloads are off"
    raise DataError(
        f"Cannot find {remote.filename}: it is not in {', '.join(looked_in)}, and {outcome}; "
        f"get it from {remote.urls[0]} on a machine with network and put it into one of these folders."
    )


def _found(path: Path, wrong: list[str]) -> Path:
    """Return the file; a place that was given but is no folder is worth a warning, as it may be mistyped."""
    for place in wrong:
        logger.warning("%s: %s is used.", place, path)
    return path
