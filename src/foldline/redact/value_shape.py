"""What a value looks like (random, a typed password, a placeholder), and where a wrapped value ends."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import TypeVar, cast

from foldline.redact import patterns
from foldline.redact.patterns import BASE64

QUOTED = {
    **{mark: re.compile(rf"(?:[^{mark}\r\n\\]|\\[\"'\\/]){{1,160}}") for mark in "\"'`"},
    "\\": re.compile(r"[^\"'`\r\n\\]{1,160}"),
}
"""Patterns for the start of a value in quotes, by quotation mark. The key `\\` is for escaped quotes."""
BARE = re.compile(r"""[^\s"'`,;&<>\\(){}\[\]|]{1,160}""")
"""The start of a value without quotes."""
DIGIT = re.compile("[0-9]")
LINE_JOINT = re.compile(
    r"""[ \t]{0,8}["'`]?[ \t]{0,8}[+\\.&]?[ \t]{0,8}(?:\r?\n|\\r\\n|\\n)[ \t>|+#*-]{0,40}(?:\d{1,6}[→|:\t] ?)?["'`]?"""
)
"""The characters between two lines of a value that is wrapped: quotes, line numbers, or a concatenation in code."""
VALUE_END = re.compile(r"""[ \t]*(?:["'`,;\\\r\n+)}\]]|$)""")
_CASES = (re.compile("[a-z]"), re.compile("[A-Z]"), re.compile("[+/=_-]"))
_TURN = re.compile(r"[A-Za-z0-9](?:(?<=[0-9])[A-Za-z]|(?<=[A-Za-z])[0-9])")
_LABEL = re.compile(r"[A-Za-z]{1,30}(?:[_.][A-Za-z]{1,30}){1,8}|[a-z]{1,30}(?:[A-Z][a-z]{1,30}){1,8}")
_NAME_IN_LABEL = re.compile(r"passw|secret|token|api_?key|_key|credential", re.IGNORECASE)
_SEPARATORS = re.compile(r"[ _.-]")
_NAMES = frozenset(
    _SEPARATORS.sub("", name) for name in (*patterns.SECRET_NAMES, "password", "passwort", "accesstoken")
)
"""Names of secrets. A value that is such a name is a label and no secret, as in `"password": "Passwort"`."""
TYPE_NAME = re.compile(r"[A-Z]\w{0,40}(?:Key|Password|Secret|Token|Credential)[A-Za-z]{0,20}")
"""The name of a type, such as `PKCS7PrivateKeyTypes`."""
_CASE_TURN = re.compile(r"(?<=[a-z])[A-Z0-9]|(?<=[A-Z])[a-z0-9]|(?<=[0-9])[A-Za-z]")
_WORD = r"(?:[a-z]*+(?:[A-Z][a-z]{2,}+)++\d{0,4}|(?:[A-Z]?[a-z]+|[A-Z]+)?\d{0,4}|\d+)"
_WORDS = re.compile(rf"{_WORD}(?:[._/:#~@-]+{_WORD})*")
_LEET = re.compile(
    r"[A-Za-z][0134579]{1,2}[a-z]|[A-Za-z]{3}\d{1,4}[!@#%?*]+$|[A-Za-z0-9][!#^~%&][A-Za-z0-9]|(?:[A-Z][a-z0-9]|[0-9][A-Z]).*[A-Z0-9][a-z].*[0-9][A-Z]"
)
"""Signs of a typed password: a digit in place of a letter, digits and symbols at the end, a symbol between letters or
digits, or mixed letters and digits.
"""
_PASSWORD_LETTERS = re.compile(r"[\w!#$%^&*+~?@-]{6,32}")
_NO_PASSWORD = re.compile(
    r"v\d|0x|aaaa|ghsa|gen-|chatcmpl|s3|ec2|i18n|l10n|k3s|web3|h5py|log4|neo4|x86|p12|pkcs|tls|http|md5|sha\d|w3c|d3|c3p0|[A-Za-z]+#\d+$|utf|oauth|"
    r"[a-z]{2,12}_[A-Za-z0-9]+$|#?[0-9a-f-]+$|\d{4}-\d\d-|(?-i:[A-Z0-9_*-]+$)|\w*(?:test|passw|secret|token|user|key|auth|Test|Passw)|\w{1,30}__|\w{0,30}%[0-9A-F]{2}|\d+[a-z]{1,3}\d*[a-z]?$",
    re.IGNORECASE,
)
"""Names and technical words that contain digits and are no passwords."""
_WORD_FIRST = re.compile(r"[A-Za-z]{3,}[-_.:/]|sha\d|md5", re.IGNORECASE)
_PATH = re.compile(r"[A-Za-z]:[/\\]|~/|\.{1,2}/|/(?:[a-z._-]{2,40}|[A-Z][a-z]{2,20})(?:/|$)")
_LETTER = re.compile("[A-Za-z]")
_SYMBOL = re.compile(r"[!@#$%^&*+=~?]")
_BASE32 = re.compile(r"(?:[A-Z2-7]{8}){2,8}=*")
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")


_CLEARS: list[Callable[[], None]] = []
"""Functions that forget the results of a check."""
Check = TypeVar("Check", bound=Callable[..., bool])


def _remembered(check: Check) -> Check:
    """A decorator that remembers the results of a check, because a text repeats its values."""
    remembered = lru_cache(maxsize=4_096)(check)
    _CLEARS.append(remembered.cache_clear)
    return cast("Check", remembered)


def forget_values() -> None:
    """Forget the results of all checks. The values may be secrets, so this is called at the end of every search."""
    for clear in _CLEARS:
        clear()


