"""`foldline usage`: tokens and money by day, project, model or session, from the logs of agents and from ledgers."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import click

from foldline.cli.shared import options
from foldline.cli.shared.files import expand_paths
from foldline.cli.shared.ledger_choice import LedgerLocation, open_ledger
from foldline.cli.shared.output import line_printer, plural, print_json, printable, progress, table
from foldline.cli.shared.usage_rows import DEFAULT_FOLDERS, GROUPS, UsageReader, UsageTotal, usage_totals
from foldline.errors import InputError
from foldline.measure.estimator import format_tokens

_NAME_CHARS = 28
"""The most characters of a project's or session's name in the table."""
_MISSED = (
    "missed: tokens that were in the prompt cache at the request before, that the next request paid again, "
    "and what this cost more than reading the cache."
)


@click.command()
@click.argument("paths", nargs=-1, type=click.Path())
@click.option("--by", multiple=True, type=click.Choice(list(GROUPS)), help="Group by this. Repeatable. Default: day.")
@click.option("--since", metavar="DATE", help="Leave out requests before this day (YYYY-MM-DD).")
@click.option("--ledger", metavar="FILE|URL", help="Also read the sessions of this ledger.")
@options.output_options("Print one JSON object with every group.")
def usage(paths: tuple[str, ...], by: tuple[str, ...], since: str | None, ledger: str | None, as_json: bool) -> None:
    r"""Show tokens and money by day, project, model or session.

    Reads the session files of Claude Code, Codex and pi in your home folder, or the files and folders that you name.
    Prices are those of foldline's model table.

    \b
    Example:  foldline usage
              foldline usage --by project --by model --since 2026-11-01
              foldline usage ~/.claude/projects --by session --json
    """
    groups, first = by or ("day",), _parse_day(since)
    reader = UsageReader()
    named, found = expand_paths(paths or (() if ledger else _default_folders()))
    for path in named:
        if not Path(path).exists():
            raise InputError(f"{path}: no such file or folder")
    with progress(len(named) + len(found), "reading") as tick:
        for path in (*named, *found):
            reader.read_file(path)
            tick()
    if ledger:
        with open_ledger(LedgerLocation(url=ledger, source="flag")) as opened:
            reader.read_ledger(opened.store)
    rows = reader.rows
    totals, overall, unpriced = usage_totals(rows, groups, first)
    if as_json:
        listed = [dict(zip(groups, key, strict=True)) | total.as_json() for key, total in totals.items()]
        print_json({"by": list(groups), "groups": listed, "total": overall.as_json(), "without_price": unpriced})
        return
    _print(groups, totals, overall)
    echo = line_printer()
    echo(
        "\nmissed: tokens that the request before had in the prompt cache and that were paid again, and what that cost"
    )
    if unpriced:
        echo(f"without a price, so not in the cost: {', '.join(map(printable, unpriced))}")
    if reader.unreadable:
        echo(f"left out because it cannot be read: {printable(reader.unreadable[0])}")
        if len(reader.unreadable) > 1:
            echo(f"and {plural(len(reader.unreadable) - 1, 'more file')}")


def _default_folders() -> list[str]:
    folders = [str(Path.home() / name) for name in DEFAULT_FOLDERS if (Path.home() / name).is_dir()]
    if not folders:
        places = ", ".join(f"~/{name}" for name in DEFAULT_FOLDERS)
        raise InputError(f"no session files in {places}", hint="name files or folders: foldline usage FOLDER")
    return folders


def _parse_day(text: str | None) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise InputError(f"not a day: {text!r}", hint="write it as 2026-11-01") from None


def _print(groups: tuple[str, ...], totals: dict[tuple[str, ...], UsageTotal], overall: UsageTotal) -> None:
    shown = table(" / ".join(groups), "requests", "input", "read", "written", "output", "cost", "missed")
    rows = [(" / ".join(_short(name) for name in key), total) for key, total in totals.items()]
    for name, total in [*rows, ("total", overall)] if len(rows) != 1 else rows:
        figures = (total.input, total.cache_read, total.cache_write, total.output)
        missed = f"{format_tokens(total.missed, True)} ${total.miss_cost:,.2f}" if total.missed else "-"
        shown.add_row(
            name,
            f"{total.requests:,}",
            *(format_tokens(figure, True) for figure in figures),
            f"${total.cost:,.2f}",
            missed,
        )
    line_printer()(shown, soft_wrap=False)


def _short(name: str) -> str:
    """A name, shortened to the width of the column. A path is cut at its beginning, any other name at its end."""
    name = printable(name)
    if len(name) <= _NAME_CHARS:
        return name
    return f"…{name[-_NAME_CHARS + 1 :]}" if "/" in name else f"{name[: _NAME_CHARS - 1]}…"
