"""Converts the bytes of a provider's format to messages, and messages to that format.

parse(source, format=None, *, default=None) -> Transcript
    `source` is bytes, text, a dict, a list, one message or an SDK's object. `format` is the format of the
    source. If it is None, the format is detected. `default` is the format to use if the detected format is not clear.
sign_of(value) -> str | None
    The request format that a value clearly has; None if it is not clear.
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
