"""Assembles streamed replies to the messages of the non-streamed ones."""

from foldline.wire.streaming.assembler import Assembler, StreamedReply

__all__ = ["Assembler", "StreamedReply"]
