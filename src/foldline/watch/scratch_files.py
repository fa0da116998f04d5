"""The scratch files: an index that is replaced whole, and detail files that only grow.

The detail files are the record. The index is made from them, so after a crash it is made again, and the numbers on both
always agree. A model that is written adds only what the files lack: a restarted watcher that reads a session from its
beginning, or a hook beside a watcher, records nothing twice. The same words in another session are other words, so the
entries of a session stand under its name. Entries are quoted line by line, so that nothing which an entry says can look
like another entry or another session.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from foldline.errors import ConfigError
from foldline.watch.safe_files import SafeFolder
from foldline.watch.scratch import (
    FOLDER,
    INDEX,
    PAGE_LINES,
    SECTIONS,
    ScratchModel,
    Section,
    SectionSummary,
    one_line,
    page,
)

_ENTRY = re.compile(r"## #\d+")
_SESSION, _NO_SESSION = "# Session ", "# No session"
_BREAKS = re.compile("\r\n?|[\v\f\x1c\x1d\x1e\x85\u2028\u2029]")
"""What some reader takes for the end of a line, besides the one that is written."""
_BETWEEN = (b"\n\n", b"\n\r\n")
"""What ends an entry, also in a file that an editor saved its own way."""
_IGNORE = ".gitignore"
_NAMES = 16
"""Few sessions come at a time, and each brings many entries."""
_BY_FILE = {section.file: section for section in SECTIONS}

_Entry = tuple[str, str]
"""The session that an entry belongs to, and its text."""


class ScratchWriter:
    """Writes a work tree's `.context/`. The orchestrator is the only one who does; agents read."""

    def __init__(self, worktree: str | Path) -> None:
        self.folder = SafeFolder(Path(worktree), FOLDER)
        self._details = {section.file: _Detail(self.folder, section) for section in SECTIONS}
        self._model: ScratchModel | None = None

    @property
    def path(self) -> Path:
        """The index."""
        return self.folder.path / INDEX

    def write_scratch(self, model: ScratchModel) -> bool:
        """Bring the detail files up to date, then replace the index if it says anything new; all of it is written."""
        with self._held():
            if model is not self._model:
                for detail in self._details.values():
                    detail.start()
                self._model = model
            for section in SECTIONS:
                detail, entries = self._details[section.file], model.by_session(section)
                detail.refresh()
                if entries:
                    detail.add_missing(entries, turn=model.forgotten)
            shown = {name: detail.shown() for name, detail in self._details.items()}
            text = page(model.job, model.phase, shown).encode("utf-8", "replace")
            if not self._says(text):
                self.folder.replace(INDEX, text)
        return True

    def _says(self, text: bytes) -> bool:
        """Whether the index says this already; what somebody planted in its place is nothing to read."""
        try:
            return self.folder.read(INDEX) == text
        except ConfigError:
            return False

    def append_human_input(self, text: str, *, session: str = "") -> None:
        """Add to `human-input.md`."""
        self._append("human-input.md", text, session)

    def append_dead_end(self, description: str, *, session: str = "") -> None:
        """Add to `dead-ends.md`."""
        self._append("dead-ends.md", description, session)

    def append_state_change(self, previous: str, new: str, *, session: str = "") -> None:
        """Add to `state-changes.md`."""
        self._append("state-changes.md", f"{previous} → {new}", session)

    def append_artifact(self, path: str) -> None:
        """Add to `artifacts.md`, if the file is not in it."""
        self._append("artifacts.md", path)

    def append_decision(self, description: str, *, session: str = "") -> None:
        """Add to `decisions.md`."""
        self._append("decisions.md", description, session)

    def counts(self) -> dict[str, int]:
        """How many entries each detail file holds."""
        if not self.folder.exists():
            return dict.fromkeys(_BY_FILE, 0)
        for detail in self._details.values():
            detail.refresh()
        return {name: detail.shown().total for name, detail in self._details.items()}

    def cleanup(self) -> None:
        """Delete `.context/` with all that is in it."""
        self.folder.remove()
        self._details = {section.file: _Detail(self.folder, section) for section in SECTIONS}

    def _append(self, name: str, text: str, session: str = "") -> None:
        with self._held():
            detail = self._details[name]
            detail.refresh()
            detail.append(session, str(text))

    @contextmanager
    def _held(self) -> Iterator[None]:
        """The folder, made where it is missing and held against other writers of ours."""
        made = not self.folder.is_open()
        if made:
            self.folder.make()
        with self.folder.locked():
            if made and not self.folder.size(_IGNORE):
                self.folder.replace(_IGNORE, b"*\n")
            yield


