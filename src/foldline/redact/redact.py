"""Replaces values that look like secrets by `[redacted kind]`, before text gets to a digester, digest, log or page.

The tables are in `patterns.py` and `context_patterns.py`; the `find_` functions apply them. Every rule reads the same
text, and overlapping hits are merged. So the order of the rules does not matter. The result is searched again until
nothing is found. So redacting a text twice gives the same result as redacting it once.

Escape sequences and zero-width characters are left out of the text that is searched, so that they hide nothing. They
stay in the result, unless they are inside a secret.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import lru_cache
from hashlib import blake2b
from threading import Lock
from typing import Any, Final

from foldline.placeholders import REDACTED
from foldline.redact.context_values import (
    find_cookies,
    find_in_context,
    find_in_inserts,
    find_in_manifests,
    find_in_tables,
    find_in_urls,
    find_near_accounts,
)
from foldline.redact.escapes import MASK, VisibleText, has_unseen, strip_escapes
from foldline.redact.keys import find_other_keys, find_word_keys
from foldline.redact.named_values import find_named_values
from foldline.redact.patterns import Hit
from foldline.redact.private_keys import find_private_keys
from foldline.redact.searched_text import RulesByMark, SearchedText
from foldline.redact.value_shape import forget_values

Finder = Callable[[SearchedText], Iterator[Hit]]
_KEY_FINDERS: Final[tuple[Finder, ...]] = (find_word_keys, find_other_keys)
_FINDERS: Final[tuple[Finder, ...]] = (
    *_KEY_FINDERS,
    find_in_context,
    find_near_accounts,
    find_in_urls,
    find_in_tables,
    find_named_values,
)
_MARKED_FINDERS: Final = RulesByMark[Finder](
    (
        *((mark, find_private_keys) for mark in ("PRIVATE KEY", "Private-", "OpenVPN Static")),
        ("ookie", find_cookies),
        ("insert into", find_in_inserts),
        ("kind: Secret", find_in_manifests),
    )
)
"""Functions that search for secrets, each with a mark: a fixed string that is in or near every secret of this kind.

A function is called only if the text can contain one of its marks.
"""
_PASSES = 8
"""Maximum number of passes over a text.

A later pass finds only values that become recognisable after a value beside them is redacted. Such chains are short, so
the limit should never be reached. The limit guarantees that the loop ends.
"""
_MEMORY_MIN_CHARS = 500
"""The result is remembered only for a text of at least this length. For a shorter text, searching is fast enough."""
_HASH_BYTES = 16
_ERROR_CHARS = 300
_SAMPLES = ("swordfish", "Tr0ub4dor-3", "12345678", "aK7xP9mQ2wE5rT8yU1iO3pA6sD4fG0hJ")
"""Sample values of different shapes.

