"""Selects the headers that are passed on, in both directions. Headers that concern one connection are not passed on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

RawHeaders: TypeAlias = Sequence[tuple[bytes, bytes]]
"""Headers in the form that ASGI and aiohttp use: pairs of bytes."""

_CONNECTION = frozenset(
    (
        *(b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection"),
        *(b"te", b"trailer", b"transfer-encoding", b"upgrade"),
    )
)
"""Headers that concern one connection. They are never passed on."""
_NOT_TO_UPSTREAM = _CONNECTION | {b"host", b"content-length", b"expect"}
OWN = b"x-foldline-"
"""The common prefix of foldline's own headers."""


def header(headers: RawHeaders, name: bytes) -> str:
    """The value of the first header with this lower-case name; "" if there is none."""
    for key, value in headers:
        if key.lower() == name:
            return value.decode("latin-1")
    return ""


def to_upstream(headers: RawHeaders, length: int | None) -> list[tuple[str, str]]:
    """The headers of the request to the provider. `length` is the length of the body; None if it is unknown."""
    sent = [
        (name.decode("latin-1"), _text(value))
        for name, value in _end_to_end(headers, _NOT_TO_UPSTREAM)
        if not name.lower().startswith(OWN)
    ]
    if length is not None:
        sent.append(("content-length", str(length)))
    return sent


def to_client(headers: RawHeaders, own: Iterable[tuple[str, str]] = ()) -> list[tuple[bytes, bytes]]:
    """The headers of the response to the client. `own` are foldline's own headers, without their common prefix."""
    kept = [(name.lower(), value) for name, value in _end_to_end(headers, _CONNECTION)]
    kept += [(OWN + name.encode(), value.encode("ascii", "replace")) for name, value in own]
    return kept


def with_betas(headers: list[tuple[str, str]], betas: tuple[str, ...]) -> list[tuple[str, str]]:
    """The headers with further values of `anthropic-beta`."""
    name = "anthropic-beta"
    present = [value for key, value in headers if key.lower() == name]
    have = {one.strip() for value in present for one in value.split(",")}
    added = [beta for beta in betas if beta not in have]
    if not added:
        return headers
    others = [(key, value) for key, value in headers if key.lower() != name]
    return [*others, (name, ",".join([*present, *added]))]


def _end_to_end(headers: RawHeaders, dropped: frozenset[bytes]) -> list[tuple[bytes, bytes]]:
    """The headers, except those in `dropped` and those that the header `Connection` names."""
    named = [value.lower() for name, value in headers if name.lower() == b"connection"]
    if named:
        dropped = dropped.union(option.strip() for value in named for option in value.split(b","))
    return [(name, value) for name, value in headers if name.lower() not in dropped]


def _text(value: bytes) -> str:
    """The value as text. It is decoded as UTF-8, or as Latin-1 if it is not valid UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
