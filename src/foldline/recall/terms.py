"""Terms: the units of a text that are indexed and searched, the same for messages and queries.

A tokenizer for prose does not work for code. `getUserId`, `get_user_id` and `user id` must match. A path must be found
by its file name, and a commit by its short id. Chinese words must be found although no spaces separate them. So
foldline computes the terms itself. SQLite and PostgreSQL index only these terms.

    >>> terms("She parsed getUserId in src/user_store.py")
    ['pars', 'getuserid', 'get', 'user', 'id', 'src', 'userstore.py', 'stor', 'py']
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from zlib import crc32

TERM_CHARS = 40
"""Maximum length of a term in characters. Longer words, such as keys, are truncated."""
PIECES = 12
"""Maximum number of pieces of a name. A name with more pieces is probably encoded data; it becomes a single term."""
SHORT_ID = 7
"""Length of the short form of a hexadecimal id."""
CACHED_CHARS = 64
CACHED = 1 << 15
"""Number of words whose terms are cached. The cache helps because most words of a text have occurred before."""

_GRAMS = (
    "\u0900-\u0dff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Characters of scripts that have no spaces between words or have marks inside words. Single characters and pairs of
characters are indexed.
"""
_RUN = rf"[^\W{_GRAMS}]+"
_WORDS = re.compile(rf"[{_GRAMS}]+|{_RUN}(?:[.-]{_RUN}|(?<=[0-9]),[0-9]{{3}}(?![0-9]))*")
_SEGMENTS = re.compile(r"[^\W_]+")
_PIECES = re.compile(r"[A-Z]{2,}s?(?![a-z])|[A-Z]?[a-z]+|[A-Z]|[0-9]+|[^\WA-Za-z0-9_]+")
_GRAM = re.compile(rf"[{_GRAMS}]")
_HEX = re.compile(r"(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,64}")
_MARKS = re.compile(r"[\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed]")
"""Accents and vowel points. They are removed, because people leave them out in queries."""

_STOP = (
    "a an the and or but if of to in on at by for with from as is am are was were be been being do does did have has "
    "had i you he she it we they me my your his her its our their us them this that these those not no so than then "
    "there here can could should would will shall may might must about into s t d m ll re ve"
)
STOP = frozenset(_STOP.split())


def terms(text: str) -> list[str]:
    """The terms of a text, each once, in the order in which they first occur.

    >>> terms("Größe 1,234 kB; commit 4d9a5ca1b2"), terms("東京都")
    (['gross', '1234', '1', '234', 'kb', 'commit', '4d9a5ca1b2', '4d9a5ca'], ['東', '東京', '京', '京都', '都'])
    """
    if not text.isascii():
        text = _without_accents(text)
    found: list[str] = []
    for word in dict.fromkeys(_WORDS.findall(text)):
        found += _cached_terms(word) if len(word) <= CACHED_CHARS else _word_terms(word)
    return list(dict.fromkeys(found))


def piece_terms(text: str) -> list[str]:
    """The terms of a text, without the terms for whole compounds.

    A search for the pieces also finds longer compounds. For example, `self.max_port` has the terms `max` and `port`,
    but no term for `max_port`.

    >>> piece_terms("max_port"), terms("self.max_port")
    (['max', 'port'], ['self.maxport', 'self', 'max', 'port'])
    """
    if not text.isascii():
        text = _without_accents(text)
    found: list[str] = []
    for word in _WORDS.findall(text):
        own = _word_terms(word)
        is_compound = len(own) > 1 and not _GRAM.match(word) and own[0] not in _pieces(word)
        found += own[1:] if is_compound else own
    return list(dict.fromkeys(found))


