"""Assembles streamed replies into the messages that non-streamed replies would give."""

from foldline.wire.streaming.assembler import Assembler, StreamedReply

__all__ = ["Assembler", "StreamedReply"]
