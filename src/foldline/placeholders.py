"""Every text that replaces something missing in a view, and the functions that recognise these texts.

A placeholder says what is missing and why. If `recall` can return the missing content, the placeholder names the handle
of this content. All placeholders are in this module, so that writing and recognising them cannot disagree.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from operator import is_

from foldline.message import Media, Message, Part, Text, ToolCall, ToolResult

NO_RESULT = "[no result was recorded for this call]"
"""The result that is added for a call without a recorded result."""
NO_OUTPUT = "(no output)"
"""The text that replaces an empty result, because several formats refuse an empty or blank text."""
NO_EARLIER_PROMPT = "[no earlier message of the user was recorded]"
"""The user message that is added before a history that starts with the assistant."""
NO_NEW_PROMPT = "[no new message of the user was recorded]"
"""The user message that is added after a history that ends with the assistant."""
TOOL_ERROR = "[tool error] "
"""The start of the text of a failed result, for formats that have no field for failure."""
UNREADABLE_SUMMARY = (
    "[a summary that only its provider can read was left out; the messages that it summarises stand above]"
)
"""The text that replaces an encrypted compaction block of another provider."""
REDACTED = "[redacted "
"""The start of the placeholder for a secret. The kind of the secret and `]` follow."""
OMISSION = "[…]"
"""Marks each position in an excerpt at which text is left out."""
REMOVED_ORDER = "(a line that gave orders to the reader was left out)"
"""Replaces a line of a digest that gave instructions to its reader."""
_CUT_OFF = "[Your reply was cut off at its length limit"

# Reasons for a stub
TOO_LARGE_TO_SEND = "too large to send"
TOO_LARGE_TO_STAY = "too large to stay"
LARGE_AND_OLD = "large and old"
WINDOW_FULL = "the window is full"


def repeated_in(handle: str) -> str:
    """The reason that a stub gives if a later message repeats the text of the result."""
    return f"it stands again in {handle}"


def read_again_in(handle: str) -> str:
    """The reason that a stub gives if the same file was read again later."""
    return f"read again in {handle}"


def stub_line(reason: str, handle: str, *, shown: int, total: int, attachments: int = 0) -> str:
    """The last line of a stub, which follows the first `shown` characters of the result.

    >>> stub_line(TOO_LARGE_TO_STAY, "#7", shown=6, total=6_992)
    '[pruned, too large to stay: 6 of 6,992 characters shown; the whole is #7, ask recall for it]'

    """
    media = f" and {attachments} attachment{'s' * (attachments > 1)} left out" if attachments else ""
    extent = f"{shown:,} of {total:,} characters shown{media}"
    return f"[pruned, {reason}: {extent}; the whole is {handle}, ask recall for it]"


def shortened(missing: int, handle: str) -> str:
    """The placeholder at the end of a shortened text or call argument; `handle` may be ""."""
    return f"[{missing:,} characters left out{f'; the whole is {handle}' if handle else ''}]"


def missing_messages(count: int, handle: str, *, partly: bool = False) -> str:
    """The text that replaces messages that were folded without a digest.

    If `partly` is true, some messages of the range `handle` stay in the view.

    >>> missing_messages(12, "#2-13")
    '[12 earlier messages not shown here: #2-13, ask recall for them]'

    """
    of = "of " * partly
    return f"[{count} earlier message{'s' * (count != 1)} not shown here: {of}{handle}, ask recall for them]"


def condensed_messages(count: int, handle: str = "", *, partly: bool = False) -> str:
    """The line of a digest that says how many messages the digest replaces.

    If a handle is given, the line also contains the handle.
    """
    place = f": {'of ' * partly}{handle}, ask recall for them" if handle else ""
    return f"{count} earlier message{'s were' if count != 1 else ' was'} condensed{place}."


def last_condensed(text: str) -> int:
    """The number of the last message that a digest replaces; 0 if it is unknown.

    The number is read from the line that `condensed_messages` wrote.

    >>> last_condensed(condensed_messages(12, "#2-13"))
    13
    """
    found = _CONDENSED.search(text)
    return int(found[1]) if found is not None else 0


def condensed_count(text: str) -> int:
    """The number of messages that a local digest replaces; 0 if the text is no local digest.

    >>> condensed_count(condensed_messages(12))
    12
    """
    found = _CONDENSED_COUNT.search(text)
    return int(found[1]) if found is not None else 0


def without_handles(text: str) -> str:
    """The text of a digest without its handles, for a reader without the recall tool.

    >>> without_handles("12 earlier messages were condensed: #2-13, ask recall for them.")
    '12 earlier messages were condensed.'
    """
    return _HANDLES.sub("", text)


def without_recall(text: str) -> str:
    """The text without the handle and without the recall advice in its last line.

    If the last line is not a placeholder, the text is returned unchanged.

    >>> without_recall("[12 earlier messages not shown here: #2-13, ask recall for them]")
    '[12 earlier messages not shown here]'
    """
    if placeholder_kind(text) not in {"stub", "shortened", "messages", "media"}:
        return text
    start = max(text.rfind("["), 0)
    return text[:start] + _REFERENCE.sub("]", text[start:])


def without_advice(text: str) -> str:
    """A placeholder or a digest without the advice to use recall, for a request without the recall tool. Handles stay.

    >>> without_advice("[12 earlier messages not shown here: #2-13, ask recall for them]")
    '[12 earlier messages not shown here: #2-13]'
    """
    if placeholder_kind(text) in {"stub", "messages", "media"}:
        start = max(text.rfind("["), 0)
        return text[:start] + _RECALL.sub("", text[start:])
    return _CONDENSED_ADVICE.sub(r"\1", text)


def edited_texts(message: Message, edit: Callable[[str], str]) -> Message:
    """The message with every text replaced by `edit(text)`. If no text changes, the same object is returned."""
    parts = tuple([_edited_part(part, edit) for part in message.parts])
    return message if all(map(is_, parts, message.parts)) else message.with_parts(*parts)


def _edited_part(part: Part, edit: Callable[[str], str]) -> Part:
    if isinstance(part, ToolResult):
        inner = tuple([_edited_part(each, edit) for each in part.parts])
        return part if all(map(is_, inner, part.parts)) else replace(part, parts=inner)
    text = edit(part.text) if isinstance(part, Text) else ""
    return Text(text=text) if isinstance(part, Text) and text != part.text else part


def message_without_handles(message: Message) -> Message:
    """Removes the handles, and the advice to use recall, from a digest or from a message that has placeholders.

    This is for a reader that cannot read messages by their handles.
    """
    return edited_texts(message, without_handles if message.kind == "digest" else without_recall)


def missing_media(kind: str, reason: str, handle: str) -> str:
    """The text that replaces an image or other media in the request."""
    return f"[{kind} left out, {reason}: it is in {handle}, ask recall for it]"


def unsupported_media(media: Media) -> str:
    """The text that replaces media if the wire format does not support them.

    A text document is replaced by its own text. For other media, the text names their kind and type.
    """
    return media.text if media.text.strip() else f"[{' '.join(filter(None, (media.kind, media.mime)))} left out]"


def call_as_text(call: ToolCall) -> str:
    """The text that replaces a call if the call is not allowed at its position in the history."""
    return f"[call of {call.name or 'a tool'} {call.id}: {call.arguments}]"


def result_as_text(result: ToolResult) -> str:
    """The text that replaces a result if the result is not allowed at its position in the history."""
    return f"[result of {result.call_id or result.name}]\n{result.text}"


def orphan_result_line(result: ToolResult) -> str:
    """The first line of a result that is sent as text because its call is not in the view."""
    name = " ".join(word for word in (result.name, result.call_id) if word) or "unknown"
    return f"[result of a call that is not in this conversation: {name}]"


def late_result_line(result: ToolResult) -> str:
    """The first line of a result that is sent as text because it came after the model's next reply."""
    name = " ".join(word for word in (result.name, result.call_id) if word) or "unknown"
    return f"[result of an earlier call, which came late: {name}]"


