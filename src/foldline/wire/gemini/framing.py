"""Tokens that Gemini adds to messages, calls and tools."""

from foldline.measure.message_size import Framing

FRAMING = Framing(name="gemini", message=3, part=1, call=11, result=7)
"""The framing of Gemini's models. Gemini documents no figures, so OpenAI's figures are used."""
