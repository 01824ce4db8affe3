"""Options from a file: a TOML file of the user, or what a run folder remembers of its run."""

from __future__ import annotations

import argparse
import math
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lns.commands.parser import closest
from lns.errors import InvalidInput

#: Options that say how a command is called, not what it does.
OF_THE_CALL = ("help", "debug", "config", "out", "resume", "json", "live", "port")


def read_toml(path: str) -> dict[str, Any]:
    """The content of a configuration file."""
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput(f"The configuration {path} cannot be read: {error.strerror or error}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"The configuration {path} is not TOML ({error}). A line looks like: time-limit = 60"
        ) from None


def set_defaults(parser: argparse.ArgumentParser, values: Mapping[str, Any], source: str) -> None:
    """Let values from a file be the defaults of a parser, checked as if they stood on the command line.

    Parameters
    ----------
    parser
        Of the command.
    values
        By the names of the options without their dashes in front; lists stand for values with commas.
    source
        Where they are from, for messages.

    Raises
    ------
    InvalidInput
        If a name is unknown or a value is not one of the option.
    """
    actions = by_name(parser)
    for name, value in values.items():
        if name not in actions:
            raise InvalidInput(
                f"{source} has the unknown key {name!r}{closest(name, [*actions]) or '; ' + _known(actions)}"
            )
        try:
            parser.set_defaults(**{actions[name].dest: _value(actions[name], value)})
        except argparse.ArgumentTypeError as error:
            end = "" if str(error).endswith("?") else "."
            raise InvalidInput(f"{source}: {name} {error}{end}") from None


def by_name(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """The options that a file may hold."""
    names = {
        (action.option_strings[-1].lstrip("-") if action.option_strings else action.dest): action
        for action in parser._actions
    }
    return {name: action for name, action in names.items() if name not in OF_THE_CALL}


def as_values(parser: argparse.ArgumentParser, args: argparse.Namespace) -> dict[str, Any]:
    """The options of a call as `set_defaults` takes them and JSON can hold them."""
    values = {name: getattr(args, action.dest) for name, action in by_name(parser).items()}
    plain = {name: _plain(value) for name, value in values.items() if value is not None and value != []}
    if values.get("time-limit", 0.0) is None:
        plain["time-limit"] = "none"
    return plain


def _known(actions: Mapping[str, argparse.Action]) -> str:
    return f"it may have {', '.join(actions)}."


def _value(action: argparse.Action, value: Any) -> Any:
    if isinstance(action, argparse._AppendAction):
        if not isinstance(value, Mapping):
            raise argparse.ArgumentTypeError("must be a table of names and values")
        return list(value.items())
    if isinstance(value, (bool, Mapping)):
        raise argparse.ArgumentTypeError(f"must be a value as on the command line, not {value!r}")
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    if action.choices is not None and text not in action.choices:
        raise argparse.ArgumentTypeError(
            f"must be one of {', '.join(action.choices)}, not {text!r}{closest(text, [*action.choices])}"
        )
    return action.type(text) if callable(action.type) else text


def _plain(value: Any) -> Any:
    """As JSON has it, which knows neither tuples nor infinity."""
    if isinstance(value, dict):
        return [_plain(one) for one in value.values()]
    if isinstance(value, list):
        return {name: _plain(one) for name, one in value}
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
