"""One conversation as the proxy knows it: a session, and where the messages of the client's last request are in it.

The client sends its whole history with every request. Each message of it is found in the session by its trace, a hash
chain over texts, calls and results, which does not change when a client moves a cache mark or leaves out reasoning.
Leading system messages are not a part of the chain: they belong to the request, and the client's own are always sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from foldline.errors import WireError
from foldline.ledger.message_keys import ROOT, trace
from foldline.message import Message
from foldline.proxy.body_scan import BodyScan, scan_body
from foldline.proxy.cache_misses import AnsweredRequest
from foldline.proxy.client_summaries import is_client_summary
from foldline.session.session import Session
from foldline.wire.formats import Format

_LEADING = frozenset({"system", "developer"})


@dataclass(slots=True)
class ClientHistory:
    """The history in a client's request."""

    scan: BodyScan
    format: Format
    lead: int = 0
    """Number of leading system messages in the list."""
    messages: dict[int, Message] = field(default_factory=dict)
    """The messages that were parsed, by their index in the list."""

    def __len__(self) -> int:
        return len(self.scan.ends)

    def message(self, index: int) -> Message:
        """A message of the list."""
        found = self.messages.get(index)
        if found is None:
            text = self.scan.element(index)
            value = self.scan.values.get(index)
            if value is None:
                value = scan_body(f'{{"x":[{text}]}}', "x").values[0]
            found = self.messages[index] = self.format.parse(value, text)
        return found

    def new_messages(self, start: int) -> list[Message]:
        """The messages from an index on."""
        return [self.message(index) for index in range(start, len(self))]

    def system(self) -> list[Message]:
        """The system messages of the request: those of its system field, and the leading ones of the list."""
        found = [self.message(index) for index in range(self.lead)]
        value = self.scan.field(self.format.system_key) if self.format.system_key else None
        if value is not None and self.format.parse_system is not None:
            try:
                found.insert(0, self.format.parse_system(value))
            except WireError:
                return found
        return found


def client_history(scan: BodyScan, format: Format, previous: ClientHistory | None = None) -> ClientHistory:
    """The history of a scanned request. What it shares with the previous one is not parsed again."""
    history = ClientHistory(scan, format)
    if previous is not None and scan.shared:
        kept = min(scan.shared, previous.lead)
        history.lead = previous.lead
        if scan.shared > previous.lead:
            return history
        history.lead = kept
    while history.lead < len(history) and history.message(history.lead).role in _LEADING:
        history.lead += 1
    return history


class Alignment(NamedTuple):
    """How far the messages of a request are those of a session."""

    elements: int
    """Number of messages of the list that the session has."""
    place: int
    """The session's length up to the last of them."""
    places: list[int]
    """The session's length after each of these messages."""
    trace: bytes = ROOT
    """The trace of these messages."""


class ClientConversation:
    """One branch of a session."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.start = 0
        """Position in the session of the first message of the client's history."""
        self.chain: list[bytes] = []
        """The trace after each message of the session from `start` on."""
        self.has_reply: list[bool] = []
        """Whether the chain up to each of these messages contains a reply."""
        self.history: ClientHistory | None = None
        """The client's last request."""
        self.places: list[int] = []
        """The session's length after each message of that request."""
        self.confirmed = 0
        """The session's length that the client has sent back. What follows is a reply that it may still change."""
        self.in_flight = 0
        """Number of requests that are being answered."""
        self.settings: tuple[str, str] = ("", "")
        """The model and the tools of the last request."""
        self.is_truncated = False
        """Whether it was reported that the provider silently left out a part of a request."""
        self.sent: AnsweredRequest | None = None
        """The last request that was answered, with its receipt; None if it is unknown."""

    @property
    def length(self) -> int:
        """The number of messages of the session."""
        return self.start + len(self.chain)

    def load(self, messages: Sequence[Message]) -> None:
        """Take over all messages of a session that was opened again."""
        lead = next((index for index, one in enumerate(messages) if one.role not in _LEADING), len(messages))
        summaries = [index for index, one in enumerate(messages) if index >= lead and is_client_summary(one)]
        self.start = summaries[-1] if summaries else lead
        self.extend(messages[self.start :])
        self.confirmed = self.length

    def extend(self, messages: Sequence[Message]) -> None:
        """Add messages to the chain that were added to the session."""
        before = self.chain[-1] if self.chain else ROOT
        replied = self.has_reply[-1] if self.has_reply else False
        for message in messages:
            before = trace("", before, message)
            replied = replied or message.role == "assistant"
            self.chain.append(before)
            self.has_reply.append(replied)

    def truncate(self, place: int) -> None:
        """Shorten the chain to a length of the session."""
        del self.chain[place - self.start :], self.has_reply[place - self.start :]
        kept = next((index for index, one in enumerate(self.places) if one > place), len(self.places))
        if kept < len(self.places):
            self.history, self.places = None, []
        self.confirmed = min(self.confirmed, place)

    def restart(self) -> None:
        """Begin a new chain at the end of the session: the client has compacted its history."""
        self.start, self.chain, self.has_reply = self.length, [], []
        self.history, self.places, self.confirmed = None, [], self.start

    def align(self, history: ClientHistory, known: Alignment | None = None) -> Alignment:
        """Find the messages of a request in the session, from its first message on.

        `known` is what was found earlier; it is used if the session still has it.
        """
        if known is None or not self._still_has(known):
            lead = [self.start] * min(history.lead, len(history))
            known = Alignment(len(lead), self.start, lead, ROOT)
        place, before, places = known.place, known.trace, list(known.places)
        for index in range(known.elements, len(history)):
            step = trace("", before, history.message(index))
            if step == before:
                place += self._trace_at(place) == before
            else:
                ahead = place
                while self._trace_at(ahead) == before:
                    ahead += 1
                if self._trace_at(ahead) != step:
                    return Alignment(index, place, places, before)
                place, before = ahead + 1, step
            places.append(place)
        return Alignment(len(history), place, places, before)

    def shared_alignment(self, history: ClientHistory) -> Alignment | None:
        """The alignment of the messages that a request shares with the last one; None if it shares none."""
        shared = history.scan.shared
        if shared <= history.lead or shared > len(self.places):
            return None
        places = self.places[:shared]
        return Alignment(shared, places[-1], places, self._trace_before(places[-1]))

    def _still_has(self, known: Alignment) -> bool:
        if known.elements < len(known.places) or known.place > self.length or known.place < self.start:
            return False
        return self._trace_before(known.place) == known.trace

    def _trace_before(self, place: int) -> bytes:
        """The trace of the first `place` messages of the session."""
        return self.chain[place - self.start - 1] if place > self.start else ROOT

    def _trace_at(self, place: int) -> bytes | None:
        """The trace after the message at a position of the session; None behind its end."""
        index = place - self.start
        return self.chain[index] if 0 <= index < len(self.chain) else None

    def has_at(self, place: int, messages: Sequence[Message]) -> bool:
        """Whether the session has these messages at a position."""
        before = self._trace_before(place)
        for index, message in enumerate(messages, start=place):
            before = trace("", before, message)
            if self._trace_at(index) != before:
                return False
        return True

    def replied_before(self, place: int) -> bool:
        """Whether the session has a reply before a position."""
        return place > self.start and self.has_reply[place - self.start - 1]

    def remember(self, history: ClientHistory, places: list[int]) -> None:
        """Keep a request, to compare the next one with it."""
        self.history, self.places = history, places
        self.confirmed = max(self.confirmed, places[-1] if places else self.start)
        history.messages = {}
