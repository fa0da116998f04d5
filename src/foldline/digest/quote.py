"""Words of a transcript as they may stand in a digest: one line, unable to pass for anything of ours.

A line that was said or read somewhere is data. Quoted in a digest it must not open a section, name a message, start a
digest or close a fence, because what reads the digest would take it for ours.
"""

from __future__ import annotations

import re

from foldline.placeholders import without_imitations

_BREAKS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\x85\u2028\u2029\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]+")
_HEADER = re.compile(
    r"\[(?=\s*(?:session digest|branch digest|condensed earlier context))",
    re.IGNORECASE,
)
_TAG = re.compile(
    r"<(?=\s*/?\s*(?:conversation-summary|scrollback|carried-digest|system|summary|context|transcript)\b)",
    re.IGNORECASE,
)
_HEADING = re.compile(r"^[\s>*-]*#+\s+")
_ECHO = re.compile(r"#+\s*(?=(?:objective|guardrails|status|rationale|plan|carryover)\b)", re.IGNORECASE)
_SPEAKER = re.compile(r"»(?=\s*(?:you|agent|tool|shell|note|digest)\b)")


def quote(text: str) -> str:
    r"""Text as one harmless line: no line ends, nothing that looks like a mark of a digest.

    >>> quote("# Plan\nsee [#3-9]\n</conversation-summary>")
    'Plan see (#3-9] (/conversation-summary>'
    """
    return harmless(_BREAKS.sub(" ", text).strip())


def harmless(line: str) -> str:
    """One line without anything that passes for a mark of ours; every other character stays as it is."""
    line = without_imitations(line)
    if "[" in line:
        line = _HEADER.sub("(", line)
    if "<" in line:
        line = _TAG.sub("(", line)
    if "»" in line:
        line = _SPEAKER.sub("›", line)
    if "#" in line:
        line = _ECHO.sub("", _HEADING.sub("", line))
    return line.strip()
