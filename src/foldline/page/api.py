"""The calls of the page's API that only read."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from hashlib import sha256
from threading import Lock
from typing import Any

from foldline import __version__
from foldline.cli.shared.output import without_secrets
from foldline.errors import InputError
from foldline.ledger import MAIN
from foldline.page.advice import advice
from foldline.page.fold_rows import lost_facts, whole_fold
from foldline.page.message_rows import MessagePlaces, author, find_text, message_rows, whole_message
from foldline.page.money_report import money_report
from foldline.page.replay_report import replay_of_session
from foldline.page.request_rows import RequestWindow
from foldline.page.session_reader import SessionReader
from foldline.page.session_summary import (
    request_report,
    session_contents,
    session_outline,
    session_report,
    session_summary,
)
from foldline.page.session_tree import tree_of
from foldline.page.sources import PageSources
from foldline.recall.result import RecallResult
from foldline.recall.search import RecallQuery, search, search_owners

_CACHED = 256
"""Maximum number of answers in the cache."""
_PASSAGE_TOKENS = 600
"""A search is limited to this number of tokens times the number of wanted passages."""


class PageApi:
    """Answers the calls of the page."""

    def __init__(self, sources: PageSources) -> None:
        self.sources = sources
        self._answers: OrderedDict[tuple[Any, ...], dict[str, Any]] = OrderedDict()
        self._lock = Lock()

    def _cached(
        self, make: Callable[[SessionReader], dict[str, Any]], owner: str, session: str, branch: str
    ) -> dict[str, Any]:
        """The answer of `make` for the current version of a session. The answer is cached."""
        reader = self.sources.reader(owner, session, branch)
        key = (make.__name__, owner, session, branch, reader.version())
        with self._lock:
            found = self._answers.get(key)
        if found is None:
            found = make(reader)
            with self._lock:
                self._answers[key] = found
                while len(self._answers) > _CACHED:
                    self._answers.popitem(last=False)
        return found

    def status(self) -> dict[str, Any]:
        """The version of foldline, and which sessions the page serves."""
        sources = self.sources
        return {
            "foldline": __version__,
            "ledger": sources.label,
            "owners": len(sources.owners()),
            "logs": list(sources.logs),
            "read_only": sources.read_only,
        }

    def sessions(self) -> dict[str, Any]:
        """All sessions."""
        rows, others = self.sources.sessions(), self.sources.of_other_owners()
        version = sha256(repr((rows, others)).encode()).hexdigest()[:16]
        return {"version": version, "sessions": rows, "of_other_owners": others}

    def summary(self, **where: str) -> dict[str, Any]:
        """The figures that the session list shows for a session: model, size and states."""
        return self._cached(session_summary, **where)

    def session(self, **where: str) -> dict[str, Any]:
        """The report about a session."""
        report = self._cached(session_report, **where)
        return {**report, "owner": where["owner"], "can_change": self.sources.can_change(where["owner"])}

    def outline(self, **where: str) -> dict[str, Any]:
        """The folds, pins and settings of a session, but not its size."""
        outline = self._cached(session_outline, **where)
        return {**outline, "owner": where["owner"], "can_change": self.sources.can_change(where["owner"])}

    def contents(self, **where: str) -> dict[str, Any]:
        """What fills the history and the pins of a session."""
        return self._cached(session_contents, **where)

    def requests(self, **where: str) -> dict[str, Any]:
        """The requests of a session."""
        return self._cached(request_report, **where)

    def window(self, *, number: int, against: int, **where: str) -> dict[str, Any]:
        """The window at a request, compared with the window at another request."""
        return RequestWindow(self.sources.reader(**where)).window_at(number, against)

    def messages(self, *, start: int, stop: int, **where: str) -> dict[str, Any]:
        """A range of messages."""
        return message_rows(self.sources.reader(**where), start, stop)

    def message(self, *, number: int, whole: bool, **where: str) -> dict[str, Any]:
        """One message."""
        return whole_message(self.sources.reader(**where), number, whole=whole)

    def fold(self, *, number: int, **where: str) -> dict[str, Any]:
        """One fold."""
        return whole_fold(self.sources.reader(**where), number)

    def lost_facts(self, *, number: int, **where: str) -> dict[str, Any]:
        """All facts that the digest of a fold does not show."""
        return lost_facts(self.sources.reader(**where), number)

    def recall(self, *, query: str, everywhere: bool, results: int, **where: str) -> dict[str, Any]:
        """Search a session, or all sessions of its owner."""
        reader = self.sources.reader(**where)
        found = search(reader.store, reader.branch, _recall_query(query, results, everywhere=everywhere))
        return self._with_marks(_recall_answer(query, results, found), where)

    def find(self, *, query: str, **where: str) -> dict[str, Any]:
        """The messages of a session that contain a text, and how often each message contains the text."""
        return find_text(self.sources.reader(**where), query)

    def search(self, *, query: str, results: int) -> dict[str, Any]:
        """Search all sessions of the ledger."""
        stores = [self.sources.ledger_of(owner).store for owner in self.sources.owners()]
        found = search_owners(stores, _recall_query(query, results, everywhere=True))
        return self._with_marks(_recall_answer(query, results, found), {})

    def _with_marks(self, answer: dict[str, Any], where: Mapping[str, str]) -> dict[str, Any]:
        """The answer of a search, in which each line has the author and the marks that the transcript shows for its
        message.

        Some notes repeat a message. If such a note is no longer in the request, its passage comes after the passage
        with the repeated message.
        """
        for passage in answer["results"]:
            place = {**where, "owner": passage["owner"] or where.get("owner", "")}
            if passage["session"] not in ("", where.get("session", "")):
                place = {**place, "session": passage["session"], "branch": MAIN}
            try:
                reader = self.sources.reader(**place)
            except InputError:  # the session has no such branch
                continue
            places = MessagePlaces(reader)
            for line in passage["lines"]:
                index = line["message"] - 1
                line["author"] = next(map(author, reader.messages(index, index + 1)), line["role"])
                line.update(places.marks_of(index))
        return {**answer, "results": _copies_after_originals(answer["results"])}

    def advice(self, **where: str) -> dict[str, Any]:
        """The messages that could leave the window now."""
        return self._cached(advice, **where)

    def totals(self, **where: str) -> dict[str, Any]:
        """The number of requests of a session, and what foldline's folds saved."""
        report = self.requests(**where)
        return {"requests": len(report["requests"]), "saving": report["saving"], "cost": report["cost"]}

    def replay_session(self, *, policies: str, window: int, **where: str) -> dict[str, Any]:
        """What policies would have done with a session, beside what was really sent."""
        return replay_of_session(self.sources.reader(**where), policies=policies, window=window)

    def tree(self, *, owner: str, session: str, branch: str) -> dict[str, Any]:
        """A session and its related sessions (see `tree_of`), with the cost of each session and the total cost.

        If there is no related session, the list is empty and nothing is measured.
        """
        self.sources.reader(owner, session, branch)
        found, rows = tree_of(self.sources.sessions(), owner, session), []
        for row in found if len(found) > 1 else ():
            totals = self.totals(owner=owner, session=row["session"], branch=MAIN)
            rows.append({**row, "requests": totals["requests"], "usd": totals["cost"]["usd"]})
        paid = [row["usd"] for row in rows if row["usd"] is not None]
        return {
            "sessions": rows,
            "requests": sum(row["requests"] for row in rows),
            "usd": sum(paid) if paid else None,
        }

    def _saved_by_session(self) -> dict[str, list[dict[str, Any]]]:
        """What foldline's folds saved in each session, by session name. Sessions without such folds are left out.

        A name has several entries if several owners use it.
        """
        saved: dict[str, list[dict[str, Any]]] = {}
        for owner in self.sources.owners():
            for info in self.sources.ledger_of(owner).sessions():
                where = {"owner": owner, "session": info.name, "branch": MAIN}
                if MAIN in info.branches and _has_own_fold(self.sources.reader(**where)):
                    saved.setdefault(info.name, []).append(self.totals(**where)["saving"])
        return saved

    def money(self, *, by: str, source: str) -> dict[str, Any]:
        """Tokens and money of all sessions."""
        sources = self.sources
        stores = [sources.ledger_of(owner).store for owner in sources.owners()]
        key = ("money", by, source, self.sessions()["version"])
        with self._lock:
            found = self._answers.get(key)
        if found is None:
            saved = self._saved_by_session() if source == "ledger" else {}
            found = money_report(stores, sources.logs, saved, by=by, source=source)
            found["of_other_owners"] = sources.of_other_owners() if source == "ledger" else 0
            with self._lock:
                self._answers[key] = found
        return found


