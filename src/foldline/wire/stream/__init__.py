"""A streamed reply becomes the same message as one that came whole."""

from foldline.wire.stream.assembler import Assembler, Reply

__all__ = ["Assembler", "Reply"]
