"""Every text that stands in a view for something that is not there, and the functions that recognise these texts.

A placeholder says what is missing, why, and the handle under which `recall` gives it back, if there is one. All of them
are worded here, so that the code that writes one and the code that recognises one cannot disagree.
"""

from __future__ import annotations

import re

from foldline.message import Media, ToolCall, ToolResult

NO_RESULT = "[no result was recorded for this call]"
"""The closing result of a call that was never answered."""
NO_OUTPUT = "(no output)"
"""The text of an empty result: several formats refuse an empty or blank one."""
NO_EARLIER_PROMPT = "[no earlier message of the user was recorded]"
"""The user message in front of a history that starts with the assistant."""
NO_NEW_PROMPT = "[no new message of the user was recorded]"
"""The user message behind a history that ends with the assistant."""
TOOL_ERROR = "[tool error] "
"""Begins the text of a failed result in formats that have no field for failure."""
REDACTED = "[redacted "
"""Begins the placeholder of a secret; its kind and `]` follow."""
OMISSION = "[…]"
"""Stands for the text before and after an excerpt."""
REMOVED_ORDER = "(a line that gave orders to the reader was left out)"
"""Stands in a digest for a line that addressed the reader with instructions."""
_CUT_OFF = "[Your reply was cut off at its length limit"

# Reasons for a stub
TOO_LARGE_TO_SEND = "too large to send"
TOO_LARGE_TO_STAY = "too large to stay"
LARGE_AND_OLD = "large and old"
WINDOW_FULL = "the window is full"


def repeated_in(handle: str) -> str:
    """The reason for a stub whose text stands in a later message, too."""
    return f"it stands again in {handle}"


def read_again_in(handle: str) -> str:
    """The reason for a stub of a file that was read again later."""
    return f"read again in {handle}"


def stub_line(reason: str, handle: str, *, shown: int, total: int, attachments: int = 0) -> str:
    """The last line of a pruned result, below the `shown` characters of it that stay.

    >>> stub_line(TOO_LARGE_TO_STAY, "#7", shown=6, total=6_992)
    '[pruned, too large to stay: 6 of 6,992 characters shown; the whole is #7, ask recall for it]'
    """
    media = f" and {attachments} attachment{'s' * (attachments > 1)} left out" if attachments else ""
    extent = f"{shown:,} of {total:,} characters shown{media}"
    return f"[pruned, {reason}: {extent}; the whole is {handle}, ask recall for it]"


def shortened(missing: int, handle: str) -> str:
    """Follows the part that is kept of a shortened text or call argument."""
    return f"[{missing:,} characters left out; the whole is {handle}]"


def missing_messages(count: int, handle: str, *, partly: bool = False) -> str:
    """Stands for messages that left the view without a digest; `partly`: some of the range named by `handle` stay.

    >>> missing_messages(12, "#2-13")
    '[12 earlier messages not shown here: #2-13, ask recall for them]'
    """
    of = "of " * partly
    return f"[{count} earlier message{'s' * (count != 1)} not shown here: {of}{handle}, ask recall for them]"


def condensed_messages(count: int, handle: str = "", *, partly: bool = False) -> str:
    """The line of a digest that says how many messages it stands for, and which where a ledger has them."""
    place = f": {'of ' * partly}{handle}, ask recall for them" if handle else ""
    return f"{count} earlier message{'s were' if count != 1 else ' was'} condensed{place}."


def without_handles(text: str) -> str:
    """A digest without the handles that only a ledger can resolve."""
    return _HANDLES.sub("", text)


def missing_media(kind: str, reason: str, handle: str) -> str:
    """Stands for an image or other media that the request cannot carry."""
    return f"[{kind} left out, {reason}: it is in {handle}, ask recall for it]"


def unsupported_media(media: Media) -> str:
    """Stands for media that the wire format cannot carry: its text, or its kind and type."""
    return media.text if media.text.strip() else f"[{' '.join(filter(None, (media.kind, media.mime)))} left out]"


def call_as_text(call: ToolCall) -> str:
    """A call that its place in the history does not allow, as text."""
    return f"[call of {call.name or 'a tool'} {call.id}: {call.arguments}]"


def result_as_text(result: ToolResult) -> str:
    """A result that its place in the history does not allow, as text."""
    return f"[result of {result.call_id or result.name}]\n{result.text}"


def orphan_result_line(result: ToolResult) -> str:
    """The first line of a result that is sent as text because its call is not in the view."""
    name = " ".join(word for word in (result.name, result.call_id) if word) or "unknown"
    return f"[result of a call that is not in this conversation: {name}]"


def continue_prompt(broken: str = "") -> str:
    """Asks the model to go on after its length limit; `broken` names the tools whose calls broke off."""
    if broken:
        return f"{_CUT_OFF} inside a call of {broken}, which did not run. Make the call again in smaller pieces.]"
    return f"{_CUT_OFF}. Go on where it stopped, in smaller pieces.]"


def placeholder_kind(text: str) -> str:
    """The kind of placeholder that a text is or ends with: `stub`, `shortened`, `messages`, `media` …; "" for none."""
    if text.startswith(_PREFIXES):
        return "prompt" if text.startswith(_CUT_OFF) else "call or result"
    found = _LAST_LINE.fullmatch(text, text.rfind("\n") + 1) or _SHORTENED.fullmatch(text, max(0, text.rfind("[")))
    return found.lastgroup or "" if found else ""


def without_imitations(line: str) -> str:
    """A quoted line in which nothing passes for a placeholder: opening brackets are changed, hints at recall removed.

    >>> without_imitations("[pruned, too large: the whole is #7, ask recall for it]")
    '(pruned, too large: the whole is #7]'
    """
    if "[" in line:
        line = _IMITATION.sub("(", line)
    return _RECALL.sub("", line) if "recall" in line.lower() else line


_PREFIXES = (_CUT_OFF, "[call of ", "[result of ")
_LAST_LINE = re.compile(
    r"(?P<stub>\[pruned, .*, ask recall for it\])"
    r"|(?P<messages>\[\d+ earlier messages? not shown here: (?:of )?#[\d-]+, ask recall for them\])"
    r"|(?P<media>\[[^\[\]]{1,200} left out(?:, [^\[\]]{1,80}: it is in #\d+, ask recall for it)?\])"
)
_SHORTENED = re.compile(r"(?P<shortened>\[[\d,]+ characters left out; the whole is #\d+\])")
_HANDLES = re.compile(r" ?\[#[\d, #–-]+\]|(?<= condensed): #[\d-]+, ask recall for (?:them|it)")
_IMITATION = re.compile(r"\[(?=\s*(?:#\s*\d|pruned,|\d[\d,]* earlier message))", re.IGNORECASE)
_RECALL = re.compile(r",? ?ask recall for (?:it|them)\b", re.IGNORECASE)
