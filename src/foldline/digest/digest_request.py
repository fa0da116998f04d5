"""The request for a digest (`DigestRequest`), and the result if no fold is made (`FoldRefused`)."""

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
    """The messages to digest, and the requirements for the digest."""

    messages: Sequence[Message]
    """The messages that leave the view now and are not yet covered by a digest."""
    count_tokens: Callable[[str], int]
    max_tokens: int
    covered_tokens: int = 0
    """Number of tokens that leave the view, or 0 if it is unknown. The digest must be smaller."""
    first_index: int = 0
    facts: Facts | None = None
    """Facts of all folded messages. If None, they are extracted from `messages`."""
    cut: int | None = None
    """Index of the first message that is not folded. None means the end of `facts`."""
    kept_indexes: Collection[int] = ()
    """Indexes of messages that stay in the view verbatim. These messages may precede or follow the cut."""
    prior_digest: str = ""
    scope: DigestScope = SESSION
    prompt: DigestPrompt | None = None
    """The prompt for the digester. None means the prompt with the documented sections."""
    header: str = ""
    """The digest's first line. "" means the first line that `DigestScope` defines."""
    role: str = "user"
    instructions: str = ""
    """The user's wishes for this digest. The wishes are sent to the digester and never put into the view."""
    min_coverage: float = 0.0
    """The share of all facts that a model's digest must show. If it shows less, missing identifiers are appended."""
    on_failure: str = "local"
    """What to do if the model fails: `local` writes the local digest, `keep` refuses the fold."""
    with_thinking: bool = False
    """Whether the digester sees the reasoning in the transcript."""
    cached_prefix: tuple[Message, ...] = ()
    """The session's own view if the provider has it in its cache: a request that begins with it is cheaper."""
    min_tokens: int | None = None
    """The smallest allowed size of a model's digest in tokens. None means a small share of the folded tokens."""
    stop_signal: Any = None
    """The caller's cancellation signal: an object with `is_set`, `is_cancelled`, `cancelled` or `aborted`."""
    plain_list: bool = False
    """True for a list of messages that has no record. Its digest has no handles, and contains the prior digest."""


class FoldRefused(NamedTuple):
    """The result if no fold is made, with the cause."""

    cause: str
