"""Tokens that OpenAI adds around messages, calls and tools."""

from foldline.measure.message_size import Framing

FRAMING = Framing(name="openai", message=3, part=1, call=11, result=7, tools=12)
"""OpenAI's cookbook states 3 tokens per message and 3 for the reply.

The figures for calls and results are fitted to Codex sessions.
"""
