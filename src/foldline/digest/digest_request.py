"""What a digest is asked for (`DigestRequest`), and the outcome when there is none (`FoldRefused`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from foldline.digest.extract.facts import Facts
from foldline.digest.markup import SESSION, DigestScope
from foldline.digest.prompt import DigestPrompt
from foldline.message import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestRequest:
    """The messages to digest, and what the digest must be like."""

    messages: Sequence[Message]
    """The messages that leave the view now and are covered by no digest yet."""
    count_tokens: Callable[[str], int]
    max_tokens: int
    covered_tokens: int = 0
    """Tokens that leave the view; the digest must be smaller. 0: unknown."""
    first_index: int = 0
    facts: Facts | None = None
    """Facts of everything that is folded; by default those of `messages`."""
    cut: int | None = None
    """Index of the first kept message, if the facts reach beyond it."""
    kept_indexes: Collection[int] = ()
    """Messages that stay in the view verbatim, before or after the cut."""
    prior_digest: str = ""
    scope: DigestScope = SESSION
    prompt: DigestPrompt | None = None
    """How the digester is asked; by default for the documented sections."""
    header: str = ""
    """The digest's first line; by default that of the scope."""
    role: str = "user"
    instructions: str = ""
    """The user's wishes for this digest. They are sent to the digester and never put into the view."""
    min_coverage: float = 0.0
    """The share of facts that a model's digest must show; missing ones are appended to it."""
    on_failure: str = "local"
    """When the model fails: `local` writes the local digest, `keep` refuses the fold."""
    with_thinking: bool = False
    """Whether the digester sees the reasoning in the transcript."""
    cached_prefix: tuple[Message, ...] = ()
    """The session's own view, if asking after it is cheaper because the provider has it cached."""
    min_tokens: int | None = None
    """The least size of a model's digest; by default a small share of what it covers."""
    stop_signal: Any = None
    """The caller's cancellation signal: an event, or a token with `is_cancelled`, `cancelled` or `aborted`."""
    plain_list: bool = False
    """For a list of messages without a record: no handles, and the prior digest stays in the new one."""


class FoldRefused(NamedTuple):
    """No fold is made, and why."""

    cause: str
