"""Console output: colour only on a terminal, secrets and control characters replaced, JSON on one line."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.segment import Segment
    from rich.table import Table
    from rich.text import Text

    from foldline.fold import Digest, Fold
    from foldline.message import Message


PROGRESS_AFTER_SECONDS = 2.0
"""A progress bar appears after this number of seconds."""

EMPTY = "none"
"""The text of a digest section that has no entries."""


def console(*, err: bool = False) -> Console:
    """A rich console without markup and highlighting. Colour is used only on a terminal, and not with `--no-color`."""
    from rich.console import Console  # noqa: PLC0415  # slow to import

    context = click.get_current_context(silent=True)
    plain = context is not None and context.color is False
    return Console(highlight=False, markup=False, emoji=False, stderr=err, no_color=plain or None)


def line_printer(*, err: bool = False, out: Console | None = None) -> Callable[..., None]:
    """A function that prints a line or a table on a console, without secrets.

    On a terminal, long lines are wrapped between words. Each new line gets the indentation of the first line. In a file
    or a pipe, lines are not wrapped. The lines of a table have no blanks at their ends.
    """
    target = out or console(err=err)
    write = partial(target.print, soft_wrap=not target.is_terminal)

    def echo(line: Any = "", **style: Any) -> None:
        if isinstance(line, str):
            text = without_secrets(line)
            for part in _indented_lines(text, target.width) if target.is_terminal else (text,):
                write(part, **style)
            return
        for cells in target.render_lines(line, pad=False):
            write(_text_of(cells), soft_wrap=True)

    return echo


def _indented_lines(text: str, width: int) -> list[str]:
    """The lines of an indented text, wrapped between words. Each line gets the indentation of the first line."""
    from rich.cells import cell_len  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    indent = len(text) - len(text.lstrip(" "))
    if not 0 < indent < width // 2 or cell_len(text) <= width or "\n" in text:
        return [text]
    lines = Text(text[indent:]).wrap(Console(width=width), width - indent)
    return [" " * indent + line.plain.rstrip() for line in lines] or [text]


def _text_of(cells: list[Segment]) -> Text:
    """A line of a rendered table, without blanks at its end."""
    from rich.text import Text  # noqa: PLC0415

    text = Text()
    for cell in cells:
        text.append(cell.text, cell.style)
    text.rstrip()
    return text


@contextmanager
def pager(*, is_wanted: bool) -> Iterator[Console]:
    """A console. If `is_wanted` is True and the output is a terminal, the console writes to the user's pager."""
    out = console()
    if is_wanted and out.is_terminal:
        with out.pager(styles=not out.no_color):
            yield out
    else:
        yield out


def margin_note(reason: str) -> str:
    """A note that explains the words "it may be" in the reason for a fold; "" if `reason` does not contain them."""
    if "(it may be " not in reason:
        return ""
    return '"it may be" is the estimate plus its largest known error: a request must fit even at that size'


def with_option_names(text: str) -> str:
    """An error text of the library, with option names in place of argument names."""
    from foldline.plan.remedy import FOLDING_POLICY  # noqa: PLC0415  # only for an error

    text = text.replace("format=…", "--format").replace("raise window_tokens to", "raise --window to")
    return text.replace(FOLDING_POLICY, "--policy balanced")


def without_secrets(value: Any) -> Any:
    """The value with all secrets in its texts redacted. The value may contain dicts, lists and tuples."""
    from foldline.redact.redact import redact  # noqa: PLC0415  # slow to import

    match value:
        case str() if "\\" in value and '{"' in value:
            return redact("\n".join([_without_secrets_in_json(line) for line in value.split("\n")]))
        case str():
            return redact(value)
        case dict():
            return {name: without_secrets(item) for name, item in value.items()}
        case list() | tuple():
            return [without_secrets(item) for item in value]
    return value


def _without_secrets_in_json(line: str) -> str:
    r"""The line, with secrets redacted in its JSON object, for example in the arguments of `Bash {"command": …}`.

    An escape such as `\n` can hide a secret from a search in the line itself. So the JSON is parsed first. A line
    without a backslash is returned unchanged.
    """
    from foldline.redact.redact import clean_arguments  # noqa: PLC0415  # slow to import

    start, end = line.find('{"'), line.rfind("}") + 1
    if "\\" not in line or not 0 <= start < end:
        return line
    return line[:start] + clean_arguments(line[start:end]) + line[end:]


