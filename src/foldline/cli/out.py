"""What commands print: a console that has colour only on a terminal, and nothing in it that a terminal would obey."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def console(*, err: bool = False) -> Console:
    """Where a command prints: no markup from data, no guessed highlights, colour only where it is seen and wanted."""
    from rich.console import Console  # noqa: PLC0415  # a quarter of the start-up time

    context = click.get_current_context(silent=True)
    plain = context is not None and context.color is False
    return Console(highlight=False, markup=False, emoji=False, stderr=err, no_color=plain or None)


def table(name: str, *numbers: str) -> Table:
    """A plain table: names on the left, figures on the right, room for a bar."""
    from rich.table import Table  # noqa: PLC0415

    made = Table(box=None, pad_edge=False)
    made.add_column(name)
    for title in numbers:
        made.add_column(title, justify="right")
    made.add_column("")
    return made


def print_json(value: Any) -> None:
    """One JSON value on one line, in ASCII, so that every pipe can carry it."""
    click.echo(json.dumps(value, ensure_ascii=True))


def safe(text: str) -> str:
    """A text on one line without anything that a terminal would obey."""
    return "".join(char if char.isprintable() else "�" for char in text)


def counted(number: int, what: str) -> str:
    """A number of things.

    >>> counted(1, "session"), counted(1200, "session")
    ('1 session', '1,200 sessions')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"
