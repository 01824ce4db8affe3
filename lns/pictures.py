"""Pictures of chips and of runs on them; each function returns a matplotlib figure (extra ``plot``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lns.errors import InvalidInput
from lns.result import Result, RoundRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lns.embedding import Chip, Embedding

WEIGHT, TARGET, IDLE = "#1f5fa8", "#e07b1f", "#c4c4c4"


def draw_chip(embedding: Embedding) -> Figure:
    """The chip with the chains of weight bits in blue and of target bits in orange.

    The embedding of a round that ran on a chip solver is ``solver.wiring(shape).embedding``, with the shape
    of its record.
    """
    figure = new_figure(figsize=(10, 10), layout="constrained")
    from matplotlib.collections import LineCollection
    from matplotlib.lines import Line2D

    chip, shape, qubits = embedding.chip, embedding.shape, embedding.qubits
    at = _positions(chip)
    owner = np.full(len(at), -1)
    owner[qubits] = np.repeat(np.arange(shape.size), embedding.chain_lengths)
    ends = owner[chip.couplers]
    inside = (ends[:, 0] == ends[:, 1]) & (ends[:, 0] >= 0)
    between = (ends >= 0).all(axis=1) & ~inside
    dot = max(1.5, 6_000 / max(chip.num_qubits, 200))

    axes = figure.subplots()

    def lines(which: NDArray[np.bool_], colour: str, width: float, z: int) -> None:
        segments = list(at[chip.couplers[which]])
        axes.add_collection(LineCollection(segments, colors=colour, linewidths=width * dot**0.5, zorder=z))

    def dots(which: NDArray[np.integer], colour: str, size: float, z: int) -> None:
        axes.scatter(at[which, 0], at[which, 1], s=size, color=colour, linewidths=0, zorder=z)

    weight = owner[qubits] < shape.weights
    lines(between, "#bbbbbb", 0.03, 1)
    dots(chip.qubits[owner[chip.qubits] < 0], IDLE, max(1.2, dot / 3), 1)
    lines(inside & (ends[:, 0] >= shape.weights), TARGET, 0.35, 2)
    lines(inside & (ends[:, 0] < shape.weights), WEIGHT, 0.35, 3)
    dots(qubits[~weight], TARGET, dot, 4)
    dots(qubits[weight], WEIGHT, dot, 5)
    handles = [
        Line2D([], [], color=colour, marker="o", label=label)
        for colour, label in (
            (WEIGHT, f"chains of {shape.weights} weight bits"),
            (TARGET, f"chains of {shape.targets} target bits ({shape.examples} examples)"),
            (IDLE, "idle qubits"),
        )
    ]
    axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=3, frameon=False)
    axes.set_title(f"{chip.name}: {shape.size} variables on {embedding.num_qubits:,} qubits")
    axes.set_aspect("equal")
    axes.axis("off")
    return figure


def draw_chain_lengths(embedding: Embedding) -> Figure:
    """How many chains have which length, those of weight bits and of target bits apart."""
    figure = new_figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    lengths = [embedding.weight_chain_lengths, embedding.target_chain_lengths]
    labels = [f"{embedding.shape.weights} weight bits", f"{embedding.shape.targets} target bits"]
    bins = [length - 0.5 for length in range(1, embedding.max_chain + 2)]
    axes.hist(lengths, bins=bins, stacked=True, color=[WEIGHT, TARGET], label=labels)
    axes.set_xlabel("qubits in a chain")
    axes.set_ylabel("chains")
    axes.set_title(f"{embedding.chip.name}: {embedding.mean_chain:.1f} qubits on average")
    axes.legend(frameon=False)
    return figure


def objective_against_qpu_time(
    run: Result | Iterable[RoundRecord],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Seconds of access to the annealer after every round, and the best objective so far."""
    records: Sequence[RoundRecord] = run.rounds if isinstance(run, Result) else list(run)
    spent = [
        sum(call.get("qpu_time", 0.0) for one in record.neighbourhoods for call in one.chip)
        for record in records
    ]
    return np.cumsum(spent, dtype=np.float64), np.array([record.best for record in records], dtype=np.float64)


def draw_objective_against_qpu_time(run: Result | Iterable[RoundRecord]) -> Figure:
    """The best objective of a run, or of the records of its rounds, as QPU time is spent."""
    seconds, best = objective_against_qpu_time(run)
    figure = new_figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    axes.step(seconds, best, where="post", color=WEIGHT)
    axes.plot(seconds[-1:], best[-1:], "o", color=WEIGHT)
    axes.set_xlabel("QPU access time (s)")
    axes.set_ylabel("best objective")
    if not seconds[-1:].any():
        axes.set_title("no QPU time was spent")
    return figure


def new_figure(**options: Any) -> Figure:
    """An empty figure that belongs to nobody else: no window, no global state.

    Raises
    ------
    InvalidInput
        If matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise InvalidInput("Pictures need matplotlib: pip install 'qlns[plot]'.") from None
    figure = Figure(**options)
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write a figure to a file, in the format that its name ends in."""
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise InvalidInput(f"The picture cannot be written to {path}: {error.strerror or error}.") from error


def _positions(chip: Chip) -> NDArray[np.float64]:
    """Where each qubit is drawn, by its name."""
    import dwave.graphs as dg

    layouts = {"chimera": dg.chimera_layout, "pegasus": dg.pegasus_layout, "zephyr": dg.zephyr_layout}
    at = np.zeros((int(chip.qubits.max()) + 1, 2))
    for qubit, xy in layouts[chip.topology](chip.graph).items():
        at[qubit] = xy
    return at
