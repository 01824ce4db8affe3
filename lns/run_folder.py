"""The folder of a run: what was asked for, what happened, and what came out, all as plain text.

========================  ====================================================================================
``config.json``           all options, versions, the data set by name and checksum
``events.jsonl``          a line when the run starts, one for every round, one when it ends
``model.json``            the best classifier so far (`lns.load_model`)
``margins.json``          histogram of the margins, counts, the most suspicious rows
``flagged.csv``           every flagged training row; when the run has ended
``run.ckpt``              the checkpoint, unless it is kept elsewhere
``report.html``           what ``lns report`` makes of all this
========================  ====================================================================================
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from lns.errors import DataError, InvalidInput
from lns.files import write_json, write_text
from lns.model import FILENAME as MODEL
from lns.model import LinearModel
from lns.progress import AtNewBests, Callbacks, HeldOutError
from lns.suspects import Labels, flagged_csv, summarise

if TYPE_CHECKING:
    from lns.datasets.dataset import Dataset
    from lns.problem import QLossProblem
    from lns.result import NeighbourhoodRecord, Result, RoundRecord

FORMAT = 1
CONFIG, EVENTS, MARGINS, FLAGGED = "config.json", "events.jsonl", "margins.json", "flagged.csv"
CHECKPOINT, REPORT = "run.ckpt", "report.html"
PACKAGES = ("qlns", "numpy", "scipy", "numba", "dimod", "dwave-samplers", "dwave-system", "ray")


def check_new(path: Path) -> None:
    """Refuse a folder that holds something already, before any work is done."""
    if path.exists() and not path.is_dir():
        raise InvalidInput(f"--out must name a folder, and {path} is a file.")
    if path.is_dir() and any(path.iterdir()):
        hint = " or add --resume to go on with its run" if (path / CONFIG).exists() else ""
        raise InvalidInput(f"The folder {path} is not empty: name another one{hint}.")


def read_config(path: Path) -> dict[str, Any]:
    """What was asked for, of an existing folder."""
    if not path.is_dir():
        raise DataError(f"There is no folder {path}. 'lns train DATASET --out {path}' makes one.")
    config = read_json(path / CONFIG)
    if config is None:
        raise DataError(f"{path} is not the folder of a run: it has no {CONFIG}.")
    if config.get("format") != FORMAT:
        raise DataError(
            f"The folder {path} has the format {config.get('format')!r}; this version reads {FORMAT}: "
            "update qlns."
        )
    return config


def read_json(path: Path) -> dict[str, Any] | None:
    """A file of the folder; None if it is not there."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from None
    except ValueError as error:
        raise DataError(f"{path} is damaged: it is not JSON ({error}).") from None
    if not isinstance(content, dict):
        raise DataError(f"{path} is damaged: it is not a JSON object.")
    return content


def describe_data(data: Dataset) -> dict[str, Any]:
    """Name, size and checksum of a data set."""
    digest = hashlib.sha256(repr((data.X.shape, data.is_sparse)).encode())
    arrays = [data.X.T] if isinstance(data.X, np.ndarray) else [data.X.indptr, data.X.indices, data.X.data]
    for array in [*arrays, data.y]:
        digest.update(np.ascontiguousarray(array).data)
    return {
        "name": data.name, "rows": len(data), "features": data.num_features,
        "classes": list(data.classes), "sha256": digest.hexdigest(),
    }  # fmt: skip


