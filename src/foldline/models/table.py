"""The model table: vendor, wire format, window, prices, cache rules and image rules by model name.

The figures are in the data file `models.toml`, with the date on which they were read. A user's own file can override
single fields. An unknown model gets default figures instead of an error. `Model.source` says where the figures come
from.
"""

from __future__ import annotations

import os
import pkgutil
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from foldline.errors import ConfigError
from foldline.message import Usage

ENVIRONMENT = "FOLDLINE_MODELS"
"""The environment variable with the path of the user's own table."""

MILLION_MARK = "[1m]"
"""The suffix with which Claude Code marks a model name to ask for a window of 1,000,000 tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Prices in US dollars per million tokens.

    If the vendor does not state `write_1h`, the price of `write` is used. Every other price that the vendor does not
    state is the price of plain input.
    """

    input: float
    output: float
    read: float
    write: float
    write_1h: float


def usage_cost(usage: Usage, prices: Prices) -> float:
    """The price of a request and its reply in US dollars."""
    hour = min(usage.cache_write_1h, usage.cache_write)
    written = hour * prices.write_1h + (usage.cache_write - hour) * prices.write
    rest = usage.input * prices.input + usage.cache_read * prices.read + usage.output * prices.output
    return (rest + written) / 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheRules:
    """Rules of the vendor's prompt cache."""

    min_tokens: int
    """The smallest prefix that is cached, in tokens."""
    ttl_seconds: int
    lookback_blocks: int
    """The number of blocks before a breakpoint in which the cache searches for an earlier entry. 0 means all blocks."""
    breakpoints: int
    """The largest number of breakpoints in a request. 0 means that the vendor sets them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaRule:
    """How the tokens of images, documents, sound and video are counted.

    The defaults are for models without documentation.
    """

    tile_pixels: int = 28
    """An image is divided into squares (tiles) with edges of this many pixels. 0: every image costs `base_tokens`."""
    tile_tokens: float = 1.0
    base_tokens: int = 0
    """Tokens added once per image. For a low-detail image, this is the whole cost."""
    max_tiles: int = 4_784
    """Images with more tiles are scaled down. 0: no limit."""
    max_long_edge: int = 0
    """Largest length of the longer edge in pixels. A larger image is scaled down. 0: no limit."""
    max_short_edge: int = 0
    """Largest length of the shorter edge in pixels. This limit is applied after `max_long_edge`. 0: no limit."""
    unknown_tokens: int = 3_000
    """Tokens of an image whose size cannot be read."""
    page_tokens: int = 3_400
    """Tokens per page of a document, for the text and the image of the page together."""
    audio_tokens: int = 32
    """Tokens per second of sound."""
    video_tokens: int = 300
    """Tokens per second of video."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model: its limits, prices and rules, with the source of these figures."""

    name: str
    vendor: str
    """The company that makes the model and sets prices, limits and cache rules. "" for an unknown model."""
    format: str
    """The wire format of the vendor's API: `anthropic`, `openai` or `gemini`. "" for an unknown model."""
    family: str
    """The family of tokenizers with which token counts for this model are estimated."""
    vocabulary: str
    """The name of the model's own vocabulary, for exact counting; "" if it is not public."""
    window: int
    reply: int
    """The longest reply in tokens."""
    media: MediaRule
    drops_thinking: bool
    """Whether the provider removes the thinking of earlier turns from the prompt when a new user message arrives."""
    binds_thinking: bool
    """Whether the provider refuses a thinking block if the messages before it have changed since it was written."""
    system_messages: bool
    """Whether a request may hold system messages between other messages (Anthropic)."""
    signed_calls: bool
    """Whether the first function call of a reply needs its thought signature (Gemini)."""
    prices: Prices | None
    """None if the table has no prices for the model."""
    cache: CacheRules
    source: str

    @property
    def is_window_known(self) -> bool:
        """Whether the window comes from the table or from the suffix `[1m]` of the name.

        If False, the window is the default.
        """
        return bool(self.vendor) or MILLION_MARK in self.source


def model(name: str, *, table: Path | None = None) -> Model:
    """The model with this name.

    The name may have a vendor prefix, a date or `[1m]`. An unknown model gets default figures.
    """
    path = table or (Path(os.environ[ENVIRONMENT]) if os.environ.get(ENVIRONMENT) else None)
    return _look_up(name, _user_table(path) if path else _EMPTY)