A JSON key counts as the name of a secret if at least one of these values would be redacted after it.
"""
_LEAST_CHARS = 3
"""A hit counts only if at least this number of its characters is not redacted yet."""


class ResultMemory:
    """Remembers the results of a function that takes a text and returns a text, for the texts that were used last.

    During a fold, the same text is redacted for the facts, for the transcript that a digester gets, and for the digest.
    A text may contain secrets, so only its hash is stored, together with the result.

    The oldest results are forgotten if there are more than `max_entries`, or if the remembered results have more than
    `max_chars` characters. A result that equals its text counts as 0 characters. If `is_idempotent` is true, the
    function must return its own results unchanged; it is then never called for a result that is remembered.
    """

    def __init__(self, *, max_entries: int, max_chars: int, is_idempotent: bool = False) -> None:
        self._max_entries, self._max_chars, self._chars = max_entries, max_chars, 0
        self._is_idempotent = is_idempotent
        self._results = dict[bytes, str | None]()
        """The result for the hash of a text; None if the function returned the text unchanged. The oldest is first."""
        self._lock = Lock()

    def result_of(self, function: Callable[[str], str], text: str) -> str:
        """The result of `function` for a text. All calls must pass the same function, which must be deterministic."""
        key = _hash(text)
        with self._lock:
            if key in self._results:
                result = self._results[key] = self._results.pop(key)
                return text if result is None else result
        result = function(text)
        with self._lock:
            self._store(key, None if result == text else result)
            if self._is_idempotent and result != text:
                self._store(_hash(result), None)
        return result

    def _store(self, key: bytes, result: str | None) -> None:
        self._chars += len(result or "") - len(self._results.pop(key, None) or "")
        self._results[key] = result
        while len(self._results) > self._max_entries or self._chars > self._max_chars:
            oldest = next(iter(self._results))
            self._chars -= len(self._results.pop(oldest) or "")


def _hash(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_HASH_BYTES).digest()


_REDACTED: Final = ResultMemory(max_entries=4_096, max_chars=1_000_000, is_idempotent=True)
_CLEAN_ARGUMENTS: Final = ResultMemory(max_entries=4_096, max_chars=1_000_000)


def redact(text: str) -> str:
    """The text with values that look like secrets replaced by `[redacted kind]`.

    >>> redact("PGPASSWORD=hunter2 psql -c 'select 1'")
    "PGPASSWORD=[redacted password] psql -c 'select 1'"
    """
    return _redact(text) if len(text) < _MEMORY_MIN_CHARS else _REDACTED.result_of(_redact, text)


def _redact(text: str) -> str:
    for _ in range(_PASSES):
        hits = _find_secrets(text)
        if not hits:
            break
        pieces, at = [], 0
        for hit in hits:
            pieces += [text[at : hit.start], f"{REDACTED}{hit.kind}]"]
            at = hit.end
        text = "".join([*pieces, text[at:]])
    return text


def clean_text(text: str) -> str:
    """The text without secrets and without terminal escape sequences."""
    return strip_escapes(redact(text))


def clean_arguments(text: str) -> str:
    r"""The arguments of a tool call, without secrets and escape sequences. The arguments are usually JSON.

    Each string is searched after its JSON escapes are decoded. The whole JSON text is searched, too, if a key may be
    the name of a secret, or if a list has several strings: one of them may be the option that the next one is for.

    >>> clean_arguments('{"command": "mysql -p\\u0068unter2 -u me", "password": "swordfish"}')
    '{"command": "mysql -p[redacted password] -u me", "password": "[redacted password]"}'
    """
    return (
        _clean_arguments(text) if len(text) < _MEMORY_MIN_CHARS else _CLEAN_ARGUMENTS.result_of(_clean_arguments, text)
    )


def _clean_arguments(text: str) -> str:
    try:
        value = [json.loads(text)]
        places, keys = _places_in(value)
        strings = [holder[place] for holder, place in places]
        is_whole = _has_list_of_strings(places) or any(map(_may_name_secret, keys))
        searched = "\n".join([*strings, json.dumps(value[0], ensure_ascii=False)] if is_whole else strings)
        if not _find_secrets(searched) and strip_escapes(searched) == searched:
            return text
        for (holder, place), string in zip(places, strings, strict=True):
            holder[place] = clean_text(string)
        text = json.dumps(value[0], ensure_ascii=False)
    except (ValueError, RecursionError):  # no JSON, or nested too deeply
        pass
    return clean_text(text)


@lru_cache(1024)
def _may_name_secret(key: str) -> bool:
    """Whether a JSON key suggests that its value is a secret."""
    lines = [f'"{key}": "{sample}"' for sample in _SAMPLES]
    return "value" in key.lower() or any(redact(line) != line for line in lines)


def _has_list_of_strings(places: list[tuple[Any, Any]]) -> bool:
    """Whether two of these strings are in the same list, as in `["mysql", "--password", "…"]`."""
    lists = [id(holder) for holder, _ in places if isinstance(holder, list)]
    return len(set(lists)) < len(lists)


def _places_in(value: list[Any]) -> tuple[list[tuple[Any, Any]], set[str]]:
    """Each string in a JSON value, given as its container and its key or index. Also returns all keys."""
    found, keys = list[tuple[Any, Any]](), set[str]()
    waiting: list[tuple[Any, Any]] = [(value, place) for place in range(len(value))]
    while waiting:
        holder, place = waiting.pop()
        inner = holder[place]
        if isinstance(inner, str):
            found.append((holder, place))
        elif isinstance(inner, dict):
            keys.update(inner)
            waiting += [(inner, key) for key in reversed(inner)]
        elif isinstance(inner, list):
            waiting += [(inner, place) for place in reversed(range(len(inner)))]
    return found, keys


def redact_error(error: BaseException) -> str:
    """An error's type and message in one short text without secrets."""
    try:
        return redact(f"{type(error).__name__}: {error}".removesuffix(": "))[:_ERROR_CHARS]
    except Exception:  # noqa: BLE001 (the message of a foreign error may raise anything)
        return type(error).__name__


def _find_secrets(text: str) -> list[Hit]:
    """All values that look like secrets, in order; overlapping hits are merged."""
    try:
        hits = _hits(text)
    finally:
        forget_values()
    joined: list[Hit] = []
    for hit in sorted(hits):
        if joined and hit.start < joined[-1].end:
            joined[-1] = joined[-1]._replace(end=max(joined[-1].end, hit.end))
        else:
            joined.append(hit)
    return joined


def _hits(text: str) -> set[Hit]:
    """All hits of all rules."""
    if not has_unseen(text):
        searched = SearchedText(text)
        return {hit for find in _finders(searched) for hit in find(searched)}
    visible = VisibleText(text)
    hits = set(_visible_hits(visible))
    if visible.has_codes:  # search again with a separator in place of each escape sequence: it may end a word
        hits.update(_visible_hits(VisibleText(text, " "), _KEY_FINDERS))
    return hits


def _finders(searched: SearchedText) -> tuple[Finder, ...]:
    """The functions that can find secrets in a text."""
    return (*_FINDERS, *{find for _, find in _MARKED_FINDERS.possible(searched)})


def _visible_hits(visible: VisibleText, finders: tuple[Finder, ...] = ()) -> Iterator[Hit]:
    """The secrets in the visible part of a text, at their positions in the original text.

    If a secret begins or ends with a placeholder, the placeholder is not part of the hit.
    """
    searched = SearchedText(visible.text)
    for find in finders or _finders(searched):
        for start, end, kind in find(searched):
            found = visible.text[start:end]
            if len(found) - found.count(MASK) < _LEAST_CHARS:
                continue
            before, behind = len(found) - len(found.lstrip(MASK)), len(found) - len(found.rstrip(MASK))
            yield Hit(*visible.original_span(start + before, end - behind), kind)
