"""Tokens that OpenAI's Responses API adds to messages, calls and tools.

The figures are the same as for Chat Completions, because the models are the same.
"""

from foldline.wire.openai_chat.framing import FRAMING

__all__ = ["FRAMING"]
