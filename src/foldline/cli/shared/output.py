"""What commands print: a console that has colour only on a terminal, and nothing in it that a terminal would obey."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table

    from foldline.fold import Digest, Fold
    from foldline.message import Message


PATIENCE_SECONDS = 2.0
"""Whatever takes longer shows how far it is."""

EMPTY = "none"
"""What a digest says under a heading that has nothing."""


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


@contextmanager
def progress(total: int, what: str) -> Iterator[Callable[[], None]]:
    """A bar on the terminal, once it takes long enough to wonder; what is given is called after each of `total`."""
    out = console(err=True)
    began, done = time.monotonic(), 0
    bar: Progress | None = None

    def tick() -> None:
        nonlocal bar, done
        done += 1
        if bar is None and out.is_terminal and time.monotonic() - began > PATIENCE_SECONDS and done < total:
            from rich.progress import Progress  # noqa: PLC0415  # only where it is seen

            bar = Progress(console=out, transient=True)
            bar.add_task(what, total=total)
            bar.start()
        if bar is not None:
            bar.update(bar.task_ids[0], completed=done)

    try:
        yield tick
    finally:
        if bar is not None:
            bar.stop()


@contextmanager
def busy(what: str) -> Iterator[None]:
    """A sign on the terminal that something is done."""
    out = console(err=True)
    if not out.is_terminal:
        yield
        return
    with out.status(what):
        yield


def print_json(value: Any) -> None:
    """One JSON value on one line, in ASCII, so that every pipe can carry it."""
    click.echo(json.dumps(value, ensure_ascii=True))


def safe(text: str) -> str:
    """A text on one line without anything that a terminal would obey."""
    return "".join(char if char.isprintable() else "�" for char in text)


def lines_of(text: str) -> list[str]:
    """The lines of a text, tabs as spaces, without anything that a terminal would obey."""
    return [safe(line.expandtabs(4)) for line in text.splitlines()]


def digest_lines(text: str) -> list[str]:
    """A digest's lines from its first section on, without the sections that have nothing."""
    lines = lines_of(text)
    start = next((place for place, line in enumerate(lines) if line.startswith("# ")), 0)
    kept: list[str] = []
    for line in lines[start:]:
        if line == EMPTY and kept:
            kept.pop()
        elif line != EMPTY:
            kept.append(line)
    return kept


def first_words(message: Message, chars: int) -> str:
    """The first words of a message on one line."""
    calls = (f"{call.name} {call.arguments}" for call in message.calls)
    texts = [message.text, *(result.text for result in message.results), *calls]
    words = next((text for text in texts if text.strip()), "")[: chars * 4]
    plain = "".join(char if char.isprintable() else " " for char in words)
    return " ".join(plain.split())[:chars]


def when(at: float) -> str:
    """A time as a clock on the wall shows it here."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


def counted(number: int, what: str) -> str:
    """A number of things.

    >>> counted(1, "session"), counted(1200, "session")
    ('1 session', '1,200 sessions')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def digest_row(fold: Fold, digest: Digest) -> dict[str, Any]:
    """What stands for the folded part, as data: who wrote it, its size, what it kept and what only recall has."""
    loss = digest.loss
    return {
        "by": digest.by,
        "cause": digest.cause,
        "tokens": fold.digest_tokens,
        "facts": loss.facts if loss else None,
        "kept": loss.kept if loss else None,
        "missing": list(loss.missing) if loss else [],
        "unsourced": list(loss.unsourced) if loss else [],
    }
