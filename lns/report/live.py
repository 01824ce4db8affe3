"""The report while the run is going on, on this machine only."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from lns.commands.parser import say
from lns.errors import InvalidInput, LNSError

if TYPE_CHECKING:
    from lns.report.story import Story

HOST = "127.0.0.1"
EVERY = 3.0  # seconds between two versions of an open page


class Server(ThreadingHTTPServer):
    """Serves one page: the report of a run folder."""

    daemon_threads = True

    def __init__(self, folder: Path, port: int) -> None:
        super().__init__((HOST, port), Handler)
        self.folder = folder
        self.story: Story | None = None
        self.lock = threading.Lock()
        self.asked = -1e9  # when a page was asked for last
        self.ended = threading.Event()  # the run has ended
        self.shown = threading.Event()  # and somebody has seen it

    @property
    def address(self) -> str:
        """What to type into a browser."""
        return f"http://{HOST}:{self.server_address[1]}/"

    def page(self) -> str:
        """The report of this moment."""
        from lns.report.page import render
        from lns.report.story import Story

        with self.lock:
            self.asked = monotonic()
            ended = self.ended.is_set()
            if self.story is None:
                self.story = Story(self.folder)
            else:
                self.story.read()
            page = render(self.story, every=EVERY)
        if ended:
            self.shown.set()
        return page


class Handler(BaseHTTPRequestHandler):
    """Answers with the page, whatever is asked for."""

    server: Server

    def do_GET(self) -> None:
        """The page, for those who ask this machine by its own name."""
        host = (self.headers.get("Host") or "").rpartition(":")[0]
        if host not in (HOST, "localhost"):  # a name that somebody else let point here
            self.send_error(403)
            return
        if self.path.partition("?")[0] != "/":
            self.send_error(404)
            return
        try:
            content = self.server.page().encode()
        except LNSError as error:
            self.send_error(500, explain=str(error))
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: standard error belongs to the progress."""


@contextmanager
def serving(folder: Path, port: int = 0) -> Iterator[Server]:
    """Serve the report of a growing folder on this machine, and say where.

    When the run has ended, a page that is open is given the time to fetch its last version.

    Raises
    ------
    InvalidInput
        If the port cannot be used.
    """
    try:
        server = Server(folder, port)
    except (OSError, OverflowError) as error:
        raise InvalidInput(
            f"--port {port} cannot be used ({getattr(error, 'strerror', None) or error}): name another one, "
            "or leave it out."
        ) from None
    thread = threading.Thread(target=server.serve_forever, name="lns-live", daemon=True)
    thread.start()
    say(f"the report of this run is at {server.address} until it ends.")
    try:
        yield server
        server.ended.set()
        if monotonic() - server.asked < 2 * EVERY:
            server.shown.wait(2 * EVERY)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
