"""Provider bytes to messages and back.

parse(source, format=None, *, default=None) -> Transcript
    `source` is bytes, text, a dict, a list, one message or an SDK's object. `format` names its format and is
    believed; `default` is the format of what shows no clear sign of its own (a session's format).
sign_of(value) -> str | None
    The request format that a value clearly is in; None when it shows no sign of exactly one.
render(messages, format) -> Rendered
    The messages in a request format.
"""

from foldline.wire.formats import FORMATS, REQUEST_FORMATS, Lost, Transcript
from foldline.wire.reader import parse, read, read_all, sign_of
from foldline.wire.rendering import Rendered, render
from foldline.wire.request import Request

__all__ = [
    "FORMATS",
    "REQUEST_FORMATS",
    "Lost",
    "Rendered",
    "Request",
    "Transcript",
    "parse",
    "read",
    "read_all",
    "render",
    "sign_of",
]
