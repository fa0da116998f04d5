"""Makes a session from an agent's session file: its messages, its window, and the size of what is not in the file.

All commands and the web page use this module, so that they report the same figures for a file. The messages of the
session have the same numbers as in the file. A compaction by the agent becomes a fold. The size of the next request is
computed from the usage of the last reply. A file rarely holds the system prompt and the tools; their size is the part
of the reported size that is in no message.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from foldline.errors import Conflict
from foldline.fold import COMPACTIONS, Fold
from foldline.measure.estimator import Counter
from foldline.measure.message_size import message_tokens
from foldline.message import Message, Usage
from foldline.plan.gate import HIDDEN
from foldline.policy import Policy
from foldline.session.native_compaction import fold_at_native_summary
from foldline.session.record import Record
from foldline.session.reply_ties import tie_replies
from foldline.session.session import Session
from foldline.session.setup import DEFAULT_POLICY, setup
from foldline.session.state import State
from foldline.view.identity import UNKNOWN_VIEW
from foldline.wire.formats import Transcript
from foldline.wire.reader import parse
from foldline.wire.session_logs.claude_code import segments


def without_usage(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The messages without their reported usage."""
    return tuple([message.with_meta(replace(message.meta, usage=None)) for message in messages])


def context_segments(transcript: Transcript) -> tuple[tuple[Message, ...], ...]:
    """The messages, split at each recorded compaction.

    Each segment holds the messages that the model saw between two compactions.
    """
    if any(message.kind == "digest" for message in transcript.messages):
        return segments(transcript)
    return (transcript.messages,)


def compacted_messages(transcript: Transcript) -> int:
    """The number of messages that the agent's own compactions removed from the model's context."""
    return len(transcript.messages) - len(context_segments(transcript)[-1])


def names_window(transcript: Transcript, policy: Policy, model: str) -> bool:
    """Whether to use the window that the file names.

    This window is used if the policy sets no window, and if `model` is "" or the model of the file.
    """
    return bool(transcript.window) and policy.window_tokens is None and model in ("", transcript.model)


def transcript_policy(transcript: Transcript, policy: Policy, model: str) -> Policy:
    """The given policy, with the window that the file names if `names_window` is true."""
    return policy.but(window_tokens=transcript.window) if names_window(transcript, policy, model) else policy


def request_messages(transcript: Transcript) -> tuple[Message, ...]:
    """The messages of the newest request. If the file records no request, the messages after the last compaction."""
    sent = transcript.sent
    if sent is None:
        return context_segments(transcript)[-1]
    body = {"messages": list(sent.messages), "model": sent.model or transcript.model}
    return parse(body | ({"system": sent.system} if sent.system else {}), "anthropic").messages


def request_tools(transcript: Transcript) -> Sequence[Any]:
    """The tools of the newest request, as far as the file has them."""
    return transcript.sent.tools if transcript.sent else transcript.tools


def session_of(  # noqa: PLR0913  # all but one are keyword-only
    transcript: Transcript,
    *,
    model: str,
    policy: Policy,
    counter: Counter | None = None,
    record: Record | None = None,
    name: str = "",
    system_tokens: int | None = None,
) -> Session:
    """A session with all messages of a transcript. Its view stands for the request that the agent would send next.

    `system_tokens` is the size of the system prompt and of the tools that are not in the file. If it is given, the
    reported usage is ignored. Without a `record`, no message is shortened on arrival, because the session then shows
    what the agent has sent: whole messages, whose sizes do not depend on the window.
    """
    if record is None:
        policy = policy.but(prune_arrival_tokens=None, prune_arrival_ratio=None)
    extra = _recorded_tokens(transcript, model, policy, counter) if system_tokens is None else system_tokens
    if system_tokens is not None:
        transcript = replace(transcript, messages=without_usage(transcript.messages))
    session = Session(
        model=model,
        policy=transcript_policy(transcript, policy, model),
        tools=request_tools(transcript),
        extra_tokens=extra,
        counter=counter,
        record=record,
        name=name,
    )
    session.reload(trusts_first_usage=True)
    fill_session(session, transcript)
    return session


def tokens_outside_messages(transcript: Transcript, model: str, counter: Counter | None = None) -> int:
    """The tokens of each request that are in no message and in no tool of the file, such as the system prompt."""
    session = session_of(transcript, model=model, policy=Policy.preset(DEFAULT_POLICY), counter=counter)
    return session.load().blocks.get(HIDDEN, 0)


