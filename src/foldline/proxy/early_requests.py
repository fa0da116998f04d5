"""Recognises a request that can be sent to the provider before it is planned, because nothing can change its bytes.

Such a request continues an unfolded conversation by a few bytes, and the conversation is far from its limits. The
request is then planned while the provider works on it.
"""

from __future__ import annotations

from foldline.proxy.api_calls import ApiCall
from foldline.proxy.body_scan import BodyScan
from foldline.proxy.compaction_answers import SEALED
from foldline.proxy.conversation import ClientConversation
from foldline.proxy.conversations import AT_ONCE_BYTES, ConversationGroup
from foldline.proxy.folded_request import is_unfolded
from foldline.proxy.partial_requests import PARTIAL
from foldline.proxy.planned_request import MOST_PER_BYTE, MOST_PER_MESSAGE

_NAMES = (
    *("model", "tools", "functions", *PARTIAL),
    *("image", "image_url", "input_image", "document", "input_audio", "video", "file", "file_id", "input_file"),
    *("file_data", "fileData", "inline_data", "inlineData", "item_reference"),
)
_EXCLUDED = (SEALED, *(b'"%b"' % name.encode() for name in _NAMES))
"""Texts that must not be among the new bytes: fields that the plan depends on, and content whose size in tokens does
not depend on its number of bytes. A quote in a text is written as `\\"`, so such a text contains none of these names.
"""


def is_sent_unchanged(group: ConversationGroup, call: ApiCall, data: bytes) -> bool:
    """Whether a request is surely sent with the client's own bytes.

    `data` is the body of the request. The newest log entry of the session is read from the ledger.
    """
    if call.kind != "create" or not group.conversations:
        return False
    conversation = group.conversations[-1]
    history, known = conversation.history, conversation.headroom
    if history is None or history.format.name != call.format or conversation.in_flight or known is None:
        return False
    new = _new_bytes(data, history.scan)
    if not new or len(new) > AT_ONCE_BYTES or any(text in new for text in _EXCLUDED):
        return False
    state = conversation.session.state
    if known.state is not state or known.length != len(state.timeline.messages):
        return False
    if MOST_PER_BYTE * len(new) + MOST_PER_MESSAGE * new.count(b"{") >= known.tokens:
        return False
    return is_unfolded(state, conversation.start) and _has_settings(conversation, call) and conversation.is_current()


def _new_bytes(data: bytes, previous: BodyScan) -> bytes:
    """The bytes between the last message of the previous body and the end of the list; b"" if other bytes differ."""
    if not previous.ends:
        return b""
    end, old = previous.ends[-1], memoryview(previous.data)
    rest = len(previous.data) - previous.list_end + 1
    if not data.startswith(old[:end]) or not data.endswith(old[-rest:]) or len(data) < end + rest:
        return b""
    new = data[end : len(data) - rest]
    return new if new.lstrip()[:1] == b"," else b""


def _has_settings(conversation: ClientConversation, call: ApiCall) -> bool:
    """Whether the session has the model and the tools of the conversation's last request."""
    scan = conversation.history.scan if conversation.history is not None else None
    if scan is None:
        return False
    return conversation.settings == (call.model or str(scan.field("model") or ""), scan.field_text("tools"))
