"""Shortens texts for a digest."""

from __future__ import annotations

from foldline.digest.extract.identifiers import names_in

_GAP = "…"
"""What is written in place of words that were left out."""
_FIRST_WORDS = 3
"""The first words of a shortened request have priority even over its names."""
_PROHIBITIONS = frozenset(("never", "not", "no", "don't", "dont", "avoid", "without", "only"))
_PROHIBITED_WORDS = 3
"""A word of `_PROHIBITIONS` is kept together with this many words that follow it."""
_MIN_REST = 30
"""The least number of characters for the lines after the first one."""
_MAX_NAMED = 2
"""If all names of a request together are longer than this many times the room, the request is mostly data. Its names
are then not preferred.
"""


def shorten(text: str, max_chars: int) -> str:
    """The text, without its middle if it has more than `max_chars` characters."""
    text = text.strip()
    if len(text) <= max_chars:
        return text
    head, tail = text[: max_chars * 3 // 5], text[-(max_chars * 2 // 5) :]
    head = head[: max(head.rfind(" "), head.rfind("\n"), len(head) * 3 // 4)].rstrip()
    starts = [at for at in (tail.find(" "), tail.find("\n")) if 0 <= at < len(tail) // 4]
    return f"{head} {_GAP} {tail[min(starts, default=-1) + 1 :].lstrip()}"


def shorten_request(text: str, max_chars: int) -> str:
    """The user's words, shortened to at most `max_chars` characters. Names and numbers are kept before other words.

    The first lines come first, because data often follows the request. In the line that does not fit, the first words
    have the highest priority, then the words that say what not to do, and then the names, each with the word before
    it. All remaining words come last, alternately from the start and from the end.

    >>> shorten_request("Set the port of the new service to 7013 and then look at all of the other things.", 40)
    'Set the port … to 7013 … other things.'
    """
    shown, at = "", 0
    while len(text) - at > max_chars - len(shown) and (end := text.find("\n", at)) >= 0:
        left = max_chars - len(shown) - (end - at) - 1
        if left < _MIN_REST:
            return f"{shown}{_shorten_words(text[at:end], max_chars - len(shown) - len(_GAP) - 1)} {_GAP}"
        shown, at = text[: end + 1], end + 1
    return shown + _shorten_words(text[at:], max_chars - len(shown))


def _shorten_words(text: str, max_chars: int) -> str:
    """The words of a request, shortened to at most `max_chars` characters."""
    short = shorten(text, max_chars) if len(text) > max_chars else text
    if names_in(text) <= names_in(short):
        return short
    words = text.split(" ")
    named = [at for at, word in enumerate(words) if names_in(word)]
    if sum(len(words[at]) + 1 for at in named) > _MAX_NAMED * max_chars:
        return short
    prohibited = [at for at, word in enumerate(words) if word.lower().strip(".,:;!?()*_\"'") in _PROHIBITIONS]
    near = [place for at in prohibited for place in range(at, min(len(words), at + 1 + _PROHIBITED_WORDS))]
    near += [place for at in named for place in (at, max(0, at - 1))]
    ends = [place for at in range((len(words) + 1) // 2) for place in (at, len(words) - 1 - at)]
    kept, room = set[int](), max_chars - len(_GAP)
    for at in dict.fromkeys([*range(min(_FIRST_WORDS, len(words))), *near, *ends]):
        cost = len(words[at]) + 1 + (1 - (at - 1 in kept) - (at + 1 in kept)) * len(_GAP)
        if cost <= room:
            kept.add(at)
            room -= cost
    shown = [word if at in kept else _GAP for at, word in enumerate(words)]
    return " ".join([word for at, word in enumerate(shown) if word != _GAP or shown[at - 1 : at] != [_GAP]])


def without_code(text: str) -> str:
    """A text without its code blocks."""
    pieces = text.split("```")
    return "".join(pieces[::2]) if len(pieces) % 2 else text
