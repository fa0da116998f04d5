"""Whether a reply is a digest at all: what stands for a hundred turns must not be an apology, an echo or half a text.

A refused reply never becomes anybody's input. The reasons are plain sentences, because they end up in the record as the
cause why another digest stands there. What is accepted is cleaned: it holds no secret, forges no mark of ours, and has
no line that speaks to the reader.
"""

from __future__ import annotations

import re

from foldline.digest.digester import DigesterReply
from foldline.digest.prompt import CONDENSER_BRIEF, HEADINGS, SECTIONS_ABOUT
from foldline.digest.quote import harmless
from foldline.digest.scope import body_of
from foldline.placeholders import REMOVED_ORDER
from foldline.redact.redact import redact

CUT = ("length", "max_tokens", "max_output_tokens", "model_length", "incomplete", "pause_turn")
FILTERED = ("content_filter", "refusal", "safety", "recitation", "blocklist", "prohibited_content", "content-filter")
FAILED = ("error", "aborted", "cancelled", "failed")
CALLED = ("tool_use", "tool_calls", "function_call", "tooluse", "tool-calls")

_THOUGHT = re.compile(r"<(think|thinking|reasoning|scratchpad)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_CALL = re.compile(
    r"\A\W{0,8}(?:<(?:tool_call|function_calls?|invoke|function=|antml)|```(?:tool_code|tool_call)|"
    r"\{\s*\"(?:name|tool|function|tool_calls?)\"\s*:)",
    re.IGNORECASE,
)
_APOLOGY = re.compile(
    r"\A\W{0,8}(?:\{\s*\"error\"|<!doctype html|<html|error\b|exception\b|traceback \(|(?:http|status)[ /]?\d{3}|"
    r"(?:429|500|502|503|504)\b|rate limit|too many requests|internal server error|service unavailable|bad gateway|"
    r"i(?:'m| am) (?:sorry|unable|not able)|i (?:cannot|can't|can not|won't)|sorry,|unfortunately,? i|as an ai\b|"
    r"unable to|could not|failed to|overloaded|request timed out)",
    re.IGNORECASE,
)
_APOLOGY_CHARS = 600
"""A digest that begins with such words goes on; an apology does not."""
_VISIBLE = re.compile(r"[^\W_]")
_LINE_CHARS = 24
_ECHO_SHARE = 0.8
_ECHO_LINES = 4
_SPEAKER = re.compile(r"(?m)^\s*» (?:you|agent|tool|shell|note|digest)\b")
_PROMPT_LINES = frozenset(line for line in (*CONDENSER_BRIEF.split("\n"), *SECTIONS_ABOUT) if len(line) > _LINE_CHARS)
_ORDER = re.compile(
    r"(?:ignore|disregard|forget|override|bypass)\b.{0,40}\b(?:previous|prior|above|earlier|all|any|your|system)\b"
    r".{0,40}\b(?:instruction|prompt|rule|direction|guardrail|message|context)|"
    r"\b(?:new|updated|real|hidden|secret|system|developer) (?:instruction|prompt|directive|order)s?\s*(?::|for |from)|"
    r"\byou (?:are now|must now|have to now|will now|should now|shall)\b|\bfrom now on,? (?:you|act|respond|reply)|"
    r"\bas the (?:assistant|model|ai|agent),? you\b|\bdo not (?:tell|inform|mention|reveal)\b.{0,40}\b(?:user|human)|"
    r"^\W{0,6}(?:system|developer|assistant|human|user)\s*:|"
    r"\b(?:dear|attention|note to|message to|instructions? (?:to|for)) (?:the )?"
    r"(?:ai|assistant|agent|model|llm|reader|next agent)\b|<\|[^|>]{1,40}\|>|\[/?INST\]|<</?SYS>>|"
    r"</?(?:system|instructions?|important|system-reminder)>",
    re.IGNORECASE | re.MULTILINE,
)


