"""A streamed reply becomes the same message as one that came whole."""

from foldline.wire.streaming.assembler import Assembler, Reply

__all__ = ["Assembler", "Reply"]
