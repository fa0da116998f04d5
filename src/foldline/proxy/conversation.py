"""One conversation of a client: a session, and where the messages of the client's last request are in the session.

The client sends its whole history with every request. Each message of the history is found in the session by its trace,
a hash chain over texts, calls and results. The trace does not change if the client moves a cache breakpoint or leaves
out reasoning. Leading system messages are not part of the chain. These messages are always sent as they are in the
client's request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from foldline.errors import WireError
from foldline.json_text import decode
from foldline.ledger import Branch
from foldline.ledger.message_keys import ROOT, trace
from foldline.ledger.trace_chain import TraceChain
from foldline.message import Message
from foldline.proxy.body_scan import BodyScan, scan_body
from foldline.proxy.cache_misses import AnsweredRequest
from foldline.proxy.client_summaries import is_client_summary
from foldline.session.session import Session
from foldline.session.state import State
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
            data = self.scan.element(index)
            value = self.scan.values.get(index)
            if value is None:
                value = scan_body(b'{"x":[%b]}' % data, "x").values[0]
            found = self.messages[index] = self.format.parse(value, decode(data))
        return found

    def new_messages(self, start: int) -> list[Message]:
        """The messages, starting at index `start`."""
        return [self.message(index) for index in range(start, len(self))]

    def system(self) -> list[Message]:
        """The system messages of the request: the system field, then the leading system messages of the list."""
        found = [self.message(index) for index in range(self.lead)]
        value = self.scan.field(self.format.system_key) if self.format.system_key else None
        if value is not None and self.format.parse_system is not None:
            try:
                found.insert(0, self.format.parse_system(value))
            except WireError:
                return found
        return found


def client_history(scan: BodyScan, format: Format, previous: ClientHistory | None = None) -> ClientHistory:
    """The history of a scanned request. Messages that were also in the previous request are not parsed again."""
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
    """The leading messages of a request that are also in a session."""

    elements: int
    """Number of leading messages of the request that are in the session."""
    place: int
    """The number of messages in the session up to the last message that was found and the notes directly after it."""
    places: list[int]
    """For each message that was found, the number of messages in the session up to and including this message."""
    trace: bytes = ROOT
    """The trace of all messages that were found: the end of their hash chain."""


class RecalledReply(NamedTuple):
    """A reply that the client received without its recall calls.

    After the results of the recall calls, the model usually wrote another reply. The client then received both replies
    joined to one.
    """

    last: int
    """The number of messages in the session up to and including the reply's last message."""
    elements: Sequence[str]
    """The messages that replace the joined reply in later requests: the replies with recall calls, the results of these
    calls, and the last reply.

    If the model called the client's tools together with the recall tool, there is no last reply. The list then ends
    with the results of the recall calls, and the client's results follow in the client's next message.
    """


class Headroom(NamedTuple):
    """How much a session can grow before it may have to be folded."""

    state: State
    """The state of the session for which the headroom was computed."""
    length: int
    """The number of messages in the session."""
    tokens: float
    """The number of tokens that can be added."""


