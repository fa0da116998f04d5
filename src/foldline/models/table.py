"""What is known of a model: how much fits, how long a reply can be, how it counts, what it costs.

All of it is data with a date, because it changes every month, and none of it binds anybody: a user's own file wins
field by field, and a model nobody has heard of gets stated defaults instead of an error. Every model says where its
figures come from, so that a wrong window can be traced to the line that is wrong.
"""

from __future__ import annotations

import os
import pkgutil
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from foldline.errors import ConfigError
from foldline.measure.estimator import families
from foldline.measure.media_tokens import RULES

ENVIRONMENT = "FOLDLINE_MODELS"
"""Names the user's own table where none is passed."""

MILLION_MARK = "[1m]"
"""How Claude Code asks for a window of a million: at the end of the model's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """US dollars per million tokens. What a provider does not state costs as much as plain input."""

    input: float
    output: float
    read: float
    write: float
    write_1h: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheRules:
    """How the provider's prompt cache finds a prefix again."""

    min_tokens: int
    """A shorter prefix is silently not cached."""
    ttl_seconds: int
    lookback_blocks: int
    """How many blocks before a breakpoint an entry is looked for; 0: any number."""
    breakpoints: int
    """How many a request may set; 0: the provider caches by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One model as it is used, with the source of every figure."""

    name: str
    vendor: str
    """The company that makes it: prices, counter, limits and cache rules are the vendor's. "" for an unknown model."""
    format: str
    """The wire format of the vendor's API: `anthropic`, `openai` or `gemini`. "" for an unknown model."""
    family: str
    """Whose weights estimate its tokens."""
    vocabulary: str
    """Its own vocabulary, where that is public: exact counting is possible. Else empty."""
    window: int
    reply: int
    """The longest reply it gives."""
    media: str
    """The rule its images are priced by."""
    drops_thinking: bool
    """Whether the thinking of earlier turns leaves the prompt when the user speaks again."""
    prices: Prices | None
    """None where nobody stated any."""
    cache: CacheRules
    source: str


def model(name: str, *, table: Path | None = None) -> Model:
    """The model with a given name: bare, dated, with a vendor in front or `[1m]` behind. Unknown names get defaults."""
    ours = _ours()
    path = table or (Path(os.environ[ENVIRONMENT]) if os.environ.get(ENVIRONMENT) else None)
    theirs = _theirs(path) if path else _EMPTY
    bare = plain_name(name)
    entry, own = _match(bare, ours.models), _match(bare, theirs.models)
    if len(own) < len(entry):
        own = ""  # theirs is about another model, of which ours knows this variant apart
    said, told = ours.models.get(entry, {}), theirs.models.get(own, {})
    fields = {**ours.default, **theirs.default}
    vendor = ""
    if entry or own:
        vendor = str(told.get("vendor") or said.get("vendor") or ours.default["vendor"])
        if vendor not in ours.vendors and vendor not in theirs.vendors:
            known = ", ".join(sorted({*ours.vendors, *theirs.vendors}))
            raise _wrong(theirs.name, f"model.{own}", "vendor", f"unknown vendor {vendor!r}", f"use one of {known}")
        fields |= {**ours.vendors.get(vendor, {}), **said}
        sources = [f"{ours.name} {entry} ({ours.read_on})"] if entry else []
    else:
        fields["format"] = theirs.default.get("format", "")
        sources = [f"default: unknown model {name!r}"]
    if name.strip().lower().endswith(MILLION_MARK):
        fields["window"] = 1_000_000
        sources.append(f"window from the mark {MILLION_MARK}")
    wishes = {**theirs.vendors.get(vendor, {}), **told}
    if wishes:
        sources.append(f"{', '.join(wishes)} from {theirs.name} {own or vendor}")
    return _build(name, {**fields, **wishes, "vendor": vendor}, "; ".join(sources))


def _build(name: str, fields: Mapping[str, Any], source: str) -> Model:
    prices = None
    if "input" in fields:
        plain = fields["input"]
        write = fields.get("write", plain)
        prices = Prices(
            input=plain,
            output=fields.get("output", plain),
            read=fields.get("read", plain),
            write=write,
            write_1h=fields.get("write_1h", write),
        )
    return Model(
        name=name,
        vendor=fields["vendor"],
        format=fields["format"],
        family=fields["family"],
        vocabulary=fields.get("vocabulary", ""),
        window=fields["window"],
        reply=min(fields["reply"], fields["window"]),
        media=fields["media"],
        drops_thinking=fields["drops_thinking"],
        prices=prices,
        cache=CacheRules(
            min_tokens=fields["cache_min"],
            ttl_seconds=fields["cache_ttl"],
            lookback_blocks=fields["cache_lookback"],
            breakpoints=fields["cache_breakpoints"],
        ),
        source=source,
    )


_VENDOR = re.compile(
    r"^(?:[a-z]{2,6}\.)?(?:anthropic|openai|meta|mistral|deepseek|qwen|google|moonshot|moonshotai|zai)\."
)
_REVISION = re.compile(r"-v\d+(?:-\d+)?$")


