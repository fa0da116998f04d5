"""Records of a fold: the cut, the digest that replaces the folded messages, and the loss report.

First the planner makes a fold without a digest. Then the digest is added. Then the ledger stores the fold. The view is
composed from the newest fold. A stored fold is never changed; the next fold replaces it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from foldline.message import Message, Usage

COUNTED_NAMES, LISTED_FACTS = 150, 20
"""Limits of a loss report. At most `COUNTED_NAMES` names, paths and numbers count as facts: those that are most likely
to be needed again. At most `LISTED_FACTS` missing facts are listed.
"""

COMPACTIONS = {
    "agent": "compacted by the agent itself",
    "client": "compacted by the client",
    "provider": "compacted by the provider",
}
"""Who can compact a conversation without foldline; for each of them, the reason of the fold that records such a
compaction.
"""


class Compactions(NamedTuple):
    """The compactions of a session that the agent, the client or the provider made. foldline recorded them as folds."""

    by: str
    """`agent`, `client` or `provider`."""
    folds: int
    """The number of folds that record these compactions. If an agent's file has several compactions, one fold records
    them all.
    """
    messages: int
    """The number of messages that these compactions removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """The loss report: how many facts of the folded messages the digest shows, and which facts are missing.

    The facts are a sample. At most `COUNTED_NAMES` names, paths and numbers of the folded messages are counted.
    """

    facts: int
    """Number of facts in the folded messages."""
    kept: int
    """Number of facts that the digest shows."""
    carried: int = 0
    """Number of facts that foldline appended to the model's text, because the text lacked them. `kept` includes these
    facts.
    """
    missing: tuple[str, ...] = ()
    """At most `LISTED_FACTS` facts that the digest does not show, the most important first; `recall` finds them."""
    unsourced: tuple[str, ...] = ()
    """Claims of the digest that no folded message supports."""

    @property
    def coverage(self) -> float:
        """The share of the facts that the digest shows; 1.0 if there are no facts."""
        return self.kept / self.facts if self.facts else 1.0

    def __str__(self) -> str:
        lines = [f"{self.kept:,} of {self.facts:,} facts are shown ({self.coverage:.0%})"]
        if self.carried:
            lines[0] += f", {self.carried:,} of them added below the model's text"
        if self.facts:
            lines.append(f"facts are a sample: of names, paths and numbers, at most {COUNTED_NAMES} are counted")
        left = self.facts - self.kept
        if left:
            most = f", the {len(self.missing):,} most important" if left > len(self.missing) else ""
            lines += [
                f"{left:,} {'is' if left == 1 else 'are'} only available by recall{most}:",
                *(f"  {fact}" for fact in self.missing),
            ]
        if self.unsourced:
            lines.append("claimed by the digest but not found in the folded messages:")
            lines += [f"  {claim}" for claim in self.unsourced]
        return "\n".join(lines)


class Target(NamedTuple):
    """Where a view is sent: the wire format, the model, and the vendor of the model."""

    format: str = ""
    model: str = ""
    vendor: str = ""


