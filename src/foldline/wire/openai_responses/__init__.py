"""OpenAI's Responses API."""

from foldline.wire.formats import Format, ReplyFormat
from foldline.wire.openai_responses import parse, render, signs
from foldline.wire.openai_responses.framing import FRAMING
from foldline.wire.openai_responses.grammar import GRAMMAR, model_grammar
from foldline.wire.openai_responses.stream import ResponsesStream, is_responses_event
from foldline.wire.openai_responses.usage import responses_usage

FORMAT = Format(
    name=parse.NAME,
    element_format=parse.NAME,
    parse=parse.parse,
    render=render.render,
    sign=signs.ELEMENT,
    framing=FRAMING,
    grammar=GRAMMAR,
    model_grammar=model_grammar,
    plain_fields=("role", "type"),
    list_key="input",
    text_list=True,
    system_key="instructions",
    parse_system=parse.parse_system,
    render_system=render.render_system,
    reply=ReplyFormat(
        parse=parse.parse_reply,
        stream=ResponsesStream,
        is_event=is_responses_event,
        usage=responses_usage,
        list_key="output",
        object_type="response",
    ),
)
