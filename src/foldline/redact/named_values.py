"""Values that are assigned to a name: in code, configuration, JSON, flags and headers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from foldline.redact import patterns
from foldline.redact.escapes import MASK
from foldline.redact.patterns import Hit
from foldline.redact.searched_text import RulesByMark, SearchedText
from foldline.redact.unassigned_values import UnassignedValues
from foldline.redact.value_shape import (
    BARE,
    QUOTED,
    TYPE_NAME,
    is_base32,
    is_key,
    is_passphrase,
    is_path,
    is_placeholder,
    is_uuid,
    is_words,
    looks_random,
    looks_strong,
    looks_typed,
    mixes_characters,
    run_end,
    wrapped_end,
)

_REST = re.compile(r"[A-Za-z0-9_]{0,40}+(?:[.-][A-Za-z0-9_]{1,30}+){0,4}+")
"""The rest of an identifier, after the name of a secret."""
_SIGN = re.compile(
    r"""(?=[\\"'`*\])?(\s:=：→|<{-])(?P<shut>[\\"'`\])*?]{0,5}+)"""
    r"""(?:[ \t](?:\[[^\]\n]{0,30}\]|\([^)\n]{0,60}\)|\#?\d{1,2}(?=:)))?[ \t]{0,40}+"""
    r"""(?P<sign>(?::[\w\[\]|.&<>,? \t]{1,40}+|(?:As[ \t]+\w{1,20}|&?(?:string|String|str))[ \t]{0,4})?"""
    r"""(?:=>|:=|==?|\|\|=|\?\?=)|[:：→]|->|<-(?=[ \t])|(?<=[ \t])[-–—](?=[ \t])|"""
    r"""(?<=[\s\w"'`])(?:is|was)(?=[\s:])|\{(?=["'])|(?<=[ \t]))"""
    r"""[ \t]{0,8}+[:*]{0,3}+[ \t]{0,4}+(?:!!\w{1,12}[ \t]+|&\w{1,20}[ \t]+)?"""
    r"""(?:(?P<slash>\\{0,3})(?P<quote>["'`])(?:(?:(?P=slash)(?P=quote)){2})?|[bfrNu@](?P<quote2>["'])|)"""
)
"""The text between a name and its value.

It may consist of closing quotes, a note in brackets, a type, a sign such as `=` or `is`, and one or three opening
quotes.
"""
_PLAIN_WORD = re.compile(r"[ \t]++(?!is\b|was\b|ENC\b)[A-Za-z]{1,30}+(?=[ \t.,;!?)\r\n]|$)(?![\w \t]{0,40}+=)")
_ENVIRONMENT = re.compile(r"""["']?\$\{|[\w.:?]{0,20}(?:env|ENV|Env)""")
_MASKED = re.compile(
    r"""[\w.-]{0,40}+[\\"'`\])*?]{0,5}+[ \t]{0,8}+[:=]?[ \t]{0,8}+[\\"'`]{0,4}+(?:[A-Za-z]{1,12}[ \t])?""" + MASK
)
_FALLBACK = re.compile(
    r"""[\w.:$?]{2,60}+[\[(]?[\["'\w. ]{0,60}+["'\])]{0,3}[ \t]{0,4}(?:\|\||\?\?|\bor\b|,|\?:)[ \t]{0,4}"""
    r"""["'`](?P<value>[^"'`\n]{4,120})["'`]|["']?\$\{[\w.]{1,60}:-?(?P<shell>[^}\s"'$]{4,120})\}"""
)
"""Code that reads an environment variable, with a default value for the case that the variable is not set."""
_QUOTED_ALL = {
    **{mark: re.compile(rf"(?:[^{mark}\r\n\\]|\\[\"'\\/])*+") for mark in "\"'`"},
    "\\": re.compile(r"[^\"'`\r\n\\]*"),
}
_BARE_ALL = re.compile(r"""[^\s"'`,;&<>\\(){}\[\]|]*""")
_BARE_ENV = re.compile(r"""[^\s"'`;\\]*""")
_SEMICOLONS = re.compile(r"""[^\s"'`;\\<>]{1,160}""")
_ARGUMENT_VALUE = re.compile(r"""[A-Za-z]{3,40}\d{0,8}(?=[ \t]*(?:$|[\r\n])|[ \t]+-)""")
_NEXT_FIELD = re.compile(r"[a-z]{1,12}=[^=]")
_FLAG = re.compile(r"--?[\w-]{0,30}$")
_WHOLE_FLAG = re.compile(r"(?<!\S)--?[\w-]{0,30}$")
"""Matches the start of a command-line option, up to the name of a secret in it: `--db-` in `--db-password`."""
_SCHEME = re.compile(
    r"(?:Bearer|Basic|Token|ApiKey|Api-Key|Digest|Negotiate|OAuth|AWS4-HMAC-SHA256|Bot|ENC)[ \t+]+(?:token=)?[\"']?",
    re.IGNORECASE,
)
_SCHEME_STARTS = frozenset("BTADNOEbtadnoe")
_HARMLESS_RUN = re.compile(r"""[^\s"'`,;&<>\\(){}\[\]|/]{0,160}""")
_TEST_NAME = re.compile(rf"Test|test_|\S*/|{patterns.TECHNICAL_WORD.pattern}", re.IGNORECASE)
"""The start of a test name, which may follow `PASS:` in the output of tests."""
_PASSED_TEST = re.compile(r"(?:[ \t]{0,16}--- |\w{1,12}: |- |)PASS:[ \t]+")
"""The text between the start of a line and the name of a test that passed."""
_INNER_DIGIT = re.compile(r"[A-Za-z]\d[A-Za-z]")
_REFERENCE = re.compile(r"[A-Za-z_]\w*(?:(?:\.|::|->|\?\.)[A-Za-z_]\w*)*[.:?!]?")
_HARMLESS_STARTS = (
    *(
        "public",
        "publishable",
        "idempotency",
        "websocket",
        "cache",
        "partition",
        "sort",
        "primary",
        "foreign",
        "unique",
        "config",
    ),
    "websocket",
    *("translation", "i18n", "row", "range", "hash", "index", "lookup", "object", "group", "dedup", "etag", "site"),
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
    *("react", "cluster", "registry", "pagination", "resume", "lock", "feature", "flag", "metric", "label"),
    *("known", "rsa", "dsa", "ecdsa", "gpg", "pgp", "openpgp", "host", "ssh", "subkey", "restore", "secondary"),
)
"""If one of these words precedes `key` or `token`, as in `partition_key`, the value is harmless."""
_PROSE_SIGNS = {True: ("", ":", "：", "→", "is", "was", "=", "-"), False: ("", "→", "is", "was", "-")}
"""Signs between a name and a value that also occur in prose: for strong names (`_STRONG`), and for other names.

If the value after such a sign is no secret, `UnassignedValues` searches for a value without an assignment.
"""
_SESSION_IDS = frozenset(("sessionId", "sessionID", "SessionId", "SessionID"))
"""Names of harmless identifiers in code and logs. Session cookies have the name `sessionid` or `SESSIONID` instead."""
_KINDS = (("pass", "password"), ("pwd", "password"), ("secret", "secret"), ("token", "token"), ("key", "key"))
_STRONG = frozenset((*patterns.SECRET_NAMES, *patterns.WHOLE_SECRET_NAMES))
"""Strong names: names that are a clear sign of a secret, such as `password`. The parameter `strong` of many functions
says whether the name counts as one of these.
"""
_PASSWORD_NAMES = frozenset(("passw", "passphrase", "pwd", "pw", "credential", "passcode", "psk", "pass phrase"))
"""If a word that looks like a password is near one of these names, the word is a password."""
_WHOLE = frozenset((*patterns.WHOLE_SECRET_NAMES, *patterns.WHOLE_MAYBE_NAMES))
_KIND_OF = {
    name: next((kind for part, kind in _KINDS if part in name), "credential")
    for name in (*_STRONG, *patterns.MAYBE_SECRET_NAMES, *patterns.WHOLE_MAYBE_NAMES)
}
_NAMES = RulesByMark((name, name) for name in _KIND_OF)


def find_named_values(searched: SearchedText) -> Iterator[Hit]:
    """All values that follow a name of a secret."""
    text = searched.text
    unassigned = UnassignedValues(text)
    tried_until: dict[str, int] = {}
    until, is_masked = 0, MASK in text
    for at, end, name in _names(searched):
        if at < until or at < tried_until.get(name, 0) or (name in _WHOLE and not _is_whole_word(text, at, end)):
            continue
        if is_masked and _MASKED.match(text, end):
            continue
        strong = name in _STRONG
        if name == "key" and not _is_key_name(text, at, end):
            continue
        rest_end = run_end(_REST, text, end)
        tried_until[name] = rest_end
        until = rest_end if strong else until
        if _is_harmless_name(text, at, text[end:rest_end], strong=strong):
            continue
        if (
            text[rest_end : rest_end + 1] in (" ", "\t")
            and _PLAIN_WORD.match(text, rest_end)
            and not (strong and _WHOLE_FLAG.search(text, max(0, at - 34), at))
        ):
            in_prose = strong and (name != "pass" or text.startswith(" for ", rest_end))
            span = unassigned.in_sentence(at, rest_end) if in_prose else None
        else:
            sign = _SIGN.match(text, rest_end)
            if sign is not None and text.startswith(MASK, sign.end()):
                continue
            span = None if sign is None else _assigned_value(text, at, sign, name, strong=strong)
            if span is None and (sign is None or sign["sign"] in _PROSE_SIGNS[strong]):
                span = unassigned.find(at, rest_end, strong=strong, prose=name != "pass")
            if span is None and sign is not None and sign["sign"] and not strong:
                tried_until[name] = run_end(_HARMLESS_RUN, text, sign.end())
        if span is None and strong and name in _PASSWORD_NAMES:
            span = unassigned.on_line(at, rest_end)
        if span is not None:
            until = max(until, span[1])
            yield Hit(*span, _KIND_OF[name])


def _names(searched: SearchedText) -> list[tuple[int, int, str]]:
    """The names of secrets in a text with their positions, in order."""
    found = []
    for name, _ in _NAMES.possible(searched):
        at, size = searched.lower.find(name), len(name)
        while at >= 0:
            found.append((at, at + size, name))
            at = searched.lower.find(name, at + size)
    found.sort()
    return found


def _is_whole_word(text: str, at: int, end: int) -> bool:
    """Whether a name is a separate word. In camel case, each part is a separate word."""
    if text[end : end + 1].isalnum():
        return False
    before = text[at - 1 : at]
    return (
        not before.isalpha()
        or (before.islower() and text[at].isupper())
        or text[max(0, at - 8) : at].lower().endswith(patterns.OWNERS)
    )


def _is_key_name(text: str, at: int, end: int) -> bool:
    """Whether `key` is a separate word or the last part of a name, such as `adobeKey`. In `monkey` it is neither."""
    after = text[end : end + 1]
    if after.isalnum() and (after != "s" or text[end + 1 : end + 2].isalnum()):
        return False
    return not text[at - 1 : at].isalnum() or text[at].isupper()


def _is_plain_key(text: str, at: int) -> bool:
    """Whether `key` is the whole name, as in `key = …`. The values of most such names are not secrets."""
    before = text[at - 1 : at]
    return not (before.isalnum() or before in ("_", "-", "."))


def _assigned_value(text: str, at: int, found: re.Match[str], name: str, *, strong: bool) -> tuple[int, int] | None:
    """The span of the value in an assignment, a flag, a header, or a sentence with `is`.

    None if the value is no secret.
    """
    start, quote, sign = found.end(), found["quote"] or found["quote2"] or "", found["sign"]
    scheme = _SCHEME.match(text, start) if text[start : start + 1] in _SCHEME_STARTS else None
    if scheme:
        start, strong = scheme.end(), True
    elif not sign and not _FLAG.search(text, max(0, at - 32), at):
        if found["shut"] or not _is_value_without_sign(text, start, quote, strong=strong):
            return None
    elif sign == ":" and text[at - 1 : at] == ":" and start == found.end("sign"):
        return None  # the name is a part of a longer name such as `arn:aws:…:secret:name`
    mark = "\\" if quote and found["slash"] else quote
    has_quote = bool(quote) and not scheme
    env = text[at : at + len(name)].isupper() and sign == "=" and not text[start - 1].isspace()
    listed = not quote and sign == "=" and _follows_semicolon(text, at)
    single = not quote and sign == "=" and start == found.end("sign") and _ends_argument(text, at, start)
    value = (QUOTED[mark] if has_quote else _SEMICOLONS if listed else BARE).match(text, start)
    bare = value is not None and strong and not sign and not found["shut"] and "-" not in text[at : found.start()]
    option = bare and value is not None and _is_option_value(text, at, value[0])
    if value is None or MASK in value[0] or value[0][0].isspace():
        return None
    if value[0].startswith(")" if has_quote else "--") or (not sign and _NEXT_FIELD.match(value[0])):
        # this is no value but code after a quoted prompt, the next option of a command, or the next field of a log line
        return None
    if not _is_secret_value(
        text,
        at,
        value,
        found,
        name,
        strong=strong,
        has_quote=has_quote,
        whole=has_quote or env or listed or single or option,
    ):
        return _fallback_value(text, start) if strong and sign and not has_quote else None
    every = _QUOTED_ALL[mark] if has_quote else _SEMICOLONS if listed else _BARE_ENV if env else _BARE_ALL
    return value.start(), wrapped_end(text, run_end(every, text, value.start()))


def _is_secret_value(  # noqa: PLR0913
    text: str,
    at: int,
    value: re.Match[str],
    found: re.Match[str],
    name: str,
    *,
    strong: bool,
    has_quote: bool,
    whole: bool,
) -> bool:
    """Whether the value of an assignment is a secret. `whole` means that the value is certainly complete."""
    if not whole and value[0].isalpha():
        return False
    if not strong and (len(value[0]) < 16 or not mixes_characters(value[0])):
        return False
    if name == "key" and _is_plain_key(text, at) and not (is_key(value[0]) or is_base32(value[0])):
        return False
    if is_placeholder(value[0]):
        return False
    if " " in value[0].strip():
        return strong and has_quote and is_passphrase(value[0], named=name == "passphrase")
    return _is_value(text, value, found, name, strong=strong, whole=whole)


def _fallback_value(text: str, start: int) -> tuple[int, int] | None:
    """The span of the default value of an environment variable: `os.getenv("DB_PASSWORD", "…")`.

    None if there is no default value or it is no secret.
    """
    found = _FALLBACK.match(text, start) if _ENVIRONMENT.match(text, start) else None
    if found is None or not looks_typed(found[found.lastgroup or 0]):
        return None
    return found.span(found.lastgroup or 0)


def _is_harmless_name(text: str, at: int, rest: str, *, strong: bool) -> bool:
    """Whether the value of a name is harmless, because of the word before the name or the rest of the identifier."""
    if _is_harmless_ending(rest):
        return True
    if strong:
        return False
    if text[at : at + 9] in _SESSION_IDS:
        return True
    before = text[max(0, at - 24) : at].lower().rstrip("_- ").removesuffix("key").rstrip("_- ")
    return before.endswith(_HARMLESS_STARTS)


@lru_cache(4096)
def _is_harmless_ending(rest: str) -> bool:
    return bool(rest) and (
        rest[0].isdigit() or rest.startswith("s.") or patterns.HARMLESS_NAME_ENDING.match(rest) is not None
    )


def _is_value_without_sign(text: str, start: int, quote: str, *, strong: bool) -> bool:
    """Whether a value that follows its name after a blank is a secret: `PASSWORD 'value'`, `secret value`."""
    value = (QUOTED[quote] if quote else BARE).match(text, start)
    if value is None:
        return False
    if quote and strong:
        return looks_typed(value[0])
    if strong and is_base32(value[0]):
        return True
    return len(value[0]) >= (20 if strong or quote else 32) and looks_random(value[0])


def _ends_argument(text: str, at: int, start: int) -> bool:
    """Whether `name=value` is an argument of a command or a line of a configuration, so that the value is complete.

    `at` is the position of the name, and `start` is the position of the value. Two conditions must hold. First, the
    value is followed by the end of the line, or by an option. Second, the last character of the value is a digit, or
    there is a dot before the name, as in `db.password=…`.
    """
    found = _ARGUMENT_VALUE.match(text, start)
    return found is not None and (text[found.end() - 1].isdigit() or text[at - 1 : at] == ".")


def _is_option_value(text: str, at: int, value: str) -> bool:
    """Whether a value follows an option of a command, as in `--db-password etl.Nightly.7`."""
    return not value.isalpha() and value[0] != "-" and _WHOLE_FLAG.search(text, max(0, at - 34), at) is not None


def _follows_semicolon(text: str, at: int) -> bool:
    """Whether a name is in a list that is separated by semicolons, such as a connection string."""
    before = text[max(0, at - 24) : at]
    start = before.rfind(";")
    return start >= 0 and "&" not in before[start:] and " " not in before[start + 2 :]


def _is_value(  # noqa: PLR0913
    text: str, value: re.Match[str], found: re.Match[str], name: str, *, strong: bool, whole: bool
) -> bool:
    """Whether a value without blanks is a secret, given the name that it is assigned to."""
    if is_uuid(value[0]) and (
        name in patterns.NAMES_OF_IDS or (name == "key" and not text[found.start() - 1].isupper())
    ):
        return False
    if is_path(value[0]):
        return False
    if name == "pass" and not whole and _is_test_name(text, value):
        return False
    if name in ("secret", "credential") and not whole and is_words(value[0]) and value[0].islower():
        return False  # the value is the name of a stored secret, as in `existingSecret: db-credentials-v2`
    if found["sign"] in ("is", "was"):
        return is_base32(value[0]) or (strong and looks_random(value[0]))
    if found["sign"] in ("-", "–", "—"):
        return looks_strong(value[0])
    return _is_secret(value[0], text[value.end() : value.end() + 1], strong=strong, whole=whole)


def _is_test_name(text: str, value: re.Match[str]) -> bool:
    """Whether a value after `pass` is the name of a test that passed: `PASS: src/queue.py`, `--- PASS: retry-v2`."""
    if _TEST_NAME.match(value[0]):
        return True
    line = text.rfind("\n", max(0, value.start() - 40), value.start()) + 1 or max(0, value.start() - 40)
    return _PASSED_TEST.fullmatch(text, line, value.start()) is not None and is_words(value[0])


def _is_secret(value: str, after: str, *, strong: bool, whole: bool) -> bool:
    """Whether a value is a secret.

    `whole` means that the value is certainly complete, for example because it is in quotes or in a shell assignment.
    """
    if after == "(" or (not whole and (after in ("[", "{") or TYPE_NAME.fullmatch(value))):
        return False
    if not whole and _REFERENCE.fullmatch(value) and not mixes_characters(value):
        return strong and len(value) >= 6 and _INNER_DIGIT.search(value) is not None and looks_typed(value)
    if not strong:
        return len(value) >= 16 and looks_random(value)
    return len(value) >= 4 if whole else len(value) >= 6 and not value.isalpha()
