"""Solvers of sub-QUBOs: one protocol, a registry, and ready-made ones."""

from lns.solvers._protocol import Solver
from lns.solvers._registry import SOLVERS, make_solver, register
from lns.solvers.chip import ChipCall
from lns.solvers.dimod_sampler import Annealing, Descent, DimodSolver, Tabu
from lns.solvers.emulator import Emulator
from lns.solvers.exact import Exact
from lns.solvers.hybrid_runnable import HybridSolver
from lns.solvers.qpu import QPU

__all__ = [
    "QPU",
    "SOLVERS",
    "Annealing",
    "ChipCall",
    "Descent",
    "DimodSolver",
    "Emulator",
    "Exact",
    "HybridSolver",
    "Solver",
    "Tabu",
    "make_solver",
    "register",
]