def second_result_line(result: ToolResult) -> str:
    """The first line of a result that is sent as text because its call already has another result."""
    name = " ".join(word for word in (result.name, result.call_id) if word) or "unknown"
    return f"[another result of the same call: {name}]"


def compacted_by_provider(text: str) -> str:
    """The text of a provider's own compaction block, for models that cannot read the block."""
    return f"[summary of earlier messages, written by the provider]\n{text}"


def continue_prompt(broken: str = "") -> str:
    """The prompt that asks the model to continue a reply that stopped at its length limit.

    `broken` names the tools whose calls are incomplete.
    """
    if broken:
        return f"{_CUT_OFF} inside a call of {broken}, which did not run. Make the call again in smaller pieces.]"
    return f"{_CUT_OFF}. Go on where it stopped, in smaller pieces.]"


def placeholder_kind(text: str) -> str:
    """The kind of the placeholder in a text, such as `stub` or `media`; "" if there is none.

    The placeholder is the whole text or the end of the text.
    """
    if text.startswith(_PREFIXES):
        return "prompt" if text.startswith(_CUT_OFF) else "call or result"
    found = _LAST_LINE.fullmatch(text, text.rfind("\n") + 1) or _SHORTENED.fullmatch(text, max(0, text.rfind("[")))
    return found.lastgroup or "" if found else ""


