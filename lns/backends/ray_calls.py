"""Calls of one function on a Ray cluster, each answered by a future."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import ray

from lns.backends.cluster import Cluster


@contextmanager
def calls(
    function: Callable[[Any], Any], address: str | None, workers: int | None
) -> Iterator[Callable[[Any], Future[Any]]]:
    """Connect to a cluster, or start one on this machine; calls that lose their worker are made again.

    Parameters
    ----------
    function
        A function of a module that the cluster can import.
    address, workers
        As for `lns.solve`.
    """
    cluster = Cluster(address, workers)
    try:
        remote = ray.remote(num_cpus=1)(function)
        yield lambda argument: remote.remote(argument).future()
    finally:
        cluster.close()
