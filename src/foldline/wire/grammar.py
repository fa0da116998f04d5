"""The type of a wire format's grammar: what its provider accepts, as plain data that repair and validation read.

Each format's grammar is in its folder (`anthropic/grammar.py`, ...). A request that breaks a rule is answered with 400,
and so is every later one, because the history is sent again. The provider's answer is stored beside the rule.

Left out, because a request alone cannot show them: whether a signature is genuine, which reasoning item a built-in call
belongs to, the pixels of an image, and what depends on request parameters (thinking switched on or off).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from foldline.wire.validate.plain_request import PlainRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """Sizes above which a provider refuses a request. None: no such limit is known."""

    media: int | None = None
    media_bytes: int | None = None
    """Characters of base64 text, as it is sent."""
    total_bytes: int | None = None
    breakpoints: int | None = None
    messages: int | None = None
    source: str = ""
    """Pages that state the limits, and the month in which they were read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """What a provider accepts in the message list of a format."""

    name: str
    """The format's name for people."""
    read: Callable[[list[Any], Mapping[str, Any]], PlainRequest]
    """Reads elements and request body for validation, without the format's parser."""
    limits: RequestLimits
    roles: tuple[str, ...]
    """Roles that an element may have."""
    start: tuple[str, ...] = ()
    """Roles that may come first; empty: any."""
    end: tuple[str, ...] = ()
    """Roles that may come last; empty: any."""
    needs_user: bool = True
    alternation: Literal["merged", "required", "free"] = "free"
    """merged: neighbours of one role count as one turn; required: they are refused."""
    pairing: Literal["id", "name"] = "id"
    """How a result finds its call: by id, or by name and order where ids are missing."""
    adjacency: Literal["turn", "message", "after"] = "turn"
    """Where results must stand: in the next turn, directly after the calling message, anywhere after their calls."""
    unique: Literal["request", "reply"] = "request"
    """Scope in which a call id must be unique."""
    results_first: bool = False
    results_are_user: bool = False
    """Whether a message that holds only results counts as the user's."""
    blank: Literal["whitespace", "empty", "allowed"] = "allowed"
    """Texts that are refused: those without a visible character, or only those without any."""
    empty: tuple[str, ...] = ()
    """Roles that may come without content."""
    empty_must_be_text: bool = False
    """Whether a message without content must hold "", and neither null nor an empty list."""
    signed_thinking: bool = False
    thinking_last: bool = True
    """Whether a reply may end with thinking."""
    reasoning_followed: bool = False
    """Whether a reasoning item needs an output item after it."""
    calls_after_user: bool = False
    server_calls: tuple[str, ...] = ()
    """Kinds of parts that are calls which the provider runs itself, and which need their result in a later request."""
    open_calls: tuple[str, ...] = ()
    """Kinds of calls that may stay without a result."""
    inline_system: Literal["after user", "free", "refused"] = "free"
    """Where a system message may stand inside the list; where it is refused, it is sent as the user's."""
    kinds_are_user: bool = False
    """Whether notes, digests and shell runs are sent as the user's messages, whatever their role."""
    media_roles: tuple[str, ...] = ("user",)
    media_in_results: bool = True
    error_text_only: bool = False
    """Whether a result marked as an error must have text, and nothing but text."""
    item_ids: bool = False
    """Whether elements have ids, none of which may occur twice."""
    id_form: str = r".{1,64}"
    name_form: str = r"[a-zA-Z0-9_-]{1,64}"
    renders_legal_ids: bool = False
    """Whether the renderer itself makes call ids and tool names legal, unless they came in this format."""
    is_malformed: Callable[[Mapping[str, Any]], bool] = lambda _element: False
    """Whether an element breaks a rule that its parts do not show."""
    has_valid_input: Callable[[Mapping[str, Any]], bool] = lambda _call: True
    """Whether a call, as it came, has its arguments in the form of the format."""
    says: Mapping[str, str] = field(default_factory=dict)
    """The provider's answer, by violation code."""

    def is_blank(self, text: str) -> bool:
        """True for a text that is refused as blank."""
        return self.blank != "allowed" and not (text.strip() if self.blank == "whitespace" else text)

    def is_legal_id(self, text: str) -> bool:
        """True for an accepted call id."""
        return _full_match(self.id_form)(text) is not None

    def is_legal_name(self, text: str) -> bool:
        """True for an accepted tool name."""
        return _full_match(self.name_form)(text) is not None


@cache
def _full_match(pattern: str) -> Callable[[str], re.Match[str] | None]:
    return re.compile(pattern, re.DOTALL).fullmatch
