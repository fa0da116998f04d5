"""Adds foldline's hooks and status line to an agent's settings file, or removes them. The rest of the file stays
unchanged.

An entry belongs to foldline if its command is exactly a command that this module writes. The place of the entry in the
file does not matter, and its command may name any installation of foldline. A user's own command is kept, even if it
calls foldline. A user's own status line is also kept. A file is not written if it is read-only, or if it was changed
after the user saw the planned change.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shlex
import shutil
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from foldline.errors import ConfigError
from foldline.json_text import Slice, cut, items, member, put, root
from foldline.watch.agent_hooks import EVENTS
from foldline.watch.safe_files import write_whole

TIMEOUT_SECONDS = 30
_HOOKS, _STATUS = "hooks", "statusLine"
_STATUS_KEPT = "your own status line stays; to use foldline's status line, remove your own and install again"
_PROGRAM = re.compile(r"(?:(?:/|[A-Za-z]:[/\\])(?:.*[/\\])?)?(?:(foldline(?:\.exe)?)|(?:python|pypy)[\w.]*)", re.DOTALL)
"""Matches the foldline script or a Python interpreter, given by its name or its absolute path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookTarget:
    """An agent program with hooks: where its settings file is, and whether the program has a status line."""

    name: str
    folder: str
    home: str
    """The environment variable that names the settings folder. If the variable is not set, the folder is `folder` in
    the user's home.
    """
    file: str
    status_line: bool
    remark: str = ""
    """What the user has to do after the installation; "" if nothing is left to do."""


TARGETS = {
    "claude-code": HookTarget(
        name="Claude Code", folder=".claude", home="CLAUDE_CONFIG_DIR", file="settings.json", status_line=True
    ),
    "codex": HookTarget(
        name="Codex",
        folder=".codex",
        home="CODEX_HOME",
        file="hooks.json",
        status_line=False,
        remark="Codex asks once whether it may run these hooks; older versions need [features] codex_hooks = true.",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsChange:
    """A planned change of a settings file: the text before, the text after, and remarks for the user.

    `before` is None if there is no file before the change. `after` is None if there is no file after the change.
    """

    path: Path
    before: str | None
    after: str | None
    remarks: tuple[str, ...] = ()

    @property
    def diff(self) -> str:
        """The change as a unified diff; "" when there is none."""
        old, new = (str(self.path) if text is not None else os.devnull for text in (self.before, self.after))
        lines = difflib.unified_diff(_lines(self.before), _lines(self.after), old, new)
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)

    def check(self) -> None:
        """Raise ConfigError if the file is read-only, or if another program wrote it after the change was planned."""
        if _read(self.path) != self.before:
            raise ConfigError(
                f"{self.path}: the file was changed by another program",
                hint="nothing was written; run the command again",
            )
        if self.before is not None and not _is_writable(self.path):
            raise ConfigError(
                f"{self.path}: read-only", hint="nothing was changed; to allow changes, run chmod u+w on the file"
            )

    def apply(self) -> None:
        """Write the change."""
        self.check()
        if self.after is None:
            self.path.resolve().unlink(missing_ok=True)
        elif self.after != self.before:
            write_whole(self.path, self.after.encode())


def settings_path(target: HookTarget, *, project: Path | None) -> Path:
    """Path of the settings file in the folder `project`.

    If `project` is None, the path of the user's own settings file is returned.
    """
    if project is not None:
        return project / target.folder / target.file
    folder = os.environ.get(target.home)
    try:
        return (Path(folder) if folder else Path.home() / target.folder) / target.file
    except RuntimeError:
        raise ConfigError("the home folder is unknown", hint=f"set HOME or {target.home}") from None


def foldline_command() -> str:
    """Shell command that starts this installation of foldline from any folder."""
    script = Path(sys.executable).with_name("foldline")
    found = str(script) if script.exists() else shutil.which("foldline")
    line = shlex.quote(os.path.abspath(found)) if found else f"{shlex.quote(sys.executable)} -m foldline.cli"
    if any("\ud800" <= char <= "\udfff" for char in line):
        raise ConfigError(f"{line!r}: JSON cannot hold this path", hint="install foldline at a UTF-8 path")
    return line


def plan_change(target: HookTarget, path: Path, *, remove: bool = False, start: str | None = None) -> SettingsChange:
    """The change that adds foldline's entries to the settings file, or removes them if `remove` is true.

    `start` is the shell command that starts foldline.
    """
    before = _read(path)
    desired = _DesiredEntries(target, start or foldline_command())
    try:
        rest = _remove_entries(before) if before is not None else None
        has_own_status = rest is not None and desired.has_own_status(rest)
        if remove:
            after = rest
        elif before is not None and desired.is_complete(before):
            after = before
        else:
            after = desired.put_into(rest)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}", hint="correct the file first; nothing was changed") from None
    remarks = (target.remark, _STATUS_KEPT if has_own_status else "") if not remove else ()
    return SettingsChange(path=path, before=before, after=after, remarks=tuple(remark for remark in remarks if remark))


