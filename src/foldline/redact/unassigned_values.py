"""Finds values that belong to a name but are not assigned to it: in XML elements, name/value pairs, arguments and
prose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from foldline.redact.escapes import MASK
from foldline.redact.value_shape import (
    BARE,
    QUOTED,
    is_dense,
    is_passphrase,
    is_path,
    is_placeholder,
    is_scrambled,
    is_words,
    looks_like_password,
    looks_random,
    looks_strong,
    looks_typed,
)

_PAIR = re.compile(
    r"""\\{0,2}["']?[ \t]{0,8}[,{]?[ \t]{0,8}(?:(?:\r?\n|\\n)[ \t]{0,60})?"""
    r"""(?:(?:type|description|sensitive)[ \t]*=[^\n]{0,120}\n[ \t]{0,20}){0,3}"""
    r"""\\{0,2}["']?"""
    r"""(?:\w{0,20}[Vv]alue|val|content|default)\\{0,2}["']?[ \t]{0,8}[:=][ \t]{0,8}"""
    r"""(?P<slash>\\{0,2})(?P<quote>["']?)"""
)
"""The text between the name and the value in `{"name": "DB_PASSWORD", "value": "…"}`, YAML and XML attributes."""
_ELEMENT = re.compile(
    r"(?:[ \t][^<>\n]{0,120}+)?>\s{0,40}+(?:<!\[CDATA\[|<[\w:.-]{1,30}>){0,2}"
    r"(?P<value>[^<>\n\]]{3,400}+)(?:\]\]>)?\s{0,40}</"
)
_ATTRIBUTE = re.compile(r"[\"'][^<>\n]{0,80}+>\s{0,40}+(?:<value>)?(?P<value>[^<>\n]{3,400}+)</")
_NEXT_ELEMENT = re.compile(
    r"</[\w:.-]{1,40}>\s{0,40}+(?:<(?:string|data|[\w:.-]{0,30}[Vv]alue)>){1,2}(?P<value>[^<>\n]{3,400}+)</"
)
_ELEMENT_START = re.compile(r"<[\w.:-]{0,40}$")
_ARGUMENT = re.compile(
    r"""["'\])]{1,4}(?:[ \t]{0,4},[ \t]{0,20}(?:with:[ \t]{0,4})?|\)?\.\w{2,20}\()"""
    r"""(?P<q>["'])(?P<value>(?:(?!(?P=q))[^\n]){4,200})(?P=q)"""
)
"""The end of a name in quotes and the next argument: `define('DB_PASSWORD', '…')`, `get('#password').type('…')`."""
_BRACES = re.compile(
    r"[:=]\{(?P<value>[^{}\n]{4,200})\}(?=[;\"']|$)|[:=][ \t]?\[(?P<value2>[^\[\]\n\"']{6,200})\](?=[\s;,]|$)"
)
_CELL = re.compile(r"[ \t*]{0,20}[|│][ \t`*]{0,20}(?P<value>[^\s|│`]{6,120})[ \t`*]{0,60}[|│]")
_TYPED_IN_CONFIG = re.compile(
    r"[ \t]{1,4}(?:[05789]|ascii-text|hexadecimal|encrypted|cleartext|plain)[ \t]{1,4}"
    r"[\"']?(?P<value>[^\s\"']{6,200})"
)
_BEHIND_BLANKS = re.compile(
    r"""[ \t]{1,20}+(?![a-z]{1,12}=[^=])(?P<value>[^\s"'`<>()\[\]{}]{6,80}+)(?=[ \t]*(?:\r?\n|$)|[.,;)]?(?:\s|$))"""
)
_NEXT_LINE = re.compile(
    r"[^\n]{0,160}?[:：][ \t]*(?P<block>[>|][+-]?)?[ \t]*\r?\n(?:[ \t]*\r?\n)?[ \t>`]{0,20}"
    r"(?P<value>[^\s`]{6,400})`?[ \t]*(?=\r?\n|$)"
)
_PROSE_SIGN = re.compile(
    r"(?:(?<=\w)['’]s|(?<!\w)(?:is|was|be|are|ist|lautet|war|es|est|jest|este|är|er|to|é|è|это|je)(?!\w)|"
    r"[:=]|(?<!\d)→|->|—|(?<=[ \t])[-–])"
    r"(?:[ \t]+(?:now|still|just|currently|probably))?:?(?:[ \t]+|(?=\r?\n))|[是为為は는은이][：:]?[ \t]*"
)
"""A sign of prose: the word or mark between a name and its value in a sentence, such as `is`, `to`, `:` or `->`."""
_CHANGED_TO = re.compile(r"(?:set|changed?|reset|updated?|rotated?|back)[ \t]+(?:\S{1,20}[ \t]+){0,8}$", re.IGNORECASE)
_PROSE_QUOTED = re.compile(r"""["'`«“„‘「『][ \u00a0]?(?P<value>[^"'`«»“”„‘’」』\n]{4,100}?)[ \u00a0]?["'`»”“’」』]""")
_PROSE_BARE = re.compile(r"[^\s\"'`«»“”\\]{6,128}+(?![^\s\"'`«»“”\\])")
_WORDS_BETWEEN = re.compile(r"(?:[ \t]\w{1,20}){1,5}[ \t]?")
_WORDS_AND_DIGITS = re.compile(r"[a-z]{3,20}(?:[-_.][a-z]{3,20}){0,4}[-_.]?\d{2,4}")
_ASSIGNING_SIGNS = frozenset("=:→—–-t")
"""The characters with which a sign of prose can begin, except forms of `is`: punctuation, and the `t` of `to`."""
_NEAR_WORD = re.compile(
    r"""(?<![^\s"'`(,:|>])(?<![mde]=")(?<!ss=")(?<!or=")(?=[^\d\s]{0,30}\d)"""
    r"""[^\s"'`()<>\[\]{},;|/\\=]{6,48}(?=[\s"'`),;|<]|$)"""
)
"""A word with a digit, but not the id or the class of an XML or HTML element."""
_ANY_DIGIT = re.compile(r"\d")
_MAYBE_NEAR_WORD = re.compile(r"""(?=[^\d\s]{0,30}\d)[^\s"'`()<>\[\]{},;|/\\=]{6}""")
"""Matches at the start of every match of `_NEAR_WORD`, and is faster."""
_MAYBE_TYPED = re.compile(
    r"""["'`«“„‘「『]|[\d/!@#$%^&*+=~?](?=\S{5}|(?<=\S.)\S{4}|(?<=\S\S.)\S{3}|(?<=\S{3}.)\S\S|(?<=\S{4}.)\S|(?<=\S{5}.))"""
)
"""A quote, or a digit or symbol in a word of at least six characters. Every password in prose has one of these."""
_ENCRYPTED = re.compile(r"\{[A-Za-z0-9+/=]{20,400}\}")
"""An encrypted password in the settings of Maven."""
_BEFORE_CHARS = 60
"""Number of characters before a name that are searched for a password."""
_PROSE_CHARS, _LINE_CHARS, _PROSE_SIGNS, _SENTENCE_CHARS = 90, 160, 4, 700
"""Limits of the search in the text that follows a name.

Signs of prose are searched for in the first `_PROSE_CHARS` characters, and a line end in the first `_LINE_CHARS`. At
most `_PROSE_SIGNS` signs are checked. The whole value is within the first `_SENTENCE_CHARS` characters, even if the
value is on the next line.
"""


