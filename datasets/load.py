"""Data sets by name or by file."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lns.datasets.dataset import Dataset
from lns.datasets.files import SUFFIXES, read_file, suffix_of
from lns.datasets.lookup import locate
from lns.datasets.real import adult9, covertype, mushrooms, web8
from lns.datasets.remote import REMOTES, check_content
from lns.datasets.synthetic import PAPER_SEEDS, long_servedio, mease_wyner
from lns.errors import InvalidInput

__all__ = ["DATASETS", "Dataset", "DatasetInfo", "fetch_dataset", "load_dataset", "read_file"]

Folder = str | os.PathLike[str] | None


@dataclass(frozen=True)
class DatasetInfo:
    """What is known about a named set without loading it.

    Parameters
    ----------
    name
        Its name for `load_dataset`.
    summary
        One line about it.
    rows, features
        Its size.
    files
        The files that it is built from; none for a synthetic set.
    load
        ``load(data_dir, download_if_missing)`` returns the set.
    """

    name: str
    summary: str
    rows: int
    features: int
    files: tuple[str, ...]
    load: Callable[[Folder, bool], Dataset]


DATASETS: dict[str, DatasetInfo] = {
    info.name: info
    for info in (
        DatasetInfo(
            "long-servedio",
            "synthetic, defeats convex losses once labels are flipped",
            2000,
            21,
            (),
            lambda data_dir, fetch: long_servedio(seed=PAPER_SEEDS["long-servedio"]),
        ),
        DatasetInfo(
            "mease-wyner",
            "synthetic, five of twenty features decide",
            2000,
            20,
            (),
            lambda data_dir, fetch: mease_wyner(seed=PAPER_SEEDS["mease-wyner"]),
        ),
        DatasetInfo(
            "covertype",
            "UCI Covertype, spruce/fir against the rest",
            581_012,
            54,
            ("covtype.data.gz",),
            lambda data_dir, fetch: covertype(data_dir, download_if_missing=fetch),
        ),
        DatasetInfo(
            "mushrooms",
            "UCI Mushroom, poisonous against edible",
            8_124,
            112,
            ("mushrooms.gz",),
            lambda data_dir, fetch: mushrooms(data_dir, download_if_missing=fetch),
        ),
        DatasetInfo(
            "adult9",
            "UCI Adult, income above 50K",
            48_842,
            123,
            ("a9a.gz", "a9a.t.gz"),
            lambda data_dir, fetch: adult9(data_dir, download_if_missing=fetch),
        ),
        DatasetInfo(
            "web8",
            "web pages (Platt), one category against the rest",
            59_245,
            300,
            ("w8a.gz", "w8a.t.gz"),
            lambda data_dir, fetch: web8(data_dir, download_if_missing=fetch),
        ),
    )
}


def load_dataset(
    name_or_path: str | os.PathLike[str], data_dir: Folder = None, *, download_if_missing: bool = True
) -> Dataset:
    """Load a data set of the paper by name, or any other from a file.

    =============  ========  ========  =======  ==========================  ========
    name           rows      features  storage  files                       download
    =============  ========  ========  =======  ==========================  ========
    long-servedio     2,000        21  dense    (drawn)
    mease-wyner       2,000        20  dense    (drawn)
    covertype       581,012        54  dense    covtype.data.gz             11 MB
    mushrooms         8,124       112  sparse   mushrooms.gz                0.9 MB
    adult9           48,842       123  sparse   a9a.gz, a9a.t.gz            3.5 MB
    web8             59,245       300  sparse   w8a.gz, w8a.t.gz            4.5 MB
    =============  ========  ========  =======  ==========================  ========

    Files are looked for in ``data_dir``, in the folder of the environment variable ``LNS_DATA_DIR`` and in
    the user cache (``$XDG_CACHE_HOME/qlns`` or ``~/.cache/qlns``), then downloaded there; their content is
    checked against a SHA-256. Labels are -1 and +1 and columns lie in [0, 1], except that the features of
    long-servedio are -1 and +1 as in its definition. The two drawn sets have a fixed seed, chosen such that
    their class counts are those of the paper.

    Parameters
    ----------
    name_or_path
        A name of the table, or a file that `read_file` can read.
    data_dir
        The folder to look in first.
    download_if_missing
        Whether to use the network.

    Raises
    ------
    InvalidInput
        If it is neither a known name nor a file with a known suffix.
    DataError
        If a file is missing or damaged.

    Examples
    --------
    >>> load_dataset("mease-wyner")
    Dataset('mease-wyner', 2000 rows x 20 features, dense)
    """
    if not isinstance(name_or_path, (str, os.PathLike)):
        raise InvalidInput(f"A data set is given by name or path. Got {name_or_path!r} instead.")
    text = os.fspath(name_or_path)
    if isinstance(name_or_path, str) and text.lower() in DATASETS:
        return DATASETS[text.lower()].load(data_dir, download_if_missing)
    if suffix_of(text) or isinstance(name_or_path, os.PathLike) or os.path.isfile(text):
        return read_file(text)
    raise _unknown(text)


def fetch_dataset(name: str, data_dir: Folder = None) -> list[Path]:
    """Make sure that the files of a named set are on this machine and intact.

    Parameters
    ----------
    name
        A name of `DATASETS`.
    data_dir
        The folder to look in first.

    Returns
    -------
    paths
        The files; none for a synthetic set.

    Raises
    ------
    InvalidInput
        If the name is unknown.
    DataError
        If a file is damaged, or missing and cannot be downloaded.
    """
    if name.lower() not in DATASETS:
        raise _unknown(name)
    paths = []
    for filename in DATASETS[name.lower()].files:
        paths.append(locate(REMOTES[filename], data_dir))
        check_content(paths[-1], REMOTES[filename])
    return paths


def _unknown(text: str) -> InvalidInput:
    close = difflib.get_close_matches(text.lower().replace("_", "-"), DATASETS, n=1, cutoff=0.5)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return InvalidInput(
        f"Unknown data set {text!r}: it must be one of {', '.join(DATASETS)}, "
        f"or a file that ends with {', '.join(SUFFIXES)}.{hint}"
    )
