"""Tokens that Anthropic adds to messages, calls and tools."""

from foldline.measure.message_size import Framing

FRAMING = Framing(name="anthropic", message=4, part=1, call=45, result=20, tools=346)
"""The framing of Anthropic's models.

The figures are fitted to the growth of the input over 9,000 requests of real sessions (Opus 4.5 and 4.6, Sonnet 4.5).
For a call and its result together, the provider adds 70 tokens (median) or 90 tokens (mean). The 346 tokens for tools
are from the provider's price page.
"""
