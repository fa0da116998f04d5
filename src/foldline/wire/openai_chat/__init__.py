"""OpenAI Chat Completions, which most other servers imitate."""

from foldline.wire.formats import Format, ReplyFormat
from foldline.wire.openai_chat import parse, render, signs
from foldline.wire.openai_chat.framing import FRAMING
from foldline.wire.openai_chat.grammar import GRAMMAR, model_grammar
from foldline.wire.openai_chat.stream import ChatStream, is_chat_chunk
from foldline.wire.openai_chat.usage import chat_usage

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
    join=render.join,
    reply=ReplyFormat(
        parse=parse.parse_reply,
        stream=ChatStream,
        is_event=is_chat_chunk,
        usage=chat_usage,
        list_key="choices",
        object_type="chat.completion",
    ),
)
