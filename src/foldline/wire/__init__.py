"""Provider bytes to messages and back."""

from foldline.wire.formats import FORMATS, PROVIDERS, Lost, Rendered, Transcript, render
from foldline.wire.reader import parse, read, read_all
from foldline.wire.request import Request

__all__ = [
    "FORMATS",
    "PROVIDERS",
    "Lost",
    "Rendered",
    "Request",
    "Transcript",
    "parse",
    "read",
    "read_all",
    "render",
]
