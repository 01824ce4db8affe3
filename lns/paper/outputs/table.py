"""A table that can be written as Markdown and as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lns.report import html


@dataclass(frozen=True)
class Table:
    """Rows of texts under a head; cells between ** are bold."""

    caption: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]

    def markdown(self) -> str:
        """As GitHub and others show it."""
        lines = [self.head, tuple("---" for _ in self.head), *self.rows]
        return "\n".join("| " + " | ".join(one.replace("|", "\\|") for one in line) + " |" for line in lines)

    def html(self) -> str:
        """As the report page has its tables."""
        return html.table(self.caption, self.head, [[_bold(one) for one in row] for row in self.rows])


def _bold(words: str) -> str:
    if words.startswith("**") and words.endswith("**") and len(words) > 4:
        return html.Raw(f"<strong>{html.text(words[2:-2])}</strong>")
    return words