def reply_starts(messages: Iterable[tuple[str, Usage | None]]) -> list[int]:
    """The index of the first message of each reply. Each message is given as its role and its usage.

    A reply may consist of several messages. One of them or all of them report the usage of the reply. An assistant
    message begins a new reply if its usage differs from the usage of the reply before it.

    >>> one, other = Usage(input=10), Usage(input=20)
    >>> reply_starts([("user", None), ("assistant", None), ("assistant", one), ("assistant", other)])
    [1, 3]
    """
    starts: list[int] = []
    reported: Usage | None = None
    follows = True  # a reply needs a request before it
    for index, (role, usage) in enumerate(messages):
        if role != "assistant":
            follows, reported = False, None
            continue
        if not follows or (reported is not None and usage is not None and usage != reported):
            starts.append(index)
            reported = None
        follows, reported = True, usage or reported
    return starts


def _recorded_tokens(transcript: Transcript, model: str, policy: Policy, counter: Counter | None) -> int:
    """Tokens of the recorded request that are not in the messages of the file."""
    if transcript.sent is None:
        return 0
    made = setup({}, model=model, policy=policy, counter=counter)

    def size(messages: Iterable[Message]) -> int:
        return sum(message_tokens(message, made.counter, made.framing) for message in messages)

    return max(0, size(request_messages(transcript)) - size(context_segments(transcript)[-1]))


def fill_session(session: Session, transcript: Transcript) -> None:
    """Add all messages of a transcript to a new session, so that a message has the same number as in the file."""
    messages, compacted = transcript.messages, compacted_messages(transcript)
    first = len(context_segments(transcript)[0])
    session.record.append(_tied_to_whole_requests(session.state, messages[:first]))
    session.record.append(tie_replies(messages[first:compacted], UNKNOWN_VIEW))
    append_context(session, messages, max(first, compacted), compacted)


def append_context(  # noqa: PLR0913 (two are keyword-only)
    session: Session,
    messages: Sequence[Message],
    start: int,
    compacted: int,
    *,
    shift: int = 0,
    length: int | None = None,
) -> None:
    """Append the messages that the agent added after its last compaction: `messages[start:]`.

    `compacted` is the number of messages that the agent's compactions removed from its context. `shift` is the number
    of notes that foldline added to the session before this point; they are not in `messages`. `length` is the length
    that the session must have. If it has another length, another process has changed the session, and `Conflict` is
    raised.
    """
    session.refresh()
    if length is not None and len(session) != length:
        raise Conflict("other messages were appended meanwhile", hint="read the new messages, then append again")
    cut = compacted + shift if compacted else 0
    if start == compacted and cut > session.timeline.cut:
        session.record.fold(_compaction(session, messages, compacted, cut), session.state.snapshot.version.entry)
        session.refresh()
    fold = session.timeline.fold
    is_same = (fold.cut if fold else 0) == cut
    new = messages[start:]
    session.record.append(_tied_to_whole_requests(session.state, new) if is_same else tie_replies(new, UNKNOWN_VIEW))
    session.refresh()
    fold_at_native_summary(session)


def _tied_to_whole_requests(state: State, messages: Iterable[Message]) -> list[Message]:
    """New messages of the agent. Each reply has the identity of the request that the agent sent for it.

    The session may show a message in shortened form, but the agent sent the whole message. So the identity holds the
    size of the whole messages. Otherwise the reported size would seem to include tokens that are in no message, and
    these tokens would be counted as a part of the system prompt.
    """
    timeline, identity, tied = state.timeline, state.identity(), []
    changed = [at for at in range(timeline.cut, len(timeline)) if timeline.shown[at] is not timeline.messages[at]]
    shortened = [at for at in changed if at not in timeline.removed]
    tokens = identity.tokens + sum(state.size(timeline.messages[at]) - timeline.tokens(at) for at in shortened)
    for length, message in enumerate(messages, start=identity.length):
        tied += tie_replies([message], identity._replace(length=length, tokens=tokens))
        tokens += state.size(message)
    return tied


def _compaction(session: Session, messages: Sequence[Message], compacted: int, cut: int) -> Fold:
    """The fold for a compaction in which the agent itself replaced the first `compacted` messages of its file.

    The fold has no digest, because the agent's summary is the first message after the cut. Pins stay.
    """
    pinned = sorted(index for index in session.timeline.pins if index < cut)
    return Fold(
        cut=cut,
        lead=min(session.timeline.lead, cut),
        pinned=tuple(pinned),
        pinned_tokens=sum(session.timeline.tokens(index) for index in pinned),
        reason=COMPACTIONS["agent"],
        made_at=cut,
        before=_reported(reversed(messages[:compacted])),
        after=_reported(messages[compacted:]),
    )


def _reported(messages: Iterable[Message]) -> int:
    """The size in tokens of the first request whose usage is reported; 0 if no message has usage."""
    return next((message.meta.usage.prompt for message in messages if message.meta.usage), 0)
