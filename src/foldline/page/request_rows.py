"""The requests of a session in order: size, cache use, folds, cache misses with their causes, and the window."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Sequence
from itertools import accumulate
from statistics import median
from typing import Any, NamedTuple

from foldline.errors import InputError
from foldline.ledger.receipts import CacheMiss, Receipt, read_receipts
from foldline.message import Usage
from foldline.page.session_reader import FoldChange, MessageFacts, SessionReader
from foldline.plan.fold_cost import prices_of, request_cost

_TURNS = 12
"""The growth of a session is computed from this number of newest turns."""
_MISS_TOKENS = 1_024
"""If fewer tokens are missed than this, no miss is reported."""
_MILLION = 1e6


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
    """The reason for a cache miss, with the first part of the request that differs."""
    text = CAUSES.get(miss.cause, miss.cause).format(minutes=round(miss.pause_s / 60))
    return f"{text} ({miss.path})" if miss.path else text


def _receipts_by_usage(reader: SessionReader) -> dict[Usage, deque[Receipt]]:
    """The receipts of a branch. The key is the usage in the receipt; the oldest receipt comes first."""
    found: dict[Usage, deque[Receipt]] = {}
    after = 0
    while page := read_receipts(reader.store, reader.branch.session, after=after):
        after = page[-1].id
        for receipt in page:
            if receipt.branch == reader.branch.name:
                found.setdefault(receipt.usage, deque()).append(receipt)
    return found


class RequestPoint(NamedTuple):
    """A request: its reply, and the fold that applied when it was sent."""

    reply: int
    """Index of the reply."""
    change: FoldChange | None


def request_points(facts: Sequence[MessageFacts], changes: Sequence[FoldChange]) -> list[RequestPoint]:
    """The requests of a session: one for each reply of the model."""
    lengths = [change.length for change in changes]
    points = []
    for index, one in enumerate(facts):
        follows = index > 0 and facts[index - 1].role == "assistant"
        if one.role != "assistant" or (follows and one.usage is None) or index == 0:
            continue
        if follows and facts[index - 1].usage == one.usage:  # one reply in several messages
            continue
        place = bisect_right(lengths, index)
        points.append(RequestPoint(index, changes[place - 1] if place else None))
    return points


class RequestWindow:
    """The content of the window at each request of a session."""

    def __init__(self, reader: SessionReader) -> None:
        self.reader, self.facts = reader, reader.facts()
        self.setup = reader.setup()
        self.points = request_points(self.facts, reader.fold_changes())
        self.prefix = [0, *accumulate(one.tokens for one in self.facts)]
        self.fixed = self.setup.tools + self.setup.extra
        self.receipts = _receipts_by_usage(reader)
        self.lead = next((index for index, one in enumerate(self.facts) if one.role != "system"), len(self.facts))

    def estimate(self, point: RequestPoint) -> int:
        """The size of a request in tokens, estimated by the session's counter."""
        if point.change is None or point.change.fold is None:
            return self.fixed + self.prefix[point.reply]
        fold = self.reader.fold(point.change.fold)
        kept = fold.pinned_tokens + fold.digest_tokens + fold.carried_tokens
        saved = sum(
            self.facts[index].tokens - tokens for index, (_, tokens) in fold.stubs.items() if index < point.reply
        )
        head = self.prefix[min(self.lead, fold.cut)]
        return self.fixed + head + kept + self.prefix[point.reply] - self.prefix[fold.cut] - saved

    def rows(self) -> list[dict[str, Any]]:
        """One row for each request, oldest first."""
        rows: list[dict[str, Any]] = []
        before: tuple[RequestPoint, Usage] | None = None
        for number, point in enumerate(self.points, start=1):
            one = self.facts[point.reply]
            usage, estimate = one.usage, self.estimate(point)
            sent = usage.prompt if usage else estimate
            whole = sent + max(0, self.fixed + self.prefix[point.reply] - estimate)
            missed, cause = (0, "") if usage is None or before is None else self._miss(before, point, usage)
            receipt = self._receipt(usage)
            if receipt is not None:
                whole = receipt.untouched.prompt
                missed, cause = (receipt.miss.tokens, cause_text(receipt.miss)) if receipt.miss else (0, "")
            rows.append(
                {
                    "number": number,
                    "message": point.reply + 1,
                    "at": one.at,
                    "model": one.model or self.setup.model.name,
                    "tokens": sent,
                    "exact": usage is not None,
                    "read": usage.cache_read if usage else None,
                    "written": usage.cache_write if usage else None,
                    "fresh": usage.input if usage else None,
                    "output": usage.output if usage else None,
                    "whole": whole,
                    "fold": self._fold_number(point),
                    "missed": missed,
                    "cause": cause,
                    "usd": receipt.usd if receipt else None,
                    "untouched_usd": receipt.untouched_usd if receipt else None,
                }
            )
            before = (point, usage) if usage else before
        return rows

    def _receipt(self, usage: Usage | None) -> Receipt | None:
        """The oldest receipt with this usage that was not returned yet; None if the proxy stored none."""
        found = self.receipts.get(usage) if usage else None
        return found.popleft() if found else None

    def _fold_number(self, point: RequestPoint) -> int:
        fold = point.change.fold if point.change else None
        numbers = {(one.branch, one.seq): number for number, one in enumerate(self.reader.log().folds, start=1)}
        return numbers.get((fold.branch, fold.seq), 0) if fold else 0

    def _miss(self, before: tuple[RequestPoint, Usage], point: RequestPoint, usage: Usage) -> tuple[int, str]:
        """The number of tokens that were in the cache but not read from it, and the reason."""
        last, cached = before
        known = cached.cache_read + cached.cache_write or cached.prompt * bool(usage.cache_read or cached.cache_read)
        missed = max(0, min(known, usage.prompt) - usage.cache_read)
        if missed < _MISS_TOKENS:
            return 0, ""
        old, new = self.facts[last.reply], self.facts[point.reply]
        if last.change != point.change:
            return missed, CAUSES[
                "fold"
            ] if point.change and point.change.kind == "fold" else "an unfold brought messages back"
        if old.model and new.model and old.model != new.model:
            return missed, f"the model changed from {old.model} to {new.model}"
        idle = new.at - old.at if new.at and old.at else 0.0
        life = self.setup.model.cache.ttl_seconds
        if life and idle > life:
            return missed, CAUSES["expired"].format(minutes=round(idle / 60))
        return missed, "the beginning of the request changed"

    def window_at(self, number: int) -> dict[str, Any]:
        """The tokens in the window at a request by kind of content, and the change since the previous request."""
        if not 1 <= number <= len(self.points):
            raise InputError(f"there is no request {number}", hint=f"the session has {len(self.points)} requests")
        now = self._contents(self.points[number - 1])
        before = self._contents(self.points[number - 2]) if number > 1 else Counter[str]()
        point = self.points[number - 1]
        earlier = self.points[number - 2].reply if number > 1 else 0
        fold = point.change.fold if point.change else None
        return {
            "number": number,
            "message": point.reply + 1,
            "tokens": sum(now.values()),
            "cut": fold.cut if fold else 0,
            "added": [earlier + 1, point.reply],
            "kinds": [
                {"name": name, "tokens": now[name], "change": now[name] - before[name]}
                for name in sorted({*now, *before}, key=lambda name: -now[name])
            ],
        }

    def _contents(self, point: RequestPoint) -> Counter[str]:
        found: Counter[str] = Counter({"tool definitions": self.fixed} if self.fixed else {})
        fold = self.reader.fold(point.change.fold) if point.change and point.change.fold else None
        stays = {*fold.pinned, *fold.carried} if fold else set[int]()
        first = fold.cut if fold else 0
        if fold:
            found["digest"] += fold.digest_tokens
        for index in [*range(min(self.lead, first)), *sorted(stays), *range(first, point.reply)]:
            stub = fold.stubs.get(index) if fold else None
            for share in self.facts[index].shares:
                found[share.kind] += share.tokens if stub is None else 0
            if stub is not None:
                found["stubs"] += stub[1]
        return found

    def room_left(self, tokens: int, limit: int) -> tuple[int | None, int | None]:
        """The approximate numbers of turns and of requests that still fit below a limit.

        They are computed from the growth in the newest turns and requests; None if there was no growth.
        """
        turns = [index for index, one in enumerate(self.facts) if one.is_prompt][-_TURNS:]
        requests = [point.reply for point in self.points][-3 * _TURNS :]
        return self._count(turns, limit - tokens), self._count(requests, limit - tokens)

    def _count(self, starts: list[int], room: int) -> int | None:
        ends = [*starts[1:], len(self.facts)]
        sizes = [self.prefix[end] - self.prefix[start] for start, end in zip(starts, ends, strict=False)]
        growth = median(sizes) if sizes else 0
        return max(0, int(room // growth)) if growth else None

    def saving(self, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """The tokens and the money that the folds saved, compared with requests that contain the whole conversation.

        The money comes from the receipts of the proxy. Without receipts, the tokens that were left out are counted at
        the price of a cache read.
        """
        sent, whole = sum(row["tokens"] for row in rows), sum(row["whole"] for row in rows)
        paid = [row["untouched_usd"] - row["usd"] for row in rows if None not in (row["usd"], row["untouched_usd"])]
        if paid:
            return {"tokens": whole - sent, "sent": sent, "whole": whole, "money": sum(paid), "from_receipts": True}
        prices = prices_of(self.setup.model)
        money: float | None = None
        if self.setup.model.prices is not None:
            money = 0.0
            for row in rows:
                left_out = row["whole"] - row["tokens"]
                money += request_cost(prices, tokens=left_out, common=left_out, warm=True) / _MILLION
        return {"tokens": whole - sent, "sent": sent, "whole": whole, "money": money, "from_receipts": False}
