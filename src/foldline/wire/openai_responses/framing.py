"""Tokens that OpenAI's Responses API adds: the figures of Chat Completions, since the models are the same."""

from foldline.wire.openai_chat.framing import FRAMING

__all__ = ["FRAMING"]
