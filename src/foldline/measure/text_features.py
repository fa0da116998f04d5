"""Counts the features of a text from which its number of tokens is estimated.

The estimator multiplies each count by a weight, and adds up the products. The counts have the same order as the weights
(`Weights.features` in estimator_weights.py).

Every function takes linear time. The functions use `translate` and `count`, or they read the UTF-8 bytes as one large
integer. This integer is combined with a copy of itself that is shifted by 8 bits. So one operation compares every byte
with its neighbour.
"""

from __future__ import annotations

import re
from math import sqrt
from typing import NamedTuple

ASCII_FEATURES = ("lone", "capitals", "clusters", "rare_letters", "sequences", "nul", "bars", "solid")
"""The features of every text that are not patterns of classes."""
# box drawing is counted by bytes, because its byte class (E2) also contains quotes and dashes
OTHER_FEATURES = ("box", "rules", "alphabet", "uncommon", "rare", "rare_bytes")
"""The features of characters that are not ASCII and that are not patterns of classes."""
_LARGE_SCRIPTS = (b"j", b"z", b"k", b"y", b"e")
"""The classes of scripts with so many characters that most of them have no token of their own."""


class Patterns(NamedTuple):
    """The patterns that are counted, in groups. A group is skipped if a text lacks the characters of the group."""

    words: tuple[tuple[bytes, int], ...]
    """Patterns with a lowercase letter. Each pattern comes with a pair that it contains, or with -1.

    A search for this pair is much faster than counting the pattern.
    """
    signs: tuple[tuple[bytes, int], ...]
    """Patterns of other ASCII classes. Each pattern comes with a pair that it contains, or with -1."""
    edge_pairs: tuple[int, ...]
    """The pairs at the edges of words, which are most pairs of a text."""
    pairs: tuple[int, ...]
    """All other pairs of two classes."""
    other: tuple[bytes, ...]
    scripts: tuple[tuple[int, tuple[bytes, ...]], ...]
    """The first bytes of the characters of some scripts, grouped by the very first byte.

    If that byte is not in a text, its whole group is skipped.
    """


class FeatureCounts(NamedTuple):
    """How often each feature occurs in a text. A pure ASCII text has no counts for the other characters."""

    counts: list[float]
    repeats: dict[int, int]
    """For each ASCII character, how many of its repetitions were cut from long runs, such as `-----`."""
    size: int
    """The number of bytes of the text."""


def feature_counts(text: str, patterns: Patterns) -> FeatureCounts:
    """The features of a text, in the order of `Patterns`. A lone surrogate counts as three bytes."""
    raw = text.encode("utf-8", "surrogatepass")
    size = len(raw)
    raw, repeats = cut_repeats(raw)
    classes = raw.translate(CLASSES)
    pairs = without_word_pairs(class_pairs(raw))
    short = classes_of_pairs(pairs)
    rest = without_word_edges(pairs)
    counts: list[float] = [classes.count(word) if pair < 0 or pair in pairs else 0 for word, pair in patterns.words]
    counts += [short.count(sign) if pair < 0 or pair in pairs else 0 for sign, pair in patterns.signs]
    counts += [pairs.count(pair) for pair in patterns.edge_pairs]
    counts += [rest.count(pair) if pair in rest else 0 for pair in patterns.pairs]
    counts += (lone_letters(raw), lone_capitals(pairs), *consonants(raw), sequences(raw), count_byte(raw, 0))
    counts.append(count_byte(raw, ord("|")) + count_byte(raw, ord(";")))
    counts.append(raw.translate(UNBROKEN).count(b"w" * SOLID) if size >= SOLID else 0)
    if not text.isascii():
        counts += _other_counts(raw, classes, patterns)
    return FeatureCounts(counts, repeats, size)


def _other_counts(raw: bytes, classes: bytes, patterns: Patterns) -> list[float]:
    """The features of the characters that are not ASCII."""
    counts: list[float] = [classes.count(pattern) for pattern in patterns.other]
    for lead, beginnings in patterns.scripts:
        counts += [raw.count(beginning) for beginning in beginnings] if lead in raw else [0] * len(beginnings)
    counts += (raw.count(b"\xe2\x94") + raw.count(b"\xe2\x95"), repeated_rules(raw)) if 0xE2 in raw else (0, 0)
    wide = without_ascii(raw)
    large = any(script in classes for script in _LARGE_SCRIPTS)
    return [*counts, unbroken_alphabets(raw), uncommon_characters(wide) if large else 0, *rare_characters(wide)]


