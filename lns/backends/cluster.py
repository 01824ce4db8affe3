"""The connection to a Ray cluster: opened, watched and closed again."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from time import perf_counter
from typing import Any

import ray

from lns.errors import InvalidInput

SILENCE = 20.0  # seconds without an answer after which the head counts as lost; Ray ends the process after 60
CONNECT = 2.0  # seconds that a connection may take,
FIRST_CONNECT = 10.0  # and the first one


class ClusterLost(Exception):
    """The cluster as a whole does not answer any more."""


class Cluster:
    """The cluster that this process is connected to, or connects to, or starts on this machine.

    Closing it undoes what opening it did: a cluster of others is left alone, and a connection of others open.
    """

    def __init__(self, address: str | None, workers: int | None) -> None:
        self._handler: Any = None
        self._silent_since: float | None = None
        self._opened = not ray.is_initialized()
        if self._opened:
            if threading.current_thread() is threading.main_thread():
                self._handler = signal.getsignal(signal.SIGTERM)  # Ray puts its own in place
            self._open(address or os.environ.get("RAY_ADDRESS"), workers)
        self.cpus = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._doors = _doors()

    @staticmethod
    def _open(address: str | None, workers: int | None) -> None:
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if address is None:
            cpus = workers or len(os.sched_getaffinity(0))
            ray.init(address="local", num_cpus=cpus, include_dashboard=False, **options)
            return
        try:
            _knock(address)  # Ray itself would go on trying for minutes
            ray.init(address=address, **options)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            raise InvalidInput(
                f"No Ray cluster can be reached at {address!r}: start one with `ray start --head`, correct "
                f"the address, or leave it out to start one here. ({str(error).splitlines()[0]})"
            ) from error

    def check(self) -> None:
        """Raise `ClusterLost` if the cluster is gone. Quick, and safe to ask at any time.

        Ray ends the whole process when it works with a dead node manager or has been without the head for a
        minute, and no error reaches Python then; hence a look at their doors, by ourselves, in time.
        """
        node, head = self._doors
        if node is not None and not _opens(socket.AF_UNIX, node):
            raise ClusterLost("Ray's node manager on this machine is gone")
        if head is None or _opens(socket.AF_INET6 if ":" in head[0] else socket.AF_INET, head):
            self._silent_since = None
            return
        now = perf_counter()
        self._silent_since = self._silent_since or now
        if now - self._silent_since > SILENCE:
            raise ClusterLost(f"The head of the Ray cluster has not answered for {SILENCE:.0f} s")

    def close(self, lost: bool = False) -> None:
        """Disconnect, and stop what was started here; from a `lost` cluster in any case."""
        if (self._opened or lost) and ray.is_initialized():
            ray.shutdown()
        if self._opened and self._handler is not None:
            signal.signal(signal.SIGTERM, self._handler)
            self._handler = None


def _doors() -> tuple[str | None, tuple[str, int] | None]:
    """Where the node manager of this machine and the head of the cluster listen, as far as Ray tells."""
    try:
        from ray._private.worker import global_worker

        node = global_worker.node.raylet_socket_name
        host, _, port = ray.get_runtime_context().gcs_address.rpartition(":")
        return node, (host.strip("[]"), int(port))
    except (ImportError, AttributeError, ValueError):  # another version of Ray, or its client
        return None, None


def _opens(family: int, address: Any) -> bool:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as door:
            door.settimeout(CONNECT)
            door.connect(address)
        return True
    except OSError:
        return False


def _knock(address: str) -> None:
    """An error if nobody listens at an address of the form ``host:port`` or ``ray://host:port``."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), FIRST_CONNECT).close()
