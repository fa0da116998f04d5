"""Reads the reply in a response, whether it was streamed or not, for the record."""

from __future__ import annotations

from foldline.proxy.content_codings import NotDecodable, decode_body
from foldline.proxy.forwarded_headers import header
from foldline.proxy.interception import ReceivedResponse
from foldline.wire.streaming.assembler import Assembler, StreamedReply


def read_reply(response: ReceivedResponse, format: str, *, limit: int) -> StreamedReply | None:
    """The reply of the model; None if the response has no reply or cannot be read."""
    if response.status != 200 or response.is_dropped or not response.chunks:
        return None
    coding = header(response.headers, b"content-encoding")
    assembler, data = Assembler(format), b"".join(response.chunks)
    try:
        assembler.feed(decode_body(data, coding, limit=limit) if coding else data)
    except NotDecodable:
        return None
    return assembler.finish()
