"""Decodes compressed bodies for the record. The proxy still passes on the compressed bytes."""

from __future__ import annotations

import zlib
from typing import Any

_STEP = 256 * 1024


class NotDecodable(Exception):
    """The body has an unknown content coding, is damaged, or has too many bytes."""


def decode_body(data: bytes, codings: str, *, limit: int) -> bytes:
    """The decoded body: `data` without its content codings (gzip, deflate, br, zstd).

    Raises `NotDecodable` if the decoded body has more than `limit` bytes.

    >>> decode_body(zlib.compress(b"abc"), "deflate", limit=10)
    b'abc'
    """
    names = [name.strip().lower() for name in codings.split(",")]
    for name in reversed([name for name in names if name not in ("", "identity")]):
        data = _decode(data, name, limit)
    if len(data) > limit:
        raise NotDecodable(f"more than {limit:,} bytes")
    return data


def _decode(data: bytes, name: str, limit: int) -> bytes:
    try:
        if name in ("gzip", "x-gzip", "deflate"):
            return _inflate(data, limit)
        if name == "br":
            return _brotli(data, limit)
        if name == "zstd":
            import zstandard  # noqa: PLC0415  # only for this coding

            with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
                return _bounded([reader.read(limit + 1)], limit)
    except NotDecodable:
        raise
    except Exception as error:  # noqa: BLE001 (each decoder has its own errors)
        raise NotDecodable(f"damaged {name} body ({type(error).__name__})") from None
    raise NotDecodable(f"unknown content coding {name!r}")


def _inflate(data: bytes, limit: int) -> bytes:
    """The decoded content of a gzip or zlib body. Raw deflate data, which some servers send, is decoded, too."""
    raw = data[:2] != b"\x1f\x8b" and (len(data) < 2 or (data[0] & 15) != 8 or int.from_bytes(data[:2], "big") % 31)
    pieces: list[bytes] = []
    while data:
        decoder = zlib.decompressobj(-zlib.MAX_WBITS if raw else zlib.MAX_WBITS | 32)
        pieces.append(decoder.decompress(data, limit + 1))
        _bounded(pieces, limit)
        if not decoder.eof or decoder.unused_data == data:
            break  # the stream was cut off; keep what has arrived
        data = decoder.unused_data
    return b"".join(pieces)


def _brotli(data: bytes, limit: int) -> bytes:
    import brotli  # noqa: PLC0415  # only for this coding

    decoder: Any = brotli.Decompressor()
    pieces: list[bytes] = []
    for at in range(0, len(data), _STEP):
        pieces.append(decoder.process(data[at : at + _STEP]))
        _bounded(pieces, limit)
    return b"".join(pieces)


def _bounded(pieces: list[bytes], limit: int) -> bytes:
    if sum(map(len, pieces)) > limit:
        raise NotDecodable(f"more than {limit:,} bytes")
    return b"".join(pieces) if len(pieces) > 1 else pieces[0]
