"""The four real sets of the paper, built from public files."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
from scipy import sparse

from lns.datasets.cache import load_parsed, store_parsed
from lns.datasets.csvfile import read_integers
from lns.datasets.dataset import Dataset
from lns.datasets.labels import to_signs
from lns.datasets.lookup import locate
from lns.datasets.remote import REMOTES, check_content
from lns.datasets.scaling import fit_scaling
from lns.datasets.svmlight import read_svmlight
from lns.errors import DataError

__all__ = ["adult9", "covertype", "mushrooms", "web8"]

Folder = str | os.PathLike[str] | None
_COVERTYPE_COLUMNS = 55


def covertype(data_dir: Folder = None, *, download_if_missing: bool = True) -> Dataset:
    """Load UCI Covertype: spruce/fir (class 1, +1) against the other six cover types (-1).

    The ten numeric columns are scaled to [0, 1]; the other 44 are indicators. Parsing takes seconds, so a
    parsed copy is kept in the user cache.

    Parameters
    ----------
    data_dir, download_if_missing
        As for `lns.load_dataset`.
    """
    path = _find("covtype.data.gz", data_dir, download_if_missing)
    digest = _file_digest(path)
    # A copy is stored only after the content was checked, so equal files need no second check.
    table = load_parsed("covertype", digest, _COVERTYPE_COLUMNS, np.int16)
    if table is None:
        check_content(path, REMOTES["covtype.data.gz"])
        table = read_integers(path, _COVERTYPE_COLUMNS)
        store_parsed("covertype", digest, table)
    features, cover_type = table[:, :-1], table[:, -1]
    scaling = fit_scaling(features)
    y = np.where(cover_type == 1, 1, -1)
    return Dataset("covertype", scaling.apply(features), y, scaling, ("other types", "spruce/fir"))


def mushrooms(data_dir: Folder = None, *, download_if_missing: bool = True) -> Dataset:
    """Load UCI Mushroom in LIBSVM's one-hot coding: poisonous (+1) against edible (-1).

    The file codes poisonous as 1 and edible as 2. The paper does not say which of them it calls negative;
    its bounds on q under noise, which depend on the share of negatives, fit edible (51.8 %).

    Parameters
    ----------
    data_dir, download_if_missing
        As for `lns.load_dataset`.
    """
    X, y = _one_hot(("mushrooms.gz",), 112, data_dir, download_if_missing)
    return Dataset("mushrooms", X, -y, classes=("edible", "poisonous"))


def adult9(data_dir: Folder = None, *, download_if_missing: bool = True) -> Dataset:
    """Load UCI Adult in LIBSVM's coding, a9a followed by a9a.t: income above 50K is +1.

    Parameters
    ----------
    data_dir, download_if_missing
        As for `lns.load_dataset`.
    """
    X, y = _one_hot(("a9a.gz", "a9a.t.gz"), 123, data_dir, download_if_missing)
    return Dataset("adult9", X, y)


def web8(data_dir: Folder = None, *, download_if_missing: bool = True) -> Dataset:
    """Load Platt's web pages, w8a followed by w8a.t, without the rows that have no feature at all.

    Every row of w8a.t also occurs in w8a: a random split of this set shares rows between both sides.

    Parameters
    ----------
    data_dir, download_if_missing
        As for `lns.load_dataset`.
    """
    X, y = _one_hot(("w8a.gz", "w8a.t.gz"), 300, data_dir, download_if_missing)
    filled = np.flatnonzero(np.diff(X.indptr))
    return Dataset("web8", X[filled], y[filled])


def _one_hot(
    filenames: tuple[str, ...], features: int, data_dir: Folder, download_if_missing: bool
) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Return the stacked files, whose entries are all 0 or 1, and the labels as signs (smaller value: -1)."""
    parts, labels = [], []
    for filename in filenames:
        path = _find(filename, data_dir, download_if_missing)
        check_content(path, REMOTES[filename])
        table = read_svmlight(path, num_features=features)
        parts.append(sparse.csr_matrix(table.X, dtype=np.float32))
        assert table.labels is not None  # every line of this format begins with one
        labels.append(to_signs(table.labels, str(path))[0])
    return sparse.csr_matrix(sparse.vstack(parts, format="csr")), np.concatenate(labels)


def _find(filename: str, data_dir: Folder, download_if_missing: bool) -> Path:
    return locate(REMOTES[filename], data_dir, download_if_missing=download_if_missing)


def _file_digest(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"The file {path} cannot be read: {error.strerror or error}.") from error
