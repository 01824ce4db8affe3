"""``lns embed``: what a chip has room for, with the embeddings kept for later rounds."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lns.commands.parser import count, rate

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
  lns embed --dead 0.02 --histogram lengths.png      a chip with 2 % dead qubits, and its chain lengths
"""


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
    add("--dead", type=rate, default=0.0, metavar="F",
        help="random dead qubits (0.02 is 2 %%), as with the option 'dead' of the emulator")  # fmt: skip
    add("--weights", type=count, metavar="N", help="weight bits of a round; default: chosen by itself")
    add("--target-bits", type=count, default=4, metavar="N", help="target bits of an example; default 4")
    add("--max-chain", type=count, metavar="N", help="longest chain allowed")
    add("--draw", type=_picture, metavar="FILE.png", help="draw the chip with its chains")
    add("--histogram", type=_picture, metavar="FILE.png", help="draw how long the chains are")
    return parser


def run(args: argparse.Namespace) -> int:
    """Find or load the embedding, describe it, draw it."""
    from lns import pictures
    from lns.embedding import Shape, default_store, largest_embedding
    from lns.solvers.chip import FEW_EXAMPLES
    from lns.solvers.emulator import Emulator

    wanted = [
        (path, draw)
        for path, draw in (
            (args.draw, pictures.draw_chip),
            (args.histogram, pictures.draw_chain_lengths),
        )
        if path is not None
    ]
    if wanted:
        pictures.new_figure()  # whether that is possible is better known before the work than after
    solver = Emulator(topology=args.topology, dead=args.dead, max_chain=args.max_chain)
    chip, bits = solver.chip, args.target_bits
    found = largest_embedding(chip, weights=args.weights, target_bits=bits, max_chain=args.max_chain)
    dead = f", {chip.missing_qubits:,} dead" if chip.missing_qubits else ""
    lines = [f"chip         {chip.name}: {chip.num_qubits:,} qubits{dead}, {chip.num_couplers:,} couplers"]
    lines += describe("largest", found)
    if args.weights is None and found.shape.examples > FEW_EXAMPLES:
        # What the emulator cuts its usual, smaller rounds from.
        solver.prepare(bits)
        lines += describe("usual", solver.wiring(Shape(found.shape.weights, FEW_EXAMPLES, bits)).embedding)
    store = default_store()
    lines.append(f"kept in      {store.root if store.root is not None else 'memory only'}")
    for path, draw in wanted:
        pictures.save(draw(found), path)
        lines.append(f"picture      {path}")
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


def _picture(text: str) -> Path:
    path = Path(text)
    if path.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise argparse.ArgumentTypeError(f"must end in .png, .pdf or .svg, not {text!r}")
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"names a folder that is not there: {path.parent}")
    return path
