"""The requests of a session in order: size, cache use, folds, cache misses with their causes, and the window."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Sequence
from itertools import accumulate, pairwise, takewhile
from typing import Any, NamedTuple

from foldline.errors import InputError
from foldline.fold import Fold
from foldline.ledger.receipts import CacheMiss, Receipt, read_receipts
from foldline.ledger.records import FoldReference
from foldline.measure.paid_again import RequestChain
from foldline.message import Usage
from foldline.page.request_costs import RequestCosts
from foldline.page.session_reader import FoldChange, FoldHistory, MessageFacts, SessionReader, removed_spans
from foldline.plan.timeline import handles_of
from foldline.session.transcript_session import reply_starts

_GROWTH_REQUESTS = 36
"""The growth of a session is computed from this number of newest requests."""
HIDDEN_KIND = "not in any message"
"""The kind of tokens that the provider counted, but that are in no message and no tool definition."""
_KINDS = (
    "system",
    "tool definitions",
    "digest",
    "user",
    "assistant",
    "thinking",
    "tool calls",
    "tool results",
    "stubs",
    "media",
)
"""The order in which kinds of content are listed. All other kinds come after these."""


CAUSES = {
    "expired": "the cache expired, {minutes} minutes after the previous request",
    "tools": "the client changed its tools",
    "system": "the client changed its system prompt",
    "history": "the client changed messages that it had sent before",
    "model": "the client changed the model",
    "settings": "the client changed a setting of the request",
    "fold": "a fold replaced messages by a digest",
    "lookback": "too many blocks were added between two breakpoints of the cache",
    "provider": "the provider did not read its cache, although the request begins like the previous one",
}
"""For each cause of a cache miss in a receipt, a sentence."""


def cause_text(miss: CacheMiss) -> str:
    """The reason for a cache miss. If the path of the first difference between the two requests is known, it follows in
    parentheses.
    """
    text = CAUSES.get(miss.cause, miss.cause).format(minutes=round(miss.pause_s / 60))
    return f"{text} ({miss.path})" if miss.path else text


def _receipts_by_usage(reader: SessionReader) -> dict[Usage, deque[Receipt]]:
    """The receipts of a branch, grouped by usage. In each group, the oldest receipt comes first."""
    found: dict[Usage, deque[Receipt]] = {}
    after = 0
    while page := read_receipts(reader.store, reader.branch.session, after=after):
        after = page[-1].id
        for receipt in page:
            if receipt.branch == reader.branch.name:
                found.setdefault(receipt.usage, deque()).append(receipt)
    return found


def _compactions(reader: SessionReader) -> dict[FoldReference, FoldReference]:
    """For each fold, the newest compaction among this fold and the folds before it.

    A compaction is a fold that foldline only recorded (see `Fold.compacted_by`). A fold is left out if neither the fold
    itself nor an earlier fold is a compaction.
    """
    found: dict[FoldReference, FoldReference] = {}
    for made in reader.fold_history().folds:
        if reader.fold(made.reference).compacted_by:
            found[made.reference] = made.reference
        elif made.before in found:
            found[made.reference] = found[made.before]
    return found


class RoomLeft(NamedTuple):
    """How many more requests and turns fit. The numbers are estimates; None if the session did not grow."""

    requests_left: int | None
    turns_left: int | None
    """How many more turns fit, computed from `requests_left` and `requests_per_turn`."""
    requests_per_turn: float | None
    """The average number of requests for one prompt of a person; None if the newest requests contain no prompt."""
    growth_requests: int
    """The number of newest requests that the growth was computed from."""


class RequestPoint(NamedTuple):
    """A request: its reply, and the fold that applied when the request was sent."""

    reply: int
    """Index of the reply's first message."""
    change: FoldChange | None
    usage: Usage | None = None
    """The usage of the reply, taken from the first message of the reply that has a usage."""

    @property
    def fold(self) -> FoldReference | None:
        """The fold that applied; None if nothing was folded."""
        return self.change.fold if self.change else None


