"""`foldline install`: adds hooks and a status line to an agent's settings, after showing the change."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from foldline.cli.shared.output import print_json, printable_lines
from foldline.watch.installer import TARGETS, SettingsChange, plan_change, settings_path


@click.command()
@click.argument("agent", type=click.Choice(list(TARGETS)))
@click.option("--user", "where", flag_value="user", default="user", help="Change your own settings (the default).")
@click.option("--project", "where", flag_value="project", help="Change the settings of this folder.")
@click.option("--uninstall", is_flag=True, help="Remove foldline's entries.")
@click.option("--dry-run", is_flag=True, help="Show the change and write nothing.")
@click.option("--yes", "-y", is_flag=True, help="Write without asking.")
@click.option("--json", "as_json", is_flag=True, help="Print the change as JSON; write it only with --yes.")
def install(agent: str, *, where: str, uninstall: bool, dry_run: bool, **how: bool) -> None:
    r"""Add foldline's hooks and status line to an agent's settings, or remove them.

    The change is shown before it is written. Nothing else in the file changes, not even its formatting.

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
    if not how["yes"] and not _confirm():
        raise click.Abort
    change.apply()
    result = (
        f"removed from {target.name}" if uninstall else f"installed; {target.name} uses it from its next session on"
    )
    click.echo(f"{path}: {result}", err=True)


def _show(change: SettingsChange) -> None:
    """Print the change. On a terminal, control characters are replaced."""
    on_terminal = sys.stdout is not None and sys.stdout.isatty()
    click.echo("".join(f"{line}\n" for line in printable_lines(change.diff)) if on_terminal else change.diff, nl=False)


def _confirm() -> bool:
    """Ask the user whether to write the change. Raises a usage error if a standard stream is closed."""
    if None in (sys.stdin, sys.stdout, sys.stderr):
        raise click.UsageError(
            "cannot ask for confirmation, because a standard stream is closed: use --yes to write without asking"
        )
    return click.confirm("Write this?", default=True, err=True)