def without_imitations(line: str) -> str:
    """A quoted line, changed so that nothing in it looks like a placeholder.

    Square brackets around a handle become round brackets. In any other text that looks like a placeholder, only the
    opening bracket becomes a round bracket. The words "ask recall for it" are removed.

    >>> without_imitations("[pruned, too large: the whole is #7, ask recall for it]")
    '(pruned, too large: the whole is #7]'
    """
    if "[" in line:
        line = _QUOTED_HANDLE.sub(r"(\1)", line)
        line = _IMITATION.sub("(", line)
    return _RECALL.sub("", line) if "recall" in line.lower() else line


_PREFIXES = (_CUT_OFF, "[call of ", "[result of ")
_LAST_LINE = re.compile(
    r"(?P<stub>\[pruned, .*(?:, ask recall for it|; the whole is #[\d-]+"
    r"| characters shown(?: and \d+ attachments? left out)?)\])"
    r"|(?P<messages>\[\d+ earlier messages? not shown here(?:: (?:of )?#[\d-]+(?:, ask recall for them)?)?\])"
    r"|(?P<media>\[(?![\d,]+ characters )[^\[\]]{1,200} left out"
    r"(?:, [^\[\]]{1,80}?(?:: it is in #\d+(?:, ask recall for it)?)?)?\])"
)
_SHORTENED = re.compile(r"(?P<shortened>\[[\d,]+ characters left out(?:; the whole is #\d+)?\])")
_REFERENCE = re.compile(r"(?:; the whole is|: it is in|:(?: of)?) #[\d-]+(?:, ask recall for (?:it|them))?\]\Z")
_HANDLES = re.compile(r" ?\[#[\d, #–-]+\]|(?<= condensed):(?: of)? #[\d-]+(?:, ask recall for (?:them|it))?")
_CONDENSED = re.compile(r"^\d+ earlier messages? (?:was|were) condensed:(?: of)? #(?:\d+-)?(\d+)[,.]", re.MULTILINE)
_CONDENSED_ADVICE = re.compile(
    r"^(\d+ earlier messages? (?:was|were) condensed:(?: of)? #[\d-]+), ask recall for them(?=\.$)", re.MULTILINE
)
_CONDENSED_COUNT = re.compile(r"^(\d{1,9}) earlier messages? (?:was|were) condensed[.:]", re.MULTILINE)
_QUOTED_HANDLE = re.compile(r"\[(\s*#\s*\d[\d, #–-]*)\]")
_IMITATION = re.compile(r"\[(?=\s*(?:#\s*\d|pruned,|\d[\d,]* earlier message))", re.IGNORECASE)
_RECALL = re.compile(r",? ?ask recall for (?:it|them)\b", re.IGNORECASE)
