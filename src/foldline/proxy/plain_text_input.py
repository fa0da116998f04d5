"""Requests whose list of messages is given as one plain text, as OpenAI's Responses API allows for `input`."""

from __future__ import annotations

from foldline.errors import WireError
from foldline.json_text import decode, encode, scan
from foldline.wire.formats import Format


def with_listed_input(data: bytes, format: Format) -> bytes | None:
    """The request body with a list in place of the plain text; None if the messages are not a plain text.

    The list has one message of the user with this text. If nothing is folded, the provider gets the client's own bytes,
    and not this body.

    >>> from foldline.wire.formats import request_format
    >>> with_listed_input(b'{"input": "Hi", "store": false}', request_format("openai-responses"))
    b'{"input": [{"role":"user","content":"Hi"}], "store": false}'
    """
    if not format.text_list:
        return None
    text = decode(data)
    try:
        found = scan(text).fields.get(format.list_key)
    except WireError:
        return None
    if found is None or not isinstance(found.value, str):
        return None
    listed = f'[{{"role":"user","content":{text[found.start : found.end]}}}]'
    return encode(text[: found.start] + listed + text[found.end :])
