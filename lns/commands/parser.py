"""An argument parser whose errors are one line that says what to do."""

from __future__ import annotations

import argparse
import difflib
import math
import re
import sys
import tomllib
from collections.abc import Sequence
from typing import Any, NoReturn

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


# ---- types of arguments ----------------------------------------------------------------------------------


def number(text: str) -> float:
    """Any number, infinity included."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, not {text!r}") from None


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


def seconds(text: str) -> float:
    """A number of at least 0."""
    value = number(text)
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"must be a number of seconds of at least 0, not {text!r}")
    return value


def natural(text: str) -> int:
    """A whole number of at least 0."""
    return whole(text, 0)


def rate(text: str) -> float:
    """A share from 0 to below 1."""
    value = number(text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"must be a rate from 0 to below 1 (0.2 is 20 %), not {text}")
    return value


def limit(text: str) -> float | None:
    """Seconds above 0; None for ``none``."""
    if text.lower() == "none":
        return None
    value = number(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"must be a number of seconds above 0 or 'none', not {text}")
    return value if math.isfinite(value) else None


def interval(text: str) -> tuple[float, float] | str:
    """``LO,HI``, or ``auto``."""
    if text == "auto":
        return text
    low, comma, high = text.partition(",")
    if not comma:
        raise argparse.ArgumentTypeError(f"must be two numbers LO,HI, not {text!r}")
    return number(low), number(high)


def q_values(text: str) -> float | dict[int, float]:
    """One q, or ``NEG,POS``: one for each class."""
    values = [number(part) for part in text.split(",", 1)]
    for value in values:
        if not value <= 0:
            raise argparse.ArgumentTypeError(f"must be at most 0, not {value:g}")
    return dict(zip((-1, 1), values, strict=True)) if len(values) == 2 else values[0]


def setting(text: str) -> tuple[str, Any]:
    """``NAME=VALUE``, the value as TOML writes it: a number, true, false, or text (quotes not needed)."""
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, not {text!r}")
    try:
        return name, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return name, value
