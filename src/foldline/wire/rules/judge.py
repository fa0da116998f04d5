"""The validator: a request, exactly as it would be sent, held against its provider's rules.

`check` judges plain JSON, read by `plain` without our codecs, so that a mistake in a codec cannot hide from it. It is
total (any JSON value gives an answer, never an exception) and linear, so that every test and every bench can run it on
every view. An empty conversation breaks no rule: there is nothing to send.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, zip_longest
from typing import Any

from foldline.wire.formats import dialect
from foldline.wire.rules import pairs, plain, plain_openai
from foldline.wire.rules.grammar import RULES, Limits, Rules, limits_of, rules_of
from foldline.wire.rules.plain import Block, Fault, Plain, Turn

__all__ = ["RULES", "Limits", "Rules", "Violation", "check", "limits_of", "rules_of"]

_READERS = {
    "anthropic": ("messages", plain.anthropic),
    "openai": ("messages", plain_openai.openai),
    "openai-responses": ("input", plain_openai.responses),
    "gemini": ("contents", plain.gemini),
}


@dataclass(frozen=True, slots=True)
class Violation:
    """One rule a request breaks: its code, the element of the message list (-1: the request), and plain words."""

    code: str
    index: int
    message: str

    def __str__(self) -> str:
        place = f"message {self.index}: " if self.index >= 0 else ""
        return f"[{self.code}] {place}{self.message}"


def check(
    provider: str, body: Any, *, rules: Rules | None = None, limits: Limits | None = None
) -> tuple[Violation, ...]:
    """What a provider would refuse in a request body, or in its bare list of messages; nothing: it is sendable.

    >>> [str(found) for found in check("openai", [{"role": "user"}])]
    ["[empty] message 0: a message without content (OpenAI: Invalid value for 'content': expected a string, got null.)"]
    """
    rules = rules or rules_of(provider)
    provider = dialect(provider)
    key, read = _READERS[provider]
    elements = body.get(key) if isinstance(body, Mapping) else body
    if isinstance(elements, str) and provider == "openai-responses":
        return ()
    if not isinstance(elements, list | tuple):
        return (Violation("shape", -1, f"there is no list of messages under {key!r}"),)
    found = read(list(elements), body if isinstance(body, Mapping) else {})
    turns = _turns(found.turns, rules)
    kinds = {block.kind for turn in turns for block in turn.blocks}
    faults = [
        *found.faults,
        *_blocks(found.turns, rules),
        *_ends(turns, rules),
        *_system_places(found.turns, rules),
        *_sizes(found, len(elements), limits or limits_of(provider)),
    ]
    if "call" in kinds or "result" in kinds:
        faults += pairs.anywhere(turns) if rules.adjacency == "after" else pairs.adjacent(turns, rules)
    if "thinking" in kinds:
        faults += _thinking_places(turns, rules)
    if "server-call" in kinds or "server-result" in kinds:
        faults += pairs.by_server(turns, rules)
    if not faults:
        return ()
    faults.sort(key=lambda fault: fault.at)
    return tuple(Violation(code, index, _said(code, words, rules)) for code, index, words in faults)


def _said(code: str, words: str, rules: Rules) -> str:
    answer = rules.says.get(code)
    return f"{words} ({rules.name}: {answer})" if answer else words


def _turns(turns: list[Turn], rules: Rules) -> list[Turn]:
    """Elements that count as one: all of one role where the provider merges them, else results in a row."""
    if rules.adjacency == "after":
        return turns
    made: list[Turn] = []
    for turn in turns:
        if rules.alternation == "merged" and turn.role == "system":
            continue
        together = rules.alternation == "merged" or (rules.adjacency == "message" and turn.role == "tool")
        if together and made and made[-1].role == turn.role:
            made[-1].blocks.extend(turn.blocks)
        else:
            made.append(turn._replace(blocks=turn.blocks[:]) if together else turn)
    return made


@cache
def _form(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.DOTALL)


def _refused(text: str, rules: Rules) -> bool:
    return (rules.blank == "empty" and not text) or (rules.blank == "whitespace" and not text.strip())


def _blocks(turns: list[Turn], rules: Rules) -> Iterator[Fault]:
    """What is wrong with one message or block, whatever stands around it."""
    for turn in turns:
        if not turn.blocks and turn.role not in rules.empty:
            yield Fault("empty", turn.at, "a message without content")
        for block in turn.blocks:
            kind = block.kind
            if kind == "text":
                if _refused(block.text, rules):
                    yield Fault("blank", block.at, "a text without a visible character")
            elif kind == "call":
                yield from _call(block, turn, rules)
            elif kind == "result":
                yield from _result(block, turn, rules)
            elif kind == "media":
                if turn.role not in rules.media_roles:
                    yield Fault("media-role", block.at, f"media in a message of the {turn.role}")
            elif kind != "other":
                yield from _assistants(block, turn, rules)


def _assistants(block: Block, turn: Turn, rules: Rules) -> Iterator[Fault]:
    """What only the assistant has: thinking, and the provider's own tools."""
    if block.kind == "thinking":
        if turn.role != "assistant":
            yield Fault("thinking-role", block.at, f"thinking in a message of the {turn.role}")
        elif rules.signed_thinking and not block.signed:
            yield Fault("thinking-unsigned", block.at, "thinking without its signature")
    elif rules.server_calls and turn.role != "assistant":
        yield Fault("call-role", block.at, f"the provider's own tool in a message of the {turn.role}")