@lru_cache(maxsize=256)
def _look_up(name: str, user: _Table) -> Model:
    """The model with this name. The fields of the user's table override those of the shipped table."""
    shipped, bare = _shipped(), plain_name(name)
    shipped_name, user_name = _match(bare, shipped.models), _match(bare, user.models)
    if len(user_name) < len(shipped_name):
        user_name = ""  # the shipped table has a more specific entry for this model
    shipped_entry, user_entry = shipped.models.get(shipped_name, {}), user.models.get(user_name, {})
    known = {**shipped.default, **user.default}
    vendor = ""
    if shipped_name or user_name:
        vendor = str(user_entry.get("vendor") or shipped_entry.get("vendor") or shipped.default["vendor"])
        if vendor not in shipped.vendors and vendor not in user.vendors:
            names = ", ".join(sorted({*shipped.vendors, *user.vendors}))
            raise _wrong(user.name, f"model.{user_name}", "vendor", f"unknown vendor {vendor!r}", f"use one of {names}")
        known |= {**shipped.vendors.get(vendor, {}), **shipped_entry}
        sources = [f"{shipped.name} {shipped_name} ({shipped.read_on})"] if shipped_name else []
    else:
        known["format"] = user.default.get("format", "")
        sources = [f"default: unknown model {name!r}" if name else "default: no model is named"]
    if name.strip().lower().endswith(MILLION_MARK):
        known["window"] = 1_000_000
        sources.append(f"window from the mark {MILLION_MARK}")
    overrides = {**user.vendors.get(vendor, {}), **user_entry}
    if overrides:
        sources.append(f"{', '.join(overrides)} from {user.name} {user_name or vendor}")
    known |= {**overrides, "vendor": vendor}
    media = user.media.get(known["media"]) or shipped.media[known["media"]]
    return _build(name, known, media, "; ".join(sources))


def _build(name: str, values: dict[str, Any], media: MediaRule, source: str) -> Model:
    prices = None
    if "input" in values:
        plain = values["input"]
        write = values.get("write", plain)
        stated = {"output": plain, "read": plain, "write": write, "write_1h": write} | values
        prices = Prices(**{field.name: stated[field.name] for field in fields(Prices)})
    return Model(
        name=name,
        vendor=values["vendor"],
        format=values["format"],
        family=values["family"],
        vocabulary=values.get("vocabulary", ""),
        window=values["window"],
        reply=min(values["reply"], values["window"]),
        media=media,
        drops_thinking=values["drops_thinking"],
        binds_thinking=values["binds_thinking"],
        system_messages=values["system_messages"],
        signed_calls=values["signed_calls"],
        prices=prices,
        cache=CacheRules(
            min_tokens=values["cache_min"],
            ttl_seconds=values["cache_ttl"],
            lookback_blocks=values["cache_lookback"],
            breakpoints=values["cache_breakpoints"],
        ),
        source=source,
    )


_VENDOR = re.compile(
    r"^(?:[a-z]{2,6}\.)?(?:anthropic|openai|meta|mistral|deepseek|qwen|google|moonshot|moonshotai|zai)\."
)
_REVISION = re.compile(r"-v\d+(?:-\d+)?$")


def plain_name(name: str) -> str:
    """A model's name without the prefixes and suffixes that platforms add.

    >>> plain_name("us.anthropic.claude-sonnet-4-5-20250929-v1:0"), plain_name("openrouter/openai/gpt-5:free")
    ('claude-sonnet-4-5-20250929', 'gpt-5-free')
    """
    bare = name.strip().lower().removesuffix(MILLION_MARK).strip()
    bare = bare.rstrip("/").rpartition("/")[2].removeprefix("ft:")
    bare = _VENDOR.sub("", bare).replace("@", "-").replace(":", "-")
    bare = _REVISION.sub("", bare).removeprefix("meta-")
    return bare.replace(".", "-") if bare.startswith("claude") else bare


def similar_name(name: str) -> str:
    """The model name in the shipped table that is most similar to an unknown name; "" if no name is similar.

    >>> similar_name("cladue-sonnet-5")
    'claude-sonnet-5'
    """
    from difflib import get_close_matches  # noqa: PLC0415  # imported only for an unknown model

    return next(iter(get_close_matches(plain_name(name), _shipped().models, n=1, cutoff=0.8)), "")


@cache
def misspelled_name(name: str) -> str:
    """The probable correct form of a misspelled model name; "" if the name is not misspelled.

    A name with other digits is the name of another version, and not misspelled.

    >>> misspelled_name("claude-sonet-5"), misspelled_name("claude-sonnet-5"), misspelled_name("claude-sonnet-99")
    ('claude-sonnet-5', '', '')
    """
    bare, near = plain_name(name), similar_name(name)
    is_other = not near or bare.startswith(near) or bare in _shipped().models
    return "" if is_other or re.findall(r"\d", bare) != re.findall(r"\d", near) else near


def _match(bare: str, models: Mapping[str, Any]) -> str:
    """The key of the table entry for a model name; "" if there is no entry.

    A name that is not a key may be a variant of several keys (see `_is_variant`). The longest of these keys is
    returned.
    """
    if bare in models:
        return bare
    variants = (key for key in models if bare.startswith(key) and _is_variant(key, bare[len(key) :]))
    return max(variants, key=len, default="")


def _is_variant(key: str, rest: str) -> bool:
    """Whether the model name `key + rest` is a variant of the entry `key`, and not another version of the model.

    If the key ends with a digit, a following `-9` or `.9` makes another version: `claude-opus-4-9` is not a variant of
    `claude-opus-4`. A following date or word makes a variant. If the key ends with a letter, a following number makes a
    variant: `grok-9` is a variant of `grok`.
    """
    if key[-1].isdigit():
        return bool(re.match(r"-(?!\d{1,2}(?:-|$))", rest))
    return bool(re.match(r"[-.]|\d+(?:[-.]|$)", rest))


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """A parsed table: its file name, its date, and its four kinds of entries. Tables are compared by identity."""

    name: str
    read_on: str
    default: Mapping[str, Any]
    vendors: Mapping[str, Mapping[str, Any]]
    models: Mapping[str, Mapping[str, Any]]
    media: Mapping[str, MediaRule]