class TermFinder:
    """Finds the wanted terms in texts. `wanted` maps terms to weights.

    >>> list(TermFinder({"tenant": 2.0, "id": 1.0}).occurrences("see resolveTenantId there"))
    [(4, 19, 'tenant')]
    """

    def __init__(self, wanted: Mapping[str, float]) -> None:
        self.wanted = wanted
        self._known: dict[str, str] = {}
        """For each word that was seen, the wanted term with the highest weight; "" if the word has none."""

    def occurrences(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Start and end of each word that contains wanted terms, and the word's wanted term with the highest weight."""
        known = self._known
        for found in _WORDS.finditer(text):
            word = found[0]
            term = known.get(word)
            if term is None:
                if _GRAM.match(word):
                    yield from self._grams(word, found.start())
                    continue
                term = known[word] = self._best_term(word)
            if term:
                yield found.start(), found.end(), term

    def _grams(self, word: str, start: int) -> Iterator[tuple[int, int, str]]:
        for at in range(len(word)):
            for gram in (word[at : at + 2], word[at]):
                if gram in self.wanted:
                    yield start + at, start + at + len(gram), gram
                    break

    def _best_term(self, word: str) -> str:
        plain = word.isascii() and len(word) <= CACHED_CHARS
        own = [term for term in (_cached_terms(word) if plain else terms(word)) if term in self.wanted]
        return max(own, key=lambda term: self.wanted[term], default="")


def checksums(text: str) -> set[int]:
    """The checksums of a text's terms. This function is optimised for speed, because it runs for every message."""
    if not text.isascii():
        text = _without_accents(text)
    found: set[int] = set()
    for word in set(_WORDS.findall(text)):
        found.update(_cached_checksums(word) if len(word) <= CACHED_CHARS else _word_checksums(word))
    return found


def checksum(term: str) -> int:
    """The 32-bit checksum of a term."""
    return crc32(term.encode())


def _without_accents(text: str) -> str:
    return unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFKD", text)))


def _word_terms(word: str) -> tuple[str, ...]:
    """The terms of one word.

    The only term of a plain word is its stem. The terms of a compound such as `getUserId` are the whole word and its
    pieces.
    """
    if _GRAM.match(word):
        return (*(gram for here, there in pairwise(word) for gram in (here, here + there)), word[-1])
    lower = word.casefold()
    if lower.isalpha() and (word.islower() or word[1:].islower() or word.isupper()):
        return () if lower in STOP else (stem(lower)[:TERM_CHARS],)
    if lower.isdigit():
        return (lower[:TERM_CHARS],)
    pieces = [piece for segment in _SEGMENTS.findall(word) for piece in _pieces(segment)]
    whole = lower.replace("_", "").replace("-", "").replace(",", "")[:TERM_CHARS]
    return tuple(pieces) if not whole or pieces[:1] == [whole] else (whole, *pieces)


_cached_terms = lru_cache(maxsize=CACHED)(_word_terms)


def _word_checksums(word: str) -> tuple[int, ...]:
    return tuple(map(checksum, _word_terms(word)))


_cached_checksums = lru_cache(maxsize=CACHED)(_word_checksums)


def _pieces(segment: str) -> list[str]:
    """The pieces of a name: `HTTPServer2` gives http, server, 2; a hexadecimal id gives itself and its short form."""
    lower = segment.casefold()
    digits = lower.removeprefix("0x")
    if _HEX.fullmatch(digits):
        return [digits[:TERM_CHARS], digits[:SHORT_ID]]
    parts = _PIECES.findall(segment)
    if len(parts) > PIECES:
        return [lower[:TERM_CHARS]]
    named = [part.casefold() for part in parts if len(part) > 1 or not "A" <= part.upper() <= "Z"]
    return [stem(part)[:TERM_CHARS] for part in named if part not in STOP]


def stem(word: str) -> str:
    """The stem of a word. For example, parse, parses, parsed and parsing have the same stem.

    >>> [stem(word) for word in ("stopped", "running", "studies", "classes", "class", "used", "using", "us")]
    ['stop', 'run', 'study', 'class', 'class', 'us', 'us', 'us']
    """
    if len(word) < 3 or not word.isascii():
        return word
    if word.endswith("ied"):
        return word[:-3] + "y"
    if word.endswith("s") and not word.endswith(("ss", "us", "sis")):
        word = word[:-3] + "y" if word.endswith("ies") else word[:-2] if word.endswith(_SIBILANTS) else word[:-1]
    for ending in ("ing", "ed"):
        rest = word[: -len(ending)]
        if word.endswith(ending) and len(rest) > 1 and _VOWEL.search(rest) and not word.endswith("eed"):
            word = rest[:-1] if len(rest) > 3 and rest[-1] == rest[-2] and rest[-1] not in "lsz" else rest
            break
    return word[:-1] if word.endswith("e") and not word.endswith("ee") and len(word) > 2 else word


_SIBILANTS = ("sses", "shes", "ches", "xes", "zzes")
_VOWEL = re.compile("[aeiouy]")