def _call(block: Block, turn: Turn, rules: Rules) -> Iterator[Fault]:
    if turn.role != "assistant":
        yield Fault("call-role", block.at, f"a call in a message of the {turn.role}")
    if block.id and not _form(rules.id_form).fullmatch(block.id):
        yield Fault("id-form", block.at, f"the call id {block.id[:80]!r} is not of the form {rules.id_form}")
    if not _form(rules.name_form).fullmatch(block.name):
        yield Fault("name-form", block.at, f"the tool name {block.name[:80]!r} is not of the form {rules.name_form}")


def _result(block: Block, turn: Turn, rules: Rules) -> Iterator[Fault]:
    if turn.role == "assistant":
        yield Fault("result-role", block.at, "a result in a message of the assistant")
    if rules.error_text_only and block.error and not any(each.text.strip() for each in block.inner):
        yield Fault("error-result", block.at, f"the failed result of {block.id} says nothing")
    for each in block.inner:
        if each.kind == "text" and _refused(each.text, rules):
            yield Fault("blank", block.at, f"a text without a visible character in the result of {block.id}")
        elif each.kind == "media" and not rules.media_in_results:
            yield Fault("media-result", block.at, f"media in the result of {block.id}")
        elif each.kind != "text" and rules.error_text_only and block.error:
            yield Fault("error-result", block.at, f"the failed result of {block.id} holds more than text")


def _ends(turns: list[Turn], rules: Rules) -> Iterator[Fault]:
    """Who starts, who ends, who must be there."""
    talk = [turn for turn in turns if turn.role != "system"]
    if not talk:
        return
    if rules.start and talk[0].role not in rules.start:
        yield Fault("start", talk[0].at, f"the conversation starts with the {talk[0].role}")
    if rules.end and talk[-1].role not in rules.end and not pairs.server_busy(talk[-1]):
        yield Fault("end", talk[-1].at, f"the conversation ends with the {talk[-1].role}")
    if rules.needs_user and not any(turn.role == "user" for turn in talk):
        yield Fault("no-user", talk[0].at, "no message is the user's")
    if rules.alternation == "required":
        for before, turn in pairwise(talk):
            if turn.role == before.role != "tool":
                yield Fault("alternation", turn.at, f"two messages of the {turn.role} in a row")


def _system_places(turns: list[Turn], rules: Rules) -> Iterator[Fault]:
    """A system message inside the list closes a user's turn, where the provider says so."""
    if rules.inline_system != "after user" or all(turn.role == "system" for turn in turns):
        return
    before: Turn | None = None
    for turn, after in zip_longest(turns, turns[1:]):
        if turn.role != "system":
            before = turn
        elif before is None or (before.role != "user" and not pairs.server_busy(before)):
            yield Fault("system-place", turn.at, "a system message that does not follow a user's turn")
        elif after is not None and after.role == "user":
            yield Fault("system-place", turn.at, "a system message inside a user's turn")


def _thinking_places(turns: list[Turn], rules: Rules) -> Iterator[Fault]:
    """Thinking that nothing follows."""
    if rules.reasoning_followed:
        following = ""
        for turn in reversed(turns):
            if any(block.kind == "thinking" for block in turn.blocks):
                if following != "assistant":
                    yield Fault("reasoning-alone", turn.at, "reasoning without the output it led to")
            else:
                following = turn.role
    if not rules.thinking_last:
        for turn in turns:
            if turn.role == "assistant" and turn.blocks and turn.blocks[-1].kind == "thinking":
                yield Fault("thinking-last", turn.blocks[-1].at, "a reply that ends with thinking")


def _sizes(found: Plain, elements: int, limits: Limits) -> Iterator[Fault]:
    """Counts and sizes; the total is a lower bound, so that nothing is refused by mistake."""
    blocks = [block for turn in found.turns for block in turn.blocks]
    blocks += [inner for block in blocks if block.inner for inner in block.inner]
    media = [block for block in blocks if block.kind == "media"]
    total = sum(len(block.text) + block.size for block in blocks)
    if limits.media is not None and len(media) > limits.media:
        yield Fault("media-count", media[limits.media].at, f"{len(media)} media, {limits.media} are allowed")
    for each in media:
        if limits.media_bytes is not None and each.size > limits.media_bytes:
            yield Fault("media-bytes", each.at, f"media of {each.size:,} bytes, {limits.media_bytes:,} are allowed")
    if limits.total_bytes is not None and total > limits.total_bytes:
        yield Fault("total-bytes", -1, f"at least {total:,} bytes, {limits.total_bytes:,} are allowed")
    if limits.breakpoints is not None and len(found.marks) > limits.breakpoints:
        yield Fault("breakpoints", -1, f"{len(found.marks)} cache breakpoints, {limits.breakpoints} are allowed")
    if limits.messages is not None and elements > limits.messages:
        yield Fault("message-count", -1, f"{elements:,} messages, {limits.messages:,} are allowed")
