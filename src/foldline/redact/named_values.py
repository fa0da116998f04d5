"""Values that follow a name: in assignments, JSON, XML, name/value pairs, flags, headers and prose."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from foldline.placeholders import REDACTED
from foldline.redact import patterns
from foldline.redact.patterns import Hit
from foldline.redact.value_shape import (
    is_passphrase,
    is_path,
    is_placeholder,
    is_uuid,
    is_words,
    looks_random,
    looks_typed,
    mixes_characters,
    run_end,
    wrapped_end,
)

_ASSIGNMENT = re.compile(
    r"""(?=[\w.-]{0,43}+[\\"'`\]\s:=：])"""
    r"""(?P<rest>[\w.-]{0,40}?)\\{0,3}(?P<shut>["'`]?)\]?(?:[ \t]\[[^\]\n]{0,30}\]|[ \t]\#?\d{1,2}(?=:))?[ \t]{0,40}"""
    r"""(?P<sign>(?::[ \t]{0,4}[\w\[\]| .&]{1,30}|&?(?:string|String|str)[ \t]{0,4})?(?:=>|:=|==?)|[:：]|"""
    r"""(?<=[\s\w"'`])(?:is|was)(?=[\s:])|(?=[ \t]))"""
    r"""[ \t]{0,8}:?[ \t]{0,4}(?:!!\w{1,12}[ \t]+)?(?:(?P<slash>\\{0,3})(?P<quote>["'`])|[bfrN@](?P<quote2>["'])|)"""
)
_PAIR = re.compile(
    r"""[\w.-]{0,40}+\\{0,2}["']?[ \t]{0,8},?[ \t]{0,8}(?:(?:\r?\n|\\n)[ \t]{0,60})?\\{0,2}["']?"""
    r"""(?:\w{0,20}[Vv]alue|val|content|default)\\{0,2}["']?[ \t]{0,8}[:=][ \t]{0,8}"""
    r"""(?P<slash>\\{0,2})(?P<quote>["']?)"""
)
"""What lies between the name and the value in `{"name": "DB_PASSWORD", "value": "…"}`, YAML and XML attributes."""
_ELEMENT = re.compile(
    r"[\w.:-]{0,40}+(?:[ \t][^<>\n]{0,120}+)?>\s{0,40}+(?:<!\[CDATA\[|<string>)?"
    r"(?P<value>[^<>\n\]]{3,400}+)(?:\]\]>)?\s{0,40}</"
)
_ATTRIBUTE = re.compile(r"[\w.-]{0,40}+[\"'][^<>\n]{0,80}+>(?P<value>[^<>\n]{3,400}+)</")
_PLIST = re.compile(
    r"[\w.-]{0,40}+</[\w:.-]{1,40}>\s{0,40}+<(?:string|[\w:.-]{0,30}[Vv]alue)>(?P<value>[^<>\n]{3,400}+)</"
)
_ELEMENT_START = re.compile(r"<[\w.:-]{0,40}$")
_ARGUMENT = re.compile(
    r"""[\w.-]{0,40}+(?P<q>["'])[ \t]{0,4},[ \t]{0,20}(?P<q2>["'])(?P<value>[^"'\n]{4,200})(?P=q2)"""
)
"""The rest of a name in quotes and the next argument, as in `define('DB_PASSWORD', '…')`."""
_BRACES = re.compile(r"[\w.-]{0,20}=\{(?P<value>[^{}\n]{4,200})\}(?=[;\"']|$)")
_TYPED_IN_CONFIG = re.compile(
    r"[\w-]{0,12}+[ \t]{1,4}(?:[05789]|ascii-text|hexadecimal|encrypted|cleartext|plain)[ \t]{1,4}"
    r"[\"']?(?P<value>[^\s\"']{6,200})"
)
_NEXT_LINE = re.compile(
    r"[^\n]{0,160}?[:：][ \t]*(?P<block>[>|][+-]?)?[ \t]*\r?\n(?:[ \t]*\r?\n)?[ \t>`]{0,20}"
    r"(?P<value>[^\s`]{6,400})`?[ \t]*(?=\r?\n|$)"
)
_PROSE_SIGN = re.compile(
    r"(?:(?<=\w)['’]s|(?<![\w])(?:is|was|be|are|ist|lautet|war|es|est|jest|este|är|er|to|é|è|это|je)(?!\w)|[:→]|->|—)"
    r"(?:[ \t]+(?:now|still|just|currently|probably))?:?[ \t]+|[是为為は는은이][：:]?[ \t]*"
)
_CHANGED_TO = re.compile(r"(?:set|changed?|reset|updated?|rotated?|back)[ \t]+(?:\S{1,20}[ \t]+){0,5}$", re.IGNORECASE)
_PROSE_QUOTED = re.compile(r"""["'`«“„‘][ \u00a0]?(?P<value>[^"'`«»“”„‘’\n]{4,100}?)[ \u00a0]?["'`»”“’]""")
_PROSE_BARE = re.compile(r"[^\s\"'`«»“”]{6,128}+(?![^\s\"'`«»“”])")
_WORD_AND_DIGITS = re.compile(r"[a-z]{4,20}\d{2,4}")
_QUOTED = {
    **{mark: re.compile(rf"(?:[^{mark}\r\n\\]|\\[\"'\\/]){{1,160}}") for mark in "\"'`"},
    "\\": re.compile(r"[^\"'`\r\n\\]{1,160}"),
}
_QUOTED_ALL = {
    **{mark: re.compile(rf"(?:[^{mark}\r\n\\]|\\[\"'\\/])*+") for mark in "\"'`"},
    "\\": re.compile(r"[^\"'`\r\n\\]*"),
}
_BARE = re.compile(r"""[^\s"'`,;&<>\\(){}\[\]|]{1,160}""")
_BARE_ALL = re.compile(r"""[^\s"'`,;&<>\\(){}\[\]|]*""")
_BARE_ENV = re.compile(r"""[^\s"'`;\\]*""")
_SEMICOLONS = re.compile(r"""[^\s"'`;\\<>]{1,160}""")
_FLAG = re.compile(r"--?[\w-]{0,30}$")
_SCHEME = re.compile(
    r"(?:Bearer|Basic|Token|ApiKey|Api-Key|Digest|Negotiate|AWS4-HMAC-SHA256|Bot)[ \t]+(?:token=)?[\"']?", re.IGNORECASE
)
_INNER_DIGIT = re.compile(r"[A-Za-z]\d[A-Za-z]")
_REFERENCE = re.compile(r"[A-Za-z_]\w*(?:(?:\.|::|->|\?\.)[A-Za-z_]\w*)*[.:?!]?")
_HARMLESS_STARTS = (
    *("public", "publishable", "idempotency", "cache", "partition", "sort", "primary", "foreign", "unique", "config"),
    *("translation", "i18n", "row", "range", "hash", "index", "lookup", "object", "routing", "group", "dedup", "etag"),
    *(
        "next",
        "page",
        "continuation",
        "cancel",
        "cancellation",
        "sync",
        "shard",
        "message",
        "event",
        "storage",
        "query",
    ),
    *("react", "cluster", "registry", "pagination", "resume", "lock", "feature", "flag", "metric", "label", "known"),
)
"""Words before `key` or `token` whose value is harmless, as in `partition_key`."""
_IS_REDACTED = re.compile(
    r"""[\w.-]{0,40}+[\\"'`\]]{0,4}[ \t]{0,8}+[:=]?[ \t]{0,8}+[\\"'`]{0,4}(?:\w{1,10} )?""" + re.escape(REDACTED)
)
_PLAIN_SIGNS = {False: (":", "="), True: ()}
"""Characters after a name that only an assignment has, by whether the name is strong."""
_REST = re.compile(r"[\w.-]{0,40}")
_KINDS = (("pass", "password"), ("pwd", "password"), ("secret", "secret"), ("token", "token"), ("key", "key"))
_STRONG = frozenset((*patterns.SECRET_NAMES, *patterns.WHOLE_SECRET_NAMES))
_NAMES = (*patterns.SECRET_NAMES, *patterns.WHOLE_SECRET_NAMES, *patterns.MAYBE_SECRET_NAMES)
_PROSE_CHARS = 90


def find_named_values(text: str) -> Iterator[Hit]:
    """All values that follow a name of a secret."""
    lower = text.lower()
    if len(lower) != len(text):  # a letter that grows in lower case would shift every position
        lower = "".join(letter.lower() if letter.isascii() else letter for letter in text)
    for name in _NAMES:
        at, until = lower.find(name), 0
        is_whole = name in patterns.WHOLE_SECRET_NAMES
        while at >= 0:
            if at >= until and (not is_whole or _is_whole_word(text, at, at + len(name))):
                hit = _named_value(text, at, at + len(name), name)
                if hit is not None:
                    until = hit.end
                    yield hit
            at = lower.find(name, at + len(name))


def _is_whole_word(text: str, at: int, end: int) -> bool:
    """Whether a name is a word of its own, also in camel case."""
    before, after = text[at - 1 : at], text[end : end + 1]
    starts = not before.isalpha() or (before.islower() and text[at].isupper())
    return starts and not after.isalnum()


def _named_value(text: str, at: int, end: int, name: str) -> Hit | None:
    """The secret that follows the name from `at` to `end`; None if there is none."""
    strong = name in _STRONG
    span = _assigned_value(text, at, end, name, strong=strong)
    if span is None and text[end : end + 1] not in _PLAIN_SIGNS[strong] and not _IS_REDACTED.match(text, end):
        span = _other_value(text, at, end, strong=strong)
    if span is None or _is_harmless_name(text, at, text[end : run_end(_REST, text, end)], strong=strong):
        return None
    return Hit(*span, next((kind for part, kind in _KINDS if part in name), "credential"))


def _assigned_value(text: str, at: int, end: int, name: str, *, strong: bool) -> tuple[int, int] | None:
    """The value of an assignment, a flag, a header or `is`."""
    found = _ASSIGNMENT.match(text, end)
    if found is None or _is_harmless_ending(found["rest"]):
        return None
    start, quote = found.end(), found["quote"] or found["quote2"] or ""
    scheme = _SCHEME.match(text, start)
    if scheme:
        start, strong = scheme.end(), True
    elif not found["sign"] and not _FLAG.search(text, max(0, at - 32), at):
        if not strong or found["shut"] or not _is_value_without_sign(text, start, quote):
            return None
    elif found["sign"] in (":", "=") and text[at - 1 : at] == ":" and start == found.end("sign"):
        return None  # a part of a name such as `arn:aws:…:secret:name`
    mark = "\\" if quote and found["slash"] else quote
    has_quote = bool(quote) and not scheme
    env = text[at:end].isupper() and found["sign"] == "=" and not text[start - 1].isspace()
    listed = not quote and found["sign"] == "=" and _follows_semicolon(text, at)
    value = (_QUOTED[mark] if has_quote else _SEMICOLONS if listed else _BARE).match(text, start)
    if value is None or value[0].startswith(REDACTED[1:]) or text.startswith(REDACTED, start):
        return None
    if not strong and (len(value[0]) < 16 or not mixes_characters(value[0])):
        return None
    if is_placeholder(value[0]) or value[0][0].isspace():
        return None
    if " " in value[0].strip():
        if not (strong and has_quote and is_passphrase(value[0])):
            return None
    elif not _is_value(text, value, found, name, strong=strong, whole=has_quote or env):
        return None
    every = _QUOTED_ALL[mark] if has_quote else _SEMICOLONS if listed else _BARE_ENV if env else _BARE_ALL
    return value.start(), wrapped_end(text, run_end(every, text, value.start()))


def _is_harmless_name(text: str, at: int, rest: str, *, strong: bool) -> bool:
    """Whether the word before the name, or `rest`, the end of it, says that its value is harmless."""
    if _is_harmless_ending(rest):
        return True
    before = text[max(0, at - 24) : at].lower().rstrip("_- ").removesuffix("key").rstrip("_- ")
    return not strong and before.endswith(_HARMLESS_STARTS)


@lru_cache(4096)
def _is_harmless_ending(rest: str) -> bool:
    return bool(rest) and (rest[0].isdigit() or patterns.HARMLESS_NAME_ENDING.match(rest) is not None)


def _is_value_without_sign(text: str, start: int, quote: str) -> bool:
    """Whether a value that follows its name after a blank is a secret: `PASSWORD 'value'`, `secret value`."""
    value = (_QUOTED[quote] if quote else _BARE).match(text, start)
    if value is None:
        return False
    return looks_typed(value[0]) if quote else len(value[0]) >= 20 and looks_random(value[0])


def _follows_semicolon(text: str, at: int) -> bool:
    """Whether a name stands in a list that is separated by semicolons, such as a connection string."""
    start = max(text.rfind(";", max(0, at - 24), at), text.rfind("&", max(0, at - 24), at))
    return start >= 0 and text[start] == ";" and " " not in text[start + 2 : at]


def _is_value(  # noqa: PLR0913
    text: str, value: re.Match[str], found: re.Match[str], name: str, *, strong: bool, whole: bool
) -> bool:
    """Whether the value of an assignment is a secret."""
    if name in ("_key", "-key") and is_uuid(value[0]) and not text[found.start() - 1].isupper():
        return False
    if is_path(value[0]):
        return False
    if name == "pass" and not whole and patterns.TECHNICAL_WORD.match(value[0]):
        return False
    if name in ("secret", "credential") and not whole and is_words(value[0]) and value[0].islower():
        return False  # the name of a stored secret, such as `existingSecret: db-credentials-v2`
    if found["sign"] in ("is", "was"):
        return strong and looks_random(value[0])
    return _is_secret(value[0], text[value.end() : value.end() + 1], strong=strong, whole=whole)


def _is_secret(value: str, after: str, *, strong: bool, whole: bool) -> bool:
    """Whether a value is a secret.

    `whole` means that it is in quotes or in a shell assignment, so that it is complete.
    """
    if after == "(" or (not whole and after in ("[", "{")):
        return False
    if not whole and _REFERENCE.fullmatch(value) and not mixes_characters(value):
        return strong and len(value) >= 6 and _INNER_DIGIT.search(value) is not None and looks_typed(value)
    if not strong:
        return len(value) >= 16 and looks_random(value)
    return len(value) >= 4 if whole else len(value) >= 6 and any(not letter.isalpha() for letter in value)


def _other_value(text: str, at: int, end: int, *, strong: bool) -> tuple[int, int] | None:
    """The value of an XML element, a name/value pair or an argument; for strong names, also a value in prose."""
    after = text[end : end + 41].lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")[:1]
    if after in ("<", ">") or (after == " " and text[at - 1 : at] == "<"):
        found = _PLIST.match(text, end)
        if found is None and _ELEMENT_START.search(text, max(0, at - 42), at):
            found = _ELEMENT.match(text, end)
        return found.span("value") if found and _is_text_value(found["value"], strong=strong) else None
    if after and after in "\"'\\\n\r, " and (pair := _PAIR.match(text, end)):
        mark = "\\" if pair["slash"] else pair["quote"]
        value = (_QUOTED[mark] if mark else _BARE).match(text, pair.end())
        return value.span() if value and _is_text_value(value[0], strong=strong) else None
    if not strong or not after:
        return None
    if after in "\"'" and (found := _ATTRIBUTE.match(text, end)) and looks_typed(found["value"]):
        return found.span("value")
    if after == "=" and (found := _BRACES.match(text, end)) and not found["value"].isidentifier():
        return found.span("value") if not is_placeholder(found["value"]) and looks_typed(found["value"]) else None
    if after in "\"'" and (found := _ARGUMENT.match(text, end)) and looks_typed(found["value"]):
        return None if _mentions_name(found["value"]) else found.span("value")
    return _value_in_prose(text, at, end) if after in " '’:：はé" or not after.isascii() else None


def _is_text_value(value: str, *, strong: bool) -> bool:
    """Whether the value of an element or a pair is a secret."""
    if is_placeholder(value) or is_path(value) or value.startswith(REDACTED[:-1]):
        return False
    if " " in value.strip():
        return strong and is_passphrase(value)
    return len(value) >= 4 if strong else len(value) >= 16 and looks_random(value)


def _mentions_name(value: str) -> bool:
    return any(name in value.lower() for name in ("passw", "token", "secret", "key", "user", "mail"))


def _value_in_prose(text: str, at: int, end: int) -> tuple[int, int] | None:
    """The password that a sentence names, or that stands on the next line."""
    line_end = text.find("\n", end, end + 160)
    if line_end > 0 and text[line_end - 1] in ":：|>-\r ":
        found = _NEXT_LINE.match(text, end)
        if found and (looks_random(found["value"]) or (found["block"] and looks_typed(found["value"]))):
            return None if is_path(found["value"]) or is_placeholder(found["value"]) else found.span("value")
    config = _TYPED_IN_CONFIG.match(text, end)
    if config and (looks_typed(config["value"]) or looks_random(config["value"])):
        return config.span("value")
    stop = min(end + _PROSE_CHARS, line_end if line_end >= 0 else len(text))
    for sign in _PROSE_SIGN.finditer(text, end, stop):
        is_polish = text[at] in "hH"  # where `to` means `is`
        before = max(0, sign.start() - 120)
        if sign[0].startswith("to") and not is_polish and not _CHANGED_TO.search(text, before, sign.start()):
            continue
        quoted = _PROSE_QUOTED.match(text, sign.end())
        if quoted and (looks_typed(quoted["value"]) or is_passphrase(quoted["value"])):
            return quoted.span("value")
        bare = None if quoted else _PROSE_BARE.match(text, sign.end())
        word = bare[0].rstrip(".,;:?)") if bare else ""
        is_name = word.startswith(REDACTED[:-1]) or (
            word.islower() and is_words(word) and not (sign[0][0] in "iw" and _WORD_AND_DIGITS.fullmatch(word))
        )
        if bare and looks_typed(word) and not is_name:
            return bare.start(), bare.start() + len(word)
    return None
