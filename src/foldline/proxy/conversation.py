"""One conversation of a client: a session, and where the messages of the client's last request are in the session.

The client sends its whole history with every request. Each message of the history is found in the session by its trace,
a hash chain over texts, calls and results. The trace does not change if the client moves a cache mark or leaves out
reasoning. Leading system messages are not part of the chain. They belong to the request: those of the client are always
sent.
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
    """The messages that have been parsed. The key is the index in the list."""

    def __len__(self) -> int:
        return len(self.scan.ends)

    def message(self, index: int) -> Message:
        """The message with this index in the list."""
        found = self.messages.get(index)
        if found is None:
            text = self.scan.element(index)
            value = self.scan.values.get(index)
            if value is None:
                value = scan_body(f'{{"x":[{text}]}}', "x").values[0]
            found = self.messages[index] = self.format.parse(value, text)
        return found

    def new_messages(self, start: int) -> list[Message]:
        """The messages from the index `start` on."""
        return [self.message(index) for index in range(start, len(self))]

    def system(self) -> list[Message]:
        """The system messages of the request: first that of the system field, then the leading ones of the list."""
        found = [self.message(index) for index in range(self.lead)]
        value = self.scan.field(self.format.system_key) if self.format.system_key else None
        if value is not None and self.format.parse_system is not None:
            try:
                found.insert(0, self.format.parse_system(value))
            except WireError:
                return found
        return found


def client_history(scan: BodyScan, format: Format, previous: ClientHistory | None = None) -> ClientHistory:
    """The history of a scanned request. Messages that it shares with the previous request are not parsed again."""
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
    """Which messages of a request are in a session, from the first message on."""

    elements: int
    """Number of leading messages of the request that are in the session."""
    place: int
    """The number of messages in the session up to and including the last of these messages."""
    places: list[int]
    """For each of these messages, the number of messages in the session up to and including it."""
    trace: bytes = ROOT
    """The trace of these messages."""


class ClientConversation:
    """One branch of a session, and the last request of the client to it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.start = 0
        """Position in the session of the first message of the client's history."""
        self.chain: list[bytes] = []
        """For each message of the session from `start` on, the trace after it."""
        self.has_reply: list[bool] = []
        """For each of these messages, whether it or an earlier one is a reply."""
        self.history: ClientHistory | None = None
        """The history in the client's last request."""
        self.places: list[int] = []
        """For each message of that request, the number of messages in the session up to and including it."""
        self.confirmed = 0
        """The number of leading messages of the session that the client has sent back.

        After them comes at most a reply, which the client may still change.
        """
        self.in_flight = 0
        """Number of requests of this conversation that are being answered."""
        self.settings: tuple[str, str] = ("", "")
        """The model and the tools of the last request."""
        self.is_truncated = False
        """Whether the provider silently left out a part of the last request, and this was reported."""
        self.sent: AnsweredRequest | None = None
        """The last request that was answered, with its receipt; None if it is unknown."""

    @property
    def length(self) -> int:
        """The number of messages in the session."""
        return self.start + len(self.chain)

    def load(self, messages: Sequence[Message]) -> None:
        """Read all messages of a session that was opened again."""
        lead = next((index for index, one in enumerate(messages) if one.role not in _LEADING), len(messages))
        summaries = [index for index, one in enumerate(messages) if index >= lead and is_client_summary(one)]
        self.start = summaries[-1] if summaries else lead
        self.extend(messages[self.start :])
        self.confirmed = self.length

    def extend(self, messages: Sequence[Message]) -> None:
        """Add messages to the chain. They must have been added to the session."""
        before = self.chain[-1] if self.chain else ROOT
        replied = self.has_reply[-1] if self.has_reply else False
        for message in messages:
            before = trace("", before, message)
            replied = replied or message.role == "assistant"
            self.chain.append(before)
            self.has_reply.append(replied)

    def truncate(self, place: int) -> None:
        """Shorten the chain so that the session has `place` messages."""
        del self.chain[place - self.start :], self.has_reply[place - self.start :]
        kept = next((index for index, one in enumerate(self.places) if one > place), len(self.places))
        if kept < len(self.places):
            self.history, self.places = None, []
        self.confirmed = min(self.confirmed, place)

    def restart(self) -> None:
        """Begin a new chain at the end of the session, because the client has compacted its history."""
        self.start, self.chain, self.has_reply = self.length, [], []
        self.history, self.places, self.confirmed = None, [], self.start

    def align(self, history: ClientHistory, known: Alignment | None = None) -> Alignment:
        """Find the messages of a request in the session, from the first message on.

        `known` is an earlier result for the first messages. It is used if the session still contains them.
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
        """The alignment of the messages that a request shares with the last request; None if it shares none."""
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
        """The trace after the message at position `place` of the session; None if there is no such message."""
        index = place - self.start
        return self.chain[index] if 0 <= index < len(self.chain) else None

    def has_at(self, place: int, messages: Sequence[Message]) -> bool:
        """Whether the session has these messages from the position `place` on."""
        before = self._trace_before(place)
        for index, message in enumerate(messages, start=place):
            before = trace("", before, message)
            if self._trace_at(index) != before:
                return False
        return True

    def replied_before(self, place: int) -> bool:
        """Whether the session has a reply before the position `place`."""
        return place > self.start and self.has_reply[place - self.start - 1]

    def remember(self, history: ClientHistory, places: list[int]) -> None:
        """Remember a request, so that the next request can be compared with it."""
        self.history, self.places = history, places
        self.confirmed = max(self.confirmed, places[-1] if places else self.start)
        history.messages = {}
