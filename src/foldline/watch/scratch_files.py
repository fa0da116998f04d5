"""Writes the scratch files: an index that is replaced as a whole, and detail files that only grow.

The index is rendered from the detail files. So the index can be rebuilt after a crash, and its numbers are always
right. The new entries come from a scratch model (`ScratchModel`), which collects them in memory. Only entries that are
not in the files yet are added. So nothing is recorded twice if a restarted watcher reads a session again, or if a
watcher and a hook run at the same time. Entries are grouped by session, and two sessions may have entries with equal
texts. Every line of an entry is quoted, so that no entry can imitate another entry or session.
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
    render_index,
)

_ENTRY = re.compile(r"## #\d+")
_SESSION, _NO_SESSION = "# Session ", "# No session"
_BREAKS = re.compile("\r\n?|[\v\f\x1c\x1d\x1e\x85\u2028\u2029]")
"""Line breaks other than the line feed. Some programs start a new line at these characters."""
_ENTRY_ENDS = (b"\n\n", b"\n\r\n")
"""The bytes that end an entry. The second form occurs in a file that an editor saved with CRLF."""
_IGNORE = ".gitignore"
_NAME_CACHE = 16
"""Maximum number of cached session names. A few names are enough, because each session has many entries."""
_BY_FILE = {section.file: section for section in SECTIONS}

_Entry = tuple[str, str]
"""Session and text of an entry."""


class ScratchWriter:
    """Writes the folder `.context/` of a work tree. Agents only read this folder."""

    def __init__(self, worktree: str | Path) -> None:
        self.folder = SafeFolder(Path(worktree), FOLDER)
        self._details = {section.file: _DetailFile(self.folder, section) for section in SECTIONS}
        self._model: ScratchModel | None = None

    @property
    def path(self) -> Path:
        """Path of the index of the notes."""
        return self.folder.path / INDEX

    def write_scratch(self, model: ScratchModel) -> bool:
        """Add new entries to the detail files, then replace the index if it changed.

        Always returns True; errors are raised.
        """
        with self._locked_folder():
            if model is not self._model:
                for detail in self._details.values():
                    detail.reset()
                self._model = model
            for section in SECTIONS:
                detail, entries = self._details[section.file], model.entries_with_session(section)
                detail.refresh()
                if entries:
                    detail.add_missing(entries, generation=model.generation)
            summaries = {name: detail.summary() for name, detail in self._details.items()}
            text = render_index(model.job, model.phase, summaries).encode("utf-8", "replace")
            if not self._is_index(text):
                self.folder.replace(INDEX, text)
        return True

    def _is_index(self, text: bytes) -> bool:
        """Whether the index has this content already. False if the path is a link or a pipe."""
        try:
            return self.folder.read(INDEX) == text
        except ConfigError:
            return False

    def append_human_input(self, text: str, *, session: str = "") -> None:
        """Add an entry to `human-input.md`."""
        self._append("human-input.md", text, session)

    def append_dead_end(self, description: str, *, session: str = "") -> None:
        """Add an entry to `dead-ends.md`."""
        self._append("dead-ends.md", description, session)

    def append_state_change(self, previous: str, new: str, *, session: str = "") -> None:
        """Add an entry to `state-changes.md`."""
        self._append("state-changes.md", f"{previous} → {new}", session)

    def append_artifact(self, path: str) -> None:
        """Add a path to `artifacts.md`, unless it is already there."""
        self._append("artifacts.md", path)

    def append_decision(self, description: str, *, session: str = "") -> None:
        """Add an entry to `decisions.md`."""
        self._append("decisions.md", description, session)

    def counts(self) -> dict[str, int]:
        """Number of entries by detail file."""
        if not self.folder.exists():
            return dict.fromkeys(_BY_FILE, 0)
        for detail in self._details.values():
            detail.refresh()
        return {name: detail.summary().total for name, detail in self._details.items()}

    def cleanup(self) -> None:
        """Delete `.context/` and its content."""
        self.folder.remove()
        self._details = {section.file: _DetailFile(self.folder, section) for section in SECTIONS}

    def _append(self, name: str, text: str, session: str = "") -> None:
        with self._locked_folder():
            detail = self._details[name]
            detail.refresh()
            detail.append(session, str(text))

    @contextmanager
    def _locked_folder(self) -> Iterator[None]:
        """Hold the folder's lock during the `with` block. The folder is created if it is missing."""
        is_new = not self.folder.is_open()
        if is_new:
            self.folder.make()
        with self.folder.locked():
            if is_new and not self.folder.size(_IGNORE):
                self.folder.replace(_IGNORE, b"*\n")
            yield


