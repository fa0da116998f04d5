"""Tokens that Anthropic adds around messages, calls and tools."""

from foldline.measure.message_size import Framing

FRAMING = Framing(name="anthropic", message=4, part=1, call=45, result=20, tools=346)
"""Fitted on the growth of the input over 9,000 requests of real sessions (Opus 4.5 and 4.6, Sonnet 4.5): a call and its
result add 70 (median) to 90 (mean) tokens to their text. The price page of the provider names 346 for tools."""
