"""``lns embed``: what a chip has room for, with the embeddings kept for later rounds."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lns.errors import InvalidInput

if TYPE_CHECKING:
    from lns.embedding import Embedding

DESCRIPTION = """\
Find the largest round (weight bits x examples with target bits) that has room on an annealer chip, keep its
embedding in the store, and say how long its chains are. Rounds with --solver emulator on that chip then begin
at once.
"""

EXAMPLES = """\
examples:
  lns embed                                          pegasus:16
  lns embed --topology chimera:8 --draw chip.png     and a picture of its chains
  lns embed --topology zephyr:15 --weights 24        so many weight bits
"""

WEIGHT, TARGET, IDLE = "#1f5fa8", "#e07b1f", "#c4c4c4"


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """The options of ``lns embed``."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "embed",
        help="say what an annealer chip has room for, and draw it",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--topology", default="pegasus:16", metavar="CHIP",
        help="chimera:8, chimera:16, pegasus:16, zephyr:15 or another size; default pegasus:16")  # fmt: skip
    add("--weights", type=_count, metavar="N", help="weight bits of a round; default: chosen by itself")
    add("--target-bits", type=_count, default=4, metavar="N", help="target bits of an example; default 4")
    add("--max-chain", type=_count, metavar="N", help="longest chain allowed")
    add("--draw", type=_picture, metavar="FILE.png", help="draw the chip with its chains")
    return parser


def run(args: argparse.Namespace) -> int:
    """Find or load the embedding, describe it, draw it."""
    from lns.embedding import Chip, Shape, default_store, largest_embedding

    if args.draw is not None:
        _pyplot()  # before the work, not after
    chip = Chip.from_name(args.topology)
    found = largest_embedding(
        chip, weights=args.weights, target_bits=args.target_bits, max_chain=args.max_chain
    )
    lines = [f"chip         {chip.name}: {chip.num_qubits:,} qubits, {chip.num_couplers:,} couplers"]
    lines += describe("largest", found)
    if args.weights is None:
        from lns.solvers.emulator import FEW_EXAMPLES, Emulator

        # What the emulator cuts its usual, smaller rounds from.
        solver = Emulator(topology=args.topology, max_chain=args.max_chain, target_bits=args.target_bits)
        few = min(FEW_EXAMPLES, found.shape.examples)
        if few < found.shape.examples:
            usual = solver.wiring(Shape(found.shape.weights, few, args.target_bits)).embedding
            lines += describe("usual", usual)
    store = default_store()
    lines.append(f"kept in      {store.root if store.root is not None else 'memory only'}")
    if args.draw is not None:
        draw(found, args.draw)
        lines.append(f"picture      {args.draw}")
    print("\n".join(lines))
    return 0


def describe(name: str, embedding: Embedding) -> list[str]:
    """An embedding in three lines."""
    shape, weights, targets = (
        embedding.shape,
        embedding.weight_chain_lengths,
        embedding.target_chain_lengths,
    )
    used = 100 * embedding.num_qubits / embedding.chip.num_qubits
    bits = f"target bits {targets.mean():.1f}, at most {targets.max()}" if len(targets) else "no target bits"
    return [
        f"{name:13}{shape}: {shape.size} variables ({embedding.route})",
        f"  qubits     {embedding.num_qubits:,}, {used:.0f} % of the chip",
        f"  chains     weight bits {weights.mean():.1f} qubits on average, at most {weights.max()}; {bits}",
    ]


def draw(embedding: Embedding, path: Path) -> None:
    """Draw the chip, the chains of weight bits in blue and of target bits in orange."""
    import dwave.graphs as dg
    import numpy as np

    plt = _pyplot()
    from matplotlib.collections import LineCollection
    from matplotlib.lines import Line2D

    chip, shape = embedding.chip, embedding.shape
    layouts = {"chimera": dg.chimera_layout, "pegasus": dg.pegasus_layout, "zephyr": dg.zephyr_layout}
    layout = layouts[chip.topology](chip.graph)
    at = np.zeros((int(chip.qubits.max()) + 1, 2))
    for qubit, xy in layout.items():
        at[qubit] = xy
    owner = np.full(len(at), -1)
    owner[embedding.qubits] = np.repeat(np.arange(shape.size), embedding.chain_lengths)
    ends = owner[chip.couplers]
    inside = (ends[:, 0] == ends[:, 1]) & (ends[:, 0] >= 0)
    between = (ends >= 0).all(axis=1) & ~inside
    dot = max(1.5, 6_000 / max(chip.num_qubits, 200))
    figure, axes = plt.subplots(figsize=(10, 10), layout="constrained")
    add = axes.add_collection
    add(LineCollection(at[chip.couplers[between]], colors="#bbbbbb", linewidths=0.03 * dot**0.5, zorder=1))
    idle = chip.qubits[owner[chip.qubits] < 0]
    axes.scatter(*at[idle].T, s=max(1.2, dot / 3), color=IDLE, linewidths=0, zorder=1)
    for z, colour, mine in (
        (2, TARGET, ends[:, 0] >= shape.weights),
        (3, WEIGHT, ends[:, 0] < shape.weights),
    ):
        add(
            LineCollection(
                at[chip.couplers[inside & mine]], colors=colour, linewidths=0.35 * dot**0.5, zorder=z
            )
        )
    qubits = embedding.qubits
    for z, colour, of in (
        (4, TARGET, owner[qubits] >= shape.weights),
        (5, WEIGHT, owner[qubits] < shape.weights),
    ):
        axes.scatter(*at[qubits[of]].T, s=dot, color=colour, linewidths=0, zorder=z)
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
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise InvalidInput(f"The picture cannot be written to {path}: {error.strerror or error}.") from error
    finally:
        plt.close(figure)


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise InvalidInput("--draw needs matplotlib: pip install 'qlns[plot]'.") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def _count(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, not {text!r}")
    return value


def _picture(text: str) -> Path:
    path = Path(text)
    if path.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise argparse.ArgumentTypeError(f"must end in .png, .pdf or .svg, not {text!r}")
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"names a folder that is not there: {path.parent}")
    return path
