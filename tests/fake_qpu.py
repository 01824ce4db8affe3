"""A quantum annealer for tests: it answers like one, checks what it is asked, and fails on demand."""

from __future__ import annotations

import threading

import dimod
import numpy as np
from dwave.cloud.exceptions import SolverFailureError, SolverOfflineError
from dwave.system.testing import MockDWaveSampler

SECRET = "DEV-0123456789abcdef0123456789abcdef01234567"
TIME = 0.02  # seconds of access that every call takes


class FakeQPU(MockDWaveSampler):
    """The mock's chip with answers that depend on the coefficients alone.

    Every read rolls downhill from its own signs of the fields, so that disjoint problems do not see each
    other. The n-th call behaves as the n-th word of `script` says, and all later ones as the last word:
    ``ok``, ``offline``, ``fail``, ``hang``, ``short``, ``values``, ``qubits``, ``untimed``, ``empty``; with
    ``signs`` it does not roll.
    """

    def __init__(self, *script, topology="chimera", shape=(8, 8, 4), **options):
        super().__init__(topology_type=topology, topology_shape=list(shape), **options)
        self.script = script or ("ok",)
        self.asked = []  # the problem and the parameters of each call
        self.release = threading.Event()  # lets go of what hangs
        self._lock = threading.Lock()
        self._known = {frozenset(edge) for edge in self.edgelist}

    @property
    def calls(self):
        """How often it was asked."""
        return len(self.asked)

    def sample(self, bqm, **parameters):
        with self._lock:
            word = self.script[min(self.calls, len(self.script) - 1)]
            self.asked.append((bqm.copy(), parameters))
        self.check(bqm, parameters)
        if word == "offline":
            raise SolverOfflineError(f"solver at https://x:{SECRET}@cloud.example/sapi is offline")
        if word == "fail":
            return dimod.SampleSet.from_future(None, self.fail)
        if word == "hang":
            self.release.wait(20)
            raise RuntimeError("nobody should read this")
        return self.answer(word, bqm, parameters["num_reads"])

    @staticmethod
    def fail(future):
        """A failure that shows when the answer is read."""
        raise SolverFailureError(f"internal error, token={SECRET}")

    def check(self, bqm, parameters):
        """The rules that a real machine enforces."""
        unknown = set(parameters) - set(self.parameters)
        assert not unknown, unknown
        assert set(bqm.variables) <= set(self.nodelist)
        assert all(frozenset(edge) in self._known for edge in bqm.quadratic)
        slack = 1 + 1e-9
        for values, limits in (
            (bqm.linear.values(), self.properties["h_range"]),
            (bqm.quadratic.values(), self.properties["extended_j_range"]),
            ([sum(bqm.adj[v].values()) for v in bqm.variables], self.properties["per_qubit_coupling_range"]),
        ):
            assert limits[0] * slack <= min(values, default=0)
            assert max(values, default=0) <= limits[1] * slack

    @staticmethod
    def roll(bqm, labels, fields, spins):
        """Turn one spin after the other, in their order, as long as that helps."""
        at = {label: k for k, label in enumerate(labels)}
        around = [np.array([at[v] for v in bqm.adj[u]], dtype=int) for u in labels]
        couplings = [np.array(list(bqm.adj[u].values()), dtype=float) for u in labels]
        for _ in range(50):
            turned = False
            for k in range(len(labels)):
                field = fields[k] + spins[:, around[k]] @ couplings[k]
                wrong = spins[:, k] * field > 1e-9
                spins[wrong, k] *= -1
                turned |= bool(wrong.any())
            if not turned:
                break

    def answer(self, word, bqm, num_reads):
        """The sample set of a call, spoilt as the word says."""
        labels = list(bqm.variables)
        fields = np.array([bqm.linear[v] for v in labels])
        down = np.where(fields > 0, -1, 1).astype(np.int8)
        spins = np.stack([down * (-1) ** r for r in range(num_reads)])
        if word != "signs":
            self.roll(bqm, labels, fields, spins)
        if word == "short":
            spins = spins[: num_reads // 2]
        if word == "empty":
            spins = spins[:0]
        if word == "values":
            spins[-1, 0] = 3
        if word == "qubits":
            spins, labels = spins[:, 1:], labels[1:]
        info = {} if word == "untimed" else {"timing": {"qpu_access_time": 1e6 * TIME}}
        order = np.random.default_rng(0).permutation(len(labels))  # a machine has an order of its own
        return dimod.SampleSet.from_samples(
            (spins[:, order], [labels[k] for k in order]),
            vartype="SPIN",
            energy=np.zeros(len(spins)),
            info=info,
            sort_labels=False,
        )