class UnassignedValues:
    """Finds the values that belong to names in a text. The names must be passed in ascending order."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._searches: dict[int, tuple[int, int]] = {}
        """For the `id` of each pattern: where the last search for it started, and where it found a match.

        A search that starts between these positions reuses the result. A pattern itself is a slow key, because its hash
        is computed from its whole program at every access.
        """
        self._signs = list[re.Match[str]]()
        """The signs of prose after `_signs_start`. Names that are close to each other have most of them in common."""
        self._signs_start = 0
        self._more_signs: Iterator[re.Match[str]] = iter(())
        """The signs after `_signs`."""
        self._behind: dict[tuple[int, bool], tuple[int, int] | None] = {}
        """The cached results of `_behind_sign`. The same sign is checked for every name that is near it."""

    def find(self, at: int, rest_end: int, *, strong: bool, prose: bool) -> tuple[int, int] | None:
        """The span of the value that belongs to the name at `at`; None if there is no value, or if it is no secret.

        `rest_end` is the end of the identifier that contains the name. `strong` says that the name alone is a clear
        sign of a secret, like `password`. `prose` says whether the value may be in a sentence.
        """
        text = self.text
        after = text[rest_end : rest_end + 1]
        if after in ("<", ">") or (after == " " and text.find(">", rest_end, rest_end + 120) > 0):
            found = _NEXT_ELEMENT.match(text, rest_end)
            if found is None and _ELEMENT_START.search(text, max(0, at - 42), at):
                found = _ELEMENT.match(text, rest_end)
            if found or after != " ":
                return found.span("value") if found and _is_text_value(found["value"], strong=strong) else None
        if after and after in "\"'\\\n\r, " and (pair := _PAIR.match(text, rest_end)):
            mark = "\\" if pair["slash"] else pair["quote"]
            value = (QUOTED[mark] if mark else BARE).match(text, pair.end())
            return value.span() if value and _is_text_value(value[0], strong=strong) else None
        if not strong and after and after in "\"'" and (found := _ARGUMENT.match(text, rest_end)):
            return found.span("value") if is_dense(found["value"]) else None
        if not strong or not after:
            return None
        if after in "\"'" and (found := _ATTRIBUTE.match(text, rest_end)) and looks_typed(found["value"]):
            return found.span("value")
        if after in "=:" and (found := _BRACES.match(text, rest_end)):
            inner = found[found.lastgroup or 0]
            is_code = found["value2"] is None and inner.isidentifier()
            is_value = not is_code and not is_placeholder(inner) and looks_typed(inner)
            return found.span(found.lastgroup or 0) if is_value else None
        if after in "\"'])" and (found := _ARGUMENT.match(text, rest_end)):
            is_value = (looks_typed(found["value"]) and not _mentions_name(found["value"])) or is_scrambled(
                found["value"]
            )
            return found.span("value") if is_value else None
        if after in " |*" and text[max(0, at - 20) : at].rstrip(" *`\t").endswith(("|", "│")):
            found = _CELL.match(text, rest_end)
            return found.span("value") if found and looks_typed(found["value"]) else None
        return self._in_prose(at, rest_end) if (prose and after in " '’:：は?()*,\t") or not after.isascii() else None

    def _in_prose(self, at: int, rest_end: int) -> tuple[int, int] | None:
        """The span of a password in a sentence, in the configuration of a router, or directly after the word for it."""
        text = self.text
        config = _TYPED_IN_CONFIG.match(text, rest_end)
        if config and (looks_typed(config["value"]) or looks_random(config["value"])):
            return config.span("value")
        span = self.in_sentence(at, rest_end)
        if span is None and text[at : at + 5].lower() == "passw":
            found = _BEHIND_BLANKS.match(text, rest_end)
            is_value = found and (
                looks_strong(found["value"]) or (len(found["value"]) >= 12 and found["value"].isdigit())
            )
            span = found.span("value") if found and is_value else None
        return span

    def on_line(self, at: int, rest_end: int) -> tuple[int, int] | None:
        """The span of the first word that is certainly a password; None if there is no such word.

        Only the line with the name at `at` is searched.
        """
        text = self.text
        start = max(0, at - _BEFORE_CHARS)
        start = text.rfind("\n", start, at) + 1 or start
        stop = text.find("\n", rest_end, rest_end + _PROSE_CHARS)
        if stop > 0 and text[stop - 1] in "?:":
            stop = text.find("\n", stop + 1, rest_end + _PROSE_CHARS)
        stop = stop if stop >= 0 else rest_end + _PROSE_CHARS
        if self._next(_ANY_DIGIT, start) >= stop or self._next(_MAYBE_NEAR_WORD, start) >= stop:
            return None
        areas = ((rest_end, stop), (start, at)) if text[at - 1 : at].isspace() else ((rest_end, stop),)
        for area in areas:
            for found in _NEAR_WORD.finditer(text, *area):
                word = found[0].rstrip(".,:")
                if looks_like_password(word):
                    return found.start(), found.start() + len(word)
        return None

    def in_sentence(self, at: int, rest_end: int) -> tuple[int, int] | None:
        """The span of a password that is on the next line, or that follows a word or sign such as `is` or `:`."""
        text = self.text
        if self._next(_PROSE_SIGN, rest_end) >= rest_end + _LINE_CHARS:
            return None
        if self._next(_MAYBE_TYPED, rest_end) >= rest_end + _SENTENCE_CHARS:
            return None
        line_end = text.find("\n", rest_end, rest_end + _LINE_CHARS)
        if line_end > 0 and text[line_end - 1] in ":：|>-\r ":
            found = _NEXT_LINE.match(text, rest_end)
            if found and (
                looks_random(found["value"])
                or looks_strong(found["value"])
                or (found["block"] and looks_typed(found["value"]))
            ):
                return None if is_path(found["value"]) or is_placeholder(found["value"]) else found.span("value")
        stop = min(rest_end + _PROSE_CHARS, line_end if line_end >= 0 else len(text))
        for sign in self._signs_between(rest_end, stop):
            if sign[0][0] != "=" or _WORDS_BETWEEN.fullmatch(text, rest_end, sign.start()):
                key = sign.start(), text[at] in "hH"  # after the Polish word `hasło`, `to` means `is`
                if key not in self._behind:
                    self._behind[key] = self._behind_sign(sign, is_polish=key[1])
                span = self._behind[key]
                if span is not None:
                    return span
        return None

    def _signs_between(self, start: int, stop: int) -> list[re.Match[str]]:
        """The first signs of prose between two positions."""
        signs = [sign for sign in self._signs if sign.start() >= start]
        if not signs or start < self._signs_start:
            self._more_signs, signs = _PROSE_SIGN.finditer(self.text, start), []
        while not signs or signs[-1].end() <= stop:
            sign = next(self._more_signs, None)
            if sign is None:
                break
            signs.append(sign)
        self._signs, self._signs_start = signs, start
        return [sign for sign in signs[:_PROSE_SIGNS] if sign.end() <= stop]

    def _next(self, pattern: re.Pattern[str], start: int) -> int:
        """The position of the first match of a pattern at or after `start`; the end of the text if there is none."""
        first, at = self._searches.get(id(pattern), (0, -1))
        if not first <= start <= at:
            found = pattern.search(self.text, start)
            at = found.start() if found else len(self.text)
            self._searches[id(pattern)] = start, at
        return at

    def _behind_sign(self, sign: re.Match[str], *, is_polish: bool) -> tuple[int, int] | None:
        """The span of the password after a word or sign such as `is` or `:`. In Polish, `to` means `is`."""
        text = self.text
        before = max(0, sign.start() - 120)
        if sign[0].startswith("to") and not is_polish and not _CHANGED_TO.search(text, before, sign.start()):
            return None
        quoted = _PROSE_QUOTED.match(text, sign.end())
        if quoted and (looks_typed(quoted["value"]) or is_passphrase(quoted["value"])):
            return quoted.span("value")
        bare = None if quoted else _PROSE_BARE.match(text, sign.end())
        word = bare[0].rstrip(".,;:?)") if bare else ""
        is_name = MASK in word or (
            word.islower()
            and is_words(word)
            and (sign[0][0] in _ASSIGNING_SIGNS or not _WORDS_AND_DIGITS.fullmatch(word))
        )
        if bare and looks_typed(word) and not is_name:
            return bare.start(), bare.start() + len(word)
        return None


def _is_text_value(value: str, *, strong: bool) -> bool:
    """Whether the value of an XML element or of a name/value pair is a secret. For `strong`, see `find`."""
    if (is_placeholder(value) and not _ENCRYPTED.fullmatch(value)) or is_path(value) or MASK in value:
        return False
    if " " in value.strip():
        return strong and is_passphrase(value)
    return len(value) >= 4 if strong else len(value) >= 16 and looks_random(value)


def _mentions_name(value: str) -> bool:
    return any(name in value.lower() for name in ("passw", "token", "secret", "key", "user", "mail"))
