"""A streamed reply becomes the same message as one that came whole."""

from foldline.wire.streaming.assembler import Assembler, StreamedReply

__all__ = ["Assembler", "StreamedReply"]
