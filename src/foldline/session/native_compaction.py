"""Folds a session at a compaction block of its provider (Anthropic's `compaction` block, OpenAI's `compaction` item).

The block replaces everything before it. The fold stores the block and a readable digest. A view for the provider that
wrote the block begins with the block; a view for any other model or format has the digest in its place.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from foldline.digest.markup import SESSION
from foldline.errors import Conflict
from foldline.fold import COMPACTIONS, Digest, Fold, NativeSummary
from foldline.message import Message
from foldline.placeholders import compacted_by_provider
from foldline.redact.redact import redact
from foldline.session.digest_writer import WriteOptions
from foldline.session.folding import emit_committed
from foldline.session.record import ATTEMPTS, too_many_conflicts
from foldline.session.state import State
from foldline.view.compose import marker
from foldline.view.identity import ViewIdentity
from foldline.view.native_blocks import holds_summary, summary_of
from foldline.wire.repair.context import native_summary

if TYPE_CHECKING:
    from foldline.session.session import Session


def fold_at_native_summary(session: Session) -> None:
    """Fold everything before the newest compaction block.

    Does nothing if there is no such block, if the block has no summary, or if this fold was already made.
    """
    for _ in range(ATTEMPTS):
        state, entry = session.state, session.state.snapshot.version.entry
        if state.compacted_at < state.timeline.cut or _is_folded(state):
            return
        message = state.timeline.messages[state.compacted_at]
        blocks = [part for part in message.parts if holds_summary(part)]
        if not blocks:
            return
        rest = message.with_parts(*(part for part in message.parts if part not in blocks))
        planned = _planned(state, rest)
        native = summary_of(message, blocks[-1], state.timeline.target)
        fold = state.complete(planned, _digest(session, planned, native))
        try:
            version = session.record.fold(fold, entry)
        except Conflict:
            session.refresh()
            continue
        if len(state.timeline) == fold.made_at == version.length:
            state.apply(fold, version)
        else:
            session.reload()
        emit_committed(session, fold)
        return
    raise too_many_conflicts()


def _is_folded(state: State) -> bool:
    """Whether the newest fold was already made for the newest compaction block."""
    fold = state.timeline.fold
    native = fold.digest.native if fold is not None and fold.digest is not None else None
    return native is not None and state.compacted_at == state.timeline.cut


def _planned(state: State, rest: Message) -> Fold:
    """The fold of everything before the block.

    `rest` is the block's message without the block. If `rest` has parts, it stays in the view. Messages that were added
    after the request was sent to the provider stay, too. The newest prompt stays only if it is not answered.
    """
    timeline, at = state.timeline, state.compacted_at
    fold = state.plan_at(at if rest.parts else at + 1, COMPACTIONS["provider"])
    if rest.parts:
        tokens = state.size(rest)
        fold = replace(fold, stubs={at: (rest, tokens)}, after=fold.after + state.scaled(tokens - timeline.tokens(at)))
    later = set(range(_covered_length(state), at)).difference(fold.pinned)
    carried = later.union(fold.carried)
    before, newest = timeline.messages[at - 1] if at else None, timeline.prompts[-1] if timeline.prompts else -1
    if not rest.parts and newest not in later and before and before.role == "assistant" and not before.calls:
        carried.discard(newest)
    change = sum(map(timeline.tokens, carried)) - sum(map(timeline.tokens, fold.carried))
    carried_tokens, after = fold.carried_tokens + change, fold.after + state.scaled(change)
    return replace(fold, carried=tuple(sorted(carried)), carried_tokens=carried_tokens, after=after)


def _covered_length(state: State) -> int:
    """The number of messages that the provider had read when it wrote the block."""
    timeline, at = state.timeline, state.compacted_at
    reply = timeline.messages[at].meta.reply
    for message in timeline.messages[at:]:
        if message.meta.reply != reply:
            break
        identity = ViewIdentity.read(message.meta.view) if message.meta.view else None
        if identity is not None and timeline.cut <= identity.length <= at:
            return identity.length
    return at


def _digest(session: Session, fold: Fold, native: NativeSummary) -> Digest:
    """The readable digest: the text of the block. If the block has no text, a local digest of the folded messages."""
    state, text = session.state, native_summary(native.message.parts[0])
    readable = compacted_by_provider(redact(text)) if text else None
    written = session.writer.write(state, fold, None, WriteOptions(must=True, text=readable))
    if not isinstance(written, Digest):  # the policy puts nothing in place of folded messages, or no message is folded
        lead = state.timeline.lead
        gone = marker(lead, max(lead, fold.cut - 1), kept=len(fold.pinned) + len(fold.carried))
        written = Digest(message=SESSION.message(readable) if readable else gone, by="marker")
    return replace(written, by="provider" if readable else written.by, native=native)
