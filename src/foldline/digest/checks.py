"""Checks of a digest: each returns the reason for a rejection, or "" if there is none.

`reject_reply` checks a model's raw reply: an error text, a tool call, a copy of the prompt or a truncated text is no
digest. `clean_reply` removes secrets, forged markup and instructions from the reply, and `reject_body` checks the rest.
`reject_summary` applies both checks to a summary that a caller's own function wrote.
`check_size` checks the size of the finished digest. The reason is recorded with the fold.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from typing import TypeGuard

from foldline.digest.digester import DigesterReply
from foldline.digest.markup import HEADINGS, body_of, quote, remove_instructions
from foldline.digest.prompt import CONDENSER_BRIEF, PRIOR_DIGEST_TAGS, SECTIONS_ABOUT, SUMMARY_SYSTEM, SUMMARY_TEMPLATE
from foldline.placeholders import REMOVED_ORDER
from foldline.redact.redact import clean_text

_TRUNCATED = ("length", "max_tokens", "max_output_tokens", "model_length", "incomplete", "pause_turn")
_FILTERED = ("content_filter", "refusal", "safety", "recitation", "blocklist", "prohibited_content", "content-filter")
_FAILED = ("error", "aborted", "cancelled", "failed")
_CALLED = ("tool_use", "tool_calls", "function_call", "tooluse", "tool-calls")

_REASONING = re.compile(r"<(think|thinking|reasoning|scratchpad)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_OBJECT = r"(?:\[\s{0,40})?\{\s{0,40}\""
"""The start of a JSON object, up to its first key. The object may be the first one of a list."""
_TOOL_CALL = re.compile(
    r"^[ \t>]{0,8}(?:</?(?:\w{1,20}:)?(?:tool_?calls?|function_?calls?|function=|invoke\b|antml\b|tool_use\b|"
    r"parameter=)|"
    r"(?:<start_function_call>\s{0,40})?call:[\w.-]{1,64}\{|<end_function_call>|"
    r"<(?:execute_command|read_file|write_to_file|replace_in_file|apply_diff|search_files|list_files|use_mcp_tool|"
    r"browser_action|ask_followup_question|attempt_completion)>|"
    r"<\|(?:python_tag|channel|start|call|tool|message|constrain|im_start|action)|<[|｜](?:tool|DSML)|"
    r"\[TOOL_(?:CALLS|REQUEST)|\[/?(?:tool_call|function_call)\]|✿FUNCTION✿|functools\[|"
    r"(?:to=)?functions\.\w{1,64}[\s(:]|\[\w{1,64}\([^\n]{0,400}\)\][ \t]{0,8}$|"
    r"```(?:tool_code|tool_call|tool|function)\b|Action Input:|"
    rf"{_OBJECT}(?:function_?call|tool_calls?|tool_uses)\"\s{{0,40}}:|"
    rf"{_OBJECT}type\"\s{{0,40}}:\s{{0,40}}\"(?:tool_use|tool_call|function_call|function)\"|"
    rf"{_OBJECT}(?:name|tool|tool_name|tool_call_id|function|action|recipient_name)\"\s{{0,40}}:"
    r"(?:[^\n]{0,200}|[^{}]{0,200})"
    r"\"(?:arguments|parameters|input|args|action_input|tool_(?:input|args|arguments|parameters))\")|"
    r"\A\W{0,8}\{\s{0,40}\"(?:name|tool|tool_name|function|tool_calls?|tool_uses|action|recipient_name)\"\s{0,40}:",
    re.IGNORECASE | re.MULTILINE,
)
"""A line that begins like a tool call in the dialect of some model."""
_FENCE = re.compile(r"\A```([\w+#.-]{0,20})[^\n]{0,80}\n")
_TEXT_FENCES = frozenset({"", "markdown", "md", "text", "txt", "plaintext", "plain"})
_REQUEST = re.compile(
    r"\b(?:please|could you|can you|kindly|i need you to|you can)\b.{0,40}\b(?:provide|share|paste|send|supply|give me|"
    r"upload|include|clarify|specify)\b|"
    r"\b(?:there is|there's|i (?:do not|don't|did not|didn't|can't|cannot) (?:see|have|find)|i see)\b.{0,30}"
    r"\b(?:no|any|a|the)\b.{0,20}\b(?:conversation|transcript|scrollback|messages|text|session|history|content)\b|"
    r"\b(?:no|empty) (?:conversation|transcript|scrollback|content) (?:was|is|has been)\b|"
    r"\bhow (?:can|may) i (?:help|assist)|\bwhat would you like\b|\blet me know\b",
    re.IGNORECASE,
)
"""A sentence that asks for the conversation or offers help, although a digest was requested."""
_NO_TRANSCRIPT = re.compile(
    r"\b(?:provide|share|paste|send|supply|upload|attach)\b.{0,40}\b(?:conversation|transcript|scrollback|chat history)"
    r"\b|"
    r"\b(?:conversation|transcript|scrollback)\b.{0,30}\b(?:missing|empty|not (?:provided|included|attached|there))\b",
    re.IGNORECASE,
)
"""A sentence that says that there is no conversation to digest."""
_ERROR_TEXT = re.compile(
    r"\A\W{0,8}(?:<!doctype html|<html|error\b|exception\b|traceback \(|(?:http|status)[ /]?\d{3}|"
    r"(?:429|500|502|503|504)\b|rate limit|too many requests|internal server error|service unavailable|bad gateway|"
    r"i(?:'m| am) (?:sorry|unable|not able)|i (?:cannot|can't|can not|won't)|sorry,|unfortunately,? i|as an ai\b|"
    r"unable to|could not|failed to|overloaded|request timed out)",
    re.IGNORECASE,
)
_ERROR_BODY = re.compile(
    rf"(?:data:[ \t]{{0,4}})?{_OBJECT}(?:errors?\"|(?:type|object|status)\"\s{{0,40}}:\s{{0,40}}\"error\")|"
    r"event: ?error$",
    re.IGNORECASE | re.MULTILINE,
)
"""The JSON body with which a provider reports an error."""
_BODY_ENDS = (*"{}[],", "error")
"""The possible ends of the first line of such a JSON body. A sentence that begins with such a body ends differently."""
_ERROR_CHARS = 600
"""A text with more characters than this is not taken for an error message or for a request."""
_MAX_MISSING_HEADINGS = 1
"""Maximum number of documented headings that may be missing in a digest."""
_VISIBLE = re.compile(r"[^\W_]")
_TITLE = "(objective|guardrails|status|rationale|plan|carryover)"
_HEADING = re.compile(
    rf"^[ \t]{{0,8}}(?:(?:#{{1,6}}[ \t]{{0,4}}|\*\*|__|\d{{1,2}}[.)] )\**{_TITLE}\b|"
    rf"{_TITLE}[ \t]{{0,4}}(?:\([^)\n]{{0,60}}\))?:?[ \t]{{0,8}}$)",
    re.IGNORECASE | re.MULTILINE,
)
_NO_CONTENT = frozenset(
    {"", "none", "nothing", "n/a", "shipped", "active", "stuck", "shipped: none", "active: none", "stuck: none"}
)
_LINE_CHARS = 24
"""A line of a reply with fewer characters is not compared with the prompt."""
_ECHO_SHARE, _ECHO_LINES = 0.8, 4
"""A reply repeats its prompt if at least `_ECHO_LINES` of its lines, and this share of them, are in the prompt."""
_SPEAKER = re.compile(r"(?m)^[^\S\n]*» (?:you|agent|tool|shell|note|digest)\b")
_PROMPT_LINES = frozenset(line for line in (*CONDENSER_BRIEF.split("\n"), *SECTIONS_ABOUT) if len(line) > _LINE_CHARS)


def has_visible_text(value: object) -> TypeGuard[str]:
    """Whether a value is a text with at least one letter or digit, so that it can be a summary.

    >>> has_visible_text("Done."), has_visible_text(" \u200b"), has_visible_text(None)
    (True, False, False)
    """
    return isinstance(value, str) and _VISIBLE.search(value) is not None


def reject_summary(summary: object) -> str:
    """The reason why a value that the caller got from a model is not a summary; "" if it may be one.

    >>> reject_summary("The worker uses port 7091."), reject_summary("Please provide the conversation.")
    ('', 'the reply asks for the conversation')
    """
    if not isinstance(summary, str):
        return f"the reply is of the type {type(summary).__name__}, not a text"
    return reject_reply(DigesterReply(text=summary)) or reject_body(summary, sections=False)


def reject_reply(reply: DigesterReply, *, prompt: str = "", instructions: tuple[str, ...] = ()) -> str:
    """The reason why a reply is not a digest; "" if it may be one.

    `prompt` is the user turn that was sent to the model. `instructions` are the system prompt and the template of the
    user turn.
    """
    text = _REASONING.sub("", reply.text)
    return (
        _check_stop(reply)
        or _check_text(reply, text)
        or _check_instructions(text, (CONDENSER_BRIEF, SUMMARY_SYSTEM, SUMMARY_TEMPLATE, *instructions))
        or _check_echo(text, prompt)
    )


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
    fence = _FENCE.match(text.strip())
    if _TOOL_CALL.search(text) or (fence and fence[1].lower() not in _TEXT_FENCES):
        return "the reply is a tool call written as text"
    # a digest may quote the body of an error below its first line, or in a sentence
    lines = (line.strip() for line in text.split("\n"))
    first = list(islice((it for it in lines if it and not it.startswith("```") and not _HEADING.match(it)), 2))
    is_short = len(text) <= _ERROR_CHARS
    if first and first[0].endswith(_BODY_ENDS) and _ERROR_BODY.match("\n".join(first)):
        return "the reply is an error text"
    if is_short and _ERROR_TEXT.match(text):
        return "the reply is an error text"
    asks = _NO_TRANSCRIPT.search(text) or (_REQUEST.search(text) and not _headings_in(text))
    return "the reply asks for the conversation" if is_short and asks else ""


def reject_body(text: str, *, sections: bool) -> str:
    """The reason why a cleaned reply is not a digest; "" if it may be one.

    `sections` is true if the documented headings were requested.
    """
    lines = (line.strip().strip("#*->• \t()[]") for line in text.replace(REMOVED_ORDER, "").split("\n"))
    said = (line for line in lines if line.lower().rstrip(".:") not in _NO_CONTENT and not _HEADING.match(f"# {line}"))
    if not any(map(_VISIBLE.search, said)):
        return "the reply says nothing"
    found = _headings_in(text)
    missing = [heading for heading in HEADINGS if heading.split()[1].lower() not in found]
    if sections and len(missing) > _MAX_MISSING_HEADINGS:
        return f"the reply lacks the headings {', '.join(missing)}"
    return ""


def _headings_in(text: str) -> set[str]:
    """The documented headings that the text contains, whatever their markup.

    Each heading is given as its first word in lower case.
    """
    return {(found[1] or found[2]).lower() for found in _HEADING.finditer(text)}


def _check_instructions(text: str, instructions: Iterable[str]) -> str:
    """The reason for a rejection if a reply repeats its instructions or is a part of them; else ""."""
    words = " ".join(text.split())
    repeats = sum(line.strip() in _PROMPT_LINES for line in text.split("\n")) > 1
    for known in (" ".join(each.split()) for each in instructions):
        repeats = repeats or (len(known) > _LINE_CHARS and known in words)
        repeats = repeats or (len(words) > _LINE_CHARS and words in known)
    return "the reply repeats its instructions" if repeats else ""


def _check_echo(text: str, prompt: str) -> str:
    """The reason for a rejection if a reply repeats its prompt; else "". A reply may repeat the earlier digest."""
    start, end = (prompt.find(tag) for tag in PRIOR_DIGEST_TAGS)
    prompt = prompt[:start] + prompt[end:] if 0 <= start < end else prompt
    lines, known = [line.strip() for line in text.split("\n")], set(map(str.strip, prompt.split("\n")))
    lines = [line for line in lines if len(line) >= _LINE_CHARS and line not in HEADINGS]
    repeats = (
        len(_SPEAKER.findall(text)) >= _ECHO_LINES
        or (len(lines) >= _ECHO_LINES and sum(line in known for line in lines) >= _ECHO_SHARE * len(lines))
        or (len(text.strip()) > 10 * _LINE_CHARS and text.strip() in prompt)
    )
    return "the reply repeats the transcript" if repeats else ""


def check_size(tokens: int, *, most: int | None = None, least: int = 0, covered: int | None = None) -> str:
    """The reason why a digest of this many tokens cannot be used; "" if there is none.

    `most` and `least` are its limits. It must be smaller than the messages that it replaces, which have `covered`
    tokens.

    >>> check_size(90, most=80), check_size(90, least=80)
    ('the digest is larger than its cap: 90 > 80', '')
    """
    if most is not None and tokens > most:
        return f"the digest is larger than its cap: {tokens:,} > {most:,}"
    if tokens < least:
        return f"the digest is too short for what it replaces: {tokens:,} < {least:,}"
    if covered is not None and tokens >= covered:
        return f"the digest is not smaller than what it replaces: {tokens:,} >= {covered:,} tokens"
    return ""


def clean_reply(text: str, *, allowed: str = "") -> tuple[str, int]:
    """A reply that is safe to show in a view, and the number of lines with instructions that were removed from it.

    The documented headings are kept; other text that looks like markup is escaped. An instruction is kept if it occurs
    in `allowed`, the user's own text.
    """
    text = body_of(clean_text(_REASONING.sub("", text)).strip())
    if text.startswith("```") and text.endswith("```") and text.count("```") == 2:
        text = text.partition("\n")[2].removesuffix("```").strip()
    text, removed = remove_instructions(text, allowed=allowed)
    lines = []
    for line in text.split("\n"):
        bare = line.strip()
        if bare and bare not in HEADINGS:
            indent = line[: len(line) - len(line.lstrip())]
            bare = indent + (f"## {quote(bare.lstrip('# '))}" if bare.startswith("#") else quote(line))
        lines.append(bare)
    return "\n".join(lines).strip(), removed
