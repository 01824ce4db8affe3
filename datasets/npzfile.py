"""Reader of numpy archives."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from scipy import sparse

from lns.datasets.dataset import Matrix
from lns.datasets.table import Table, check_finite
from lns.errors import DataError

__all__ = ["read_npz"]

_PARTS = ("data", "indices", "indptr", "shape")


def read_npz(path: Path, num_features: int | None = None) -> Table:
    """Read ``y`` and either ``X`` or the parts of a CSR matrix from a numpy archive.

    The parts are called ``data``, ``indices``, ``indptr`` and ``shape`` as `scipy.sparse.save_npz` calls
    them, or the same with ``X_`` in front. Nothing is unpickled.

    Parameters
    ----------
    path
        The archive.
    num_features
        If known, ``y`` may be missing.

    Raises
    ------
    DataError
        If the archive is damaged, lacks an array, or holds objects, text features or shapes that do not fit.
    """
    try:
        archive = np.load(path, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise DataError(f"The file {path} is a single array, not an archive with X and y.")
        with archive:
            arrays = {name: archive[name] for name in archive.files if name in _wanted()}
    except OSError as error:
        raise DataError(f"The file {path} cannot be read: {error.strerror or error}.") from error
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"The file {path} is not a numpy archive without objects ({error}).") from error
    if "y" not in arrays and num_features is None:
        raise DataError(f"The file {path} must hold the labels as an array y but has {_listed(arrays)}.")
    X = _matrix(arrays, path)
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise DataError(f"X in {path} must be a table of numbers but has shape {X.shape} and type {X.dtype}.")
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise DataError(f"The file {path} has no examples: X has the shape {X.shape}.")
    labels = arrays.get("y")
    if labels is not None and labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels is not None and (labels.ndim != 1 or labels.shape[0] != X.shape[0]):
        raise DataError(f"X in {path} has {X.shape[0]} rows but y has the shape {labels.shape}.")
    if X.dtype.kind == "b":
        X = X.astype(np.int8)
    check_finite(X, str(path))
    return Table(X, labels)


def _wanted() -> set[str]:
    return {"X", "y", *_PARTS, *(f"X_{part}" for part in _PARTS)}


def _matrix(arrays: Mapping[str, np.ndarray], path: Path) -> Matrix:
    if "X" in arrays:
        return arrays["X"]
    for prefix in ("", "X_"):
        if all(prefix + part in arrays for part in _PARTS):
            data, indices, indptr, shape = (arrays[prefix + part] for part in _PARTS)
            try:
                rows, columns = (int(size) for size in shape)
                X = sparse.csr_matrix((data, indices, indptr), shape=(rows, columns))
                X.check_format(full_check=True)
                X.sum_duplicates()
                X.eliminate_zeros()
            except (ValueError, TypeError) as error:
                raise DataError(f"The parts of X in {path} do not form a CSR matrix ({error}).") from error
            return X
    raise DataError(
        f"The file {path} must hold X, or data, indices, indptr and shape, but has {_listed(arrays)}."
    )


def _listed(arrays: Mapping[str, np.ndarray]) -> str:
    return ", ".join(sorted(arrays)) or "none of these names"
