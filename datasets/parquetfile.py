"""Reader of Parquet files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lns.datasets.table import Table, check_finite, label_column
from lns.errors import DataError

__all__ = ["read_parquet"]


def read_parquet(path: Path, num_features: int | None = None) -> Table:
    """Read a Parquet file with numeric or boolean columns and one label column, which may hold text.

    The label column is the one called label, y or target, otherwise the last.

    Parameters
    ----------
    path
        The file.
    num_features
        If known: a file with exactly so many columns has no labels.

    Raises
    ------
    ImportError
        If pyarrow is not installed.
    DataError
        If the file is damaged, a feature is not a number, or a value is missing or infinite.
    """
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError('Reading Parquet files needs pyarrow: pip install "qlns[parquet]".') from error
    try:
        table = parquet.read_table(path)
    except OSError as error:
        raise DataError(f"The file {path} cannot be read: {error.strerror or error}.") from error
    except arrow.ArrowException as error:
        raise DataError(f"The file {path} is not a Parquet file, or is damaged ({error}).") from error
    names = list(table.column_names)
    label_at = None if len(names) == num_features else label_column(names)
    if len(names) < 2 and label_at is not None:
        raise DataError(f"The file {path} must have at least two columns but has {len(names)}.")
    if not table.num_rows:
        raise DataError(f"The file {path} has no examples.")
    features = [i for i in range(len(names)) if i != label_at]
    for i in features:
        kind = table.schema.field(i).type
        if not (
            arrow.types.is_boolean(kind) or arrow.types.is_integer(kind) or arrow.types.is_floating(kind)
        ):
            raise DataError(
                f"Column {names[i]!r} of {path} holds {kind}, not numbers: "
                "encode it as numbers (for instance one column per value) or drop it."
            )
    X = np.empty((table.num_rows, len(features)), dtype=np.float64, order="F")
    for place, i in enumerate(features):
        X[:, place] = table.column(i).to_numpy()
    found = tuple(names[i] for i in features)
    check_finite(X, str(path), found)
    if label_at is None:
        return Table(X, None, found)
    labels = table.column(label_at)
    if labels.null_count:
        raise DataError(f"A label of {path} is missing: every row needs one.")
    return Table(X, np.array(labels.to_pylist()), found)
