"""Gemini's `generateContent`."""

from foldline.wire.formats import Format, ReplyFormat
from foldline.wire.gemini import parse, render, signs
from foldline.wire.gemini.framing import FRAMING
from foldline.wire.gemini.grammar import GRAMMAR, model_grammar
from foldline.wire.gemini.stream import GeminiStream, is_gemini_chunk
from foldline.wire.gemini.usage import gemini_usage

FORMAT = Format(
    name=parse.NAME,
    element_format=parse.NAME,
    parse=parse.parse,
    render=render.render,
    sign=signs.ELEMENT,
    framing=FRAMING,
    grammar=GRAMMAR,
    model_grammar=model_grammar,
    list_key="contents",
    system_key="systemInstruction",
    parse_system=parse.parse_system,
    render_system=render.render_system,
    join=render.join,
    join_turns=render.join_turns,
    has_call_ids=False,
    reply=ReplyFormat(
        parse=parse.parse_reply,
        stream=GeminiStream,
        is_event=is_gemini_chunk,
        usage=gemini_usage,
        list_key="candidates",
        usage_key="usageMetadata",
        blocked_key="promptFeedback",
        object_type="",
        chunked=True,
    ),
)
