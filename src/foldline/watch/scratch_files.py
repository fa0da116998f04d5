"""The scratch files: an index that is replaced whole, and detail files that only grow.

The detail files are the record. The index is made from them, so after a crash it is made again, and the numbers on both
always agree. A model that is written adds only what the files lack: a restarted watcher that reads a session from its
beginning, or a hook beside a watcher, records nothing twice. Entries are quoted line by line, so that nothing which an
entry says can look like another entry.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from pathlib import Path

from foldline.watch.files import Folder
from foldline.watch.scratch import FOLDER, INDEX, PAGE_LINES, SECTIONS, ScratchModel, Section, Shown, one_line, page

_ENTRY = re.compile(rb"## #\d+")
_IGNORE = ".gitignore"
_BY_FILE = {section.file: section for section in SECTIONS}


class ScratchWriter:
    """Writes a work tree's `.context/`. The orchestrator is the only one who does; agents read."""

    def __init__(self, worktree: str | Path) -> None:
        self.folder = Folder(Path(worktree), FOLDER)
        self._details = {section.file: _Detail(self.folder, section) for section in SECTIONS}
        self._model: ScratchModel | None = None
        self._forgotten = 0
        self._index = b""

    @property
    def path(self) -> Path:
        """The index."""
        return self.folder.path / INDEX

    def write_scratch(self, model: ScratchModel) -> None:
        """Bring the detail files up to date, then replace the index if it says anything new."""
        self._prepare()
        with self.folder.locked():
            self._write(model)

    def _write(self, model: ScratchModel) -> None:
        other = model is not self._model
        anew = other or model.forgotten != self._forgotten
        for section in SECTIONS:
            detail, entries = self._details[section.file], model.entries(section)
            if other:
                detail.start()
            if other or entries:
                detail.refresh()
                detail.add_missing(entries, anew=anew)
        self._model, self._forgotten = model, model.forgotten
        shown = {name: Shown(detail.count, tuple(detail.newest)) for name, detail in self._details.items()}
        text = page(model.job, model.phase, shown).encode("utf-8", "replace")
        if text != self._index or not self.folder.size(INDEX):
            self.folder.replace(INDEX, text)
            self._index = text

    def append_human_input(self, text: str) -> None:
        """Add to `human-input.md`."""
        self._append("human-input.md", text)

    def append_dead_end(self, description: str) -> None:
        """Add to `dead-ends.md`."""
        self._append("dead-ends.md", description)

    def append_state_change(self, previous: str, new: str) -> None:
        """Add to `state-changes.md`."""
        self._append("state-changes.md", f"{previous} → {new}")

    def append_artifact(self, path: str) -> None:
        """Add to `artifacts.md`, if the file is not in it."""
        self._append("artifacts.md", path)

    def append_decision(self, description: str) -> None:
        """Add to `decisions.md`."""
        self._append("decisions.md", description)

    def counts(self) -> dict[str, int]:
        """How many entries each detail file holds."""
        if not self.folder.exists():
            return dict.fromkeys(_BY_FILE, 0)
        for detail in self._details.values():
            detail.refresh()
        return {name: detail.count for name, detail in self._details.items()}

    def cleanup(self) -> None:
        """Delete `.context/` with all that is in it."""
        self.folder.remove()
        self._details = {section.file: _Detail(self.folder, section) for section in SECTIONS}

    def _append(self, name: str, text: str) -> None:
        self._prepare()
        with self.folder.locked():
            detail = self._details[name]
            detail.refresh()
            detail.append(str(text))

    def _prepare(self) -> None:
        if self.folder.is_open():
            return
        self.folder.make()
        if not self.folder.size(_IGNORE):
            self.folder.replace(_IGNORE, b"*\n")


class _Detail:
    """One detail file as far as it was read."""

    def __init__(self, folder: Folder, section: Section) -> None:
        self._folder, self._section = folder, section
        self.start()

    def start(self) -> None:
        """Know nothing of the file: all that it holds may be what a model brings."""
        self.count = 0
        self.newest: deque[str] = deque(maxlen=PAGE_LINES)
        self._size = 0
        self._ended = True
        self._unclaimed: Counter[int] = Counter()
        """Entries in the file that no model has brought yet."""
        self._seen: set[int] = set()
        self._claimed = 0
        """How many of the model's entries are in the file."""

    def refresh(self) -> None:
        """Read what was added since the last look, by whomever."""
        size = self._folder.size(self._section.file)
        if size < self._size:
            self.start()
        if size > self._size:
            data = self._folder.read(self._section.file, self._size) or b""
            self._size += len(data)
            self._ended = data.endswith(b"\n")
            for text in _entries(data):
                self._note(text)
                self._unclaimed[hash(text)] += 1

    def add_missing(self, texts: list[str], *, anew: bool) -> None:
        """Append those of a model's entries that the file does not hold yet; `anew` if it brings others than before."""
        if anew:
            self._claimed = 0
        missing: list[str] = []
        for text in map(_plain, texts[self._claimed :]):
            key = hash(text)
            if self._section.unique and key in self._seen:
                continue
            if self._unclaimed[key] > 0:
                self._unclaimed[key] -= 1
                continue
            missing.append(text)
            if self._section.unique:
                self._seen.add(key)
        self._write(missing)
        self._claimed = len(texts)

    def append(self, text: str) -> None:
        """Append an entry that a model may bring again."""
        text = _plain(text)
        if not (self._section.unique and hash(text) in self._seen):
            self._write([text])
            self._unclaimed[hash(text)] += 1

    def _write(self, texts: list[str]) -> None:
        """Append entries in one go."""
        if not texts:
            return
        pieces = [] if self._ended else ["\n"]
        for text in texts:
            self._note(text)
            quoted = text.replace("\n", "\n> ")
            pieces.append(f"## #{self.count}\n> {quoted}\n\n")
        self._size = self._folder.append(self._section.file, "".join(pieces).encode())
        self._ended = True

    def _note(self, text: str) -> None:
        self.count += 1
        self.newest.append(one_line(text))
        if self._section.unique:
            self._seen.add(hash(text))


def _plain(text: str) -> str:
    """A text as the file may hold it: without secrets, and half characters become question marks."""
    from foldline.digest.redact import redact  # noqa: PLC0415  # only a write needs it

    return redact(text.encode("utf-8", "replace").decode())


def _entries(data: bytes) -> list[str]:
    """The entries of a detail file, half-written ones included."""
    found: list[list[str]] = []
    for line in data.split(b"\n"):
        if _ENTRY.fullmatch(line):
            found.append([])
        elif line.startswith(b">") and found:
            found[-1].append(line[2:].decode("utf-8", "replace"))
    return ["\n".join(lines) for lines in found]
