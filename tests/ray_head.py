"""A cluster of one node, started with the `ray` command as the documentation says, on ports of its own."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import lns

TREE = str(Path(lns.__file__).parent.parent)
TOKEN = "0123456789abcdef0123456789abcdef"  # of these clusters only
COMMANDS = Path(sys.executable).parent


def free_ports(count):
    """So many ports that nobody listens on."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def environment(**changes):
    """Variables of a process that knows the token and this tree, and of no other cluster."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    path = f"{COMMANDS}{os.pathsep}{kept['PATH']}"
    return {
        **kept,
        "PATH": path,
        "PYTHONPATH": TREE,
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": TOKEN,
        **changes,
    }


@contextlib.contextmanager
def ray_head(cpus=2):
    """The address of the dashboard and of the cluster; both end with the block."""
    port, dashboard, agent, agent_grpc, client, metrics = free_ports(6)
    folder = tempfile.mkdtemp(prefix="lnsray")  # short: sockets are in it
    words = [
        str(COMMANDS / "ray"), "start", "--head", "--block", "--disable-usage-stats",
        f"--temp-dir={folder}", f"--num-cpus={cpus}", "--node-ip-address=127.0.0.1", f"--port={port}",
        f"--dashboard-port={dashboard}", f"--dashboard-agent-listen-port={agent}",
        f"--dashboard-agent-grpc-port={agent_grpc}", f"--ray-client-server-port={client}",
        f"--metrics-export-port={metrics}", "--min-worker-port=0", "--max-worker-port=0",
        "--object-store-memory=200000000",
    ]  # fmt: skip
    log = open(Path(folder) / "start.log", "w+")  # noqa: SIM115
    head = subprocess.Popen(
        words, env=environment(), stdout=log, stderr=subprocess.STDOUT, preexec_fn=_end_with_parent
    )
    try:
        address = f"http://127.0.0.1:{dashboard}"
        _wait_for(address, head, log)
        yield address, f"127.0.0.1:{port}"
    finally:
        head.terminate()  # with --block it takes the processes of its node along
        try:
            head.wait(60)
        except subprocess.TimeoutExpired:
            head.kill()
            head.wait()
        log.close()
        shutil.rmtree(folder, ignore_errors=True)


def _end_with_parent():
    """Ask Linux to end this process when the tests are killed: a cluster must not stay behind."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


def _wait_for(address, head, log, seconds=120):
    """Until jobs can be asked for."""
    request = urllib.request.Request(f"{address}/api/jobs/", headers={"Authorization": f"Bearer {TOKEN}"})
    end = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(request, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            if head.poll() is not None or time.monotonic() > end:
                log.seek(0)
                raise AssertionError(f"no cluster: {log.read()}") from None
            time.sleep(0.5)


def run_lns(*words, **changes):
    """The command, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "lns", *words],
        env=environment(**changes),
        capture_output=True,
        text=True,
        timeout=600,
    )
