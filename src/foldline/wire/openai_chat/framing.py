"""Tokens that OpenAI adds to messages, calls and tools."""

from foldline.measure.message_size import Framing

FRAMING = Framing(name="openai", message=3, part=1, call=11, result=7, tools=12)
"""The framing of OpenAI's models.

OpenAI's cookbook states 3 tokens per message and 3 for the reply. The figures for calls and results are fitted to Codex
sessions.
"""