class _DetailFile:
    """One detail file.

    The object remembers which entries of the file were read, and which of these entries the scratch model also has.
    """

    def __init__(self, folder: SafeFolder, section: Section) -> None:
        self._folder, self._section = folder, section
        self.reset()

    def reset(self) -> None:
        """Forget the entries that were read.

        The entries of a new scratch model are then compared with the whole file.
        """
        self._count = 0
        self._newest: deque[str] = deque(maxlen=PAGE_LINES)
        self._offset = 0
        """Offset in bytes of the end of the last complete entry. The file was read up to this offset."""
        self._torn = b""
        """The bytes after `_offset`: an incomplete entry, which an interrupted write left."""
        self._session = ""
        """Session of the last entry."""
        self._unmatched: Counter[int] = Counter()
        """Hashes of the entries in the file that match no entry of the scratch model so far, each with its count."""
        self._hashes: set[int] = set()
        self._matched = self._generation = 0
        """`_matched` is the number of entries of the scratch model that were compared with the file. `_generation` is
        the generation of the scratch model at that time.
        """

    def summary(self) -> SectionSummary:
        """The number of entries, and the newest entries as lines. An incomplete entry at the end is included."""
        torn = [one_line(text) for _, text in _parse_entries(self._torn, self._session)[0]] if self._torn else ()
        return SectionSummary(self._count + len(torn), (*self._newest, *torn))

    def refresh(self) -> None:
        """Read the entries that any process has added since the last read."""
        size = self._folder.size(self._section.file)
        if size < self._offset:
            self.reset()
        if size != self._offset + len(self._torn):
            data = self._folder.read(self._section.file, self._offset) or b""
            end = max(data.rfind(mark) + len(mark) if mark in data else 0 for mark in _ENTRY_ENDS)
            self._offset, self._torn = self._offset + end, data[end:]
            entries, self._session = _parse_entries(data[:end], self._session)
            for entry in entries:
                self._count_entry(entry)
                self._unmatched[hash(entry)] += 1

    def add_missing(self, entries: list[_Entry], *, generation: int) -> None:
        """Append the entries of the scratch model that are not in the file.

        `entries` are all entries that the scratch model holds. The entries that an earlier call has compared with the
        file are skipped. `generation` counts how often the scratch model has dropped its entries. If `generation` has
        changed since the last call, all of `entries` are new, and no entry is skipped.
        """
        if generation != self._generation:
            self._matched, self._generation = 0, generation
        missing: list[_Entry] = []
        matches: Counter[int] = Counter()
        new: set[int] = set()
        for entry in (self._normalize(*entry) for entry in entries[self._matched :]):
            key = hash(entry)
            if self._section.unique:
                if key not in self._hashes and key not in new:
                    new.add(key)
                    missing.append(entry)
                continue
            match = next((key for key in (key, hash(("", entry[1]))) if self._unmatched[key] > matches[key]), None)
            if match is None:
                missing.append(entry)
            else:
                matches[match] += 1
        self._write(missing)
        self._unmatched.subtract(matches)
        self._matched = len(entries)

    def append(self, session: str, text: str) -> None:
        """Append an entry. If a scratch model later holds the same entry, the entry is not written again."""
        entry = self._normalize(session, text)
        if not (self._section.unique and hash(entry) in self._hashes):
            self._write([entry])
            self._unmatched[hash(entry)] += 1

    def _normalize(self, session: str, text: str) -> _Entry:
        """The session and the text in the form in which the file stores them.

        In a section with unique entries, the session is "".
        """
        return "" if self._section.unique else _session_name(session), _clean(text)

    def _write(self, entries: list[_Entry]) -> None:
        """Append entries in one write.

        If the file ends with an incomplete entry and the new entries begin with the same bytes, the incomplete entry is
        completed. Otherwise the incomplete entry stays as it is, and the new entries follow.
        """
        if not entries:
            return
        data, session = self._format(entries)
        if self._torn and not data.startswith(self._torn):
            self._folder.append(self._section.file, b"\n\n")
            self.refresh()
            data, session = self._format(entries)
        self._offset = self._folder.append(self._section.file, data, after=self._offset, end=_ENTRY_ENDS[0])
        self._torn, self._session = b"", session
        for entry in entries:
            self._count_entry(entry)

    def _format(self, entries: list[_Entry]) -> tuple[bytes, str]:
        """The new entries as bytes, and the session of the last entry.

        A heading is inserted where a new session begins.
        """
        pieces: list[str] = []
        last = self._session
        for number, (session, text) in enumerate(entries, start=self._count + 1):
            if session != last:
                pieces.append(f"{_SESSION}{session}\n\n" if session else f"{_NO_SESSION}\n\n")
                last = session
            quoted = text.replace("\n", "\n> ")
            pieces.append(f"## #{number}\n> {quoted}\n\n")
        return "".join(pieces).encode(), last

    def _count_entry(self, entry: _Entry) -> None:
        self._count += 1
        self._newest.append(one_line(entry[1]))
        if self._section.unique:
            self._hashes.add(hash(entry))


@lru_cache(_NAME_CACHE)
def _session_name(session: str) -> str:
    """A session's id as one line of the file."""
    return _clean(one_line(session)) if session else ""


def _clean(text: str) -> str:
    """The text without escape sequences, and with line feeds only. Secrets and lone surrogates are replaced."""
    from foldline.redact.redact import clean_text  # noqa: PLC0415  # imported only for a write

    return _BREAKS.sub("\n", clean_text(text.encode("utf-8", "replace").decode()))


def _parse_entries(data: bytes, session: str) -> tuple[list[_Entry], str]:
    """The entries in a part of a detail file, and the session of the last entry.

    `session` is the session that is current at the start of the part. An incomplete entry at the end is included.
    """
    entries: list[tuple[str, list[str]]] = []
    for line in data.decode("utf-8", "replace").split("\n"):
        if line.startswith(">") and entries:
            entries[-1][1].append(line[2:].removesuffix("\r"))
        elif _ENTRY.fullmatch(line.removesuffix("\r")):
            entries.append((session, []))
        elif line.startswith(_SESSION):
            session = line.removesuffix("\r").removeprefix(_SESSION)
        elif line.startswith(_NO_SESSION):
            session = ""
    return [(owner, _BREAKS.sub("\n", "\n".join(lines))) for owner, lines in entries], session