def request_points(facts: Sequence[MessageFacts], history: FoldHistory) -> list[RequestPoint]:
    """The requests of a session: one for each reply of the model."""
    points = []
    starts = reply_starts((one.role, one.usage) for one in facts)
    for index, end in pairwise([*starts, len(facts)]):
        reply = takewhile(lambda one: one.role == "assistant", facts[index:end])
        usage = next((one.usage for one in reply if one.usage), None)
        points.append(RequestPoint(index, history.applied_at(index), usage))
    return points


class RequestWindow:
    """The content of the window at each request of a session."""

    def __init__(self, reader: SessionReader) -> None:
        self.reader, self.facts = reader, reader.facts()
        self.setup = reader.setup()
        self.history = reader.fold_history()
        self.points = request_points(self.facts, self.history)
        self.compactions = _compactions(reader)
        self.removed = removed_spans(reader.log().marks)
        self.prefix = [0, *accumulate(one.tokens for one in self.facts)]
        self.fixed, self.scale = self.setup.tools + self.setup.extra, reader.scale()
        self.receipts = _receipts_by_usage(reader)
        self.costs = RequestCosts(self.setup.model)
        self.lead = next((index for index, one in enumerate(self.facts) if one.role != "system"), len(self.facts))

    def estimate(self, point: RequestPoint, applied: FoldReference | None) -> int:
        """The size of a request in tokens with this fold or without a fold, estimated with the session's counter."""
        if applied is None:
            return self.fixed + self.prefix[point.reply] - sum(self.facts[at].tokens for at in self._missing(point))
        fold = self.reader.fold(applied)
        kept = fold.pinned_tokens + fold.digest_tokens + fold.carried_tokens
        saved = sum(
            self.facts[index].tokens - tokens for index, (_, tokens) in fold.stubs.items() if index < point.reply
        )
        saved += sum(self.facts[at].tokens for at in self._missing(point, fold) if at >= fold.cut or at in fold.carried)
        head = self.prefix[min(self.lead, fold.cut)]
        return self.fixed + head + kept + self.prefix[point.reply] - self.prefix[fold.cut] - saved

    def _missing(self, point: RequestPoint, fold: Fold | None = None) -> set[int]:
        """The indexes of the notes that were not in a request, because their pins had been removed."""
        spans = [one.position for one in self.removed if one.start <= point.reply < one.stop]
        return {at for at in (*spans, *(fold.removed if fold else ())) if at < point.reply}

    def rows(self) -> list[dict[str, Any]]:
        """One row for each request, oldest first."""
        rows: list[dict[str, Any]] = []
        before: RequestPoint | None = None
        chain = RequestChain()
        for number, point in enumerate(self.points, start=1):
            one = self.facts[point.reply]
            applied = point.fold
            compaction = self.compactions.get(applied) if applied else None
            usage, estimate = point.usage, self.estimate(point, applied)
            sent = usage.prompt if usage else estimate
            more = max(0, self.estimate(point, compaction) - estimate) if applied != compaction else 0
            whole = sent + round(more * (self.scale if usage else 1.0))
            missed = self._missed(chain, before, point, usage) if usage else 0
            cause = self._cause(before, point) if missed and before else ""
            model = one.model or self.setup.model.name
            usd, miss_usd = self.costs.cost(model, usage), self.costs.miss_cost(model, usage, missed)
            receipt = self._receipt(usage)
            if receipt is not None:
                whole, usd, miss = receipt.untouched.prompt, receipt.usd, receipt.miss
                missed, cause = (miss.tokens, self._receipt_cause(miss, before, point)) if miss else (0, "")
                miss_usd = miss.usd if miss else 0.0
            rows.append(
                {
                    "number": number,
                    "message": point.reply + 1,
                    "at": one.at,
                    "model": model,
                    "tokens": sent,
                    "exact": usage is not None,
                    "read": usage.cache_read if usage else None,
                    "written": usage.cache_write if usage else None,
                    "fresh": usage.input if usage else None,
                    "output": usage.output if usage else None,
                    "whole": whole,
                    "fold": self.history.number_of(applied),
                    "compaction": self.history.number_of(compaction),
                    "missed": missed,
                    "missed_usd": miss_usd,
                    "cause": cause,
                    "usd": usd,
                    "untouched_usd": receipt.untouched_usd if receipt else None,
                }
            )
            before = point if usage else before
        return rows

    def _receipt(self, usage: Usage | None) -> Receipt | None:
        """Remove the oldest receipt with this usage from `receipts` and return it; None if there is none."""
        found = self.receipts.get(usage) if usage else None
        return found.popleft() if found else None

    def _receipt_cause(self, miss: CacheMiss, before: RequestPoint | None, point: RequestPoint) -> str:
        """The reason for a cache miss in a receipt, with details about folds and notes from the record."""
        if before and miss.cause == "history" and (note := self._note_between(before, point)):
            return note
        if before and miss.cause == "fold" and self._fold_number(before) != self._fold_number(point):
            return self._fold_cause(point.change)
        return cause_text(miss)

    def _fold_number(self, point: RequestPoint) -> int:
        return self.history.number_of(point.fold)

    def fold_marks(self) -> list[dict[str, Any]]:
        """Each fold, unfold and refold, with the number of requests before it, oldest first."""
        replies = [point.reply for point in self.points]
        return [
            {
                "kind": change.kind,
                "fold": self.history.number_of(change.subject),
                "at": change.at,
                "requests_before": bisect_left(replies, change.length),
            }
            for change in self.history.changes
            if change.subject
        ]

    def _missed(self, chain: RequestChain, last: RequestPoint | None, point: RequestPoint, usage: Usage) -> int:
        """The number of tokens that were in the cache but were paid again."""
        if last is None:
            return chain.paid_again(usage)
        left = self.reader.left_tokens(self.history, last.change, point.change)
        new = self.prefix[point.reply] - self.prefix[last.reply]
        is_replaced = self._summary_between(last, point) or self._is_compaction(last, point)
        return chain.paid_again(usage, left=None if is_replaced else left, new=self.reader.state().scaled(new))

    def _is_compaction(self, last: RequestPoint, point: RequestPoint) -> bool:
        """Whether the agent, its client or its provider compacted the conversation between two requests."""
        return point.fold is not None and point.fold != last.fold and self.compactions.get(point.fold) == point.fold

    def _cause(self, last: RequestPoint, point: RequestPoint) -> str:
        """The reason for a cache miss."""
        old, new = self.facts[last.reply], self.facts[point.reply]
        if summary := self._summary_between(last, point):
            return f"the client replaced its history by a summary (#{summary})"
        if note := self._note_between(last, point):
            return note
        before_number, number = self._fold_number(last), self._fold_number(point)
        if before_number != number:
            return self._fold_cause(point.change)
        if old.model and new.model and old.model != new.model:
            return f"the model changed from {old.model} to {new.model}"
        idle = new.at - old.at if new.at and old.at else 0.0
        life = self.setup.model.cache.ttl_seconds
        if life and idle > life:
            return CAUSES["expired"].format(minutes=round(idle / 60))
        return "the client changed the beginning of its request; the record does not show which part"

    def _fold_cause(self, change: FoldChange | None) -> str:
        """The reason for a cache miss after a change of the fold that applies."""
        if change is None or change.fold is None or change.kind not in ("fold", "refold"):
            return "an unfold brought messages back"
        fold = self.reader.fold(change.fold)
        if fold.compacted_by:
            return f"the conversation was {fold.reason}"
        return CAUSES["fold"].replace("a fold", f"fold {self.history.number_of(change.fold)}")

    def _note_between(self, last: RequestPoint, point: RequestPoint) -> str:
        """A sentence about a note that left the request, or came back, between two requests; "" if there is no such
        note.
        """
        for one in self.removed:
            if last.reply < one.start <= point.reply < one.stop:
                return f"a note left the request together with its pin (#{one.position + 1})"
            if one.start <= last.reply < one.stop <= point.reply:
                return f"a note was pinned again in its old place (#{one.position + 1})"
        return ""

    def _summary_between(self, last: RequestPoint, point: RequestPoint) -> int:
        """The number of the newest message between two requests that has a client's summary; 0 if there is none."""
        added = range(point.reply - 1, last.reply, -1)
        return next((at + 1 for at in added if any(share.kind == "digest" for share in self.facts[at].shares)), 0)

    def window_at(self, number: int, against: int = 0) -> dict[str, Any]:
        """The tokens of each kind of content in the window at a request, and their change since another request.

        `against` is the number of the other request; 0 means the previous one. The tokens of all kinds add up to the
        size of the request.
        """
        against = against or number - 1
        for one in (number, against or 1):
            if not 1 <= one <= len(self.points):
                raise InputError(f"there is no request {one}", hint=f"the session has {len(self.points)} requests")
        point, other = self.points[number - 1], self.points[against - 1] if against else None
        now, before = self.contents(point), self.contents(other) if other else Counter[str]()
        fold = point.fold
        order = {name: place for place, name in enumerate(_KINDS)} | {HIDDEN_KIND: len(_KINDS) + 1}
        return {
            "number": number,
            "against": against,
            "message": point.reply + 1,
            "tokens": sum(now.values()),
            "before": sum(before.values()),
            "cut": fold.cut if fold else 0,
            "added": [(other.reply if other else 0) + 1, point.reply],
            "came": handles_of(self._indexes(point) - self._indexes(other)),
            "went": handles_of(self._indexes(other) - self._indexes(point)),
            "kinds": [
                {"name": name, "tokens": now[name], "before": before[name], "change": now[name] - before[name]}
                for name in sorted({*now, *before}, key=lambda name: (order.get(name, len(_KINDS)), name))
            ],
        }

    def _indexes(self, point: RequestPoint | None) -> set[int]:
        """The indexes of the messages in a request, whole or shortened; an empty set if `point` is None."""
        if point is None:
            return set()
        fold = self.reader.fold(point.fold) if point.fold else None
        if fold is None:
            return set(range(point.reply)) - self._missing(point)
        stays = {*range(min(self.lead, fold.cut)), *fold.pinned, *fold.carried, *range(fold.cut, point.reply)}
        return stays - self._missing(point, fold)

    def contents(self, point: RequestPoint) -> Counter[str]:
        """The tokens of each kind of content in a request. If the provider reported the size of the request, the tokens
        add up to this size.
        """
        found, usage = self._estimated_contents(point), point.usage
        if usage is None:
            return found
        found = Counter({name: round(size * self.scale) for name, size in found.items()})
        total = sum(found.values())
        if usage.prompt >= total:
            found[HIDDEN_KIND] = usage.prompt - total
            return +found
        scaled = Counter({name: size * usage.prompt // total for name, size in found.items()})
        scaled[found.most_common(1)[0][0]] += usage.prompt - sum(scaled.values())
        return +scaled

    def _estimated_contents(self, point: RequestPoint) -> Counter[str]:
        found: Counter[str] = Counter({"tool definitions": self.fixed} if self.fixed else {})
        fold = self.reader.fold(point.fold) if point.fold else None
        stays = {*fold.pinned, *fold.carried} if fold else set[int]()
        first, missing = fold.cut if fold else 0, self._missing(point, fold)
        if fold:
            found["digest"] += fold.digest_tokens
        for index in [*range(min(self.lead, first)), *sorted(stays), *range(first, point.reply)]:
            if index in missing:
                continue
            stub = fold.stubs.get(index) if fold else None
            for share in self.facts[index].shares:
                found[share.kind] += share.tokens if stub is None else 0
            if stub is not None:
                found["stubs"] += stub[1]
        return found

    def room_left(self, tokens: int, limit: int) -> RoomLeft:
        """How many more requests and turns fit below `limit`, if the session grows as in its newest requests."""
        starts = [point.reply for point in self.points][-_GROWTH_REQUESTS:]
        growth = self.scale * (self.prefix[-1] - self.prefix[starts[0]]) / len(starts) if starts else 0.0
        if growth <= 0:
            return RoomLeft(None, None, None, len(starts))
        before = self.points[-len(starts) - 1].reply if len(self.points) > len(starts) else 0
        turns = sum(one.is_prompt for one in self.facts[before:])
        each = len(starts) / turns if turns else None
        requests = max(0, int((limit - tokens) / growth))
        return RoomLeft(requests, int(requests / each) if each else None, each, len(starts))
