"""Tokens that OpenAI's Responses API adds: as many as Chat Completions, since the models are the same."""

from foldline.wire.openai_chat.framing import FRAMING

__all__ = ["FRAMING"]
