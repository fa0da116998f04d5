"""Checks of a digest: each returns the reason for a rejection, or "" if there is none.

`reject_reply` checks a model's raw reply: an error text, a copy of the prompt or a truncated text is no digest.
`too_large`, `too_small` and `no_gain` check the size of the finished digest. The reason is recorded with the fold.
`clean_reply` removes secrets, forged markup and instructions from an accepted reply.
"""

from __future__ import annotations

import re

from foldline.digest.digester import DigesterReply
from foldline.digest.markup import HEADINGS, body_of, escape_line, remove_instructions
from foldline.digest.prompt import CONDENSER_BRIEF, SECTIONS_ABOUT
from foldline.redact.redact import redact

_TRUNCATED = ("length", "max_tokens", "max_output_tokens", "model_length", "incomplete", "pause_turn")
_FILTERED = ("content_filter", "refusal", "safety", "recitation", "blocklist", "prohibited_content", "content-filter")
_FAILED = ("error", "aborted", "cancelled", "failed")
_CALLED = ("tool_use", "tool_calls", "function_call", "tooluse", "tool-calls")

_REASONING = re.compile(r"<(think|thinking|reasoning|scratchpad)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_TOOL_CALL = re.compile(
    r"\A\W{0,8}(?:<(?:tool_call|function_calls?|invoke|function=|antml)|```(?:tool_code|tool_call)|"
    r"\{\s*\"(?:name|tool|function|tool_calls?)\"\s*:)",
    re.IGNORECASE,
)
_ERROR_TEXT = re.compile(
    r"\A\W{0,8}(?:\{\s*\"error\"|<!doctype html|<html|error\b|exception\b|traceback \(|(?:http|status)[ /]?\d{3}|"
    r"(?:429|500|502|503|504)\b|rate limit|too many requests|internal server error|service unavailable|bad gateway|"
    r"i(?:'m| am) (?:sorry|unable|not able)|i (?:cannot|can't|can not|won't)|sorry,|unfortunately,? i|as an ai\b|"
    r"unable to|could not|failed to|overloaded|request timed out)",
    re.IGNORECASE,
)
_ERROR_CHARS = 600
"""A longer text is not taken for an error message, even if it begins like one."""
_VISIBLE = re.compile(r"[^\W_]")
_LINE_CHARS = 24
_ECHO_SHARE = 0.8
_ECHO_LINES = 4
_SPEAKER = re.compile(r"(?m)^[^\S\n]*» (?:you|agent|tool|shell|note|digest)\b")
_PROMPT_LINES = frozenset(line for line in (*CONDENSER_BRIEF.split("\n"), *SECTIONS_ABOUT) if len(line) > _LINE_CHARS)


def reject_reply(reply: DigesterReply, *, prompt: str = "") -> str:
    """The reason why a reply is not a digest; "" if it may be one.

    `prompt` is the user turn that was sent to the model.
    """
    text = _REASONING.sub("", reply.text)
    return _check_stop(reply) or _check_text(reply, text) or _check_echo(text, prompt)


def _check_stop(reply: DigesterReply) -> str:
    stop = reply.stop.lower()
    if reply.error or stop in _FAILED:
        return f"the reply ended with {reply.stop or 'an error'}: {reply.error}".removesuffix(": ")
    if reply.has_tool_calls or stop in _CALLED:
        return "the reply calls a tool"
    if stop in _TRUNCATED:
        return f"the reply was cut off ({reply.stop})"
    return f"the reply was filtered ({reply.stop})" if stop in _FILTERED else ""


def _check_text(reply: DigesterReply, text: str) -> str:
    if not _VISIBLE.search(text):
        return "the reply is only reasoning" if reply.has_reasoning or text != reply.text else "the reply says nothing"
    if _TOOL_CALL.match(text):
        return "the reply is a tool call written as text"
    return "the reply is an error text" if len(text) <= _ERROR_CHARS and _ERROR_TEXT.match(text) else ""


def _check_echo(text: str, prompt: str) -> str:
    lines = [line.strip() for line in text.split("\n")]
    if sum(line in _PROMPT_LINES for line in lines) > 1:
        return "the reply repeats its instructions"
    long_lines = [line for line in lines if len(line) >= _LINE_CHARS and line not in HEADINGS]
    known = set(map(str.strip, prompt.split("\n"))) if len(long_lines) >= _ECHO_LINES else set()
    repeats = (
        len(_SPEAKER.findall(text)) >= _ECHO_LINES
        or (known and sum(line in known for line in long_lines) >= _ECHO_SHARE * len(long_lines))
        or (len(text.strip()) > 10 * _LINE_CHARS and text.strip() in prompt)
    )
    return "the reply repeats the transcript" if repeats else ""


def too_large(tokens: int, max_tokens: int) -> str:
    """The reason for a rejection if the digest is too large; else ""."""
    return f"the digest is larger than its cap: {tokens:,} > {max_tokens:,}" if tokens > max_tokens else ""


def too_small(tokens: int, min_tokens: int) -> str:
    """The reason for a rejection if the digest is too small; else ""."""
    return f"the digest is too short for what it replaces: {tokens:,} < {min_tokens:,}" if tokens < min_tokens else ""


def no_gain(tokens: int, covered_tokens: int) -> str:
    """The reason for a rejection if the digest is not smaller than the messages that it replaces; else ""."""
    if tokens < covered_tokens:
        return ""
    return f"the digest is not smaller than what it replaces: {tokens:,} >= {covered_tokens:,}"


def clean_reply(text: str, *, allowed: str = "") -> tuple[str, int]:
    """A reply that is safe to show in a view, and the number of lines with instructions that were removed from it.

    The documented headings are kept; other text that looks like markup is escaped. An instruction is kept if it occurs
    in `allowed`, the user's own text.
    """
    text = body_of(redact(_REASONING.sub("", text)).strip())
    if text.startswith("```") and text.endswith("```") and text.count("```") == 2:
        text = text.partition("\n")[2].removesuffix("```").strip()
    text, removed = remove_instructions(text, allowed=allowed)
    lines = []
    for line in text.split("\n"):
        bare = line.strip()
        if bare and bare not in HEADINGS:
            indent = line[: len(line) - len(line.lstrip())]
            bare = indent + (f"## {escape_line(bare.lstrip('# '))}" if bare.startswith("#") else escape_line(line))
        lines.append(bare)
    return "\n".join(lines).strip(), removed
