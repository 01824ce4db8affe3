"""Pieces of the page: text made safe, tables, cards, sections."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def text(value: object) -> str:
    """Anything as text for HTML."""
    return escape(str(value))


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[object]], kind: str = "") -> str:
    """A table; columns whose cells are not text are set to the right by the style."""
    headings = "".join(f'<th scope="col">{text(one)}</th>' for one in head)
    body = "".join(
        "<tr>"
        + "".join(f"<td>{cell if isinstance(cell, Raw) else text(cell)}</td>" for cell in row)
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{text(caption)}">'
        f'<table class="{kind}"><caption class="unseen">{text(caption)}</caption>'
        f"<thead><tr>{headings}</tr></thead><tbody>{body}</tbody></table></div>"
    )


class Raw(str):
    """HTML, not text."""

    __slots__ = ()


def details(summary: str, content: str) -> str:
    """Something to unfold."""
    return f"<details><summary>{text(summary)}</summary>{content}</details>"


def figure(title: str, words: str, *content: str, wide: bool = False) -> str:
    """A card with a chart and what belongs to it; `words` say what it shows."""
    return (
        f'<figure class="card{" wide" if wide else ""}"><figcaption><h3>{text(title)}</h3>'
        f"<p>{text(words)}</p></figcaption>{''.join(content)}</figure>"
    )


def legend(entries: Iterable[tuple[str, str]]) -> str:
    """Names of colours."""
    items = "".join(f'<li><i class="key {colour}"></i>{text(name)}</li>' for colour, name in entries)
    return f'<ul class="legend">{items}</ul>'


def section(key: str, title: str, words: str, cards: str, *, loose: bool = False) -> str:
    """A part of the page with its cards; `loose` ones are as high as they need to be."""
    return (
        f'<section id="{key}" aria-labelledby="{key}-h"><h2 id="{key}-h">{text(title)}</h2>'
        f'<p>{text(words)}</p><div class="cards{" loose" if loose else ""}">{cards}</div></section>'
    )