@cache
def run_of(letters: str) -> re.Pattern[str]:
    """A pattern that matches a run of characters from a set. The run may be empty."""
    return re.compile(f"[{letters}]*")


def run_end(letters: re.Pattern[str], text: str, start: int) -> int:
    """The end of the match of a pattern at `start`; `start` if the pattern does not match."""
    found = letters.match(text, start)
    return found.end() if found else start


def wrapped_end(text: str, end: int) -> int:
    """The end of a value that may continue on later lines. `end` is the end of its first line."""
    while (joint := LINE_JOINT.match(text, end)) is not None:
        last = run_end(run_of(BASE64 + r"_\-"), text, joint.end())
        if not looks_random(text[joint.end() : last]) or not VALUE_END.match(text, last):
            break
        end = last
    return end


def looks_random(text: str) -> bool:
    """Whether a text looks like a key. A text of words, such as `home.title.v2`, does not."""
    return mixes_characters(text) and (len(text) > 60 or not is_words(text))


def is_words(text: str) -> bool:
    """Whether a text consists of words and numbers with separators between them."""
    return _WORDS.fullmatch(text) is not None


def mixes_characters(text: str) -> bool:
    """Whether letters and digits alternate in a text, or several kinds of characters are mixed."""
    if len(text) < 6:
        return False
    if not DIGIT.search(text):
        return len(text) >= 16 and "/" in text and all(case.search(text) for case in _CASES)
    turn = _TURN.search(text)
    if turn is not None and _TURN.search(text, turn.end()):
        return True
    kinds = 1 + sum([case.search(text) is not None for case in _CASES])
    return kinds >= 3 and (turn is not None or (len(text) >= 16 and "/" in text))


@_remembered
def looks_typed(text: str) -> bool:
    """Whether a text in prose looks like a password: letters with digits or symbols, but not a name, a path or an
    address.
    """
    if not 6 <= len(text) <= 128 or not _LETTER.search(text):
        return False
    if " " in text or (not DIGIT.search(text) and not _SYMBOL.search(text[:-1])):
        return False
    return not (
        is_placeholder(text) or is_path(text) or patterns.TECHNICAL_WORD.match(text) or TYPE_NAME.fullmatch(text)
    )


def looks_strong(text: str) -> bool:
    """Whether a word in prose is certainly a password, even without a sign such as `is` before it.

    Examples: `tr0ub4dor`, `Ab-12!`.
    """
    if not looks_typed(text) or is_words(text):
        return False
    kinds = sum(kind.search(text) is not None for kind in (*_CASES[:2], DIGIT, _SYMBOL))
    return kinds >= 3 or (DIGIT.search(text) is not None and _TURN.search(text) is not None)


@_remembered
def looks_like_password(text: str) -> bool:
    """Whether a word near a label such as `password` is certainly a password, such as `m4tl4b-pw` or `Winter2023!`."""
    return (
        _LEET.search(text) is not None
        and _PASSWORD_LETTERS.fullmatch(text) is not None
        and _NO_PASSWORD.match(text) is None
        and looks_strong(text)
    )


def is_dense(text: str) -> bool:
    """Whether a long text changes often between small letters, capitals and digits, as keys do and names do not."""
    turns = len(_CASE_TURN.findall(text))
    return len(text) >= 20 and turns >= len(text) // 4 and not is_words(text)


def is_key(text: str) -> bool:
    """Whether a value is certainly a random key. For values with the name `key`, which is often not a secret's name."""
    return is_dense(text) and _WORD_FIRST.match(text) is None


def is_scrambled(text: str) -> bool:
    """Whether a long text has many symbols and digits, like a generated salt in a configuration."""
    return len(text) >= 32 and len(_SYMBOL.findall(text)) >= 4 and looks_strong(text.replace(" ", "")[:100])


def is_base32(text: str) -> bool:
    """Whether a text is the secret of an authenticator app, such as `JBSWY3DPEHPK3PXP`."""
    return len(text) >= 16 and _BASE32.fullmatch(text) is not None and DIGIT.search(text) is not None


def is_uuid(text: str) -> bool:
    """Whether a text is a UUID."""
    return len(text) == 36 and _UUID.fullmatch(text) is not None


def is_path(text: str) -> bool:
    """Whether a text is a path of a file."""
    return _PATH.match(text) is not None


def is_placeholder(text: str) -> bool:
    """Whether a text is a placeholder for a value, such as `<your-token>` or `${TOKEN}`."""
    if len(text) > 60:
        return "****" in text or patterns.PLACEHOLDER_VALUE.match(text) is not None
    return _is_short_placeholder(text)


@_remembered
def _is_short_placeholder(text: str) -> bool:
    if patterns.PLACEHOLDER_VALUE.match(text) or "****" in text:
        return True
    if len(text) > 12 and DIGIT.search(text):
        return False
    if patterns.TYPE_WORD.fullmatch(text) or (_LABEL.fullmatch(text) and _NAME_IN_LABEL.search(text)):
        return True
    return _SEPARATORS.sub("", text.lower()) in _NAMES


@_remembered
def is_passphrase(text: str, *, named: bool = False) -> bool:
    """Whether a text of several words in quotes is a passphrase and not a message.

    `named` is true if the text is assigned to the name `passphrase`. Such a text may consist of words alone.
    """
    words = text.split()
    if not 2 <= len(words) <= 12 or len(text) > 120 or is_placeholder(text) or not text[0].isalnum():
        return False
    if any(word.lower().strip(".,:;!?'\"") in patterns.MESSAGE_WORDS for word in words):
        return False
    return (
        named
        or DIGIT.search(text) is not None
        or _SYMBOL.search(text[:-1]) is not None
        or (len(words) >= 3 and text.islower())
    )
