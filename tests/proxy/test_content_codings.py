"""Compressed bodies are decoded for the record, up to a limit."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foldline.proxy.content_codings import NotDecodable, decode_body

brotli = pytest.importorskip("brotli")
zstandard = pytest.importorskip("zstandard")


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


CODINGS = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "deflate without a header": raw_deflate,
    "br": brotli.compress,
    "zstd": zstandard.compress,
    "zstd stream": lambda data: zstandard.ZstdCompressor(write_content_size=False).compress(data),
}


@pytest.mark.parametrize("coding", CODINGS)
@given(data=st.binary(max_size=2_000))
def test_what_was_packed_comes_out(coding: str, data: bytes) -> None:
    assert decode_body(CODINGS[coding](data), coding.split(maxsplit=1)[0], limit=10_000) == data


@pytest.mark.parametrize("coding", CODINGS)
def test_a_body_that_grows_over_the_limit_is_refused(coding: str) -> None:
    with pytest.raises(NotDecodable):
        decode_body(CODINGS[coding](b"\0" * 5_000_000), coding.split(maxsplit=1)[0], limit=100_000)


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd", "unheard-of"])
def test_garbage_is_refused(coding: str) -> None:
    with pytest.raises(NotDecodable):
        decode_body(b"this is not compressed at all", coding, limit=1_000)


def test_several_codings_are_undone_from_the_last_to_the_first() -> None:
    assert decode_body(gzip.compress(zlib.compress(b"abc")), "deflate, gzip", limit=100) == b"abc"
    assert decode_body(b"abc", "identity", limit=100) == b"abc"
