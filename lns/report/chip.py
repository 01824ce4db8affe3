"""The chip of a run: where its bits lay, and how its calls went."""

from __future__ import annotations

from typing import Any

from lns.errors import LNSError
from lns.report.html import figure, legend, section, table, text
from lns.report.numbers import count, percent, plain
from lns.report.story import Story

SIZE = 900

NAMES = {
    "num_variables": "variables on the chip",
    "held": "variables without room",
    "num_qubits": "qubits",
    "mean_chain": "mean chain length",
    "max_chain": "longest chain",
    "broken": "broken chains",
    "reads": "reads",
    "embed_seconds": "seconds to embed",
    "sample_seconds": "seconds to sample",
    "unembed_seconds": "seconds to vote and repair",
    "packed": "sub-QUBOs that shared a call",
    "qpu_time": "seconds of QPU access",
    "retries": "further attempts",
    "fallbacks": "answered by tabu search instead",
}


def chip_section(story: Story) -> str:
    """What a report says of the chip; nothing if none was used."""
    calls = [call for one in story.rounds for call in one.chips]
    if not calls:
        return ""
    largest = max(calls, key=lambda call: call.get("num_variables", 0))
    broken = _mean(calls, "broken")
    words = f"{count(len(calls))} calls of up to {count(largest.get('num_variables', 0))} variables on "
    words += f"{count(largest.get('num_qubits', 0))} qubits."
    if broken is not None:
        words += f" On average {percent(broken)} of the chains broke; broken ones were repaired."
    access = sum(float(call.get("qpu_time", 0.0)) for call in calls)
    if access:
        words += f" They took {plain(access, 3)} seconds of QPU access in all."
    return section("chip", "The chip", words, _picture(story, largest) + _figures(calls), loose=True)


def _mean(calls: list[dict[str, Any]], key: str) -> float | None:
    values = [float(call[key]) for call in calls if isinstance(call.get(key), (int, float))]
    return sum(values) / len(values) if values else None


def _figures(calls: list[dict[str, Any]]) -> str:
    rows = []
    for key in dict.fromkeys(key for call in calls for key in call):
        mean = _mean(calls, key)
        if mean is None:
            continue
        most = max(float(call[key]) for call in calls if isinstance(call.get(key), (int, float)))
        show = percent if key == "broken" else plain
        rows.append((NAMES.get(key, key.replace("_", " ")), show(mean), show(most)))
    return figure(
        "Calls", "Means and largest values over all calls.",
        table("Calls of the chip", ("figure", "mean", "largest"), rows, "numbers"),
    )  # fmt: skip


def _picture(story: Story, call: dict[str, Any]) -> str:
    """The largest round on the chip, if its embedding can be found again."""
    options = story.config["options"]
    if options.get("solver") != "emulator":
        return ""
    from lns.embedding import Shape
    from lns.solvers.emulator import Emulator

    settings = dict(options.get("solver-option", {}))
    if "topology" in options:
        settings["topology"] = options["topology"]
    try:
        solver = Emulator(**settings)
        shape = Shape(call["weight_bits"], call["examples"], call["target_bits"])
        embedding = solver.wiring(shape).embedding
    except (LNSError, KeyError, TypeError) as error:
        return f"<!-- no picture: {text(error)} -->"
    return figure(
        f"{solver.topology} with its largest round",
        f"{shape.weights} weight bits and {shape.targets} target bits ({shape.examples} examples) as chains "
        f"of qubits: {embedding.num_qubits:,} of {embedding.chip.num_qubits:,} are used.",
        draw(embedding),
        legend(
            [("blue", "chains of weight bits"), ("orange", "chains of target bits"), ("grey", "idle qubits")]
        ),
    )


def draw(embedding: Any) -> str:
    """Qubits as dots, the couplers inside chains as lines."""
    import dwave.graphs as dg
    import numpy as np

    chip, shape = embedding.chip, embedding.shape
    layouts = {"chimera": dg.chimera_layout, "pegasus": dg.pegasus_layout, "zephyr": dg.zephyr_layout}
    layout = layouts[chip.topology](chip.graph)
    at = np.zeros((int(chip.qubits.max()) + 1, 2))
    for qubit, xy in layout.items():
        at[qubit] = xy
    used = at[chip.qubits]
    low, span = used.min(axis=0), np.ptp(used, axis=0).max()
    at = (at - low) / span * (SIZE - 20) + 10
    owner = np.full(len(at), -1)
    owner[embedding.qubits] = np.repeat(np.arange(shape.size), embedding.chain_lengths)
    ends = owner[chip.couplers]
    inside = (ends[:, 0] == ends[:, 1]) & (ends[:, 0] >= 0)
    dot = float(np.clip(260 / np.sqrt(chip.num_qubits), 2.2, 9.0))
    parts = [_dots("idle", at[chip.qubits[owner[chip.qubits] < 0]], 0.8 * dot)]
    for name, mine in (
        ("target", owner >= shape.weights),
        ("weight", (owner >= 0) & (owner < shape.weights)),
    ):
        lines = chip.couplers[inside & mine[chip.couplers[:, 0]]]
        d = "".join(f"M{a[0]:.1f} {a[1]:.1f}L{b[0]:.1f} {b[1]:.1f}" for a, b in at[lines])
        parts.append(f'<path class="{name}" stroke-width="{0.4 * dot:.2f}" d="{d}"/>')
        parts.append(_dots(name, at[np.flatnonzero(mine)], dot))
    height = float(at[chip.qubits, 1].max()) + 10
    return (
        f'<svg class="chip" viewBox="0 0 {SIZE} {height:.0f}" role="img" aria-label="Picture of {chip.name}: '
        f'{embedding.num_qubits:,} of its qubits form {shape.size} chains.">{"".join(parts)}</svg>'
    )


def _dots(name: str, places: Any, size: float) -> str:
    d = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in places)
    return f'<path class="{name}" stroke-width="{size:.2f}" d="{d}"/>'
