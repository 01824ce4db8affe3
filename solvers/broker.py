"""Requests of threads that run side by side, gathered into calls."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from typing import Generic, TypeVar

Request = TypeVar("Request")
Answer = TypeVar("Answer")


class Broker(Generic[Request, Answer]):
    """Gathers requests until a call is full or nobody has come for a while; calls run beside each other.

    Parameters
    ----------
    call
        Answers a list of requests, in their order; may ask whether anybody still waits.
    size
        Most requests of a call.
    window
        Seconds that the first request of a call waits for others.
    """

    def __init__(
        self, call: Callable[[list[Request], Callable[[], bool]], list[Answer]], size: int, window: float
    ) -> None:
        self._call, self.size, self.window = call, size, window
        self._lock = threading.Lock()
        self._waiting: list[tuple[Request, Future[Answer]]] = []

    def submit(self, request: Request) -> Future[Answer]:
        """Add a request; its answer will be in the future. Who gives up cancels it."""
        future: Future[Answer] = Future()
        with self._lock:
            batch = self._waiting
            batch.append((request, future))
            full = len(batch) >= self.size
            if full:
                self._waiting = []
        if full:
            self._start(batch)
        elif len(batch) == 1:
            timer = threading.Timer(self.window, self._close, [batch])
            timer.daemon = True
            timer.start()
        return future

    def send(self, requests: Sequence[Request]) -> list[Future[Answer]]:
        """A call of just these requests, at once."""
        batch: list[tuple[Request, Future[Answer]]] = [(request, Future()) for request in requests]
        self._start(batch)
        return [future for _, future in batch]

    def _close(self, batch: list[tuple[Request, Future[Answer]]]) -> None:
        """Send a batch off as it is, unless it has been."""
        with self._lock:
            if self._waiting is not batch:
                return
            self._waiting = []
        self._start(batch)

    def _start(self, batch: list[tuple[Request, Future[Answer]]]) -> None:
        threading.Thread(target=self._run, args=[batch], name="lns-chip-call", daemon=True).start()

    def _run(self, batch: list[tuple[Request, Future[Answer]]]) -> None:
        def wanted() -> bool:
            return any(not future.cancelled() for _, future in batch)

        try:
            answers = self._call([request for request, _ in batch], wanted)
        except BaseException as error:
            for _, future in batch:
                with contextlib.suppress(InvalidStateError):  # cancelled
                    future.set_exception(error)
            return
        for (_, future), answer in zip(batch, answers, strict=True):
            with contextlib.suppress(InvalidStateError):
                future.set_result(answer)
