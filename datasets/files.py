"""Files of users: the reader of a suffix, then labels as signs and columns in [0, 1]."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from lns.datasets.csvfile import read_csv
from lns.datasets.dataset import Dataset
from lns.datasets.labels import to_signs
from lns.datasets.npzfile import read_npz
from lns.datasets.parquetfile import read_parquet
from lns.datasets.scaling import Scaling, fit_scaling
from lns.datasets.svmlight import read_svmlight
from lns.datasets.table import Table
from lns.errors import DataError, InvalidInput

__all__ = ["SUFFIXES", "read_file", "read_table", "suffix_of"]

Reader = Callable[[Path, int | None], Table]

_SVMLIGHT: Reader = read_svmlight
_CSV: Reader = lambda path, _: read_csv(path)  # noqa: E731
SUFFIXES: dict[str, Reader] = {
    ".svm": _SVMLIGHT,
    ".svm.gz": _SVMLIGHT,
    ".libsvm": _SVMLIGHT,
    ".libsvm.gz": _SVMLIGHT,
    ".svmlight": _SVMLIGHT,
    ".svmlight.gz": _SVMLIGHT,
    ".csv": _CSV,
    ".csv.gz": _CSV,
    ".npz": lambda path, _: read_npz(path),
    ".parquet": lambda path, _: read_parquet(path),
}


def suffix_of(path: str | os.PathLike[str]) -> str | None:
    """Return the known suffix that a file's name ends with, or ``None``."""
    name = os.fspath(path).lower()
    return next((suffix for suffix in SUFFIXES if name.endswith(suffix)), None)


def read_table(path: Path, num_features: int | None = None) -> Table:
    """Read features and labels as they stand in a file, see `read_file`.

    Parameters
    ----------
    path
        The file.
    num_features
        The number of columns, for formats that do not say it.
    """
    suffix = suffix_of(path)
    if suffix is None:
        raise InvalidInput(
            f"The name of a data file must end with {', '.join(SUFFIXES)}. Got {str(path)!r} instead."
        )
    if not os.path.isfile(path):
        raise DataError(f"There is no file {path}.")
    return SUFFIXES[suffix](path, num_features)


def read_file(
    path: str | os.PathLike[str], *, scaling: Scaling | None = None, classes: Sequence[object] | None = None
) -> Dataset:
    """Read a data set from a file.

    ============================  =====================================================================
    suffix                        content
    ============================  =====================================================================
    ``.svm .libsvm .svmlight``    ``label index:value ...``; also with ``.gz``
    ``.csv``                      numbers, header optional; label column called label, y or target, or
                                  the last; also with ``.gz``
    ``.npz``                      X and y, or y with data, indices, indptr and shape of a CSR matrix
    ``.parquet``                  columns as in ``.csv``; needs the extra ``parquet``
    ============================  =====================================================================

    Any two label values become -1 (the smaller) and +1. Columns are scaled to [0, 1]; sparse data stays
    sparse, and its columns with negative entries are scaled to [-1, 1] instead.

    Parameters
    ----------
    path
        The file.
    scaling
        Use this scaling, for instance that of the training data, instead of one fitted on the file.
    classes
        The label values that mean -1 and +1, for instance those of the training data; the file may then
        hold only one of them.

    Raises
    ------
    InvalidInput
        If the suffix is not in the table, or ``scaling`` has another number of columns.
    DataError
        If the file is missing or damaged, has missing values or text features, or has more or fewer than
        two label values.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "mail.csv")
    ...     _ = path.write_text("words,links,label\\n10,0,ham\\n90,4,spam\\n")
    ...     data = read_file(path)
    >>> data, data.X.tolist(), data.y.tolist()
    (Dataset('mail.csv', 2 rows x 2 features, dense), [[0.0, 0.0], [1.0, 1.0]], [-1, 1])
    """
    path = Path(path)
    table = read_table(path, None if scaling is None else scaling.span.shape[0])
    y, found = to_signs(table.labels, str(path), classes)
    scaling = fit_scaling(table.X) if scaling is None else scaling
    return Dataset(path.name, scaling.apply(table.X), y, scaling, found)