_RANGES = (
    (0x00, "t"), (0x0A, "n"), (0x0B, "t"), (0x0D, "n"), (0x0E, "t"), (0x20, "_"), (0x21, "p"), (0x30, "0"), (0x3A, "p"),
    (0x41, "A"), (0x5B, "p"), (0x61, "a"), (0x7B, "p"), (0x7F, "t"), (0x80, "x"), (0xC0, "l"), (0xCC, "g"), (0xD0, "c"),
    (0xD5, "h"), (0xE0, "i"), (0xE2, "s"), (0xE3, "j"), (0xE4, "z"), (0xEA, "k"), (0xEE, "y"), (0xF0, "e"),
)  # fmt: skip
"""Ranges of byte values: the first byte of each range, and the letter of its class.

The classes are letters, digits, space, line ends, other control characters, punctuation, and the UTF-8 bytes of each
script.
"""
CLASSES = b"".join(
    letter.encode() * (end - first)
    for (first, letter), (end, _) in zip(_RANGES, (*_RANGES[1:], (256, "")), strict=True)
)
"""A table for `bytes.translate`: the class of each byte."""

SOLID = 64
"""A run of at least this many letters, digits, + and / is taken as encoded data, not as a word.

A line of a PEM file has this length.
"""
UNBROKEN = bytes(ord("w") if chr(byte) in "+/" or chr(CLASSES[byte]) in "aA0" else 0 for byte in range(256))
"""A table for `bytes.translate`: `w` for each byte that encoded data may have (letters, digits, + and /), else 0."""

ASCII_CLASSES = "aA0_ntp"
_ASCII = bytes(range(128))
_CODES = bytes(max(ASCII_CLASSES.find(chr(letter)), -1) % 8 for letter in CLASSES)
_LETTERS = bytes({"a": 3, "A": 1}.get(chr(letter), 0) for letter in CLASSES)
"""A table for `bytes.translate`: bit 0 is set for every ASCII letter, bit 1 for lowercase letters."""


def pair_code(pattern: str) -> int:
    """The code that `class_pairs` returns for a pair of ASCII classes."""
    first, second = map(ASCII_CLASSES.index, pattern)
    return first * 16 + second


_WORD_PAIRS = bytes([pair_code("aa")])
_WORD_EDGES = bytes([pair_code("_a"), pair_code("a_")])
_LONE_CAPITALS = bytes(
    ord("b" if second == 1 and first > 1 else "e" if first == 1 and second > 1 else "-")
    for first, second in (divmod(code, 16) for code in range(256))
)
"""A table for `bytes.translate`: `b` for a pair of another class and a capital, `e` for a capital and another class."""
_AFTER_OTHER = 7 << 4
_SECOND = bytes(ord((ASCII_CLASSES + "x")[code & 7]) for code in range(256))


def class_pairs(raw: bytes) -> bytes:
    """One code for each byte. The code stands for the class of the previous byte and the class of the byte itself.

    The first byte has no previous byte. Its code is that of a byte after a character that is not ASCII. Counting one
    code is three times as fast as counting a pattern of two classes.
    """
    codes = int.from_bytes(raw.translate(_CODES), "little")
    return (codes | codes << 12 | _AFTER_OTHER).to_bytes(len(raw) + 2, "little")[:-2]


def without_word_pairs(pairs: bytes) -> bytes:
    """The codes without the pairs of two lowercase letters. These pairs are half of all codes, and have no weight."""
    return pairs.translate(None, _WORD_PAIRS)


def without_word_edges(pairs: bytes) -> bytes:
    """The codes without the pairs of a space and a lowercase letter. They are half of the codes at word edges."""
    return pairs.translate(None, _WORD_EDGES)


def classes_of_pairs(pairs: bytes) -> bytes:
    """The class of the second byte of each pair. A byte that is not ASCII has the class `x`."""
    return pairs.translate(_SECOND)


def lone_letters(raw: bytes) -> int:
    """The number of lone ASCII letters plus the number of lone lowercase letters.

    A lone letter has no letter beside it, and a lone lowercase letter has no lowercase letter beside it. So the `x` of
    `f(x)` counts twice. Minified code and random data have many lone letters.
    """
    letters = int.from_bytes(raw.translate(_LETTERS), "little")
    return (letters ^ letters & (letters << 8 | letters >> 8)).bit_count()


def lone_capitals(pairs: bytes) -> int:
    """The number of capitals without a letter beside them, from the codes of `class_pairs`. Tables have many."""
    return (pairs.translate(_LONE_CAPITALS) + b"e").count(b"be")


def count_byte(raw: bytes, byte: int) -> int:
    """The number of occurrences of a byte. The search for an absent byte is much faster than counting."""
    return raw.count(byte) if byte in raw else 0


_BASES = bytes(ord("b") if chr(byte) in "acgtuACGTU \n" else 0 for byte in range(256))
_SEQUENCE = b"b" * 12


def sequences(raw: bytes) -> int:
    """The number of groups of 12 letters that are bases of DNA or RNA. Spaces and line ends between them are ignored.

    Such a group forms no words, although its letters are common. Removing spaces and line ends is slow. So the text is
    first searched for 12 characters that are bases, spaces or line ends; most texts have no such group.
    """
    if _SEQUENCE not in raw.translate(_BASES):
        return 0
    return raw.translate(_BASES, b" \n").count(_SEQUENCE)


