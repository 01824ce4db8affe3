"""Shards as actors on a Ray cluster, spread over its nodes."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import ray
from ray.exceptions import (
    ActorUnschedulableError,
    GetTimeoutError,
    NodeDiedError,
    ObjectLostError,
    OutOfMemoryError,
    RayActorError,
    RayTaskError,
    WorkerCrashedError,
)
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
from scipy import sparse
from threadpoolctl import threadpool_limits

from lns.backends.cluster import Cluster
from lns.errors import DataError, LNSError
from lns.shard import Outline, Shard, Source, name_of

logger = logging.getLogger("lns")

LOST = (
    RayActorError, ActorUnschedulableError, ObjectLostError, WorkerCrashedError, NodeDiedError,
    OutOfMemoryError, GetTimeoutError,
)  # fmt: skip
ATTEMPTS = 5  # a shard that is lost so often in a row will not stay
ANSWER_WITHIN = 1800.0  # seconds; whoever needs longer counts as lost


class _Keeper:
    """The process that keeps a shard, read when it is first asked for."""

    def __init__(self, source: Source) -> None:
        # One BLAS thread: keepers share their node, and sums must not depend on the number of threads.
        threadpool_limits(1, user_api="blas")
        self.source = source
        self.shard: Shard | None = None

    def answer(self, method: str, *args: Any) -> Any:
        if self.shard is None:
            self.shard = Shard(self.source)
        return getattr(self.shard, method)(*args)


class RayShards:
    """Keeps each source in an actor and asks them all; see `lns.sharded.Shards`.

    Nothing that a shard has done is needed to replace it: a lost one is read again from its source, taken
    through the same setup, and asked again.
    """

    def __init__(self, sources: Sequence[Source], address: str | None = None) -> None:
        self._cluster = Cluster(address, None)
        self.sources = list(sources)
        self.rebuilt = 0
        self.moved_bytes = 0
        self._setup: list[tuple[str, Sequence[tuple], list[Any]]] = []
        self._actors = [self._start(k) for k in range(len(self.sources))]

    def setup(self, method: str, each: Sequence[tuple]) -> list[Any]:
        """`ask`, and remember it for shards that are read again."""
        answers = self.ask(method, each=each)
        self._setup.append((method, each, answers))
        return answers

    def ask(self, method: str, *args: Any, each: Sequence[tuple] | None = None) -> list[Any]:
        """Call a method of every shard; answers in the order of the shards."""
        words = [(method, *args, *own) for own in each or [()] * len(self._actors)]
        answers: list[Any] = [None] * len(words)
        asked = list(range(len(words)))
        for _ in range(ATTEMPTS):
            lost = self._hear([self._send(k, words[k]) for k in asked], asked, answers)
            if not lost:
                self.moved_bytes += size_of(words) + size_of(answers)
                return answers
            self._replace(lost)
            asked = [*lost]
        names = ", ".join(name_of(self.sources[k]) for k in asked)
        raise DataError(
            f"The shard {names} was lost {ATTEMPTS} times in a row. Its node may be short of memory: use "
            "smaller shards or more nodes."
        )

    def close(self) -> None:
        """End the actors, and leave the cluster."""
        for actor in self._actors:
            ray.kill(actor)
        self._actors = []
        self._cluster.close()

    def _send(self, k: int, words: tuple) -> ray.ObjectRef:
        return self._actors[k].answer.remote(*words)

    def _hear(
        self, pending: Sequence[ray.ObjectRef], asked: Sequence[int], answers: list[Any]
    ) -> dict[int, Exception]:
        """Fill in what the shards say; those that are lost instead."""
        lost: dict[int, Exception] = {}
        failures: list[Exception] = []
        for k, one in zip(asked, pending, strict=True):
            try:
                answers[k] = _get(one)
            except LOST as error:
                lost[k] = error
            except Exception as error:  # the others are heard all the same: Ray complains of unheard ones
                failures.append(error)
        if failures:
            raise failures[0]
        return lost

    def _replace(self, lost: Mapping[int, Exception]) -> None:
        """New shards, side by side, that know what the old ones were told."""
        told: dict[int, list[ray.ObjectRef]] = {}
        for k, error in lost.items():
            name = name_of(self.sources[k])
            logger.warning("The shard %s was lost (%s); reading it again.", name, type(error).__name__)
            self.rebuilt += 1
            ray.kill(self._actors[k])  # one that only seemed lost would keep its memory
            self._actors[k] = self._start(k)
            told[k] = [self._send(k, (method, *each[k])) for method, each, _ in self._setup]
        for k, pending in told.items():
            try:
                for one, (_, _, before) in zip(pending, self._setup, strict=True):
                    again = _get(one)
                    if isinstance(again, Outline) and again != before[k]:
                        name = name_of(self.sources[k])
                        raise DataError(
                            f"{name} has changed since the search began: restore it, or start again."
                        )
            except LOST:
                ray.kill(self._actors[k])  # half told; the next question finds it lost, and counts

    def _start(self, k: int) -> Any:
        """An actor on the node whose turn it is, and nowhere else: it counts as lost if that one is lost.

        (With a soft preference Ray may put all shards of a new cluster on one node.)
        """
        nodes = sorted(
            node["NodeID"] for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) > 0
        )
        where = NodeAffinitySchedulingStrategy(nodes[k % len(nodes)], soft=False) if nodes else "DEFAULT"
        # No CPU is reserved: between questions a shard only keeps memory, and rounds need the cores.
        keeper = ray.remote(num_cpus=0, scheduling_strategy=where)(_Keeper)
        return keeper.remote(self.sources[k])


def _get(pending: ray.ObjectRef) -> Any:
    """An answer; what a shard refuses is raised here as it was there."""
    try:
        return ray.get(pending, timeout=ANSWER_WITHIN)
    except RayTaskError as error:
        if isinstance(error.cause, (LNSError, ImportError, MemoryError)):
            raise error.cause from None
        raise


@contextmanager
def nodes_here(count: int) -> Iterator[None]:
    """A cluster of so many nodes, all on this machine, to try things out."""
    from ray import cluster_utils

    each = {"num_cpus": 1, "object_store_memory": 150_000_000}
    nodes = cluster_utils.Cluster(initialize_head=True, head_node_args={**each, "include_dashboard": False})
    connection = None
    try:
        for _ in range(count - 1):
            nodes.add_node(**each)
        connection = Cluster(nodes.address, None)
        yield
    finally:
        if connection is not None:
            connection.close()
        nodes.shutdown()


def size_of(value: Any) -> int:
    """Bytes of the arrays in a message, and a few for everything else."""
    if isinstance(value, (tuple, list)):
        return sum(size_of(one) for one in value)
    if isinstance(value, sparse.csc_array):
        return size_of((value.data, value.indices, value.indptr))
    return value.nbytes if isinstance(value, np.ndarray) else 8
