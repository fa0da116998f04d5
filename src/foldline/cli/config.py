"""`foldline config`: show the effective settings and their sources."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from foldline.cli.shared import options
from foldline.cli.shared.ledger_choice import LedgerLocation
from foldline.cli.shared.output import line_printer, print_json
from foldline.cli.shared.settings import KEYS, PROJECT_FILE, Settings, user_file
from foldline.policy import Rule, format_value


@click.command()
@options.policy_options
@click.option("--all", "everything", is_flag=True, help="Also show knobs that have their default value.")
@options.output_options("Print one JSON object with every value and its source.")
def config(settings: Settings, everything: bool, as_json: bool) -> None:
    r"""Show the effective settings and policy, and where each value comes from.

    \b
    Example:  foldline config
              foldline config --policy thrifty --window 100000 --all
    """
    if as_json:
        print_json(report(settings))
    else:
        _print(settings, everything)


def report(found: Settings) -> dict[str, Any]:
    """The effective settings and knobs as JSON."""
    knobs = {knob.name: getattr(found.policy, knob.name) for knob in fields(found.policy)}
    return {
        "files": [str(path) for path in found.files],
        "settings": {name: _row(_setting_text(name, value), name, found) for name, value in found.values.items()},
        "preset": found.name,
        "policy": {name: _row(_plain(value), name, found) for name, value in knobs.items()},
    }


def _row(value: Any, name: str, found: Settings) -> dict[str, Any]:
    return {"value": value, "source": found.sources.get(name, "default")}


def _setting_text(name: str, value: str) -> str:
    """A setting's value as text. In the address of a ledger, the password is left out."""
    return str(LedgerLocation(url=value)) if name == "ledger" else value


def _plain(value: Any) -> Any:
    """A knob's value as JSON; a rule becomes its text."""
    return [str(item) if isinstance(item, Rule) else item for item in value] if isinstance(value, tuple) else value


def _print(found: Settings, everything: bool) -> None:
    echo = line_printer()
    user = user_file(os.environ) or Path("~/.config/foldline/config.toml")
    read = ", ".join(map(_short, found.files)) or f"none (looked for {PROJECT_FILE} here and {_short(user)})"
    echo(f"files read: {read}")
    for name, value in found.values.items():
        text = (
            f"{_setting_text(name, value)} ({_short_source(found.sources[name])})"
            if value
            else f"not set. {KEYS[name]}."
        )
        echo(f"{name}: {text}")
    echo(f"policy {found.name}")
    names = [knob.name for knob in fields(found.policy)]
    shown = [name for name in names if everything or name in found.sources]
    width = max(map(len, shown), default=0)
    for name in shown:
        value, source = getattr(found.policy, name), found.sources.get(name, "default")
        echo(f"  {name:<{width}}  {format_value(value)}  [{_short_source(source)}]")
    if not everything:
        echo(f"  {len(names) - len(shown)} other knobs have their default; show them with --all")


def _short_source(source: str) -> str:
    return _short(Path(source)) if Path(source).is_absolute() else source


def _short(path: Path) -> str:
    """A path as text. If it lies in the working folder or the home folder, it is relative to that folder."""
    for start, mark in ((Path.cwd(), ""), (Path(os.environ.get("HOME") or ""), "~/")):
        if start.is_absolute() and start != Path("/") and path.is_relative_to(start):
            return mark + str(path.relative_to(start))
    return str(path)
