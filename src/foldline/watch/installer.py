"""foldline's entries in another program's settings: put in, shown before, taken out again, and nothing else touched.

What is ours is told by the command it runs, which is exactly one that is written here: an entry that was moved is found
and one of another installation as well, but a user's own command stays, whatever it mentions. So does a status line
that is there already. A file that changed since the change was shown is left alone, and so is one that is read-only.
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
_STAYS = "the status line that is there stays; remove it and install again to have foldline's"
_PROGRAM = re.compile(r"(?:(?:/|[A-Za-z]:[/\\])(?:.*[/\\])?)?(?:(foldline(?:\.exe)?)|(?:python|pypy)[\w.]*)", re.DOTALL)
"""The script or a Python, by its bare name or its whole path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookTarget:
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
    """A change of a settings file: what it is now, what it will be (None for no file), and what stayed for a reason."""

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
        """Refuse if the file may not be written, or is no longer what the change was made for."""
        if _read(self.path) != self.before:
            raise ConfigError(f"{self.path}: changed meanwhile", hint="nothing was written; run it again")
        if self.before is not None and not _is_writable(self.path):
            raise ConfigError(
                f"{self.path}: read-only", hint="nothing was changed; if it is yours to change, chmod u+w it first"
            )

    def apply(self) -> None:
        """Write it."""
        self.check()
        if self.after is None:
            self.path.resolve().unlink(missing_ok=True)
        elif self.after != self.before:
            write_whole(self.path, self.after.encode())


def settings_path(target: HookTarget, *, project: Path | None) -> Path:
    """The settings file: a project's, or the user's own."""
    if project is not None:
        return project / target.folder / target.file
    moved = os.environ.get(target.home)
    try:
        return (Path(moved) if moved else Path.home() / target.folder) / target.file
    except RuntimeError:
        raise ConfigError("nobody says where your home folder is", hint=f"set HOME or {target.home}") from None


def foldline_command() -> str:
    """How these programs start foldline: by the script next to this Python, wherever they are started from."""
    script = Path(sys.executable).with_name("foldline")
    found = str(script) if script.exists() else shutil.which("foldline")
    line = shlex.quote(os.path.abspath(found)) if found else f"{shlex.quote(sys.executable)} -m foldline.cli"
    if any("\ud800" <= char <= "\udfff" for char in line):
        raise ConfigError(f"{line!r}: no settings can name this path", hint="install foldline at one that is UTF-8")
    return line


def plan_change(target: HookTarget, path: Path, *, remove: bool = False, start: str | None = None) -> SettingsChange:
    """What installing or removing would change."""
    before = _read(path)
    wanted = _DesiredEntries(target, start or foldline_command())
    try:
        rest = _remove_entries(before) if before is not None else None
        stays = rest is not None and wanted.leaves_alone(rest)
        if remove:
            after = rest
        elif before is not None and wanted.is_in(before):
            after = before
        else:
            after = wanted.put_into(rest)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}", hint="mend it first; nothing was changed") from None
    remarks = (target.remark, _STAYS if stays else "") if not remove else ()
    return SettingsChange(path=path, before=before, after=after, remarks=tuple(remark for remark in remarks if remark))


def is_foldline_entry(entry: Any, what: str) -> bool:
    """Whether an entry runs `foldline hook` (or `statusline`) as installing writes it, and nothing else."""
    line = entry.get("command") if isinstance(entry, dict) and entry.get("type") == "command" else None
    if not isinstance(line, str):
        return False
    try:
        words = shlex.split(line)
    except ValueError:
        return False
    if shlex.join(words) != line or len(words) < 2 or words[-1] != what:
        return False
    program = _PROGRAM.fullmatch(words[0])
    return program is not None and words[1:-1] == ([] if program[1] else ["-m", "foldline.cli"])


_Path: TypeAlias = tuple[tuple[int, int], ...]
"""Where each container around an entry begins, and which of its items is on the way."""


class _FoldlineEntry(NamedTuple):
    """One entry of ours: the event it is for, what it runs, and its place in the text."""

    event: str
    command: str
    path: _Path


class _DesiredEntries(NamedTuple):
    """What a program's settings are to have of ours."""

    target: HookTarget
    start: str

    def is_in(self, text: str) -> bool:
        """Whether it is all there, and once."""
        wanted = [(event, f"{self.start} hook") for event in EVENTS]
        if self.target.status_line and not self.leaves_alone(text):
            wanted.append((_STATUS, f"{self.start} statusline"))
        return sorted(wanted) == sorted((one.event, one.command) for one in _foldline_entries(text))

    def leaves_alone(self, text: str) -> bool:
        """Whether a status line is there that is not ours."""
        status = member(text, root(text), _STATUS) if self.target.status_line else None
        return status is not None and not is_foldline_entry(status.value, "statusline")

    def put_into(self, text: str | None) -> str:
        """The text with ours in it."""
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
    """The text without ours; None when it held nothing else."""
    while found := next(_foldline_entries(text), None):
        text = cut(text, found.path)
        if text.isspace():
            return None
    return text


def _foldline_entries(text: str) -> Iterator[_FoldlineEntry]:
    """Every entry of ours, in settings of a shape that can be changed; ConfigError for any other."""
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
    """What entries of ours in a group run, and their places; one that is alone there goes with its group."""
    inner = member(text, group.start, _HOOKS) if isinstance(group.value, dict) else None
    if inner is None or not isinstance(inner.value, list):
        return
    for place, entry in enumerate(inner.value):
        if is_foldline_entry(entry, "hook"):
            yield entry["command"], path if len(inner.value) == 1 else (*path, (inner.start, place))


def _read(path: Path) -> str | None:
    """The file as it is, line ends and all; None when there is none."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ConfigError(f"{path}: not a plain file", hint="put one in its place; nothing was changed")
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8", hint="save it as UTF-8 first; nothing was changed") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})", hint="nothing was changed") from None


def _is_writable(path: Path) -> bool:
    """Whether whoever keeps the file wants it changed; root could always."""
    return bool(os.stat(path).st_mode & 0o222) and os.access(path, os.W_OK)


def _lines(text: str | None) -> list[str]:
    """The lines of a text with their ends, as `diff` counts them."""
    return re.findall(r"[^\n]*\n|[^\n]+", text or "")