def versions() -> dict[str, str]:
    """Of Python and of the packages that a result may depend on."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


class RunWriter(Callbacks):
    """Writes the folder while the run goes on: whenever it ends, and however, the folder can be used.

    Parameters
    ----------
    path
        The folder; it is made.
    config
        What was asked for: ``options``, ``data`` and whatever else should be remembered.
    data
        The training data, for the names, classes and scaling of the model.
    labels
        The training examples.
    held_out
        Its error goes into the events. It has to be a callback of the run as well, in front of this one.
    resumed
        Go on in an existing folder.
    """

    def __init__(
        self,
        path: Path,
        config: Mapping[str, Any],
        data: Dataset,
        labels: Labels,
        held_out: HeldOutError | None = None,
        *,
        resumed: bool = False,
    ) -> None:
        self.path, self.labels, self.held_out, self.resumed = path, labels, held_out, resumed
        self._frame = data.take(np.arange(0))  # names, classes and scaling without the rows
        self._problem: QLossProblem | None = None
        self._bests = AtNewBests(self._save, every=2.0)
        self._error: float | None = None
        try:
            path.mkdir(parents=True, exist_ok=True)
            if not resumed:
                write_json(
                    path / CONFIG, {"format": FORMAT, "created": _now(), **config, "versions": versions()}
                )
            _drop_half_a_line(path / EVENTS)
            self._events: TextIO = (path / EVENTS).open("a", encoding="utf-8")
        except OSError as error:
            raise InvalidInput(
                f"The folder {path} cannot be written to: {error.strerror or error}."
            ) from None

    def on_start(self, problem: QLossProblem, objective: float) -> None:
        self._problem = problem
        self._add("start", time=_now(), objective=objective, resumed=self.resumed)

    def on_round(self, record: RoundRecord) -> None:
        about = {
            "round": record.round, "rows": record.rows, "outcome": record.outcome,
            "objective": record.objective, "best": record.best, "seconds": _short(record.seconds),
            "select": _short(record.select_time), "solve": _short(record.solve_time),
            "merge": _short(record.merge_time),
            "neighbourhoods": [_neighbourhood(one) for one in record.neighbourhoods],
        }  # fmt: skip
        if self.held_out is not None and self.held_out.value != self._error:
            self._error = about["test_error"] = self.held_out.value
        self._add("round", **about)
        self._bests.on_round(record)

    def on_best(self, record: RoundRecord, weights: Any, bias: float) -> None:
        self._bests.on_best(record, weights, bias)

    def finish(self, result: Result, values: Mapping[str, Any]) -> None:
        """The run has ended with this result; `values` go into the last event."""
        margins, q = self._save(result.weights, result.bias)
        write_text(self.path / FLAGGED, flagged_csv(margins, q, self.labels))
        self._add("end", time=_now(), **values)

    def failed(self, error: BaseException) -> None:
        """The run has ended by an error, or by Ctrl-C where there was no result yet."""
        words = f"{type(error).__name__}: {error}".split()
        stopped = isinstance(error, KeyboardInterrupt)
        self._add("failed", time=_now(), error="interrupted" if stopped else " ".join(words))

    def close(self) -> None:
        """No more events."""
        self._events.close()

    def _save(self, weights: Any, bias: float) -> tuple[Any, Any]:
        problem = self._problem
        assert problem is not None  # a run starts before it finds anything
        LinearModel.of(problem, weights, bias, self._frame).save(self.path / MODEL)
        margins = problem.margins(weights, bias)
        write_json(self.path / MARGINS, summarise(margins, problem.q, self.labels))
        return margins, problem.q

    def _add(self, event: str, **values: Any) -> None:
        self._events.write(json.dumps({"event": event, **values}, allow_nan=False, default=_number) + "\n")
        self._events.flush()


def _drop_half_a_line(path: Path) -> None:
    """What a killed process was writing when it ended would spoil the next line."""
    if path.exists():
        content = path.read_bytes()
        if not content.endswith(b"\n"):
            with path.open("r+b") as stream:
                stream.truncate(content.rfind(b"\n") + 1)


def _neighbourhood(record: NeighbourhoodRecord) -> dict[str, Any]:
    about: dict[str, Any] = {
        "kind": record.kind, "weights": len(record.weights), "examples": len(record.examples),
        "variables": record.num_variables, "couplers": record.num_couplers, "reads": record.reads,
        "objective": record.objective,
        "timings": {name: _short(value) for name, value in record.timings.items()},
    }  # fmt: skip
    return {**about, "chip": record.chip} if record.chip else about


def _short(seconds: float) -> float:
    return round(seconds, 6)


def _number(value: Any) -> Any:
    """Numbers of numpy as those of Python."""
    return value.item() if isinstance(value, np.generic) else str(value)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
