"""Offers the recall tool in a request, and reads the results of its calls from the session."""

from __future__ import annotations

from collections.abc import Sequence

from foldline.message import Message, ToolCall, tool
from foldline.proxy.body_scan import scan_body
from foldline.proxy.conversation import ClientConversation
from foldline.proxy.conversations import Located
from foldline.proxy.folded_request import recalled_body
from foldline.proxy.recall_replies import with_recall_tool
from foldline.recall.tools import Tools
from foldline.wire.formats import request_format


def body_with_recall(located: Located, body: bytes | None, format: str) -> bytes | None:
    """The request body with the recall tool and earlier recall calls; None if the tool cannot be offered.

    `body` is the body for the folded session. If it is None, the client's own body is used.
    """
    found, scan = located.conversation, located.history.scan
    recalled = found.recalled if found is not None else {}
    if body is None:
        body = recalled_body(located.history, located.alignment.places, recalled)
    if body is not None:
        scan = scan_body(body, request_format(format).list_key)
    return with_recall_tool(scan, format)


def recall_results(conversation: ClientConversation | None, calls: Sequence[ToolCall]) -> list[Message]:
    """The results of recall calls. `conversation` is None if it is new; then nothing is found."""
    if conversation is None:
        return [tool(call.id, "Nothing was found.", name=call.name) for call in calls]
    tools = Tools(conversation.session)
    return [tools.answer(call) for call in calls]
