"""An argument parser whose errors are one line that says what to do."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Sequence
from typing import NoReturn

USAGE = 2  # exit code of wrong usage and bad input


class Parser(argparse.ArgumentParser):
    """Errors in one line, with the closest match of a mistyped word."""

    def error(self, message: str) -> NoReturn:
        choice = re.search(r"invalid choice: '(.*)' \(choose from (.*)\)", message)
        if choice:
            known = re.findall(r"[\w-]+", choice[2])
            message = (
                f"there is no {choice[1]!r}: choose one of {', '.join(known)}{closest(choice[1], known)}"
            )
        end = "" if message.endswith(("?", ".")) else "."
        say(f"{message}{end} See '{self.prog} --help'.")
        raise SystemExit(USAGE)

    def refuse(self, words: Sequence[str]) -> NoReturn:
        """Say that these words mean nothing here."""
        options = [name for action in self._actions for name in action.option_strings]
        hint = closest(words[0].partition("=")[0], options) if words[0].startswith("-") else ""
        self.error(f"unknown argument {words[0]!r}{hint}")


def closest(word: str, known: Sequence[str]) -> str:
    """A question that names the most similar word, if any is similar."""
    found = difflib.get_close_matches(word, known, 1)
    return f"; did you mean {found[0]!r}?" if found else ""


def say(message: str) -> None:
    """One line on standard error, whatever white space the message holds."""
    start = "\n" if sys.stderr.isatty() else ""  # below the line of progress
    sys.stderr.write(f"{start}lns: {' '.join(message.split())}\n")


def whole(text: str, least: int) -> int:
    """A whole number of at least `least`; 1,000 and 1_000 are understood."""
    try:
        value = int(text.replace(",", "").replace("_", ""))
    except ValueError:
        value = least - 1
    if value < least:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least {least}, not {text!r}")
    return value


def count(text: str) -> int:
    """A whole number of at least 1."""
    return whole(text, 1)


def fraction(text: str) -> float:
    """A number from 0 to below 1."""
    return _bounded(text, 1.0, "a fraction from 0 to below 1")


def seconds(text: str) -> float:
    """A number of at least 0."""
    return _bounded(text, float("inf"), "a number of seconds of at least 0")


def _bounded(text: str, high: float, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0.0 <= value < high:
        raise argparse.ArgumentTypeError(f"must be {what}, not {text!r}")
    return value
