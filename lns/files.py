"""Writing files so that a reader finds the old one or the new one, never half of one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def write_text(path: Path, text: str) -> None:
    """Write a file in one step."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8")
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def write_json(path: Path, content: Any) -> None:
    """Write plain values as JSON in one step; infinities are errors."""
    write_text(path, json.dumps(content, allow_nan=False, ensure_ascii=False, indent=1) + "\n")
