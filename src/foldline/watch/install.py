"""foldline's entries in another program's settings: put in, shown before, taken out again, and nothing else touched.

What is ours is told by the command it runs, so that no marker has to be left in a stranger's file and an entry that was
moved or edited is still found. A status line that is there already belongs to its user and stays.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shlex
import shutil
import sys
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foldline.errors import ConfigError
from foldline.watch.files import write_whole
from foldline.watch.hooks import EVENTS

TIMEOUT_SECONDS = 30
_OURS = re.compile(r"(?:^|[/\\\s\"'])foldline(?:\.exe|\.cli)?[\"']?\s+(hook|statusline)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A program that has hooks: where its settings are and what of ours they take."""

    name: str
    folder: str
    home: str
    """The environment variable that moves its folder in the user's home."""
    file: str
    status_line: bool
    remark: str = ""
    """What else the user has to do."""


TARGETS = {
    "claude-code": Target(
        name="Claude Code", folder=".claude", home="CLAUDE_CONFIG_DIR", file="settings.json", status_line=True
    ),
    "codex": Target(
        name="Codex",
        folder=".codex",
        home="CODEX_HOME",
        file="hooks.json",
        status_line=False,
        remark="Codex asks once whether it may run these hooks; older versions need [features] codex_hooks = true.",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A change of a settings file: what it is now, what it will be, and what stayed for a reason."""

    path: Path
    before: str
    after: str
    remarks: tuple[str, ...] = ()

    @property
    def diff(self) -> str:
        """The change as a unified diff; "" when there is none."""
        name = str(self.path)
        lines = difflib.unified_diff(
            self.before.splitlines(keepends=True), self.after.splitlines(keepends=True), name, name
        )
        return "".join(line if line.endswith("\n") else line + "\n" for line in lines)

    def apply(self) -> None:
        """Write it."""
        write_whole(self.path, self.after.encode())


def place(target: Target, *, project: Path | None) -> Path:
    """The settings file: a project's, or the user's own."""
    if project is not None:
        return project / target.folder / target.file
    moved = os.environ.get(target.home)
    return (Path(moved) if moved else Path.home() / target.folder) / target.file


def command() -> str:
    """How these programs start foldline: by the script next to this Python, wherever they are started from."""
    script = Path(sys.executable).with_name("foldline")
    found = str(script) if script.exists() else shutil.which("foldline")
    return shlex.quote(found) if found else f"{shlex.quote(sys.executable)} -m foldline.cli"


def plan(target: Target, path: Path, *, remove: bool = False, start: str | None = None) -> Plan:
    """What installing or removing would change."""
    before = _read(path)
    settings = _parse(path, before)
    after, remarks = deepcopy(settings), [target.remark] if target.remark and not remove else []
    _take_out(after)
    if not remove:
        _put_in(after, target, start or command(), remarks)
    if after == settings:
        return Plan(path=path, before=before, after=before, remarks=tuple(remarks))
    text = json.dumps(after, indent=_indent(before), ensure_ascii=False) + "\n"
    return Plan(path=path, before=before, after=text, remarks=tuple(remarks))


def _put_in(settings: dict[str, Any], target: Target, start: str, remarks: list[str]) -> None:
    hooks = settings.setdefault("hooks", {})
    entry = {"hooks": [{"type": "command", "command": f"{start} hook", "timeout": TIMEOUT_SECONDS}]}
    for event in EVENTS:
        hooks.setdefault(event, []).append(deepcopy(entry))
    if target.status_line:
        if "statusLine" in settings:
            remarks.append("the status line that is there stays; remove it and install again to have foldline's")
        else:
            settings["statusLine"] = {"type": "command", "command": f"{start} statusline"}


def _take_out(settings: dict[str, Any]) -> None:
    """Remove what is ours, and what is empty because of that."""
    hooks = settings.get("hooks", {})
    for event, groups in list(hooks.items()):
        kept = [one for one in (_without(group) for group in groups) if one is not None]
        if kept != groups:
            hooks[event] = kept
            if not kept:
                del hooks[event]
                if not hooks:
                    del settings["hooks"]
    if _is_ours(settings.get("statusLine")):
        del settings["statusLine"]


def _without(group: Any) -> Any:
    """A group of hooks without ours; None when it held nothing else."""
    inner = group.get("hooks") if isinstance(group, dict) else None
    if not isinstance(inner, list):
        return group
    kept = [hook for hook in inner if not _is_ours(hook)]
    return group if len(kept) == len(inner) else {**group, "hooks": kept} if kept else None


def _is_ours(hook: Any) -> bool:
    return isinstance(hook, dict) and bool(_OURS.search(str(hook.get("command", ""))))


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error})", hint="nothing was changed") from None


def _parse(path: Path, text: str) -> dict[str, Any]:
    """The settings, in a shape that can be changed without losing anything."""
    try:
        settings = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: not JSON ({error})", hint="mend it first; nothing was changed") from None
    hooks = settings.get("hooks", {}) if isinstance(settings, dict) else None
    if not isinstance(hooks, dict) or not all(isinstance(groups, list) for groups in hooks.values()):
        raise ConfigError(f"{path}: not settings as foldline knows them", hint="mend it first; nothing was changed")
    found: dict[str, Any] = settings
    return found


def _indent(text: str) -> int | str:
    """How the file is indented; two spaces where it does not say."""
    found = re.search(r"^([ \t]+)\"", text, re.MULTILINE)
    return found[1] if found else 2
