"""Jobs on a Ray cluster, through its dashboard: submit one, follow what it prints, learn how it ended."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lns.errors import ClusterError

DEFAULT_ADDRESS = "http://127.0.0.1:8265"
CONNECT_WITHIN = 10.0  # seconds
RECONNECTS = 5  # in a row, before a cluster counts as gone
TOKEN_FILE = Path("~/.ray/auth_token")

NO_TOKEN = (
    "The cluster at {address} wants an authentication token that fits. On its head node 'ray get-auth-token' "
    "prints it: put it here into ~/.ray/auth_token, or into the environment variable RAY_AUTH_TOKEN."
)
NOT_THERE = (
    "There is no Ray dashboard at {address} ({reason}). Give --address http://HEAD:8265, and check that the "
    "head was started with 'ray start --head --dashboard-host 0.0.0.0' and ray[default] installed."
)


@dataclass(frozen=True)
class Ending:
    """How a job ended.

    Parameters
    ----------
    status
        ``"SUCCEEDED"``, ``"FAILED"`` or ``"STOPPED"``.
    code
        Exit code of the command, if it was started at all.
    message
        What Ray says about it.
    """

    status: str
    code: int | None
    message: str


class Jobs:
    """The jobs of one cluster.

    Parameters
    ----------
    address
        Of the dashboard, ``http://HOST:8265``; by default that in ``RAY_API_SERVER_ADDRESS``, or of this
        machine.

    Raises
    ------
    ClusterError
        If nobody answers there, or a token is missing or wrong; it says what to do.
    """

    def __init__(self, address: str | None = None) -> None:
        address = address or os.environ.get("RAY_API_SERVER_ADDRESS") or DEFAULT_ADDRESS
        self.address = address if "://" in address else f"http://{address}"
        _check_reachable(self.address)
        send_token_if_there_is_one()
        from ray.job_submission import JobSubmissionClient

        logging.getLogger("ray.dashboard.modules").setLevel(logging.WARNING)
        # Ray would prefer the addresses of these variables to the one that was asked for.
        aside = {name: os.environ.pop(name, None) for name in ("RAY_API_SERVER_ADDRESS", "RAY_ADDRESS")}
        try:
            self._client = self._ask(JobSubmissionClient, self.address)
        finally:
            os.environ.update({name: value for name, value in aside.items() if value is not None})

    def submit(self, command: str, *, working_dir: str | None, variables: Mapping[str, str]) -> str:
        """Start a shell command on the cluster; the name of the job."""
        environment: dict[str, Any] = {"env_vars": {"PYTHONUNBUFFERED": "1", **variables}}
        if working_dir is not None:
            environment["working_dir"] = working_dir
        return str(self._ask(self._client.submit_job, entrypoint=command, runtime_env=environment))

    def follow(self, job: str, hear: Callable[[str], None]) -> Ending:
        """Pass on every line that a job prints, from its first, until it has ended."""
        lines = _Lines(hear)
        failures = 0
        while True:
            before = lines.heard
            lines.start_over()
            try:
                asyncio.run(self._tail(job, lines))
                ending = self._ending(job)
                if ending is not None:
                    lines.finish()
                    return ending
            except ClusterError:
                raise
            except Exception as error:  # the connection; what was heard is skipped next time
                failures = 1 if lines.heard > before else failures + 1
                if failures > RECONNECTS:
                    raise ClusterError(
                        f"The connection to {self.address} was lost ({error}). The job {job} may go on: "
                        f"'lns submit --attach {job}' follows it again."
                    ) from error
            time.sleep(0.5)

    def stop(self, job: str) -> None:
        """Ask a job to end."""
        self._ask(self._client.stop_job, job)

    async def _tail(self, job: str, lines: _Lines) -> None:
        async for text in self._client.tail_job_logs(job):
            lines.add(text)

    def _ending(self, job: str) -> Ending | None:
        """How the job ended; None while it goes on."""
        info = self._ask(self._client.get_job_info, job)
        if not info.status.is_terminal():
            return None
        message = (info.message or "").partition(", last available logs")[0]  # they have been heard
        return Ending(info.status.value, info.driver_exit_code, message)

    def _ask(self, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call the client; what can go wrong is said in one sentence, with a remedy."""
        from ray import exceptions

        try:
            return call(*args, **options)
        except getattr(exceptions, "AuthenticationError", ()):
            raise ClusterError(NO_TOKEN.format(address=self.address)) from None
        except ConnectionError as error:
            raise ClusterError(NOT_THERE.format(address=self.address, reason=error)) from None
        except (RuntimeError, ValueError) as error:
            raise ClusterError(f"The cluster at {self.address} refused: {error}") from None


class _Lines:
    """Pieces of text as lines; after starting over, what was passed on before is skipped."""

    def __init__(self, hear: Callable[[str], None]) -> None:
        self.hear = hear
        self.heard = 0  # characters passed on, line ends included
        self.start_over()

    def start_over(self) -> None:
        """The text comes from its beginning again."""
        self._skip, self._rest = self.heard, ""

    def add(self, text: str) -> None:
        """A further piece."""
        skipped = min(self._skip, len(text))
        self._skip -= skipped
        *lines, self._rest = (self._rest + text[skipped:]).split("\n")
        for line in lines:
            self.heard += len(line) + 1
            self.hear(line)

    def finish(self) -> None:
        """The last line may lack its end."""
        if self._rest:
            self.hear(self._rest)


def send_token_if_there_is_one() -> None:
    """Let Ray's client send a token if this user has one; older versions do so only when told.

    Ray reads the variable when it is first imported, so this comes before.
    """
    has_token = any(os.environ.get(name) for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"))
    if "RAY_AUTH_MODE" not in os.environ and (has_token or TOKEN_FILE.expanduser().is_file()):
        os.environ["RAY_AUTH_MODE"] = "token"


def _check_reachable(address: str) -> None:
    """Find out quickly that nobody is there: Ray's client would wait for minutes."""
    try:
        parts = urlsplit(address)
        port = parts.port or (443 if parts.scheme == "https" else 8265)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError
    except ValueError:
        raise ClusterError(
            f"The address of a dashboard looks like {DEFAULT_ADDRESS}. Got {address!r}."
        ) from None
    try:
        socket.create_connection((parts.hostname, port), CONNECT_WITHIN).close()
    except OSError as error:
        raise ClusterError(NOT_THERE.format(address=address, reason=error.strerror or error)) from None
