"""`foldline install`: hooks and status line in the settings of an agent, shown before they are written."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from foldline.cli.shared.output import print_json, printable_lines
from foldline.watch.installer import TARGETS, SettingsChange, plan_change, settings_path


@click.command()
@click.argument("agent", type=click.Choice(list(TARGETS)))
@click.option("--user", "where", flag_value="user", default="user", help="In your own settings (the default).")
@click.option("--project", "where", flag_value="project", help="In the settings of this folder.")
@click.option("--uninstall", is_flag=True, help="Take foldline's entries out again.")
@click.option("--dry-run", is_flag=True, help="Show the change and write nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="The change as one JSON object; writes only with --yes.")
def install(agent: str, *, where: str, uninstall: bool, dry_run: bool, **how: bool) -> None:
    r"""Put foldline's hooks and status line into an agent's settings, or take them out.

    The change is shown first. What is there already stays as it is, to the last byte.

    \b
    Example:  foldline install claude-code
              foldline install claude-code --project --dry-run
              foldline install codex --uninstall
    """
    target = TARGETS[agent]
    path = settings_path(target, project=Path.cwd() if where == "project" else None)
    change = plan_change(target, path, remove=uninstall)
    if how["as_json"]:
        writes = bool(change.diff) and how["yes"] and not dry_run
        if writes:
            change.apply()
        print_json({"file": str(path), "diff": change.diff, "remarks": change.remarks, "written": writes})
        return
    for remark in change.remarks:
        click.echo(f"note: {remark}", err=True)
    if not change.diff:
        click.echo(f"{path}: nothing to {'remove' if uninstall else 'change'}", err=True)
        return
    _show(change)
    if dry_run:
        return
    change.check()
    if not how["yes"] and not _agreed():
        raise click.Abort
    change.apply()
    done = f"removed from {target.name}" if uninstall else f"installed; {target.name} uses it from its next session on"
    click.echo(f"{path}: {done}", err=True)


def _show(change: SettingsChange) -> None:
    """Print the change: as it is for a program, and without what a terminal would obey for a person."""
    on_terminal = sys.stdout is not None and sys.stdout.isatty()
    click.echo("".join(f"{line}\n" for line in printable_lines(change.diff)) if on_terminal else change.diff, nl=False)


def _agreed() -> bool:
    """Ask, where there is somebody to ask."""
    if None in (sys.stdin, sys.stdout, sys.stderr):
        raise click.UsageError("nobody can be asked here: --yes writes without asking")
    return click.confirm("Write this?", default=True, err=True)
