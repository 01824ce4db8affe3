"""``lns predict``: classes and scores of new rows."""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lns.commands.parser import say
from lns.errors import DataError, InvalidInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lns.model import LinearModel

DESCRIPTION = """\
Classify rows with the model of a run. The file needs the columns of the training file, with or without the
label; with labels the error is counted, too. Without --out the table (row, prediction, score and the label,
if there is one) goes to standard output. Rows are counted from 1.
"""

EXAMPLES = """\
examples:
  lns predict my-run new.csv                       the table on standard output
  lns predict my-run new.csv --out classes.csv     the table in a file, a summary on standard output
  lns predict my-run new.csv --json                one JSON object
  lns predict my-run/model.json web8               a model by its file, a data set by its name
"""


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """The options of ``lns predict``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "predict",
        help="classify rows with the model of a run",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("run_dir", metavar="RUN_DIR", help="a folder of 'lns train --out', or a model file")
    add("data", metavar="DATA", help="a file (.csv, .svm, .npz, .parquet) or the name of a data set")
    add("--data-dir", metavar="DIR", help="where to look first for the files of a named data set")
    add("--out", metavar="FILE.csv", help="write the table to a file")
    add("--json", action="store_true", help="print one JSON object instead")
    return parser


def run(args: argparse.Namespace) -> int:
    """Load the model and the rows, classify, write."""
    from lns.files import write_text
    from lns.model import load_model

    model = load_model(args.run_dir)
    scores, y = _scores(model, args)
    positive = scores > 0
    classes = [_tidy(value) for value in model.classes]
    predictions = [classes[index] for index in positive.astype(int).tolist()]
    labels = None if y is None else [classes[int(sign > 0)] for sign in y]
    error = None if y is None else float((positive != (y > 0)).mean())
    if args.out is not None:
        try:
            write_text(Path(args.out), _table(predictions, scores, labels))
        except OSError as failure:
            raise InvalidInput(
                f"The table cannot be written to {args.out}: {failure.strerror or failure}."
            ) from None
    counts = Counter(predictions)
    about: dict[str, Any] = {
        "model": args.run_dir, "data": args.data, "examples": len(predictions),
        "features": model.num_features, "classes": classes, "predicted": [counts[one] for one in classes],
        "error": error,
    }  # fmt: skip
    said = ", ".join(f"{counts[one]:,} {one}" for one in classes)
    wrong = "" if error is None else f"; {100 * error:.2f} % differ from the labels of the file"
    line = f"{len(predictions):,} rows: {said}{wrong}"
    if args.json:
        if args.out is None:
            about |= {"predictions": predictions, "scores": scores.tolist()}
        print(json.dumps(about, allow_nan=False))
    elif args.out is not None:
        print(f"{line}\n{args.out}")
    else:
        sys.stdout.write(_table(predictions, scores, labels))
        sys.stdout.flush()
        say(line)
    return 0


def _scores(model: LinearModel, args: argparse.Namespace) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Scores of the rows, and their labels if there are any."""
    from lns.datasets.files import read_rows, suffix_of
    from lns.datasets.load import DATASETS, load_dataset

    if args.data.lower() in DATASETS or suffix_of(args.data) is None:
        data = load_dataset(args.data, args.data_dir)
        if data.num_features != model.num_features:
            raise DataError(
                f"{data.name} has {data.num_features} features but the model was trained with "
                f"{model.num_features}: it is a model of other data."
            )
        return model.decision_function(data.X, scaled=True), data.y
    rows = read_rows(args.data, model.num_features, model.classes)
    if rows.names and model.feature_names and rows.names != model.feature_names:
        place, (here, there) = next(
            (i, pair)
            for i, pair in enumerate(zip(rows.names, model.feature_names, strict=True))
            if pair[0] != pair[1]
        )
        raise DataError(
            f"Feature {place + 1} of {args.data} is {here!r} but the model was trained with {there!r} there: "
            "bring the columns into the same order."
        )
    return model.decision_function(rows.X), rows.y


def _tidy(value: Any) -> Any:
    """2.0 as 2: whole numbers lose their type in files that hold others, too."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _table(predictions: list[Any], scores: NDArray[Any], labels: list[Any] | None) -> str:
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["row", "prediction", "score"] + ([] if labels is None else ["label"]))
    columns = [range(1, len(predictions) + 1), predictions, (f"{score:.9g}" for score in scores.tolist())]
    table.writerows(zip(*columns, *([] if labels is None else [labels]), strict=True))
    return text.getvalue()
