"""Values that are recognised by their surroundings: commands, headers, addresses, cookies, tables."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Final

from foldline.redact import patterns
from foldline.redact.command_patterns import PRINTING_COMMAND, PROMPTS
from foldline.redact.context_patterns import CONTEXT_PATTERNS
from foldline.redact.pattern_rows import REGION_CHARS, ContextPattern
from foldline.redact.patterns import Hit
from foldline.redact.searched_text import NeededMarks, RulesByMark, SearchedText
from foldline.redact.unassigned_values import UnassignedValues
from foldline.redact.value_shape import (
    is_dense,
    is_passphrase,
    is_path,
    is_placeholder,
    is_uuid,
    looks_like_password,
    looks_random,
    looks_strong,
    looks_typed,
)

_DISCORD = re.compile(r"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}")
_DISCORD_HEAD = re.compile(r"(?:^|[^\w-])([MNO][A-Za-z0-9_-]{23,27})$")
_URL_USER = re.compile(r"://([^\s/?#@:\"'<>\\`]{0,200})(?::([^\s/?#@\"'<>\\`]{1,500}))?@(?=[\w\[-])")
_SAMPLE_PASSWORDS = frozenset(
    ("pass", "password", "passwd", "pwd", "secret", "postgres", "guest", "root", "admin", "test")
)
_MANIFEST_DATA = re.compile(
    r"(?:^|\n)(?P<indent>[ \t]{0,20})(?:data|stringData):[ \t]*\n"
    r"(?P<v>(?:(?P=indent)[ \t]{1,8}[\w.-]{1,80}:[^\n]{0,9000}(?:\n|$)){1,60})"
)
_MANIFEST_VALUE = re.compile(r":[ \t]*[\"']?([^\s\"'|>]{8,})")
_APP_PASSWORD = re.compile(r"[a-z]{4}(?: [a-z]{4}){3}")
_BYTES_NAME = re.compile(
    r"(?i:key|secret|seed|wallet|pair)\w{0,20}[\"']?(?:\[\w{0,12}\])?[ \t]{0,4}[:=][ \t]{0,4}[\[{(][ \t]{0,4}$"
)
_ENV_NAME = re.compile(
    r"(?<![\w$])(?![A-Z0-9_]{0,40}(?:PUBLIC|SITE|ID=|HASH|SHA|DIGEST|SUM|COMMIT|REV|GPG_KEY|PGP_KEY|IMAGE|ETAG|NONCE|CERT|URL|PATH|UUID|BUILD))"
    r"[A-Z][A-Z0-9_]{2,40}=[\"']?$"
)
_NAMES_BEFORE = {"bytes": _BYTES_NAME, "env": _ENV_NAME}
"""The checks `bytes` and `env`, each with a pattern for the name that must precede the value."""
_LITERAL = re.compile(r"(?<![\w=])[\"']([^\"'\n]{0,200})[\"'](?=[ \t]*(?:[,;)]|$))")
_COOKIES = re.compile(r"[Cc]ookie\\{0,3}[\"']?[ \t]*[:=][ \t]*\\{0,3}[\"']?(?P<v>[^\s=;\"'\\]{1,80}=[^\r\n\"'\\]{6,})")
_COOKIE = re.compile(r"[ \t]*([^\s=;]{1,80})=([^;\r\n]*)")
_COOKIE_NAME = re.compile(
    r"sess|sid|auth|tok|csrf|xsrf|jwt|login|remember|secret|key|ticket|id_|_id$|^s$|credential", re.IGNORECASE
)
_COOKIE_ATTRIBUTE = re.compile(r"path|domain|expires|max-age|samesite|priority|version", re.IGNORECASE)

_SECRET_ADDRESS = re.compile(
    r"://[^\s\"'<>`\\|]{0,200}?(?:hook|trigger|magic|reset|confirm|verif|invit|activat|sign-?in|log-?in|passw|token|secret|"
    r"private|receiver|collector|heartbeat|hc-ping|infura|alchemy|quiknode|ankr\.com|helius|/bot|sso|unsubscribe|onetime|"
    r"one-time|accept|recover|/auth|ingest|integration|live2|/ping|/i(?=/))[^\s\"'<>`\\|/?=&]{0,40}+[/?=](?P<path>[^\s\"'<>`\\|]{12,800})",
    re.IGNORECASE,
)
"""A URL with a word that shows that the rest of the URL may be a secret."""
_LONG_ADDRESS = re.compile(r"://[^\s\"'<>`\\|]{15,}")
_ADDRESS_WORDS = (
    *("hook", "trigger", "magic", "reset", "confirm", "verif", "invit", "activat", "sign", "log", "passw", "token"),
    *("secret", "private", "receiver", "collector", "heartbeat", "ping", "infura", "alchemy", "quiknode", "ankr"),
    *("helius", "bot", "sso", "unsubscribe", "onetime", "time", "accept", "recover", "auth", "ingest", "integration"),
    *("live2", "/i/"),
)
"""Every URL that `_SECRET_ADDRESS` matches contains one of these texts.

