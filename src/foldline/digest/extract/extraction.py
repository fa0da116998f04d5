"""Extracts facts from the words of the user and of the agent, and from earlier digests. No model is used, only rules.

`call_facts.py` extracts facts from calls and their results. A session passes the facts that it already has to the next
extraction. So every message is read only once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import lru_cache

from foldline.digest.extract.call_facts import MAX_PER_KIND, CallReader
from foldline.digest.extract.facts import LEFT_OPEN, NO_REPORT, NO_RESULT, Fact, Facts, PendingCall
from foldline.digest.extract.identifiers import Origin
from foldline.digest.markup import MARKED_DONE, is_local_digest, read_entries
from foldline.digest.turns import Words
from foldline.human_input import QUESTION_TOOLS, human_words, is_client_digest, is_command
from foldline.message import Message, Opaque, Text, ToolCall, ToolResult
from foldline.placeholders import condensed_count, last_condensed
from foldline.redact.redact import clean_text
from foldline.tool_calls import only_reads
from foldline.wire.provider_tools import with_readable_parts
from foldline.wire.repair.context import native_summary

NEWEST_READ = 2_000
"""The number of newest messages that are read in full. The texts of older messages are not searched for identifiers,
and older calls that only read something are not read at all, because a digest would not show them.
"""
_CLEANED_TEXTS = 64
"""Number of texts whose redacted form is cached. The text of a message is needed once for each of its calls."""
_OPEN_CALL = re.compile(rf"(.+) \((\S+)\)(?:{NO_RESULT}|{LEFT_OPEN})")
_RUNNING = re.compile(rf".+: (\S+){NO_REPORT}")
_CHANGED_FILE = re.compile(r"(\S+)(?: ×(\d{1,6}))?(?:: (.+))?")
"""Matches an entry for a changed file: its path, how often it was changed, and what was changed."""

_COLLECTIONS = ("facts", "identifiers", "forgotten", "files", "pending", "turns", "calls", "marks")


def extract_facts(messages: Sequence[Message], first: int, prior: Facts | None = None) -> Facts:
    """The facts in `prior` and the facts of `messages`. `first` is the index of the first message."""
    end = first + len(messages)
    extractor = _FactExtractor(prior or Facts(first=first), end)
    for index, message in enumerate(messages, start=first):
        extractor.read(index, message)
    complete = extractor.new.is_complete and extractor.newest <= first
    return replace(extractor.new, end=end, earlier_digest=extractor.earlier_digest, is_complete=complete)


class _FactExtractor:
    def __init__(self, prior: Facts, end: int) -> None:
        self.newest = end - NEWEST_READ
        self.new = new = replace(prior, **{name: copy(getattr(prior, name)) for name in _COLLECTIONS})
        self.clean = lru_cache(_CLEANED_TEXTS)(clean_text)
        self.calls = calls = CallReader(new, self.clean)
        self.identifiers, self.turns, self.pending = calls.identifiers, calls.turns, calls.pending
        self.earlier_digest = prior.earlier_digest

    def read(self, index: int, message: Message) -> None:
        """Extract the facts of one message. Hidden messages, system messages, reasoning and media contain no facts."""
        if message.meta.hidden or message.role == "system":
            return
        is_old = index < self.newest
        for part in with_readable_parts(message).parts:
            if isinstance(part, Text):
                self._read_text(index, message, self.clean(part.text))
            elif isinstance(part, ToolCall):
                if not is_old or not only_reads(part) or part.name.startswith(QUESTION_TOOLS):
                    self.calls.read_call(index, message, part)
            elif isinstance(part, ToolResult):
                if not is_old or part.call_id in self.pending:
                    self.calls.read_result(index, part)
            elif isinstance(part, Opaque) and (summary := native_summary(part)):
                self._read_earlier_digest(index, self.clean(summary))
        self.identifiers.finish_message(index)
        while len(self.pending) > MAX_PER_KIND:
            del self.pending[next(iter(self.pending))]

    def _read_text(self, index: int, message: Message, text: str) -> None:
        origin = Origin.RESULT
        is_client = message.is_prompt and is_client_digest(text)
        is_digest = is_client or message.kind in {"digest", "branch_digest"}
        is_local = is_digest and is_local_digest(text)
        if is_client and is_local and self.new.first < last_condensed(text) <= index:
            return  # foldline wrote this digest for the client; the messages that it replaces have already been read
        if is_local:
            self._read_local_digest(index, text)
        elif is_digest:
            self._read_earlier_digest(index, text)
        elif message.is_prompt:
            origin = Origin.USER
            self.calls.read_report("", text)
            if request := human_words(text):
                self.turns.start(index, request, is_command=is_command(text))
        elif message.role == "assistant":
            origin = Origin.MODEL
            if text.strip():
                self.turns.add(Words(index, text, "agent"))
        if index >= self.newest:
            self.identifiers.read(text, origin)

    def _read_local_digest(self, index: int, text: str) -> None:
        """Add the entries of an earlier local digest as facts.

        A digest without handles was written for a plain list of messages (see `DigestRequest.plain_list`). The messages
        that it replaces are not in the record, so their number is added to the count `condensed` (see `Facts.marks`).
        """
        if not last_condensed(text):
            self.calls.marks["condensed"] = self.calls.marks.get("condensed", 0) + max(0, condensed_count(text) - 1)
        for section, speaker, words, indexes in read_entries(text, index):
            if speaker == "user":
                self.turns.start(indexes[0], words, is_separate=True)
            elif speaker:
                self.turns.add(Words(indexes[0], words, speaker))
            elif open_call := _OPEN_CALL.fullmatch(words):
                self.pending[open_call[2]] = PendingCall(indexes[-1], words=open_call[1])
            elif running := _RUNNING.fullmatch(words):
                self.calls.put(f"background {running[1]}", Fact("background", words, indexes, running[1]))
            elif section == "Plan":
                status, _, task = words.partition(": ") if ": " in words else ("open", "", words)
                kind = "done" if status == MARKED_DONE else "open"
                self.calls.put(f"{kind} {task.lower()}", Fact(kind, task, indexes, "" if status == kind else status))
            elif section == "Files changed" and (file := _CHANGED_FILE.fullmatch(words)):
                path, times, about = file.groups()
                self.calls.put(f"modified {path}", Fact("modified", path, indexes, about or "", int(times or 1)))

    def _read_earlier_digest(self, index: int, text: str) -> None:
        """Keep a digest that a model, the client or a provider wrote.

        The messages that it covers may be missing in the record.
        """
        self.earlier_digest = Words(index, text)
        self.identifiers.read(text, Origin.MODEL)
