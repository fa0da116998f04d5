"""`foldline usage`: tokens and money by day, project, model or session, from the logs of agents and from ledgers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import click

from foldline.cli.shared import options
from foldline.cli.shared.files import expand_paths
from foldline.cli.shared.ledger_choice import LedgerLocation, open_stores
from foldline.cli.shared.output import (
    console,
    line_printer,
    plural,
    print_json,
    printable,
    progress,
    table,
    with_option_names,
)
from foldline.cli.shared.usage_rows import DEFAULT_FOLDERS, GROUPS, UsageReader, UsageTotal, usage_totals
from foldline.errors import InputError
from foldline.measure.estimator import format_tokens
from foldline.text_lines import no_such_file

_NAME_CHARS = 28
"""The most characters of a project's or session's name in a narrow table. A wide table has room for more."""
_FIGURE_CHARS = 69
"""The width of the columns with figures."""


@click.command()
@click.argument("paths", nargs=-1, type=click.Path())
@click.option("--by", multiple=True, type=click.Choice(list(GROUPS)), help="Group by this. Repeatable. Default: day.")
@click.option("--since", metavar="DATE", help="Leave out requests before this day (YYYY-MM-DD).")
@click.option("--ledger", metavar="FILE|URL", help="Also read this ledger, with all owners.")
@options.format_option
@options.output_options("Print one JSON object with every group.")
def usage(paths: tuple[str, ...], by: tuple[str, ...], since: str | None, as_json: bool, **flags: Any) -> None:
    r"""Show tokens and money by day, project, model or session.

    Reads the session files of Claude Code, Codex and pi in your home folder. If you name files or folders, these are
    read instead, in any format that reports usage. A session is listed by the id in its file, or by its name in the
    ledger. A session that is in a file and in the ledger is counted once, from the file. Prices are those of
    foldline's model table.

    \b
    Example:  foldline usage
              foldline usage --by project --by model --since 2026-11-01
              foldline usage ~/.claude/projects --by session --json
    """
    groups, first = by or ("day",), _parse_day(since)
    reader, ledger = UsageReader(flags["format"]), flags["ledger"]
    files = _files(paths) if paths else _files_of_agents(is_optional=bool(ledger))
    with progress(len(files), "reading") as tick:
        for path in files:
            reader.read_file(path)
            tick()
    if ledger:
        with open_stores(LedgerLocation(url=ledger, source="flag"), all_owners=True) as stores:
            for store in stores:
                reader.read_ledger(store)
    if paths and not reader.rows and reader.unreadable:
        raise InputError(with_option_names(reader.unreadable[0]))
    rows = reader.rows
    totals, overall, unpriced = usage_totals(rows, groups, first)
    if as_json:
        listed = [dict(zip(groups, key, strict=True)) | total.as_json() for key, total in totals.items()]
        report = {"by": list(groups), "groups": listed, "total": overall.as_json(), "without_price": unpriced}
        print_json(report | ({"in_files": reader.in_logs} if ledger else {}))
        return
    _print(groups, totals, overall)
    echo = line_printer()
    echo("\nmissed: tokens of the previous request that were in the prompt cache, but were paid again")
    if reader.in_logs:
        echo(f"counted from their files only: {plural(reader.in_logs, 'session')} of the ledger")
    if reader.unreported:
        echo(f"not counted as requests: {reader.unreported:,} replies without a reported usage")
    if unpriced:
        echo(f"without a price, so not in the cost: {', '.join(map(printable, unpriced))}")
    if reader.unreadable:
        echo(f"left out because it cannot be read: {with_option_names(printable(reader.unreadable[0]))}")
        if len(reader.unreadable) > 1:
            echo(f"and {plural(len(reader.unreadable) - 1, 'more file')}")


def _files(paths: Sequence[str]) -> list[str]:
    """The given files, and the session files in the given folders."""
    named, found = expand_paths(paths)
    for path in named:
        if not Path(path).exists():
            raise no_such_file(path)
    if not (named or found):
        raise InputError(f"no session file in {', '.join(paths)}", hint="name another file or folder")
    return [*named, *found]


def _files_of_agents(*, is_optional: bool) -> list[str]:
    """The session files in the folders in which agents keep them.

    Raises an error if there is none, unless `is_optional`.
    """
    _, found = expand_paths([str(Path.home() / name) for name in DEFAULT_FOLDERS if (Path.home() / name).is_dir()])
    if not found and not is_optional:
        places = ", ".join(f"~/{name}" for name in DEFAULT_FOLDERS)
        raise InputError(f"no session files in {places}", hint="name files or folders: foldline usage FOLDER")
    return found


def _parse_day(text: str | None) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise InputError(f"not a day: {text!r}", hint="write it as 2026-11-01") from None


def _print(groups: tuple[str, ...], totals: dict[tuple[str, ...], UsageTotal], overall: UsageTotal) -> None:
    shown = table(groups, "requests", "input", "read", "written", "output", "cost", "missed")
    most = max(_NAME_CHARS, (console().width - _FIGURE_CHARS) // len(groups))
    rows = [(tuple(_short(name, most) for name in key), total) for key, total in totals.items()]
    last = ("total", *[""] * (len(groups) - 1))
    for names, total in [*rows, (last, overall)] if len(rows) != 1 else rows:
        figures = (total.input, total.cache_read, total.cache_write, total.output)
        missed = f"{format_tokens(total.missed, True)} ${total.miss_cost:,.2f}" if total.missed else "-"
        shown.add_row(
            *names,
            f"{total.requests:,}",
            *(format_tokens(figure, True) for figure in figures),
            "-" if total.unpriced == total.requests > 0 else f"${total.cost:,.2f}",
            missed,
        )
    for column in shown.columns[: len(groups)]:
        column.overflow = "fold"  # names that are cut may look the same
    line_printer()(shown, soft_wrap=False)


def _short(name: str, most: int) -> str:
    """A name, shortened to `most` characters. A path is cut at its beginning, any other name at its end."""
    name = printable(name)
    if len(name) <= most:
        return name
    return f"…{name[-most + 1 :]}" if "/" in name else f"{name[: most - 1]}…"
