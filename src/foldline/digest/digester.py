"""The interface to a digester: the request for a digest, a call and its reply, and the limits of the model.

A `Digester` holds the name of its model, and a function that takes a `DigesterCall` and returns a `DigesterReply`. The
function may be async.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from foldline.digest.extract.facts import Facts
from foldline.digest.markup import SESSION, DigestScope
from foldline.digest.prompt import DigestPrompt
from foldline.errors import check_type
from foldline.measure.estimator import Counter
from foldline.message import Message, Usage
from foldline.models.table import Model
from foldline.models.table import model as model_of

_MIN_WINDOW = 512
"""The smallest context window that is assumed for a model, in tokens."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class DigesterCall:
    """One request to a digester: a system prompt and one user turn, without tools, media or reasoning."""

    system: str
    text: str
    model: str = ""
    max_tokens: int | None = None
    reasoning: str = ""
    """Reasoning effort in the provider's terms; "" for the model's default."""
    seconds: float | None = None
    """Timeout for the reply in seconds; None for no timeout."""
    signal: Any = None
    """The caller's cancellation signal, passed on unchanged."""
    prefix: tuple[Message, ...] = ()
    """The session's own view if the provider has it in its cache, else empty. `system` and `text` follow it as one user
    turn. The session's tools stay in the request, but may not be called.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class DigesterReply:
    """One reply of a digester."""

    text: str = ""
    stop: str = ""
    """The stop reason in the provider's terms."""
    has_tool_calls: bool = False
    has_reasoning: bool = False
    error: str = ""
    usage: Usage | None = None
    model: str = ""


CompleteFunction: TypeAlias = Callable[[DigesterCall], DigesterReply | Awaitable[DigesterReply]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Digester:
    """A model that writes digests."""

    complete: CompleteFunction
    model: str = ""
    window: int = 0
    """Context window in tokens. 0 means the model's window."""
    reply: int = 0
    """Longest reply in tokens, at most half of the window. 0 means the model's longest reply."""
    reasoning: str = ""
    count: Callable[[str], int] | None = None
    """Function that counts the tokens of a text. If None, the model's tokenizer or an upper estimate is used."""
    known: Model = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("window", "reply"):
            check_type(getattr(self, name), int, name, hint="pass a number of tokens")
        known = model_of(self.model)
        window = max(_MIN_WINDOW, self.window or known.window)
        object.__setattr__(self, "known", known)
        object.__setattr__(self, "window", window)
        object.__setattr__(self, "reply", min(self.reply or known.reply, window // 2))

    @property
    def name(self) -> str:
        """The name of the digest's author in the fold record; "model" if the model has no name."""
        return self.model or "model"

    def size(self, text: str) -> int:
        """The number of tokens in a text. If the number is an estimate, its upper limit is returned."""
        return self.count(text) if self.count else _counter(self.model).count(text).upper


@cache
def _counter(model: str) -> Counter:
    from foldline.measure.tokenizers import counter_for  # noqa: PLC0415  # loads a tokenizer

    return counter_for(model)