def is_foldline_entry(entry: Any, subcommand: str) -> bool:
    """Whether an entry's command is exactly a command that this module writes for the sub-command."""
    line = entry.get("command") if isinstance(entry, dict) and entry.get("type") == "command" else None
    if not isinstance(line, str):
        return False
    try:
        words = shlex.split(line)
    except ValueError:
        return False
    if shlex.join(words) != line or len(words) < 2 or words[-1] != subcommand:
        return False
    program = _PROGRAM.fullmatch(words[0])
    return program is not None and words[1:-1] == ([] if program[1] else ["-m", "foldline.cli"])


_Path: TypeAlias = tuple[tuple[int, int], ...]
"""The path to an entry, as `json_text.cut` expects it. Each element describes one container around the entry: the
position where the container begins, and the index of the container's item that contains the entry.
"""


class _FoldlineEntry(NamedTuple):
    """One of foldline's entries: its hook event, its command, and the path to it in the text."""

    event: str
    command: str
    path: _Path


class _DesiredEntries(NamedTuple):
    """The entries that an agent's settings should have."""

    target: HookTarget
    start: str

    def is_complete(self, text: str) -> bool:
        """Whether the text has every entry exactly once."""
        desired = [(event, f"{self.start} hook") for event in EVENTS]
        if self.target.status_line and not self.has_own_status(text):
            desired.append((_STATUS, f"{self.start} statusline"))
        return sorted(desired) == sorted((one.event, one.command) for one in _foldline_entries(text))

    def has_own_status(self, text: str) -> bool:
        """Whether the text has a status line that is not foldline's."""
        status = member(text, root(text), _STATUS) if self.target.status_line else None
        return status is not None and not is_foldline_entry(status.value, "statusline")

    def put_into(self, text: str | None) -> str:
        """The text with the entries added."""
        group = {"hooks": [{"type": "command", "command": f"{self.start} hook", "timeout": TIMEOUT_SECONDS}]}
        status = (
            {_STATUS: {"type": "command", "command": f"{self.start} statusline"}} if self.target.status_line else {}
        )
        events = {event: [group] for event in EVENTS}
        if text is None:
            return json.dumps({_HOOKS: events, **status}, indent=2, ensure_ascii=False) + "\n"
        at = root(text)
        hooks = member(text, at, _HOOKS)
        if hooks is None:
            text = put(text, at, events, _HOOKS)
        else:
            for event in EVENTS:
                groups = member(text, hooks.start, event)
                text = put(text, groups.start, group) if groups else put(text, hooks.start, [group], event)
        for key, value in status.items():
            text = text if member(text, at, key) else put(text, at, value, key)
        return text


def _remove_entries(text: str) -> str | None:
    """The text without foldline's entries; None if the text has no other entries."""
    while found := next(_foldline_entries(text), None):
        text = cut(text, found.path)
        if text.isspace():
            return None
    return text


def _foldline_entries(text: str) -> Iterator[_FoldlineEntry]:
    """All foldline entries; raises ConfigError if the settings have an unexpected structure."""
    at = root(text)
    members = items(text, at)
    status, hooks = member(text, at, _STATUS), member(text, at, _HOOKS)
    if status is not None and is_foldline_entry(status.value, "statusline"):
        yield _FoldlineEntry(_STATUS, status.value["command"], ((at, members.index(status)),))
    if hooks is None:
        return
    if not isinstance(hooks.value, dict):
        raise ConfigError(f'"{_HOOKS}" is not an object in braces')
    events = items(text, hooks.start)
    for event in events:
        member(text, hooks.start, event.key)
        if not isinstance(event.value, list):
            raise ConfigError(f'"{event.key}" is not a list in brackets')
    for number, event in enumerate(events):
        for place, group in enumerate(items(text, event.start)):
            path = (at, members.index(hooks)), (hooks.start, number), (event.start, place)
            yield from (_FoldlineEntry(event.key, *one) for one in _in_group(text, group, path))


def _in_group(text: str, group: Slice, path: _Path) -> Iterator[tuple[str, _Path]]:
    """The command and the path of each foldline entry in a group.

    If the group has only one entry, the path of the group is returned, so that the whole group is removed.
    """
    inner = member(text, group.start, _HOOKS) if isinstance(group.value, dict) else None
    if inner is None or not isinstance(inner.value, list):
        return
    for place, entry in enumerate(inner.value):
        if is_foldline_entry(entry, "hook"):
            yield entry["command"], path if len(inner.value) == 1 else (*path, (inner.start, place))


def _read(path: Path) -> str | None:
    """Content of the file, with unchanged line ends; None if there is no file."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ConfigError(f"{path}: not a plain file", hint="replace it by a plain file; nothing was changed")
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8", hint="save the file as UTF-8 first; nothing was changed") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})", hint="nothing was changed") from None


def _is_writable(path: Path) -> bool:
    """Whether the file may be written. `os.access` is true for root even if the mode of the file is read-only, so the
    mode is checked first.
    """
    return bool(os.stat(path).st_mode & 0o222) and os.access(path, os.W_OK)


def _lines(text: str | None) -> list[str]:
    """Lines of a text with their ends, split at line feeds only, as `diff` does."""
    return re.findall(r"[^\n]*\n|[^\n]+", text or "")
