"""Tokens that Gemini adds around messages, calls and tools."""

from foldline.measure.message_size import Framing

FRAMING = Framing(name="gemini", message=3, part=1, call=11, result=7)
"""Gemini documents no figures, so OpenAI's figures are used."""