def plain_name(name: str) -> str:
    """A model's name without the clothes that platforms put on it.

    >>> plain_name("us.anthropic.claude-sonnet-4-5-20250929-v1:0"), plain_name("openrouter/openai/gpt-5:free")
    ('claude-sonnet-4-5-20250929', 'gpt-5-free')
    """
    bare = name.strip().lower().removesuffix(MILLION_MARK).strip()
    bare = bare.rstrip("/").rpartition("/")[2].removeprefix("ft:")
    bare = _VENDOR.sub("", bare).replace("@", "-").replace(":", "-")
    bare = _REVISION.sub("", bare).removeprefix("meta-")
    return bare.replace(".", "-") if bare.startswith("claude") else bare


def _match(bare: str, models: Mapping[str, Any]) -> str:
    """The entry for a name: the same, or the longest one it begins with and is a variant of. "" if there is none."""
    if bare in models:
        return bare
    return max(
        (key for key in models if bare.startswith(key) and _is_variant(key, bare[len(key) :])), key=len, default=""
    )


def _is_variant(key: str, rest: str) -> bool:
    """Whether what follows an entry's name makes a variant of it, and not another version.

    After a digit, `-9` and `.9` are another version (`claude-opus-4` is not 4-9), a date or a word is not. After a
    letter, a number is a version of that family (`grok` and `grok-9`).
    """
    if key[-1].isdigit():
        return bool(re.match(r"-(?!\d{1,2}(?:-|$))", rest))
    return bool(re.match(r"[-.]|\d+(?:[-.]|$)", rest))


@dataclass(frozen=True, slots=True)
class _Table:
    """A table as read: where from, and its three kinds of entries."""

    name: str
    read_on: str
    default: Mapping[str, Any]
    vendors: Mapping[str, Mapping[str, Any]]
    models: Mapping[str, Mapping[str, Any]]


_EMPTY = _Table("", "", {}, {}, {})


@cache
def _ours() -> _Table:
    """The table as shipped, read when first asked for."""
    return _parse("models.toml", (pkgutil.get_data(__name__, "models.toml") or b"").decode())


def _theirs(path: Path) -> _Table:
    """The user's table, read again when the file has changed."""
    try:
        stat = path.stat()
        return _read(path, stat.st_mtime_ns, stat.st_size)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}", hint=f"check the path, or unset {ENVIRONMENT}") from None


@lru_cache(maxsize=4)
def _read(path: Path, _changed: int, _size: int) -> _Table:
    return _parse(str(path), path.read_text("utf-8"))


def _parse(name: str, text: str) -> _Table:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name}: not TOML: {error}") from None
    for key in data:
        if key not in ("read_on", "default", "vendor", "model"):
            raise ConfigError(f"{name}: there is no section [{key}]", hint="use [model.NAME], [vendor.NAME], [default]")
    default = _checked(name, "default", data.get("default", {}))
    vendors = {key: _checked(name, f"vendor.{key}", value) for key, value in _section(name, data, "vendor")}
    models = {plain_name(key): _checked(name, f"model.{key}", value) for key, value in _section(name, data, "model")}
    return _Table(name, str(data.get("read_on", "")), default, vendors, models)


def _section(name: str, data: Mapping[str, Any], key: str) -> list[tuple[str, Any]]:
    section = data.get(key, {})
    if not isinstance(section, dict):
        raise ConfigError(f"{name}: {key} must be a section", hint=f"write [{key}.NAME]")
    return list(section.items())


_TOKENS = ("window", "reply")
_NUMBERS = ("cache_min", "cache_ttl", "cache_lookback", "cache_breakpoints")
_PRICES = ("input", "output", "read", "write", "write_1h")
_WORDS = ("vendor", "format", "family", "vocabulary", "media")
_FLAGS = ("drops_thinking",)


def _checked(file: str, entry: str, fields: Any) -> dict[str, Any]:
    """One entry's fields, or an error that names the file, the entry and the field."""
    if not isinstance(fields, dict):
        raise ConfigError(f"{file}: {entry} must be a section", hint=f"write [{entry}] and the fields below it")
    for field, value in fields.items():
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if field in _TOKENS and not (isinstance(value, int) and number and value > 0):
            raise _wrong(file, entry, field, f"{value!r} is not a number of tokens", "write a whole number above 0")
        if field in _NUMBERS and not (isinstance(value, int) and number and value >= 0):
            raise _wrong(file, entry, field, f"{value!r} is not a whole number", "write 0 or more")
        if field in _PRICES and not (number and 0 <= value < float("inf")):
            raise _wrong(file, entry, field, f"{value!r} is not a price", "write US dollars per million tokens")
        if field in _WORDS and not isinstance(value, str):
            raise _wrong(file, entry, field, f"{value!r} is not a name", "write it in quotes")
        if field in _FLAGS and not isinstance(value, bool):
            raise _wrong(file, entry, field, f"{value!r} is not a yes or no", "write true or false")
        if field == "family" and value not in families():
            raise _wrong(file, entry, field, f"no family {value!r}", f"use one of {', '.join(families())}")
        if field == "media" and value not in RULES:
            raise _wrong(file, entry, field, f"no media rule {value!r}", f"use one of {', '.join(RULES)}")
        known = (*_TOKENS, *_NUMBERS, *_PRICES, *_WORDS, *_FLAGS)
        if field not in known:
            raise _wrong(file, entry, field, "there is no such field", f"use one of {', '.join(known)}")
    return fields


def _wrong(file: str, entry: str, field: str, what: str, hint: str) -> ConfigError:
    return ConfigError(f"{file}: [{entry}] {field}: {what}", hint=hint)
