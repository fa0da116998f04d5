"""Checks a request, exactly as it would be sent, against its format's grammar and limits.

`check` reads plain JSON without the format's parser, so that it also finds mistakes of the parser. `check` accepts any
JSON value without raising, and takes linear time, so that every test and benchmark can check every view.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, zip_longest
from typing import Any

from foldline.measure.media_tokens import image_size
from foldline.models.table import model as model_of
from foldline.wire.formats import element_format, grammar_of, request_format
from foldline.wire.grammar import Grammar, RequestLimits
from foldline.wire.json_values import fault_of
from foldline.wire.validate.calls_and_results import check_adjacent, check_anywhere, check_server_calls, is_paused_turn
from foldline.wire.validate.plain_request import PlainBlock, PlainRequest, PlainTurn, Violation

_FAULTS = {
    "unicode": "a text holds a lone surrogate, which UTF-8 cannot encode",
    "number": "a number is NaN or infinite",
    "shape": "a value is not JSON",
}
_STARTS = {"iVBORw0KGgo": "image/png", "/9j/": "image/jpeg", "R0lGOD": "image/gif", "UklGR": "image/webp"}
"""The media types of images by the beginning of their base64 data."""
_NOT_SHOWN = ("image/heic", "image/heif")
_ENDS_IN_BASE64 = re.compile(r"[A-Za-z0-9+/]*+={0,2}").fullmatch


def check(
    format: str, body: Any, *, grammar: Grammar | None = None, limits: RequestLimits | None = None
) -> tuple[Violation, ...]:
    """All rules that a request breaks. The request is a body or a bare list of messages.

    >>> [str(found) for found in check("openai", [{"role": "user"}])]
    ["[empty] message 0: a message without content (OpenAI: Invalid value for 'content': expected a string, got null.)"]
    """
    name = body.get("model") if isinstance(body, Mapping) else None
    grammar = grammar or grammar_of(format, model_of(name) if isinstance(name, str) else None)
    target = request_format(element_format(format))
    key = target.list_key
    elements = body.get(key) if isinstance(body, Mapping) else body
    if isinstance(elements, str) and target.text_list:
        elements = [{"role": "user", "content": elements}] if elements.strip() else []
    fields = body if isinstance(body, Mapping) else {}
    is_continued = any(fields.get(name) for name in grammar.conversation_fields)
    if elements is None and is_continued:
        elements = []
    if not isinstance(elements, list | tuple):
        return (Violation("shape", -1, f"there is no list of messages under {key!r}"),)
    request = grammar.read(list(elements), fields)
    turns = _merged_turns(request.turns, grammar)
    violations = [
        *request.violations,
        *_check_values(elements, {name: value for name, value in fields.items() if name != key}),
        *(() if elements or is_continued else (Violation("empty-request", -1, "there is no message"),)),
        *_check_request_fields(fields, {key, target.system_key}, grammar),
        *_check_blocks(request.turns, grammar),
        *_check_first_and_last(turns, grammar),
        *_check_system_messages(request.turns, grammar),
        *_check_sizes(request, len(elements), limits or grammar.limits),
        *_check_images(request, grammar),
        *(check_anywhere(turns) if grammar.adjacency == "after" else check_adjacent(turns, grammar)),
        *_check_thinking(turns, grammar),
        *check_server_calls(turns, grammar),
    ]
    if is_continued:  # the server may store the calls
        violations = [each for each in violations if each.code != "result-orphan"]
    violations.sort(key=lambda violation: violation.index)
    return tuple(
        replace(each, message=f"{each.message} ({grammar.name}: {grammar.says[each.code]})")
        if each.code in grammar.says
        else each
        for each in violations
    )


def _check_request_fields(fields: Mapping[str, Any], rendered: set[str], grammar: Grammar) -> Iterator[Violation]:
    """Violations for unknown and missing fields of a request.

    A body with only the `rendered` fields (messages and system text) is not a whole request, so no missing field is
    reported.
    """
    known = grammar.request_fields
    if known is None:
        return
    for name, value in fields.items() if not grammar.other_fields else ():
        if name not in known.known:
            yield Violation("request-field", -1, f"the request has the unknown field {str(name)[:80]!r}")
        elif value is None and name in known.not_null:
            yield Violation("request-field", -1, f"the field {name!r} of the request is null")
    for name in known.required if not fields.keys() <= rendered else ():
        if name not in fields:
            yield Violation("request-field", -1, f"the request has no {name}")


def _check_values(elements: Sequence[Any], rest: Mapping[str, Any]) -> Iterator[Violation]:
    """Violations for values that JSON in UTF-8 cannot hold: lone surrogates, NaN, Infinity, Python objects."""
    for index, value in enumerate((rest, *elements), start=-1):
        code = fault_of(value)
        if code:
            yield Violation(code, index, _FAULTS[code])


def _merged_turns(turns: list[PlainTurn], grammar: Grammar) -> list[PlainTurn]:
    """The turns. Consecutive turns of one role are merged if the format counts them as one turn.

    In some formats, only turns with results are merged.
    """
    if grammar.adjacency == "after":
        return turns
    merged: list[PlainTurn] = []
    for turn in turns:
        if grammar.alternation == "merged" and turn.role == "system":
            continue
        joins = grammar.alternation == "merged" or (grammar.adjacency == "message" and turn.role == "tool")
        if joins and merged and merged[-1].role == turn.role:
            merged[-1].blocks.extend(turn.blocks)
        else:
            merged.append(turn._replace(blocks=turn.blocks[:]) if joins else turn)
    return merged


def _check_blocks(turns: list[PlainTurn], grammar: Grammar) -> Iterator[Violation]:
    for turn in turns:
        if not turn.blocks and turn.role not in grammar.empty:
            yield Violation("empty", turn.at, "a message without content")
        for block in turn.blocks:
            kind = block.kind
            if kind == "call":
                yield from _check_call(block, turn, grammar)
            elif kind == "result":
                yield from _check_result(block, turn, grammar)
            elif kind == "text" and grammar.is_blank(block.text):
                yield Violation("blank", block.at, "a text without a visible character")
            elif kind == "media" and turn.role not in grammar.media_roles:
                yield Violation("media-role", block.at, f"media in a message of the {turn.role}")
            elif kind == "thinking" and turn.role != "assistant":
                yield Violation("thinking-role", block.at, f"thinking in a message of the {turn.role}")
            elif kind == "thinking" and grammar.signed_thinking and not block.signed:
                yield Violation("thinking-unsigned", block.at, "thinking without its signature")
            elif kind.startswith("server-") and grammar.server_calls and turn.role != "assistant":
                yield Violation("call-role", block.at, f"the provider's own tool in a message of the {turn.role}")


def _check_call(block: PlainBlock, turn: PlainTurn, grammar: Grammar) -> Iterator[Violation]:
    if turn.role != "assistant":
        yield Violation("call-role", block.at, f"a call in a message of the {turn.role}")
    if block.id and not grammar.is_legal_id(block.id):
        yield Violation("id-form", block.at, f"the call id {block.id[:80]!r} is not of the form {grammar.id_form}")
    if not grammar.is_legal_name(block.name):
        words = f"the tool name {block.name[:80]!r} is not of the form {grammar.name_form}"
        yield Violation("name-form", block.at, words)


def _check_result(block: PlainBlock, turn: PlainTurn, grammar: Grammar) -> Iterator[Violation]:
    if turn.role == "assistant":
        yield Violation("result-role", block.at, "a result in a message of the assistant")
    text_only = grammar.error_text_only and block.error
    if text_only and not any(each.text.strip() for each in block.inner):
        yield Violation("error-result", block.at, f"the failed result of {block.id} has no text")
    for each in block.inner:
        if each.kind == "text" and grammar.is_blank(each.text):
            yield Violation("blank", block.at, f"a text without a visible character in the result of {block.id}")
        elif each.kind == "media" and not grammar.media_in_results:
            yield Violation("media-result", block.at, f"media in the result of {block.id}")
        elif each.kind != "text" and text_only:
            yield Violation("error-result", block.at, f"the failed result of {block.id} holds more than text")


def _check_first_and_last(turns: list[PlainTurn], grammar: Grammar) -> Iterator[Violation]:
    talk = [turn for turn in turns if turn.role != "system"]
    if not talk:
        return
    is_compacted = bool(talk[0].blocks) and talk[0].blocks[0].kind == "compaction"
    if grammar.start and talk[0].role not in grammar.start and not is_compacted:
        yield Violation("start", talk[0].at, f"the conversation starts with the {talk[0].role}")
    if grammar.end and talk[-1].role not in grammar.end and not is_paused_turn(talk[-1]):
        yield Violation("end", talk[-1].at, f"the conversation ends with the {talk[-1].role}")
    if grammar.needs_user and not any(turn.role == "user" for turn in talk):
        yield Violation("no-user", talk[0].at, "there is no user message")
    if grammar.alternation == "required":
        for before, turn in pairwise(talk):
            if turn.role == before.role != "tool":
                yield Violation("alternation", turn.at, f"two messages of the {turn.role} in a row")


def _check_system_messages(turns: list[PlainTurn], grammar: Grammar) -> Iterator[Violation]:
    """Violations for system messages inside the list.

    Some models refuse all system messages in the list. In some formats, such a message must be at the end of a user
    turn.
    """
    if grammar.inline_system == "refused":
        yield from (
            Violation("role", turn.at, "a system message in the list") for turn in turns if turn.role == "system"
        )
    if grammar.inline_system != "after user":
        return
    before: PlainTurn | None = None
    for turn, after in zip_longest(turns, turns[1:]):
        if turn.role != "system":
            before = turn
        elif before is None or (before.role != "user" and not is_paused_turn(before)):
            yield Violation("system-place", turn.at, "a system message that does not follow a user's turn")
        elif after is not None and after.role == "user":
            yield Violation("system-place", turn.at, "a system message inside a user's turn")


def _check_thinking(turns: list[PlainTurn], grammar: Grammar) -> Iterator[Violation]:
    """Violations for thinking at the end of a reply, in formats that refuse such thinking."""
    if grammar.reasoning_followed:
        following = ""
        for turn in reversed(turns):
            if any(block.kind == "thinking" for block in turn.blocks):
                if following != "assistant":
                    yield Violation("reasoning-alone", turn.at, "reasoning without the output it led to")
            else:
                following = turn.role
    if not grammar.thinking_last:
        for turn in turns:
            if turn.role == "assistant" and turn.blocks and turn.blocks[-1].kind == "thinking":
                yield Violation("thinking-last", turn.blocks[-1].at, "a reply that ends with thinking")


def _check_sizes(request: PlainRequest, elements: int, limits: RequestLimits) -> Iterator[Violation]:
    """Violations of the limits for counts and sizes.

    The computed size is a lower bound of the true size, so no valid request is refused.
    """
    blocks = [block for turn in request.turns for block in turn.blocks]
    blocks += [inner for block in blocks if block.inner for inner in block.inner]
    media = [block for block in blocks if block.kind == "media"]
    total = sum(len(block.text) + block.size for block in blocks)
    breakpoints = len(request.breakpoints)
    if limits.media is not None and len(media) > limits.media:
        yield Violation("media-count", media[limits.media].at, f"{len(media)} media, {limits.media} are allowed")
    for each in media:
        if limits.media_bytes is not None and each.size > limits.media_bytes:
            yield Violation("media-bytes", each.at, f"media of {each.size:,} bytes, {limits.media_bytes:,} are allowed")
    if limits.total_bytes is not None and total > limits.total_bytes:
        yield Violation("total-bytes", -1, f"at least {total:,} bytes, {limits.total_bytes:,} are allowed")
    if limits.breakpoints is not None and breakpoints > limits.breakpoints:
        yield Violation("breakpoints", -1, f"{breakpoints} cache breakpoints, {limits.breakpoints} are allowed")
    yield from _check_breakpoint_order(request.breakpoints)
    yield from _check_pixels(media, limits)
    if limits.messages is not None and elements > limits.messages:
        yield Violation("message-count", -1, f"{elements:,} messages, {limits.messages:,} are allowed")


def _check_images(request: PlainRequest, grammar: Grammar) -> Iterator[Violation]:
    """Violations for images whose type, data or address the provider cannot read."""
    blocks = [block for turn in request.turns for block in turn.blocks]
    for image in (*blocks, *(inner for block in blocks for inner in block.inner)):
        if image.url and grammar.image_addresses and not image.url.startswith(grammar.image_addresses):
            yield Violation("media-address", image.at, f"the provider cannot open the address {image.url[:80]!r}")
        elif image.data and grammar.image_types and (fault := _image_fault(image, grammar)):
            yield Violation("media-form", image.at, fault)


def _image_fault(image: PlainBlock, grammar: Grammar) -> str:
    """Why the provider cannot read the data of an image; "" if it can read the data."""
    if image.mime not in grammar.image_types:
        return f"an image of the type {image.mime[:80]!r}"
    shown = next((mime for start, mime in _STARTS.items() if image.data.startswith(start)), "")
    if not shown and image.mime not in _NOT_SHOWN:
        return "the data of an image is not base64 of a known type"
    if len(image.data) % 4 or not _ENDS_IN_BASE64(image.data[-64:]):
        return "the data of an image is not valid base64"
    if grammar.image_type_matches and image.mime != shown:
        return f"an image of the type {shown} is called {image.mime}"
    return ""


def _check_breakpoint_order(breakpoints: list[tuple[int, str]]) -> Iterator[Violation]:
    """Violations for cache breakpoints of one hour that come after a cache breakpoint of five minutes."""
    short = False
    for index, ttl in breakpoints:
        if short and ttl == "1h":
            yield Violation(
                "breakpoint-order", index, "a cache breakpoint of 1 hour comes after a breakpoint of 5 minutes"
            )
        short = short or ttl != "1h"


def _check_pixels(media: list[PlainBlock], limits: RequestLimits) -> Iterator[Violation]:
    if limits.pixels is None:
        return
    images = [block for block in media if block.data]
    most = limits.pixels
    if limits.many_images is not None and limits.pixels_of_many is not None and len(images) > limits.many_images:
        most = limits.pixels_of_many
    for image in images:
        side = max(image_size(image.data) or (0,))
        if side > most:
            yield Violation("media-pixels", image.at, f"an image of {side:,.0f} pixels on a side, {most:,} are allowed")
