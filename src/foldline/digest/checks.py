"""Checks of a digest. To add one: a function that returns the reason for a rejection, or "".

`REPLY_CHECKS` look at a model's reply as it came: a digest must not be an apology, an echo or half a text. `too_large`,
`too_small` and `no_gain` look at the size of the finished digest. The reasons are plain sentences because they are
recorded as the cause of the local digest. An accepted reply is cleaned: no secrets, no forged markup, no instructions.
"""

from __future__ import annotations

import re
from collections.abc import Callable

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
"""A longer text that begins like an error is a digest."""
_VISIBLE = re.compile(r"[^\W_]")
_LINE_CHARS = 24
_ECHO_SHARE = 0.8
_ECHO_LINES = 4
_SPEAKER = re.compile(r"(?m)^\s*» (?:you|agent|tool|shell|note|digest)\b")
_PROMPT_LINES = frozenset(line for line in (*CONDENSER_BRIEF.split("\n"), *SECTIONS_ABOUT) if len(line) > _LINE_CHARS)


def reject_reply(reply: DigesterReply, *, prompt: str = "") -> str:
    """Why a reply is no digest; "" when it may be one. `prompt` is the turn it replies to."""
    text = _REASONING.sub("", reply.text)
    return next((reason for check in REPLY_CHECKS if (reason := check(reply, text, prompt))), "")


def _check_error(reply: DigesterReply, _text: str, _prompt: str) -> str:
    failed = reply.error or reply.stop.lower() in _FAILED
    return f"the reply ended with {reply.stop or 'an error'}: {reply.error}".removesuffix(": ") if failed else ""


def _check_tool_call(reply: DigesterReply, _text: str, _prompt: str) -> str:
    return "the reply calls a tool" if reply.has_tool_calls or reply.stop.lower() in _CALLED else ""


def _check_truncation(reply: DigesterReply, _text: str, _prompt: str) -> str:
    return f"the reply was cut off ({reply.stop})" if reply.stop.lower() in _TRUNCATED else ""


def _check_filter(reply: DigesterReply, _text: str, _prompt: str) -> str:
    return f"the reply was filtered ({reply.stop})" if reply.stop.lower() in _FILTERED else ""


def _check_content(reply: DigesterReply, text: str, _prompt: str) -> str:
    if _VISIBLE.search(text):
        return ""
    return "the reply is only reasoning" if reply.has_reasoning or text != reply.text else "the reply says nothing"


def _check_tool_call_text(_reply: DigesterReply, text: str, _prompt: str) -> str:
    return "the reply is a tool call written as text" if _TOOL_CALL.match(text) else ""


def _check_error_text(_reply: DigesterReply, text: str, _prompt: str) -> str:
    return "the reply is an error text" if len(text) <= _ERROR_CHARS and _ERROR_TEXT.match(text) else ""


def _check_echo(_reply: DigesterReply, text: str, prompt: str) -> str:
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


REPLY_CHECKS: tuple[Callable[[DigesterReply, str, str], str], ...] = (
    *(
        _check_error,
        _check_tool_call,
        _check_truncation,
        _check_filter,
        _check_content,
        _check_tool_call_text,
        _check_error_text,
        _check_echo,
    ),
)
"""Checks of a reply, its text without reasoning, and the prompt; the first that objects gives the reason."""


def too_large(tokens: int, max_tokens: int) -> str:
    """Why a digest of this size is too large; "" when it is not."""
    return f"the digest is larger than its cap: {tokens:,} > {max_tokens:,}" if tokens > max_tokens else ""


def too_small(tokens: int, min_tokens: int) -> str:
    """Why a digest of this size is too small; "" when it is not."""
    return f"the digest is too short to stand for so much: {tokens:,} < {min_tokens:,}" if tokens < min_tokens else ""


def no_gain(tokens: int, covered_tokens: int) -> str:
    """Why a digest frees no tokens; "" when it does."""
    if tokens < covered_tokens:
        return ""
    return f"the digest is larger than what it stands for: {tokens:,} >= {covered_tokens:,}"


def clean_reply(text: str, *, allowed: str = "") -> tuple[str, int]:
    """A reply as it may stand in a view, and how many lines with instructions were removed from it.

    The documented headings stay; other text that looks like markup is escaped. `allowed` is the user's own text.
    """
    text = body_of(redact(_REASONING.sub("", text)).strip())
    if text.startswith("```") and text.endswith("```") and text.count("```") == 2:
        text = text.partition("\n")[2].removesuffix("```").strip()
    text, removed = remove_instructions(text, allowed=allowed)
    lines = []
    for line in text.split("\n"):
        bare = line.strip()
        if bare in HEADINGS or not bare:
            lines.append(bare)
            continue
        indent = line[: len(line) - len(line.lstrip())]
        lines.append(indent + (f"## {escape_line(bare.lstrip('# '))}" if bare.startswith("#") else escape_line(line)))
    return "\n".join(lines).strip(), removed