def refusal(answer: DigesterReply, *, asked: str = "") -> str:
    """Why a reply is no digest, in a sentence; "" when it may be one. `asked` is the turn it replies to."""
    stop = answer.stop.lower()
    if answer.error or stop in FAILED:
        return f"the reply ended with {answer.stop or 'an error'}: {answer.error}".removesuffix(": ")
    if answer.calls or stop in CALLED:
        return "the reply calls a tool"
    if stop in CUT:
        return f"the reply was cut off ({answer.stop})"
    if stop in FILTERED:
        return f"the reply was filtered ({answer.stop})"
    text = _THOUGHT.sub("", answer.text)
    if not _VISIBLE.search(text):
        thought = answer.thought or text != answer.text
        return "the reply is only reasoning" if thought else "the reply says nothing"
    if _CALL.match(text):
        return "the reply is a tool call written as text"
    if len(text) <= _APOLOGY_CHARS and _APOLOGY.match(text):
        return "the reply is an error text"
    return _echo(text, asked)


def _echo(text: str, asked: str) -> str:
    """Why a reply only gives back what it was given; "" when it does not."""
    lines = [line.strip() for line in text.split("\n")]
    if sum(line in _PROMPT_LINES for line in lines) > 1:
        return "the reply repeats its instructions"
    if len(_SPEAKER.findall(text)) >= _ECHO_LINES:
        return "the reply repeats the transcript"
    said = [line for line in lines if len(line) >= _LINE_CHARS and line not in HEADINGS]
    known = set(map(str.strip, asked.split("\n"))) if len(said) >= _ECHO_LINES else set()
    if known and sum(line in known for line in said) >= _ECHO_SHARE * len(said):
        return "the reply repeats the transcript"
    if len(text.strip()) > 10 * _LINE_CHARS and text.strip() in asked:
        return "the reply repeats the transcript"
    return ""


def too_large(tokens: int, cap: int) -> str:
    """Why a digest of this size cannot stand; "" when it can."""
    return f"the digest is larger than its cap: {tokens:,} > {cap:,}" if tokens > cap else ""


def too_small(tokens: int, least: int) -> str:
    """Why a digest of this size says too little; "" when it does not."""
    return f"the digest is too short to stand for so much: {tokens:,} < {least:,}" if tokens < least else ""


def no_gain(tokens: int, covered: int) -> str:
    """Why a digest is not worth its place; "" when it is."""
    if tokens < covered:
        return ""
    return f"the digest is larger than what it stands for: {tokens:,} >= {covered:,}"


def clean(text: str, *, users: str = "") -> tuple[str, int]:
    """A reply as it may stand in a view, and how many lines that gave orders were left out.

    The documented headings stay; everything else that passes for a mark of ours does not. An order that the user
    himself gave (`users` are his words) is what a digest is for.
    """
    text = body_of(redact(_THOUGHT.sub("", text)).strip())
    if text.startswith("```") and text.endswith("```") and text.count("```") == 2:
        text = text.partition("\n")[2].removesuffix("```").strip()
    text, orders = unordered(text, users=users)
    lines = []
    for line in text.split("\n"):
        if line.strip() in HEADINGS or not line.strip():
            lines.append(line.strip())
        else:
            indent = line[: len(line) - len(line.lstrip())]
            lines.append(indent + _own(line))
    return "\n".join(lines).strip(), orders


def gives_orders(line: str) -> bool:
    """Whether a line of a transcript speaks to whoever reads it; a part of it may no longer show that."""
    return _ORDER.search(line) is not None


def unordered(text: str, *, users: str = "") -> tuple[str, int]:
    """A text without lines that give orders to the reader, and how many there were; the user's own orders stay."""
    if not _ORDER.search(text):
        return text, 0
    theirs = " ".join(users.lower().split())
    lines, orders = [], 0
    for line in text.split("\n"):
        found = _ORDER.search(line)
        order = found is not None and " ".join(found[0].lower().split()) not in theirs
        lines.append(REMOVED_ORDER if order else line)
        orders += order
    return "\n".join(lines), orders


def _own(line: str) -> str:
    """A line of the digester: its own headings stay headings, below ours."""
    bare = line.lstrip()
    if bare.startswith("#"):
        return "## " + harmless(bare.lstrip("# "))
    return harmless(line)