def _spelling(byte: int) -> int:
    letter = chr(byte).lower() if _LETTERS[byte] else ""
    return 0 if not letter or letter in "aeiouy" else 2 if letter in "jqxz" else 1


_SPELLING = bytes(map(_spelling, range(256)))
"""A table for `bytes.translate`: bit 1 is set for j, q, x and z, bit 0 for all other consonants."""


def consonants(raw: bytes) -> tuple[int, int]:
    """Two counts: the groups of four consonants, and the letters j, q, x and z after a consonant.

    Both counts are low in words of any language, and high in letters that form no words, such as ciphertext.
    """
    letters = raw.translate(_SPELLING)
    number = int.from_bytes(letters, "little")
    twice = number & number >> 8
    groups = letters.count(b"\1\1\1\1") if twice & twice >> 16 else 0
    return groups, (number & number << 9).bit_count()


_THREE, _SEVEN = bytes(3), bytes(7)
_EQUAL = re.compile(rb"\0+")
_UNCUT = bytes([0x20, *range(0x80, 0x100)])
_NO_SPACES = bytes(0xFF if byte in _UNCUT else byte for byte in range(256))
"""A table for `bytes.translate`: each byte in `_UNCUT` becomes a byte that no text has."""


def cut_repeats(raw: bytes) -> tuple[bytes, dict[int, int]]:
    """The bytes, with each run of eight or more equal ASCII characters cut to one character.

    Also returns how many of each character were cut. Spaces stay, because the patterns of indentation count them.
    """
    if _THREE not in _differences(raw[::2]):  # in every second character, a run of eight is a run of four
        return raw, {}
    differences = _differences(raw)
    kept, repeats, start = [], dict[int, int](), 0
    first = differences.find(_SEVEN)
    while first >= 0 and (match := _EQUAL.match(differences, first)):
        byte, end = raw[first], match.end()
        kept.append(raw[start:first])
        repeats[byte] = repeats.get(byte, 0) + end - first
        start = end
        first = differences.find(_SEVEN, end)
    return b"".join((*kept, raw[start:])), repeats


def _differences(raw: bytes) -> bytes:
    """For each byte, 0 if it is ASCII, no space, and equal to the next byte; otherwise another number."""
    following = int.from_bytes(raw.translate(_NO_SPACES), "little") >> 8
    return (int.from_bytes(raw, "little") ^ following).to_bytes(len(raw), "little")


_RULES = tuple((character * 4).encode() for character in "─━═—…█")


def repeated_rules(raw: bytes) -> int:
    """The number of groups of four equal line or bar characters, such as `────`."""
    return sum(raw.count(rule) for rule in _RULES)


_TWO_BYTES = bytes(ord("v") if 0x80 <= byte < 0xE0 else 0 for byte in range(256))


def unbroken_alphabets(raw: bytes) -> int:
    """The number of groups of 20 adjacent letters that have two bytes each (Greek, Cyrillic, Arabic).

    Words are shorter than 20 letters. So such a group is not made of common words and needs more tokens.
    """
    return raw.translate(_TWO_BYTES).count(b"v" * 40)


def without_ascii(raw: bytes) -> str:
    """The characters that are not ASCII."""
    return raw.translate(None, _ASCII).decode("utf-8", "surrogatepass")


_WINDOW = 1_000


def uncommon_characters(wide: str) -> float:
    """How many more distinct characters a text has than prose of the same length.

    The excess is computed for each piece of 1,000 characters and summed up.

    Prose repeats common characters, even in Chinese, Japanese and Korean, which have thousands of characters. Random
    text has many uncommon characters, and these have no tokens of their own.
    """
    windows = (wide[start : start + _WINDOW] for start in range(0, len(wide), _WINDOW))
    return sum(max(0.0, len(set(window)) - 14 * sqrt(len(window))) for window in windows)


_KNOWN = re.compile(
    "[\u0080-\u017f\u0386-\u0482\u048a-\u0590\u05d0-\u060f\u061b-\u064a\u0660-\u06d5\u06ee-\u06ff\u0900-\u0eff\u1000-\u109f"
    "\u10d0-\u10ff\u1200-\u137f\u1780-\u17ff\u1e00-\u1eff\u2000-\u206f\u20a0-\u20cf\u2190-\u2193\u2500-\u27bf"
    "\u3000-\u30ff\u3130-\u318f\u4e00-\u9fff\uac00-\ud7a3\ufe00-\ufe0f\uff00-\uffef\U0001f100-\U0001faff]+"
)
"""Matches characters of the scripts and symbols for which the weights were fitted."""


def rare_characters(wide: str) -> tuple[int, int]:
    """The number of characters that belong to no common script, and the number of their UTF-8 bytes.

    Such a character often has one token per byte. Examples are combining marks, Runic, Braille and private use.
    """
    rare = _KNOWN.sub("", wide)
    return len(rare), len(rare.encode("utf-8", "surrogatepass"))