def table(names: str | tuple[str, ...], *numbers: str) -> Table:
    """A table without borders.

    The table has one or more left-aligned columns, right-aligned columns for figures, and a last column for a bar.
    """
    from rich.table import Table  # noqa: PLC0415

    grid = Table(box=None, pad_edge=False)
    for name in (names,) if isinstance(names, str) else names:
        grid.add_column(name)
    for title in numbers:
        grid.add_column(title, justify="right", no_wrap=True)
    grid.add_column("")
    return grid


@contextmanager
def progress(total: int, what: str) -> Iterator[Callable[[], None]]:
    """Show a progress bar on a terminal if the work takes long. Yields a function to call after each item."""
    out = console(err=True)
    if not (total and out.is_terminal):
        yield lambda: None
        return
    from rich.progress import Progress  # noqa: PLC0415  # only on a terminal

    bar = Progress(console=out, transient=True)
    task = bar.add_task(what, total=total)
    timer = threading.Timer(PROGRESS_AFTER_SECONDS, bar.start)  # the first item may take long
    timer.daemon = True
    timer.start()
    try:
        yield lambda: bar.advance(task)
    finally:
        timer.cancel()
        timer.join()
        if bar.live.is_started:
            bar.stop()


@contextmanager
def spinner(what: str) -> Iterator[None]:
    """Show a spinner with a text on a terminal while the block runs."""
    out = console(err=True)
    if not out.is_terminal:
        yield
        return
    with out.status(what):
        yield


def print_json(value: Any) -> None:
    """Print a value as one line of ASCII JSON, without secrets."""
    click.echo(json.dumps(without_secrets(value), ensure_ascii=True))


def printable(text: str) -> str:
    """The text with every control and line-break character replaced by �."""
    return "".join(char if char.isprintable() else "�" for char in text)


def printable_lines(text: str) -> list[str]:
    """The lines of a text, without secrets, escape sequences, tabs and control characters."""
    from foldline.redact.escapes import strip_escapes  # noqa: PLC0415

    return [printable(line.expandtabs(4)) for line in strip_escapes(without_secrets(text)).splitlines()]


def digest_lines(text: str) -> list[str]:
    """The lines of a digest, starting at its first section. Empty sections are left out."""
    lines = printable_lines(text)
    start = next((place for place, line in enumerate(lines) if line.startswith("# ")), 0)
    kept: list[str] = []
    for line in lines[start:]:
        if line == EMPTY and kept:
            kept.pop()
        elif line != EMPTY:
            kept.append(line)
    return kept


def first_words(message: Message, chars: int) -> str:
    """The first words of a message on one line. A message without words is shown as the kinds of its parts."""
    from foldline.redact.redact import clean_arguments  # noqa: PLC0415  # slow to import

    texts = [message.text, *(result.text for result in message.results)]
    words = without_secrets(next((text.lstrip() for text in texts if text.strip()), "")[: chars * 4])
    if not words and message.calls:
        words = f"{message.calls[0].name} {clean_arguments(message.calls[0].arguments)}"
    plain = "".join(char if char.isprintable() else " " for char in words)
    return shorten(" ".join(plain.split()) or _part_kinds(message), chars)


def _part_kinds(message: Message) -> str:
    """The kinds of the parts of a message in brackets: "(thinking)", "(empty)".

    The names are those of the classes in `foldline.message`.
    """
    kinds = dict.fromkeys(type(part).__name__.lower() for part in message.parts)
    return f"({', '.join(kind for kind in kinds if kind != 'text') or 'empty'})"


def shorten(text: str, chars: int) -> str:
    """A text with at most this many characters. If it was cut, it ends with "…".

    >>> shorten("the port is 4711", 9), shorten("the port", 9)
    ('the port…', 'the port')
    """
    return text if len(text) <= chars else f"{text[: chars - 1].rstrip()}…"


def local_time(at: float) -> str:
    """A time in the local time zone, to the minute."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


def plural(number: int, what: str) -> str:
    """A number and its noun. The noun is in the plural unless the number is 1.

    >>> plural(1, "session"), plural(1200, "session")
    ('1 session', '1,200 sessions')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def digest_row(fold: Fold, digest: Digest) -> dict[str, Any]:
    """A digest as JSON: its writer, size, kept facts and missing facts."""
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