_EMPTY = _Table("", "", {}, {}, {}, {})


@cache
def _shipped() -> _Table:
    return _parse("models.toml", (pkgutil.get_data(__name__, "models.toml") or b"").decode())


def _user_table(path: Path) -> _Table:
    """The user's table. The table is read again if the file has changed."""
    try:
        stat = path.stat()
        return _read(path, stat.st_mtime_ns, stat.st_size)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}", hint=f"check the path, or unset {ENVIRONMENT}") from None


@lru_cache(maxsize=4)
def _read(path: Path, _changed: int, _size: int) -> _Table:
    shipped, table = _shipped(), _parse(str(path), path.read_text("utf-8"))
    kinds = (("vendor.", table.vendors), ("model.", table.models), ("", {"default": table.default}))
    entries = (shipped.default, *shipped.vendors.values(), *shipped.models.values())
    families = sorted({entry["family"] for entry in entries if "family" in entry})
    choices = (("family", "family", families), ("media", "media rule", [*shipped.media, *table.media]))
    for entry, values in ((f"{kind}{key}", values) for kind, found in kinds for key, values in found.items()):
        for field, what, known in choices:
            if values.get(field, "") not in ("", *known):
                hint = f"use one of {', '.join(known)}"
                raise _wrong(table.name, entry, field, f"unknown {what} {values[field]!r}", hint)
    return table


def _parse(name: str, text: str) -> _Table:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name}: not TOML: {error}") from None
    for key in data:
        if key not in ("read_on", "default", "vendor", "model", "media"):
            hint = "use [model.NAME], [vendor.NAME], [media.NAME] or [default]"
            raise ConfigError(f"{name}: unknown section [{key}]", hint=hint)
    for key in ("vendor", "model", "media"):
        if not isinstance(data.setdefault(key, {}), dict):
            raise ConfigError(f"{name}: {key} must be a section", hint=f"write [{key}.NAME]")
    return _Table(
        name=name,
        read_on=str(data.get("read_on", "")),
        default=_checked(name, "default", data.get("default", {})),
        vendors={key: _checked(name, f"vendor.{key}", value) for key, value in data["vendor"].items()},
        models={plain_name(key): _checked(name, f"model.{key}", value) for key, value in data["model"].items()},
        media={
            key: MediaRule(**_checked(name, f"media.{key}", value, _MEDIA_FIELDS))
            for key, value in data["media"].items()
        },
    )


def _is_amount(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < float("inf")


_TOKENS = (lambda value: type(value) is int and value > 0, "a number of tokens", "write a whole number above 0")
_WHOLE = (lambda value: type(value) is int and value >= 0, "a whole number", "write 0 or more")
_PRICE = (_is_amount, "a price", "write US dollars per million tokens")
_WORD = (lambda value: type(value) is str, "a name", "write it in quotes")
_FLAG = (lambda value: type(value) is bool, "a yes or no", "write true or false")
_ENTRY_FIELDS: dict[str, tuple[Callable[[Any], bool], str, str]] = {
    **dict.fromkeys(("window", "reply"), _TOKENS),
    **dict.fromkeys(("cache_min", "cache_ttl", "cache_lookback", "cache_breakpoints"), _WHOLE),
    **dict.fromkeys(("input", "output", "read", "write", "write_1h"), _PRICE),
    **dict.fromkeys(("vendor", "format", "family", "vocabulary", "media"), _WORD),
    **dict.fromkeys(("drops_thinking", "binds_thinking", "system_messages", "signed_calls"), _FLAG),
}
"""For each field of an entry: a function that checks the value, a description of valid values, and a hint."""
_MEDIA_FIELDS = dict.fromkeys([field.name for field in fields(MediaRule)], (_is_amount, "a number", "write 0 or more"))


def _checked(file: str, entry: str, values: Any, checks: Mapping[str, Any] = _ENTRY_FIELDS) -> dict[str, Any]:
    """The fields of one entry. If a field is wrong, raises an error that names the file, the entry and the field."""
    if not isinstance(values, dict):
        raise ConfigError(f"{file}: {entry} must be a section", hint=f"write [{entry}] and the fields below it")
    for field, value in values.items():
        if field not in checks:
            raise _wrong(file, entry, field, "unknown field", f"use one of {', '.join(checks)}")
        is_valid, kind, hint = checks[field]
        if not is_valid(value):
            raise _wrong(file, entry, field, f"{value!r} is not {kind}", hint)
    return values


def _wrong(file: str, entry: str, field: str, what: str, hint: str) -> ConfigError:
    return ConfigError(f"{file}: [{entry}] {field}: {what}", hint=hint)
