"""Finds the sessions that the page shows: the sessions of a ledger, and the session files of agents.

The ledger's sessions are those of one owner or of all owners. Session files are never changed.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from threading import RLock
from typing import Any, TypeAlias

from foldline import ledger
from foldline.cli.shared.files import expand_paths
from foldline.cli.shared.owner_names import owned_sessions
from foldline.cli.shared.settings import load_settings
from foldline.cli.shared.transcript_import import add_transcript
from foldline.errors import InputError
from foldline.ledger import MAIN, Store
from foldline.page.session_reader import SessionReader
from foldline.page.session_summary import list_row
from foldline.page.session_tree import parents_of
from foldline.recall.text_index import TextIndex
from foldline.session import Ledger
from foldline.wire import read_all

LOGS = "session files"
"""The owner under which the session files of agents are listed."""
LiveSessions: TypeAlias = Callable[[], Iterable[Mapping[str, Any]]]
"""A function that returns a mapping for each branch whose requests are being answered.

The keys are `tenant`, `session`, `branch` and `in_flight` (the number of these requests).
"""
_READERS = 64
"""Maximum number of session readers that are kept in memory."""
_LIST_SECONDS = 5.0
"""The folders with session files are read again after this many seconds."""
_FILES = 500
"""Maximum number of session files in the list. The newest ones are taken."""


class PageSources:
    """The sessions that the page shows. `logs` are folders with session files of agents."""

    def __init__(  # noqa: PLR0913  # all but one are keyword-only
        self,
        store: Store,
        *,
        live: LiveSessions | None = None,
        all_owners: bool = False,
        logs: Sequence[str] = (),
        label: str = "",
        read_only: bool = False,
    ) -> None:
        self.store, self.all_owners, self.logs, self.label = store, all_owners, tuple(logs), label
        self.read_only, self.live = read_only, live
        self._ledgers: dict[str, Ledger] = {}
        self._readers: OrderedDict[tuple[str, str, str], SessionReader] = OrderedDict()
        self._log_files = LogFiles(self.logs)
        self._lock = RLock()

    def owners(self) -> tuple[str, ...]:
        """The owners whose sessions are shown."""
        return ledger.owners(self.store) if self.all_owners else (self.store.owner,)

    def of_other_owners(self) -> int:
        """The number of sessions in the ledger whose owners are not shown."""
        shown = self.owners()
        return 0 if self.all_owners else sum(one.owner not in shown for one in owned_sessions(self.store))

    def ledger_of(self, owner: str) -> Ledger:
        """The ledger of an owner. Raises `InputError` for an owner whose sessions are not shown."""
        if owner == LOGS and self.logs:
            return self._log_files.ledger
        with self._lock:
            if owner not in self._ledgers:
                if owner not in self.owners():
                    raise InputError(f"unknown owner {owner!r}", hint="choose a session from the list")
                self._ledgers[owner] = Ledger(ledger.for_owner(self.store, owner))
            return self._ledgers[owner]

    def can_change(self, owner: str) -> bool:
        """Whether the sessions of an owner may be changed."""
        return not self.read_only and owner != LOGS

    def sessions(self) -> list[dict[str, Any]]:
        """All sessions that have messages, the most recently used first."""
        found = [(owner, info) for owner in self.owners() for info in self.ledger_of(owner).sessions()]
        rows = [list_row(owner, info) for owner, info in found if info.messages]
        rows += self._log_files.rows()
        for owner in {row["owner"] for row in rows}:
            parents = parents_of([row["session"] for row in rows if row["owner"] == owner])
            rows = [
                {**row, "parent": parents.get(row["session"], "")} if row["owner"] == owner else row for row in rows
            ]
        busy = {(one["tenant"], one["session"]) for one in self.live()} if self.live else set()
        rows = [{**row, "is_busy": (row["owner"], row["session"]) in busy} for row in rows]
        return sorted(rows, key=lambda row: -row["last_at"])

    def reader(self, owner: str, session: str, branch: str = MAIN) -> SessionReader:
        """The reader of a branch. Raises `InputError` if there is no such session or branch."""
        if owner == LOGS:
            self._log_files.load(session)
        opened, key = self.ledger_of(owner), (owner, session, branch)
        with self._lock:
            found = self._readers.get(key)
            if found is None:
                branches = opened.store.branches(session)
                tip = next((one for one in branches if one.name == branch), None)
                if tip is None:
                    what = (
                        f"unknown branch {branch!r} in session {session!r}"
                        if branches
                        else f"unknown session {session!r}"
                    )
                    raise InputError(what, hint="choose a session from the list")
                found = self._readers[key] = SessionReader(opened.store, tip)
            self._readers.move_to_end(key)
            while len(self._readers) > _READERS:
                self._readers.popitem(last=False)
            return found

    def close(self) -> None:
        """Close the ledgers that were opened for the page. The store that the caller gave stays open."""
        for one in self._ledgers.values():
            one.worker.close()
        self._log_files.close()


class LogFiles:
    """The session files of agents. When a file is first opened, it becomes a session of a ledger in memory."""

    def __init__(self, folders: Sequence[str]) -> None:
        self.folders = folders
        self._opened: Ledger | None = None
        self._loaded: dict[str, tuple[float, int]] = {}
        self._listed: dict[str, float] | None = None
        self._listed_at = 0.0
        self._lock = RLock()

    @property
    def ledger(self) -> Ledger:
        """The ledger in memory."""
        with self._lock:
            if self._opened is None:
                self._opened = Ledger(ledger.open(":memory:", index=TextIndex()))
            return self._opened

    def _files(self) -> dict[str, float]:
        """The paths of the newest files, each with the time of its last change.

        The result is kept for a few seconds; then the folders are read again.
        """
        with self._lock:
            if self._listed is None or time.monotonic() - self._listed_at > _LIST_SECONDS:
                named, found = expand_paths(self.folders)
                times = {one: Path(one).stat().st_mtime for one in (*named, *found) if Path(one).is_file()}
                newest = sorted(times.items(), key=lambda item: -item[1])[:_FILES]
                self._listed, self._listed_at = dict(newest), time.monotonic()
            return self._listed

    def rows(self) -> list[dict[str, Any]]:
        """A row for each file. The number of messages is None until the file is opened."""
        if not self.folders:
            return []
        counts = {info.name: info for info in self.ledger.sessions()}
        rows = []
        for name, changed_at in self._files().items():
            info = counts.get(name)
            rows.append(
                {
                    "owner": LOGS,
                    "session": name,
                    "branches": [MAIN],
                    "source": "file",
                    "messages": info.messages if info else None,
                    "folds": info.folds if info else 0,
                    "made_at": changed_at,
                    "last_at": changed_at,
                }
            )
        return rows

    def load(self, name: str) -> None:
        """Read a file into the ledger if it is new or has changed."""
        with self._lock:
            if name not in self._files() or not Path(name).is_file():
                raise InputError(f"unknown session file {name!r}", hint="choose a session from the list")
            stat = Path(name).stat()
            stamp = stat.st_mtime, stat.st_size
            if self._loaded.get(name) == stamp:
                return
            transcripts = read_all(name)
            if not transcripts:
                raise InputError(f"{name} contains no conversation", hint="choose another file")
            add_transcript(self.ledger, name, transcripts[0], load_settings())
            self._loaded[name] = stamp

    def close(self) -> None:
        """Close the ledger in memory."""
        if self._opened is not None:
            self._opened.close()