def _has_own_fold(reader: SessionReader) -> bool:
    """Whether foldline ever folded a session, even if all its folds were taken back."""
    return any(not reader.fold(one.reference).compacted_by for one in reader.fold_history().folds)


def _recall_query(query: str, results: int, *, everywhere: bool) -> RecallQuery:
    """A query for one passage more than `results`, so that the answer can say whether there are more."""
    if not query.strip():
        raise InputError("the query is empty", hint="write a question or some words")
    wanted = results + 1
    return RecallQuery(query=query, tokens=wanted * _PASSAGE_TOKENS, results=wanted, everywhere=everywhere)


def _copies_after_originals(passages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The passages of a search. Removed notes come after the message that they repeat (see `_has_copy_of`)."""
    found: list[dict[str, Any]] = []
    for passage in passages:
        place = next((at for at, one in enumerate(found) if _has_copy_of(one, passage)), len(found))
        found.insert(place, passage)
    return found


def _has_copy_of(passage: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether all matches of a passage are removed notes, and one of them repeats a message of the passage `other`."""
    if (passage["owner"], passage["session"]) != (other["owner"], other["session"]):
        return False
    matches = [line for line in passage["lines"] if line["match"]]
    numbers = {line["message"] for line in other["lines"]}
    return all(line.get("removed") for line in matches) and any(line["copy_of"] in numbers for line in matches)


def _recall_answer(query: str, results: int, found: RecallResult) -> dict[str, Any]:
    """The first `results` passages that were found. In the answer, `has_more` says whether more passages were found."""
    answer: dict[str, Any] = {"query": query, **found.to_dict(), "has_more": len(found) > results}
    rows = [{**row, "owner": one.owner} for row, one in zip(answer["results"], found, strict=True)]
    shown: dict[str, Any] = without_secrets({**answer, "results": rows[:results]})
    return shown
