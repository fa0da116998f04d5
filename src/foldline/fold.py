"""The record of a fold: what left the view, what stands for it, and what that lost.

Planning drafts it, the digest fills it in, the ledger keeps it and the view is composed from it, so it stands below all
of them. A fold is never changed: another fold follows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from foldline.message import Message, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Report on which facts of the folded messages the digest shows."""

    facts: int
    """Facts that were found in what it stands for."""
    kept: int
    """How many of them it shows."""
    carried: int = 0
    """How many of those the model had left out and were added below its text."""
    missing: tuple[str, ...] = ()
    """Facts that only recall can give back, the weightiest first."""
    unsourced: tuple[str, ...] = ()
    """What the digest claims and nothing it stands for supports."""

    @property
    def coverage(self) -> float:
        """The share of the facts that is shown."""
        return self.kept / self.facts if self.facts else 1.0

    def __str__(self) -> str:
        said = [f"{self.kept:,} of {self.facts:,} facts are shown ({self.coverage:.0%})"]
        if self.carried:
            said[0] += f", {self.carried:,} of them added below the model's text"
        left = self.facts - self.kept
        if left:
            said.append(f"{left:,} only recall can give back{', the weightiest' if left > len(self.missing) else ''}:")
            said += [f"  {fact}" for fact in self.missing]
        if self.unsourced:
            said.append("claimed by the digest, and found nowhere in what it stands for:")
            said += [f"  {claim}" for claim in self.unsourced]
        return "\n".join(said)


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """The text that stands for what was folded, who wrote it, and how well."""

    message: Message
    by: str = "local"
    """`local`, `marker`, or the name of the model that wrote it."""
    cause: str = ""
    """Why the local digest stands where a model's was wanted."""
    loss: Loss | None = None
    usage: Usage | None = None
    """What the model that wrote it was paid for, all its requests together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """The appended record that a prefix left the view.

    `cut` is the first kept message. `pinned` and `carried` are messages before it that stay all the same: pins in front
    of the digest, and the newest prompt and open calls behind it. `stubs` are kept messages that were pruned.
    """

    cut: int
    digest: Digest | None = None
    digest_tokens: int = 0
    pinned: tuple[int, ...] = ()
    pinned_tokens: int = 0
    carried: tuple[int, ...] = ()
    carried_tokens: int = 0
    stubs: Mapping[int, tuple[Message, int]] = field(default_factory=dict)
    reason: str = ""
    made_at: int = 0
    """How many messages there were."""
    before: int = 0
    after: int = 0
    learned: Mapping[str, Any] = field(default_factory=dict)
    """What the provider's figures had taught by then, and of which model: a session opened anew goes on from it."""

    def __str__(self) -> str:
        stay = len(self.pinned) + len(self.carried)
        kept = f", but {stay:,} of them stay" if stay else ""
        lines = [f"{self.cut:,} messages left the view{kept}: ~{self.before:,} → ~{self.after:,} tokens. {self.reason}"]
        if self.stubs:
            lines.append(f"{len(self.stubs):,} results behind them were shortened")
        if self.digest is not None:
            cause = f", because {self.digest.cause}" if self.digest.cause else ""
            lines.append(f"in their place: {self.digest_tokens:,} tokens, written by {self.digest.by}{cause}")
            lines += [str(self.digest.loss)] if self.digest.loss else []
        return "\n".join(lines).rstrip()
