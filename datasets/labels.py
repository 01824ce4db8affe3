"""Any two label values as -1 and +1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lns.errors import DataError

__all__ = ["to_signs"]


def to_signs(
    values: np.ndarray, source: str, classes: Sequence[object] | None = None
) -> tuple[np.ndarray, tuple[object, object]]:
    """Map two label values to -1 (the smaller) and +1 (the larger).

    Parameters
    ----------
    values
        Labels as they stand in the source: numbers, truth values or text.
    source
        The source's name for messages.
    classes
        The values that mean -1 and +1, for further data of a set whose values are known; such data may
        hold only one of them.

    Returns
    -------
    y, classes
        int8 labels, and the values that became -1 and +1.

    Raises
    ------
    DataError
        If there are more or fewer than two values, or one that is not among ``classes``.

    Examples
    --------
    >>> to_signs(np.array(["spam", "ham", "spam"]), "mail.csv")
    (array([ 1, -1,  1], dtype=int8), ('ham', 'spam'))
    """
    if values.ndim != 1:
        raise DataError(f"The labels of {source} must be one column but have the shape {values.shape}.")
    found = np.unique(values).tolist()
    if any(value is None or value != value or value == "" for value in found):
        raise DataError(f"A label of {source} is missing: every row needs one.")
    if classes is None:
        if len(found) != 2:
            raise DataError(
                f"{source} must have exactly two label values but has {len(found)}: {_shorten(found)}."
            )
        negative, positive = found
    else:
        negative, positive = classes
        unknown = [value for value in found if value not in (negative, positive)]
        if unknown:
            raise DataError(
                f"{source} has the label values {_shorten(unknown)}, "
                f"which are neither {negative!r} nor {positive!r}."
            )
    return np.where(values == positive, 1, -1).astype(np.int8), (negative, positive)


def _shorten(values: list[object], limit: int = 8) -> str:
    shown = ", ".join(repr(value) for value in values[:limit])
    return shown + (", ..." if len(values) > limit else "")
