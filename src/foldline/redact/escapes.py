r"""Characters that a reader does not see: terminal escape sequences, zero-width characters, escaped line ends.

`strip_escapes` removes escape sequences from text that is stored or shown, so that a transcript cannot control a
terminal. `VisibleText` removes all unseen characters, so that they cannot hide a secret. It also maps a position in the
visible text to the position in the original.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from foldline.placeholders import REDACTED

_ESCAPE = (
    r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]?"  # CSI: colours, cursor
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\r\n]{0,2000}(?:\x07|\x1b\\|\x9c)?"  # OSC and other strings
    r"|\x1b[ -/]{0,8}[0-~]?|\x9c"
)
_WRITTEN_ESCAPE = r"\\(?:u001[bB]|x1[bB]|033|e)\[[0-9;:?]{0,32}[A-Za-z]"
_ZERO_WIDTH = "[\u00ad\u034f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufdd0\ufeff]+"
_JOINED_LINE_END = r"(?<!\\)\\\r?\n"
_PLACEHOLDER = re.escape(REDACTED) + r"[a-z0-9 ]{2,30}\]"

MASK = "\ufdd0"
"""The character that replaces each redacted secret in a visible text. It is never used for anything else."""

_ESCAPES = re.compile(_ESCAPE)
_HAS_ESCAPE = re.compile("[\x1b\x90\x98\x9b-\x9f]")
_HAS_WRITTEN_ESCAPE = re.compile(r"\\[\r\nuxe0]")
_UNSEEN = re.compile(
    f"(?P<code>{_ESCAPE}|{_WRITTEN_ESCAPE})|(?P<placeholder>{_PLACEHOLDER})|{_ZERO_WIDTH}|{_JOINED_LINE_END}"
)
_PLACEHOLDERS = re.compile(f"(?P<placeholder>{_PLACEHOLDER})")
_HAS_INVISIBLE = re.compile("[\x90\x98\x9b-\x9f\u00ad\u034f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufdd0\ufeff]")


def strip_escapes(text: str) -> str:
    r"""The text without terminal escape sequences.

    >>> strip_escapes("\x1b[31mfailed\x1b[0m")
    'failed'
    """
    may_have = "\x1b" in text or not (text.isascii() or _HAS_ESCAPE.search(text) is None)
    return _ESCAPES.sub("", text) if may_have else text


class VisibleText:
    """A text without its unseen characters. Maps positions in this text to positions in the original text."""

    __slots__ = ("_removed", "_starts", "has_codes", "text")

    def __init__(self, original: str, separator: str = "") -> None:
        """`separator` replaces each escape sequence; it has at most one character."""
        pieces, at, size, removed = [], 0, 0, 0
        self.has_codes = False
        """Whether the original contains an escape sequence."""
        self._starts, self._removed = [0], [0]
        """Two numbers for each piece of the original that is kept.

        The first is the position of the piece in the visible text. The second is the number of characters that were
        removed before the piece.
        """
        for found in (_UNSEEN if _has_codes(original) else _PLACEHOLDERS).finditer(original):
            mark = ""
            if found.lastgroup == "code":
                mark, self.has_codes = separator, True
            elif found.lastgroup == "placeholder":
                mark = MASK
            pieces += [original[at : found.start()], mark]
            size += found.start() - at + len(mark)
            at, removed = found.end(), removed + found.end() - found.start() - len(mark)
            self._starts.append(size)
            self._removed.append(removed)
        self.text = "".join([*pieces, original[at:]])

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """The span in the original text that corresponds to the visible characters from `start` to `end`."""
        return self._position(start), self._position(end - 1) + 1

    def _position(self, at: int) -> int:
        return at + self._removed[bisect_right(self._starts, at) - 1]


def has_unseen(text: str) -> bool:
    """Whether a text may contain unseen characters, or placeholders of redacted values. `VisibleText` replaces both."""
    return REDACTED in text or _has_codes(text)


def _has_codes(text: str) -> bool:
    may_have = (
        "\x1b" in text
        or _HAS_WRITTEN_ESCAPE.search(text) is not None
        or not (text.isascii() or _HAS_INVISIBLE.search(text) is None)
    )
    return may_have and _UNSEEN.search(text) is not None
