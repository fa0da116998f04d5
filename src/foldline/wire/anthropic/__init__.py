"""The Anthropic Messages API."""

from foldline.wire.anthropic import parse, render, signs
from foldline.wire.anthropic.framing import FRAMING
from foldline.wire.anthropic.grammar import GRAMMAR, model_grammar
from foldline.wire.anthropic.stream import AnthropicStream, is_anthropic_event
from foldline.wire.anthropic.usage import anthropic_usage
from foldline.wire.formats import Format, ReplyFormat

FORMAT = Format(
    name=parse.NAME,
    element_format=parse.NAME,
    parse=parse.parse,
    render=render.render,
    sign=signs.ELEMENT,
    framing=FRAMING,
    grammar=GRAMMAR,
    model_grammar=model_grammar,
    plain_fields=("role",),
    body_sign=signs.BODY,
    list_key="messages",
    system_key="system",
    parse_system=parse.parse_system,
    render_system=render.render_system,
    join=render.join,
    beta_of=render.beta_of,
    reply=ReplyFormat(
        parse=parse.parse_reply,
        stream=AnthropicStream,
        is_event=is_anthropic_event,
        usage=anthropic_usage,
        list_key="content",
    ),
)
