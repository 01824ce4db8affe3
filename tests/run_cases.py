"""Runs and run folders that several tests use."""

from __future__ import annotations

import json

from lns import cli

SHORT = ("--rows", "300", "--time-limit", "none", "--max-rounds", "3")
FLIPS = ("--noise", "0.2", "--q", "-1,0", "--weight-range", "-1,1")


def train(folder, *words):
    """A short run, kept in a folder."""
    assert cli.main(["train", *SHORT, "--out", str(folder), "--json", *words]) == 0
    return folder


def events(folder):
    """The events of a folder."""
    return [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]


def write_csv(path, rows, header="a,b,label"):
    """A small file of a user."""
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def mail(path, count=80):
    """A file with names, text labels, and columns that have to be scaled."""
    rows = [(k % 7, 100 * ((3 * k) % 11), "yes" if k % 7 > 3 else "no") for k in range(count)]
    return write_csv(path, rows, "words,links,label")