class _Detail:
    """One detail file as far as it was read."""

    def __init__(self, folder: SafeFolder, section: Section) -> None:
        self._folder, self._section = folder, section
        self.start()

    def start(self) -> None:
        """Know nothing of the file: all that it holds may be what a model brings."""
        self._count = 0
        self._newest: deque[str] = deque(maxlen=PAGE_LINES)
        self._size = 0
        """How far the file was read: to the end of its last whole entry."""
        self._torn = b""
        """What stands behind that: an entry which somebody was killed over."""
        self._session = ""
        """The session whose entries stand last."""
        self._unclaimed: Counter[int] = Counter()
        """Entries in the file that no model has brought yet."""
        self._seen: set[int] = set()
        self._claimed = self._turn = 0
        """How many of the model's entries are in the file, and how often it had forgotten the ones before."""

    def shown(self) -> SectionSummary:
        """How many entries there are, and the newest of them as lines; a torn one is one too."""
        torn = [one_line(text) for _, text in _entries(self._torn, self._session)[0]] if self._torn else ()
        return SectionSummary(self._count + len(torn), (*self._newest, *torn))

    def refresh(self) -> None:
        """Read what was added since the last look, by whomever."""
        size = self._folder.size(self._section.file)
        if size < self._size:
            self.start()
        if size != self._size + len(self._torn):
            data = self._folder.read(self._section.file, self._size) or b""
            end = max(data.rfind(mark) + len(mark) if mark in data else 0 for mark in _BETWEEN)
            self._size, self._torn = self._size + end, data[end:]
            found, self._session = _entries(data[:end], self._session)
            for entry in found:
                self._note(entry)
                self._unclaimed[hash(entry)] += 1

    def add_missing(self, entries: list[_Entry], *, turn: int) -> None:
        """Append those of a model's entries that the file does not hold yet; all are others than in another turn."""
        if turn != self._turn:
            self._claimed, self._turn = 0, turn
        missing: list[_Entry] = []
        claims: Counter[int] = Counter()
        new: set[int] = set()
        for entry in (self._plain(*entry) for entry in entries[self._claimed :]):
            key = hash(entry)
            if self._section.unique:
                if key not in self._seen and key not in new:
                    new.add(key)
                    missing.append(entry)
                continue
            held = next((key for key in (key, hash(("", entry[1]))) if self._unclaimed[key] > claims[key]), None)
            if held is None:
                missing.append(entry)
            else:
                claims[held] += 1
        self._write(missing)
        self._unclaimed.subtract(claims)
        self._claimed = len(entries)

    def append(self, session: str, text: str) -> None:
        """Append an entry that a model may bring again."""
        entry = self._plain(session, text)
        if not (self._section.unique and hash(entry) in self._seen):
            self._write([entry])
            self._unclaimed[hash(entry)] += 1

    def _plain(self, session: str, text: str) -> _Entry:
        """An entry as the file holds it; what stands once for all sessions belongs to none of them."""
        return "" if self._section.unique else _name(session), _plain(text)

    def _write(self, entries: list[_Entry]) -> None:
        """Append entries in one go. A torn one that is the first of them is written whole; any other stays an entry."""
        if not entries:
            return
        data, session = self._quoted(entries)
        if self._torn and not data.startswith(self._torn):
            self._folder.append(self._section.file, b"\n\n")
            self.refresh()
            data, session = self._quoted(entries)
        self._size = self._folder.append(self._section.file, data, after=self._size, end=_BETWEEN[0])
        self._torn, self._session = b"", session
        for entry in entries:
            self._note(entry)

    def _quoted(self, entries: list[_Entry]) -> tuple[bytes, str]:
        """The bytes of entries that follow what is there, each session under its name; and the last session."""
        pieces: list[str] = []
        last = self._session
        for number, (session, text) in enumerate(entries, start=self._count + 1):
            if session != last:
                pieces.append(f"{_SESSION}{session}\n\n" if session else f"{_NO_SESSION}\n\n")
                last = session
            quoted = text.replace("\n", "\n> ")
            pieces.append(f"## #{number}\n> {quoted}\n\n")
        return "".join(pieces).encode(), last

    def _note(self, entry: _Entry) -> None:
        self._count += 1
        self._newest.append(one_line(entry[1]))
        if self._section.unique:
            self._seen.add(hash(entry))


@lru_cache(_NAMES)
def _name(session: str) -> str:
    """A session's name as one line of the file."""
    return _plain(one_line(session)) if session else ""


def _plain(text: str) -> str:
    """A text as the file may hold it: no secrets, one kind of line break, and half characters are question marks."""
    from foldline.redact.redact import redact  # noqa: PLC0415  # only a write needs it

    return redact(_BREAKS.sub("\n", text.encode("utf-8", "replace").decode()))


def _entries(data: bytes, session: str) -> tuple[list[_Entry], str]:
    """The entries of a detail file that begins in a session, half-written ones included; and its last session."""
    found: list[tuple[str, list[str]]] = []
    for line in data.decode("utf-8", "replace").split("\n"):
        if line.startswith(">") and found:
            found[-1][1].append(line[2:].removesuffix("\r"))
        elif _ENTRY.fullmatch(line.removesuffix("\r")):
            found.append((session, []))
        elif line.startswith(_SESSION):
            session = line.removesuffix("\r").removeprefix(_SESSION)
        elif line.startswith(_NO_SESSION):
            session = ""
    return [(whose, _BREAKS.sub("\n", "\n".join(lines))) for whose, lines in found], session
