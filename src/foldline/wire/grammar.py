"""The type of a wire format's grammar: the provider's rules as plain data, which repair and validation use.

Each format's grammar is in its folder (`anthropic/grammar.py`, ...). If a request breaks a rule, the provider answers
with status 400. The provider also refuses all later requests, because each of them repeats the history. The field
`says` holds the texts of the provider's answers.

A grammar leaves out rules that cannot be checked on the messages alone. Some of these rules need knowledge that only
the provider has: whether a signature is genuine, and which reasoning item a built-in call belongs to. Other rules
depend on parameters of the request, for example on whether thinking is switched on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from foldline.wire.object_fields import ObjectFields
    from foldline.wire.validate.plain_request import PlainRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """The counts and sizes above which a provider refuses a request. None means that no limit is known."""

    media: int | None = None
    media_bytes: int | None = None
    """The limit for one media part, in characters of base64 text."""
    total_bytes: int | None = None
    breakpoints: int | None = None
    messages: int | None = None
    pixels: int | None = None
    """The limit for the longer side of an image."""
    many_images: int | None = None
    """The number of images above which `pixels_of_many` is the limit."""
    pixels_of_many: int | None = None
    source: str = ""
    """The web pages that state the limits, and the month in which they were read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """The rules of a provider for the message list of a request."""

    name: str
    """The format's name for display."""
    read: Callable[[list[Any], Mapping[str, Any]], PlainRequest]
    """Reads the elements and the request body for validation, without the format's parser."""
    limits: RequestLimits
    request_fields: ObjectFields | None = None
    """The fields of a request."""
    other_fields: bool = False
    """Whether a request may also have fields that are not listed.

    Servers that imitate the provider accept such fields.
    """
    roles: tuple[str, ...] = ()
    """Roles that an element may have."""
    start: tuple[str, ...] = ()
    """Roles that the first message may have. Empty if every role is allowed."""
    end: tuple[str, ...] = ()
    """Roles that the last message may have. Empty if every role is allowed."""
    conversation_fields: tuple[str, ...] = ()
    """Request fields that refer to messages which the server stores.

    If a request has such a field, its list of messages may be empty.
    """
    needs_user: bool = True
    alternation: Literal["merged", "required", "free"] = "free"
    """How the provider treats consecutive messages of one role.

    With "merged", such messages count as one turn. With "required", such messages are refused. With "free", they are
    accepted.
    """
    pairing: Literal["id", "name"] = "id"
    """How a result is matched with its call: by id, or by name and order if ids are missing."""
    adjacency: Literal["turn", "message", "after"] = "turn"
    """Where results must be: in the next turn, directly after the message with the calls, or anywhere after it."""
    unique: Literal["request", "reply"] = "request"
    """The scope in which a call id must be unique."""
    results_first: bool = False
    results_together: bool = False
    """Whether all results of a reply must be in the one message that directly follows the message with the calls."""
    result_types: Mapping[str, str] = field(default_factory=dict)
    """For each type of element that holds a result, the kind of call that it may answer.

    Empty if results have one form for all kinds of calls.
    """
    results_are_user: bool = False
    """Whether a message that holds only results counts as a user message."""
    blank: Literal["whitespace", "empty", "allowed"] = "allowed"
    """Which texts are refused.

    With "whitespace", texts without a visible character are refused. With "empty", only "" is refused. With "allowed",
    no text is refused.
    """
    empty: tuple[str, ...] = ()
    """Roles whose messages may be sent without content."""
    empty_must_be_text: bool = False
    """Whether a message without content must have the content "" (null and an empty list are refused)."""
    signed_thinking: bool = False
    thinking_last: bool = True
    """Whether a reply may end with thinking."""
    reasoning_followed: bool = False
    """Whether a reasoning item needs an output item after it."""
    calls_after_user: bool = False
    server_calls: tuple[str, ...] = ()
    """Kinds of parts that are server-side calls.

    The provider runs such calls, and a later request must hold the result.
    """
    open_calls: tuple[str, ...] = ()
    """Kinds of calls that may stay without a result."""
    inline_system: Literal["after user", "free", "refused"] = "free"
    """Where in the list a system message may be; if "refused", it is sent as a user message."""
    kinds_are_user: bool = False
    """Whether notes, digests and shell commands are sent as user messages, regardless of their role."""
    media_roles: tuple[str, ...] = ("user",)
    media_in_results: bool = True
    image_types: frozenset[str] = frozenset()
    """The media types of images; empty if every type is accepted."""
    image_type_matches: bool = False
    """Whether the stated type of an image must be the type that its first bytes show."""
    image_addresses: tuple[str, ...] = ()
    """The texts with which the address of an image may begin; empty if every address with a scheme is accepted."""
    error_text_only: bool = False
    """Whether a result that is marked as an error must hold text and nothing else."""
    item_ids: bool = False
    """Whether elements have ids that must be unique."""
    id_form: str = r".{1,64}"
    name_form: str = r"[a-zA-Z0-9_-]{1,64}"
    renders_legal_ids: bool = False
    """Whether the renderer makes call ids and tool names legal. Messages that are sent verbatim are not changed."""
    sendable_element: Callable[[dict[str, Any]], dict[str, Any]] = lambda element: element
    """Returns an element without fields that the provider refuses; the same object if it has no such fields."""
    sendable_block: Callable[[Any], Any] = lambda block: block
    """Returns a block of an element without fields that the provider refuses; the same object if nothing changes."""
    signed_call: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """Takes the first call of a reply and returns it with a signature; the same object if it already has a signature.

    This field is None if calls need no signature.
    """
    is_malformed: Callable[[Mapping[str, Any]], bool] = lambda _element: False
    """Returns True if an element breaks a rule for its JSON form. The parsed message does not show such a mistake."""
    has_valid_input: Callable[[Mapping[str, Any]], bool] = lambda _call: True
    """Returns True if a call's wire value holds its arguments in the form that the provider expects."""
    says: Mapping[str, str] = field(default_factory=dict)
    """For each violation code, the text of the provider's answer."""

    def is_blank(self, text: str) -> bool:
        """True for a text that is refused as blank."""
        return self.blank != "allowed" and not (text.strip() if self.blank == "whitespace" else text)

    def is_legal_id(self, text: str) -> bool:
        """True for a call id that the provider accepts."""
        return _full_match(self.id_form)(text) is not None

    def is_legal_name(self, text: str) -> bool:
        """True for a tool name that the provider accepts."""
        return _full_match(self.name_form)(text) is not None


@cache
def _full_match(pattern: str) -> Callable[[str], re.Match[str] | None]:
    return re.compile(pattern, re.DOTALL).fullmatch
