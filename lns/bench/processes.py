"""Memory of this process and of those it has started, as the system counts it (Linux)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from lns.memory import peak_memory_mb


@dataclass(frozen=True)
class Process:
    """One process.

    Parameters
    ----------
    role
        ``"driver"``, or the program.
    peak_mb
        The most memory that it has had resident, shared pages included.
    private_mb
        What it has now for itself alone.
    """

    role: str
    peak_mb: float
    private_mb: float


def family(pid: int | None = None) -> list[Process]:
    """This process and all below it, the largest first; this one alone where they cannot be counted."""
    pid = os.getpid() if pid is None else pid
    tables = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            text = (folder / "status").read_text()
            words = (folder / "cmdline").read_text().replace("\0", " ").split()
        except OSError:  # it has ended meanwhile
            continue
        fields = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
        tables[int(folder.name)] = (int(fields["PPid"]), fields, words)
    if pid not in tables:
        peak = peak_memory_mb() or float("nan")
        return [Process("driver", peak, peak)]
    wanted, added = {pid}, {pid}
    while added:
        added = {one for one, (parent, _, _) in tables.items() if parent in added} - wanted
        wanted |= added
    found = []
    for one in wanted:
        _, fields, words = tables[one]
        if "VmHWM" in fields:
            peak, private = (int(fields[name].split()[0]) / 1024 for name in ("VmHWM", "RssAnon"))
            found.append(Process("driver" if one == pid else _program(words), peak, private))
    return sorted(found, key=lambda process: -process.peak_mb)


def _program(words: list[str]) -> str:
    """A name for people: Ray's workers name themselves, others are called by their program or script."""
    if not words:
        return "unknown"
    if words[0].startswith("ray::"):
        return words[0]
    scripts = [word for word in words[1:3] if word.endswith(".py")]
    return Path((scripts or words)[0]).name