NO_TARGET = Target()


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeSummary:
    """A provider's own summary of the folded messages. It is a signed or encrypted block that only this provider can
    read.

    Only the account that received the block can use it. foldline assumes that a session always uses the same account.
    """

    message: Message
    """A message that holds only the block."""
    maker: Target
    any_model: bool = False
    """Whether other models of the same vendor can read the block."""

    def is_read_by(self, target: Target) -> bool:
        """Whether the block may be sent to this target."""
        maker = self.maker
        if target.format != maker.format or not target.format:
            return False
        return target.model == maker.model or (self.any_model and bool(maker.vendor) and target.vendor == maker.vendor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """The message that replaces the folded messages, its author and its loss report."""

    message: Message
    by: str = "local"
    """The author: `local` (foldline), `marker` (a one-line marker), `hand` (the caller), `provider` (the text of its
    compaction block), or the name of a model.
    """
    cause: str = ""
    """Why foldline wrote the digest, although a model was requested; "" in all other cases."""
    loss: Loss | None = None
    usage: Usage | None = None
    """Token usage of all requests that were made to write this digest."""
    native: NativeSummary | None = None
    """The provider's own summary of the same messages. In requests to this provider, it replaces `message`."""

    def message_for(self, target: Target) -> Message:
        """The message that replaces the folded messages in a view for this target."""
        native = self.native
        return native.message if native is not None and native.is_read_by(target) else self.message


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """The record of one fold. The messages before `cut` are no longer in the view, except for two groups.

    The group `pinned` is shown before the digest. The group `carried` (the newest prompt and open calls) is shown after
    the digest. `stubs` maps the index of a kept message to its pruned form and to the size of this form in tokens.
    """

    cut: int
    lead: int = 0
    """Number of system messages at the start, which stay in the view."""
    digest: Digest | None = None
    digest_tokens: int = 0
    pinned: tuple[int, ...] = ()
    pinned_tokens: int = 0
    carried: tuple[int, ...] = ()
    carried_tokens: int = 0
    stubs: Mapping[int, tuple[Message, int]] = field(default_factory=dict)
    removed: tuple[int, ...] = ()
    """Indexes of the notes after the cut that this fold removes, because their pins were removed before."""
    reason: str = ""
    made_at: int = 0
    """Number of messages of the session when the fold was made."""
    before: int = 0
    after: int = 0
    learned: Mapping[str, Any] = field(default_factory=dict)
    """Corrections of the token estimates, computed from the provider's usage figures, and the model whose estimates
    they correct.

    A reopened session starts with these corrections.
    """

    @property
    def compacted_by(self) -> str:
        """`agent`, `client` or `provider` if one of them removed the messages; "" if foldline made the fold."""
        return next((name for name, reason in COMPACTIONS.items() if reason == self.reason), "")

    @property
    def left(self) -> tuple[range, ...]:
        """Indexes of the messages that are no longer in the view: those before the cut, and the removed notes.

        >>> Fold(cut=9, lead=1, pinned=(1,), carried=(7,), removed=(12,)).left
        (range(2, 7), range(8, 9), range(12, 13))
        """
        first, found = self.lead, []
        for stop in sorted({index for index in (*self.pinned, *self.carried) if index < self.cut} | {self.cut}):
            if first < stop:
                found.append(range(first, stop))
            first = max(first, stop + 1)
        return (*found, *(range(index, index + 1) for index in self.removed))

    @property
    def left_tokens(self) -> int:
        """Number of tokens that the fold removed from the request. The tokens of its digest are not subtracted."""
        return self.before - self.after + self.digest_tokens

    def shows(self, index: int) -> bool:
        """Whether a view with this fold shows a message in full."""
        if index < self.lead:
            return True
        if index in self.stubs or index in self.removed:
            return False
        return index >= self.cut or index in self.pinned or index in self.carried

    def __str__(self) -> str:
        left, stay = sum(map(len, self.left)), len({*self.pinned, *self.carried})
        kept = f" ({stay:,} before the cut {'stays' if stay == 1 else 'stay'})" if stay else ""
        lines = [f"{left:,} messages left the view{kept}: ~{self.before:,} → ~{self.after:,} tokens. {self.reason}"]
        if self.stubs:
            lines.append(f"{len(self.stubs):,} later results were shortened")
        if self.digest is not None:
            cause = f", because {self.digest.cause}" if self.digest.cause else ""
            lines.append(f"replaced by a digest of {self.digest_tokens:,} tokens, written by {self.digest.by}{cause}")
            lines += [str(self.digest.loss)] if self.digest.loss else []
        return "\n".join(lines).rstrip()


def compactions(folds: Iterable[Fold]) -> tuple[Compactions, ...]:
    """The compactions by the agent, by the client and by the provider: at most one sum for each of them."""
    found: dict[str, Compactions] = {}
    for fold in folds:
        if by := fold.compacted_by:
            earlier = found[by].folds if by in found else 0
            found[by] = Compactions(by, earlier + 1, sum(map(len, fold.left)))
    return tuple(found.values())