class ClientConversation:
    """One branch of a session, and the client's last request that belongs to this branch."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._entry = session.state.snapshot.version.entry
        """The number of the newest log entry, other than appended messages, at the time when `chain` was computed.

        If the session has a newer entry other than appended messages, for example a fold, `catch_up` computes the chain
        again.
        """
        self.chain = TraceChain()
        """The traces of the session's messages, without the leading system messages."""
        self.first_reply: int | None = None
        """Number of messages in the session up to and including the first reply in `chain`; None without a reply."""
        self.history: ClientHistory | None = None
        """The history in the client's last request."""
        self.places: list[int] = []
        """For each message in `history`, the number of messages in the session up to and including this message."""
        self.confirmed = 0
        """The number of leading messages of the session that the client has sent back.

        After these messages, the session has at most a reply, which the client may still change.
        """
        self.headroom: Headroom | None = None
        """The headroom after the last exchange; None if it is unknown."""
        self.in_flight = 0
        """Number of requests of this conversation that are being answered."""
        self.settings: tuple[str, str] = ("", "")
        """The model and the tools of the last request."""
        self.is_truncated = False
        """Whether the provider silently truncated the last request. An event is emitted only when this becomes True."""
        self.recalled: dict[int, RecalledReply] = {}
        """Replies with recall calls.

        The key is the number of messages in the session up to and including the first message of the reply.
        """
        self.sent: AnsweredRequest | None = None
        """The last request that was answered, with its receipt; None if it is unknown."""

    @property
    def branch(self) -> Branch:
        """The branch of the session in the ledger."""
        return self.session.record.search_target()[1]

    @property
    def start(self) -> int:
        """The session's index at which the client's history begins, not counting its leading system messages."""
        return self.chain.start

    @property
    def length(self) -> int:
        """The number of messages in the session."""
        return self.chain.end

    def load(self, messages: Sequence[Message]) -> None:
        """Read all messages of a session that was opened again."""
        lead = next((index for index, one in enumerate(messages) if one.role not in _LEADING), len(messages))
        summaries = [index for index, one in enumerate(messages) if index >= lead and is_client_summary(one)]
        self.begin(summaries[-1] if summaries else lead)
        self.extend(messages[self.start :])
        self.confirmed = self.length

    def begin(self, start: int) -> None:
        """Begin an empty chain after the first `start` messages of the session."""
        self.chain, self.first_reply, self.confirmed = TraceChain(start), None, start

    def catch_up(self) -> bool:
        """Read the messages that other processes have added to the session. Returns False if there are no such
        messages.
        """
        session = self.session
        session.refresh()
        length, entry = len(session.state.timeline.messages), session.state.snapshot.version.entry
        if entry != self._entry:
            self._entry = entry
            messages = list(session.record.read(self.start, length))
            known = self.length - self.start
            if length < self.length or not self.chain.has_at(self.start, messages[:known]):
                self.begin(self.start)
                self.extend(messages)
                self.history, self.places, self.recalled = None, [], {}
            elif length > self.length:
                self.extend(messages[known:])
            else:
                return False
        elif length > self.length:
            self.extend(list(session.record.read(self.length, length)))
        else:
            return False
        self.confirmed = self.length
        return True

    def is_current(self) -> bool:
        """Whether the session is unchanged since its state was read."""
        version = self.session.record.version()
        return version == self.session.state.version and version.length == self.length

    def is_behind(self) -> bool:
        """Whether messages of the session were added or removed elsewhere, for example by a pin on the web page."""
        self.session.refresh()
        return len(self.session.state.timeline.messages) != self.length

    def extend(self, messages: Sequence[Message]) -> None:
        """Add messages to the chain. The messages must already be in the session."""
        if self.first_reply is None:
            places = (place for place, one in enumerate(messages, self.length + 1) if one.role == "assistant")
            self.first_reply = next(places, None)
        self.chain.extend(messages)

    def truncate(self, place: int) -> None:
        """Shorten the chain to the first `place` messages of the session. The session itself is not changed."""
        self.chain.truncate(place)
        if not self.replied_before(place):
            self.first_reply = None
        kept = next((index for index, one in enumerate(self.places) if one > place), len(self.places))
        if kept < len(self.places):
            self.history, self.places = None, []
        self.confirmed = min(self.confirmed, place)
        self.recalled = {first: reply for first, reply in self.recalled.items() if reply.last <= place}

    def restart(self) -> None:
        """Begin a new chain at the end of the session, because the client has compacted its history."""
        self.begin(self.length)
        self.history, self.places, self.recalled = None, [], {}

    def align(self, history: ClientHistory, known: Alignment | None = None) -> Alignment:
        """Find the longest beginning of a client's history that the session contains.

        `known` is an earlier result for a beginning of the same history. It is used if the session still contains these
        messages.
        """
        if known is None or not self._still_has(known):
            lead = [self.start] * min(history.lead, len(history))
            known = Alignment(len(lead), self.start, lead, ROOT)
        place, before, places = known.place, known.trace, list(known.places)
        for index in range(known.elements, len(history)):
            step = trace("", before, history.message(index))
            found = self.chain.find(place, before, step)
            if found is None:
                return Alignment(index, self.chain.after_notes(place), places, before)
            place, before = found, step
            places.append(place)
        return Alignment(len(history), self.chain.after_notes(place), places, before)

    def shared_alignment(self, history: ClientHistory) -> Alignment | None:
        """The alignment of the messages that the previous request also had; None if there are no such messages."""
        shared = history.scan.shared
        if shared <= history.lead or shared > len(self.places):
            return None
        places = self.places[:shared]
        return Alignment(shared, places[-1], places, self.chain.trace_before(places[-1]))

    def _still_has(self, known: Alignment) -> bool:
        if known.elements < len(known.places) or known.place > self.length or known.place < self.start:
            return False
        return self.chain.trace_before(known.place) == known.trace

    def replied_before(self, place: int) -> bool:
        """Whether the session has a reply before the position `place`."""
        return self.first_reply is not None and self.first_reply <= place

    def remember(self, history: ClientHistory, places: list[int]) -> None:
        """Remember a request, so that the next request can be compared with it."""
        self.history, self.places = history, places
        self.confirmed = max(self.confirmed, places[-1] if places else self.start)
        history.messages = {}