These texts are searched for first, because a search for them is faster than the pattern.
"""
_PUBLIC_ADDRESS = re.compile(
    r"://(?:www\.)?(?:github|gitlab|bitbucket|codeberg)\.\w{2,4}/|/(?:commit|blob|tree|raw|issues|pull|oauth2)/|\.(?:png|jpe?g|gif|svg|webp|js|css|tgz|whl|zip)(?:$|[?#])"
)
_ADDRESS_PART = re.compile(r"[^/?&#=,;:.)\]}]{16,400}+")
_WORDS_IN_ADDRESS = re.compile(r"(?:[a-z]{2,20}-){3,}|[a-z]{3,20}(?:[-_][a-z]{3,20})+[-_]?\d{0,4}$", re.IGNORECASE)


_ROWS = RulesByMark((mark, number) for number, row in enumerate(CONTEXT_PATTERNS) for mark in row.marks)
_NEEDED_WORDS = [NeededMarks(*row.words) for row in CONTEXT_PATTERNS]
_ACCOUNTS = RulesByMark((word, None) for word in patterns.ACCOUNT_WORDS)


def find_in_context(searched: SearchedText) -> Iterator[Hit]:
    """Values that match one of `CONTEXT_PATTERNS`, outputs of commands that print secrets, and Discord tokens."""
    text = searched.text
    for tail in _DISCORD.finditer(text):
        head = _DISCORD_HEAD.search(text, max(0, tail.start() - 29), tail.start())
        if head:
            yield Hit(head.start(1), tail.end(), "discord token")
    for row, marks in _rows_of(searched):
        for region in searched.regions(marks, row.min_chars, row.probe):
            for found in row.pattern.finditer(text, *region):
                yield from _hits_of_row(text, found, row)
    if "\n" in text:
        yield from _printed_secrets(searched)


def _printed_secrets(searched: SearchedText) -> Iterator[Hit]:
    """The outputs of commands that print secrets. Only commands after a shell prompt are recognised."""
    text = searched.text
    for start, end in searched.regions(PROMPTS, REGION_CHARS):
        at = start and start + 1
        while 0 <= at < end:
            found = PRINTING_COMMAND.match(text, at, end)
            if found is not None:
                output = found["output"].strip()
                if " " not in output and (looks_typed(output) or looks_random(output)) and not is_path(output):
                    yield Hit(*found.span("output"), "secret")
            at = text.find("\n", found.end() if found is not None else at, end) + 1 or end


def _rows_of(searched: SearchedText) -> Iterator[tuple[ContextPattern, list[str]]]:
    """The rows of `CONTEXT_PATTERNS` that can match in a text, each with those of its marks that are in the text."""
    marks_of: dict[int, list[str]] = {}
    for mark, number in _ROWS.possible(searched):
        if mark in searched.text and _NEEDED_WORDS[number].are_possible(searched.marks):
            marks_of.setdefault(number, []).append(mark)
    for number, marks in marks_of.items():
        yield CONTEXT_PATTERNS[number], marks


def _hits_of_row(text: str, found: re.Match[str], row: ContextPattern) -> Iterator[Hit]:
    """The secrets in one match of a row's pattern.

    For cookies and arguments, each secret is a part of the matched value. For all other rows, the whole value is a
    secret if it passes the check of the row.
    """
    start, end = found.span(found.lastgroup or 0)
    if row.check == "random pairs":
        yield from _cookies(text, start, end)
    elif row.check == "arguments":
        yield from _arguments(text, start, end)
    elif row.check in _NAMES_BEFORE:
        is_named = _NAMES_BEFORE[row.check].search(text, max(0, start - 60), start) is not None
        if row.check == "bytes":
            is_secret = is_named or _is_key_pair(text[start:end])
        else:
            is_secret = is_named and is_dense(text[start:end])
        if is_secret:
            yield Hit(start, end, row.kind)
    elif _passes(text[start:end], row.check):
        yield Hit(start, end, row.kind)


def find_near_accounts(searched: SearchedText) -> Iterator[Hit]:
    """Words that look like passwords and are on the same line as a word about a login, a server or a network."""
    text, lower = searched.text, searched.lower
    places: list[tuple[int, int]] = []
    for word, _ in _ACCOUNTS.possible(searched):
        at = lower.find(word)
        while at >= 0:
            end = at + len(word)
            if not (text[at - 1 : at].isalnum() or text[end : end + 1].isalnum()):
                places.append((at, end))
                end = lower.find("\n", end)
            at = lower.find(word, end) if end >= 0 else -1
    unassigned = UnassignedValues(text)
    for at, end in places:
        span = unassigned.on_line(at, end)
        if span is not None:
            yield Hit(*span, "password")


def _arguments(text: str, start: int, end: int) -> Iterator[Hit]:
    """The passwords and keys among the string literals that are passed to a call.

    The first literal is usually a user or a host, so the check of the first literal is stricter.
    """
    for number, literal in enumerate(islice(_LITERAL.finditer(text, start, end), 6)):
        value = literal[1]
        if is_placeholder(value) or is_path(value) or _is_host(value):
            continue
        is_key = len(value) >= 24 and looks_random(value)
        if is_key or (number and (looks_typed(value) or _APP_PASSWORD.fullmatch(value))) or looks_like_password(value):
            yield Hit(*literal.span(1), "api key" if is_key else "password")


def _is_key_pair(numbers: str) -> bool:
    """Whether a list of numbers is a key pair: 64 bytes, most of them different, and not in ascending order."""
    found = numbers.split(",")
    return len(found) == 64 and len(set(found)) >= 45 and found != sorted(found, key=int) and max(map(int, found)) < 256


def _is_host(value: str) -> bool:
    return "://" in value or value.count(".") > 1 or value.startswith("AC") or ":" in value


def _passes(value: str, check: str) -> bool:
    """Whether a value passes a check. `check` is a key of `_CHECKS`; with any other key, the value passes.

    Placeholders and paths never pass.
    """
    if is_placeholder(value) or is_path(value):
        return False
    passes = _CHECKS.get(check)
    return passes is None or passes(value)


def _is_encoded_login(value: str) -> bool:
    """Whether a Base64 text contains a user and a password, as in the header `Authorization: Basic`.

    The end of the Base64 text may be missing.
    """
    whole = value.rstrip("=")
    return b":" in b64decode(whole[: len(whole) // 4 * 4])


_CHECKS: Final[Mapping[str, Callable[[str], bool]]] = {
    "digit": lambda value: any(map(str.isdigit, value)),
    "typed": looks_typed,
    "typed or phrase": lambda value: looks_typed(value) or is_passphrase(value),
    "typed or app": lambda value: looks_typed(value) or _APP_PASSWORD.fullmatch(value) is not None,
    "typed or spaced": lambda value: looks_typed(value.replace(" ", "")),
    "strong or app": lambda value: looks_strong(value) or _APP_PASSWORD.fullmatch(value.replace("-", " ")) is not None,
    "strong": looks_strong,
    "certain": looks_like_password,
    "dense": is_dense,
    "random": looks_random,
    "user:password": _is_encoded_login,
}
"""The checks of a value that rows can name. `_hits_of_row` has the checks that need the text around the value."""


def find_in_urls(searched: SearchedText) -> Iterator[Hit]:
    """Passwords and tokens in addresses."""
    text = searched.text
    for found in _URL_USER.finditer(text):
        if found[2] and not is_placeholder(found[2]) and found[2] not in (found[1], *_SAMPLE_PASSWORDS):
            yield Hit(*found.span(2), "url password")
        elif not found[2] and len(found[1]) >= 16 and looks_random(found[1]):
            yield Hit(*found.span(1), "url token")
    if "://" in text:
        for address in _LONG_ADDRESS.finditer(searched.lower):
            has_word = any(word in address[0] for word in _ADDRESS_WORDS)  # much faster than the pattern
            if has_word and (secret := _SECRET_ADDRESS.match(text, address.start())):
                yield from _parts_of_address(secret)
    if "=" not in text:
        return
    for found in patterns.URL_PARAMETERS.finditer(text):
        value = found[1]
        is_long = len(value) >= 20 and any(map(str.isdigit, value))
        if not is_placeholder(value) and (looks_random(value) or is_long):
            yield Hit(*found.span(1), "url token")


def _parts_of_address(found: re.Match[str]) -> Iterator[Hit]:
    """The random parts of a URL that is itself a secret: a webhook, a link to sign in, an invitation."""
    if _PUBLIC_ADDRESS.search(found[0]):
        return
    for part in _ADDRESS_PART.finditer(found["path"]):
        value = part[0]
        if is_uuid(value) or (looks_random(value) and not is_placeholder(value) and not _WORDS_IN_ADDRESS.match(value)):
            yield Hit(found.start("path") + part.start(), found.start("path") + part.end(), "url token")


def find_cookies(searched: SearchedText) -> Iterator[Hit]:
    """Cookie values that look random, and the values of session cookies.

    Other cookies, such as `theme=dark`, are harmless.
    """
    if "ookie" in searched.text:
        text = searched.text
        for found in _COOKIES.finditer(text):
            yield from _cookies(text, *found.span("v"))


def _cookies(text: str, start: int, end: int) -> Iterator[Hit]:
    for cookie in _COOKIE.finditer(text, start, end):
        name, value = cookie[1], cookie[2].strip()
        if _COOKIE_ATTRIBUTE.fullmatch(name) or is_placeholder(value) or len(value) < 6:
            continue
        if _COOKIE_NAME.search(name) or (len(value) >= 16 and looks_random(value)):
            yield Hit(*cookie.span(2), "cookie")


def find_in_manifests(searched: SearchedText) -> Iterator[Hit]:
    """The values of a Kubernetes secret."""
    if "kind: Secret" not in searched.text:
        return
    for found in _MANIFEST_DATA.finditer(searched.text):
        for value in _MANIFEST_VALUE.finditer(searched.text, *found.span("v")):
            if not is_placeholder(value[1]):
                yield Hit(*value.span(1), "secret")


_COLUMN_WORDS = NeededMarks("pass", "pwd", "secret", "token", "apikey", "api_key")
_COLUMN = re.compile(
    r"(?:password|passwd|pwd|pass|secret|api[_ -]?key|token|passphrase|passwort)[ \t\"]{0,40}(?:[,;\t|│]|\r?\n)"
)
_COLUMN_START = re.compile(r"(?:^|[,;\t|│\n])(?P<name>[ \t\"]{0,40}+(?:[a-z]{1,20}[_ -])?)$")
"""The characters that precede the name of a secret in the heading of a column."""
_RULE = re.compile(r"[\s|│┼├┤─=:+-]+")
_CELL = re.compile(r"[,;\t|│]")


def find_in_tables(searched: SearchedText) -> Iterator[Hit]:
    """Secrets in tables (CSV or Markdown), in columns that have the name of a secret as their heading."""
    text, lower = searched.text, searched.lower
    if "\n" not in text or not _COLUMN_WORDS.are_possible(searched.marks):
        return
    until = 0
    for found in _COLUMN.finditer(lower):
        before = _COLUMN_START.search(lower, max(0, found.start() - 64), found.start())
        if before is None or before.start("name") < until:
            continue
        start = text.rfind("\n", 0, found.end() - 1) + 1
        end = text.find("\n", start)
        heading = text[start:end]
        mark = _CELL.search(heading)
        if end < 0 or mark is None or len(heading) > 2_000:
            continue
        column, width = text[start : found.end() - 1].count(mark[0]), heading.count(mark[0])
        if text[before.start("name") : found.end()].strip(' \t"\r\n')[:1] == mark[0]:
            continue
        at = end + 1
        while 0 < at < len(text):
            line_end = text.find("\n", at)
            line = text[at : line_end if line_end >= 0 else len(text)]
            is_rule = _RULE.fullmatch(line) is not None
            if (line.count(mark[0]) != width and not is_rule) or len(line) > 4_000:
                break
            cells = line.split(mark[0])
            value = "" if is_rule else cells[column].strip(' \t"\r')
            if not is_rule and (looks_typed(value) or looks_random(value)):
                place = at + sum(len(cell) + 1 for cell in cells[:column]) + cells[column].index(value)
                yield Hit(place, place + len(value), "password")
            at = until = line_end + 1 if line_end >= 0 else len(text)


_INSERT = re.compile(r"INSERT INTO [^\s(]{1,60} ?\(([^()]{1,400})\)\s{0,4}VALUES ?\(([^()]{1,1000})\)", re.IGNORECASE)
_SECRET_COLUMN = re.compile(r"passw|secret|token|api_?key", re.IGNORECASE)


def find_in_inserts(searched: SearchedText) -> Iterator[Hit]:
    """Secrets in the first row of an SQL `INSERT`. They are recognised by the names of their columns."""
    for region in searched.regions(("INSERT INTO", "insert into"), REGION_CHARS):
        for found in _INSERT.finditer(searched.text, *region):
            cells, start = found[2].split(","), found.start(2)
            for name, cell in zip(found[1].split(","), cells, strict=False):
                value = cell.strip(" \t\n\"'")
                if _SECRET_COLUMN.search(name) and (looks_typed(value) or looks_random(value)):
                    at = start + cell.index(value)
                    yield Hit(at, at + len(value), "password")
                start += len(cell) + 1
