"""Names: the words of a session that somebody must know letter for letter to go on with the work.

A path, an identifier, an id, a long number or an address cannot be guessed and cannot be paraphrased. They are found by
their shape alone, one word at a time, so that half a million characters take a fraction of a second.
"""

from __future__ import annotations

import re

WORD = re.compile(r"[A-Za-z0-9_$@~][A-Za-z0-9_$@~./\\:#-]{4,}")
"""A run of characters that may hold names. Five is the least that is worth keeping."""

_INNER = re.compile(r"[A-Za-z0-9_]{6,}|[A-Z]{2,8}-[0-9]{1,8}")
_URL = re.compile(r"[a-z][a-z0-9+.-]{1,9}://[^\s\"'<>`)\]]{4,}")
_FILE = re.compile(r"[\w.@-]*[\w-]\.[A-Za-z][A-Za-z0-9]{0,9}")
_ENDINGS = frozenset(
    {
        *("c", "cc", "cfg", "conf", "cpp", "cs", "css", "csv", "dart", "env", "ex", "exs", "go", "graphql"),
        *("h", "hpp", "html", "ini", "ipynb", "java", "js", "json", "jsonl", "jsx", "kt", "lock", "log", "lua"),
        *("m", "md", "mdx", "mjs", "mod", "mts", "php", "proto", "ps1", "py", "pyi", "r", "rb", "rs"),
        *("rst", "sass", "scala", "scss", "sh", "sql", "sum", "svelte", "svg", "swift", "tf", "toml", "traj", "ts"),
        *("tsx", "txt", "vue", "xml", "yaml", "yml", "zig", "zsh"),
    }
)
_NUMBERED = re.compile(r"(.*\.[A-Za-z]\w{0,5})-\d+-")
"""A file with a line number behind it, as searches show the lines around a hit."""
_HUMP = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2,}[a-z]{2}")
_LEAST = 6
_LEAST_PATH = 5


def urls(text: str) -> list[str]:
    """The addresses in a text."""
    return [found.rstrip(".,;:") for found in _URL.findall(text)] if "://" in text else []


def names_of(word: str) -> tuple[tuple[str, str], ...]:
    """The names in one word, each with its kind: `path`, `folder`, `identifier`, `id`, `number`.

    >>> names_of("cmd/cli/explain.go:278")
    (('explain.go', 'path'),)
    >>> names_of("store.UpdateSummary")
    (('UpdateSummary', 'identifier'),)
    >>> names_of("understanding")
    ()
    """
    found: dict[str, str] = {}
    place = word.replace("\\", "/") if "\\" in word else word
    numbered = _NUMBERED.match(place)
    if numbered:
        place = numbered[1]
    if "/" in place:
        for piece in place.split(":"):
            base = piece.rstrip("/.").rsplit("/", 1)[-1]
            if "/" in piece and len(base) >= _LEAST_PATH and not base.isdecimal():
                found[base] = "path" if _FILE.fullmatch(base) else "folder"
    elif "." in place:
        base = place.split(":", 1)[0].strip(".")
        if _FILE.fullmatch(base) and base.rsplit(".", 1)[-1] in _ENDINGS and len(base) >= _LEAST_PATH:
            found[base] = "path"
    for inner in _INNER.findall(word):
        kind = _kind(inner)
        if kind and not any(inner in other for other in found):
            found[inner] = kind
    return tuple(found.items())


def _kind(inner: str) -> str:
    """What a run of letters, figures and underscores is by its shape; "" for a plain word."""
    if "-" in inner:
        return "id" if len(inner) >= _LEAST else ""
    if inner.isdecimal():
        return "number" if len(inner) <= 20 else ""
    if "_" in inner.strip("_"):
        return "identifier"
    figures = any(letter.isdecimal() for letter in inner)
    if figures and len(inner) <= 40:
        lower = inner.lower()
        if all(letter in "0123456789abcdef" for letter in lower) and len(inner) >= 7:
            return "id"
        if len(inner) == _LEAST and inner.isupper():
            return "id"
    return "identifier" if len(inner) <= 80 and _HUMP.search(inner) else ""
