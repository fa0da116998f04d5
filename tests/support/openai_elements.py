"""Generated elements of the OpenAI formats: every documented shape, with unknown fields and kinds among them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from foldline.message import Media, Message, Opaque, Part, Text, Thinking, ToolCall, ToolResult

WORDS = st.text(max_size=12)
NAMES = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=8)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
EXTRAS = st.dictionaries(NAMES.map(lambda name: f"x_{name}"), JSON, max_size=2)
URLS = st.sampled_from(["https://example.org/a.png", "data:image/png;base64,aGk=", "data:text/plain,hi", ""])
ARGUMENTS = st.sampled_from(["{}", '{"path": "a.py"}', '{"broken', "", "[1]"])


def shaped(fields: dict[str, Any], optional: dict[str, Any] | None = None) -> st.SearchStrategy[dict[str, Any]]:
    """An object with these fields, some of those, and unknown ones before or after them."""
    known = {key: value if isinstance(value, st.SearchStrategy) else st.just(value) for key, value in fields.items()}
    some = st.fixed_dictionaries(known, optional=optional or {})
    return st.builds(
        lambda some, more, first: {**more, **some} if first else {**some, **more}, some, EXTRAS, st.booleans()
    )


CHAT_PARTS = st.one_of(
    shaped({"type": "text", "text": WORDS}, {"cache_control": st.just({"type": "ephemeral"})}),
    shaped({"type": "image_url", "image_url": st.fixed_dictionaries({"url": URLS}) | URLS}),
    shaped({"type": "input_audio", "input_audio": st.fixed_dictionaries({"data": WORDS, "format": st.just("wav")})}),
    shaped({"type": "file", "file": st.fixed_dictionaries({}, optional={"file_data": URLS, "file_id": NAMES})}),
    shaped({"type": "refusal", "refusal": WORDS}),
    shaped({"type": NAMES}),
)
CHAT_CONTENT = st.none() | WORDS | st.lists(CHAT_PARTS, max_size=3)
CHAT_CALLS = st.one_of(
    shaped(
        {"id": NAMES, "type": "function", "function": st.fixed_dictionaries({"name": NAMES, "arguments": ARGUMENTS})}
    ),
    shaped({"id": NAMES, "type": "custom", "custom": st.fixed_dictionaries({"name": NAMES, "input": WORDS})}),
    shaped({"id": NAMES, "type": "telepathy"}),
)
CHAT_ASIDE = {
    "tool_calls": st.none() | st.lists(CHAT_CALLS, max_size=3),
    "function_call": st.none() | st.fixed_dictionaries({"name": NAMES, "arguments": ARGUMENTS}),
    "refusal": st.none() | WORDS,
    "audio": st.none() | st.fixed_dictionaries({"id": NAMES}),
    "reasoning_content": st.none() | WORDS,
    "reasoning": WORDS,
    "reasoning_details": st.lists(
        st.fixed_dictionaries({"type": st.just("reasoning.text")}, optional={"text": WORDS, "signature": WORDS}),
        max_size=2,
    ),
    "name": NAMES,
}
CHAT_MESSAGES = st.one_of(
    shaped({"role": st.sampled_from(["system", "developer", "user", "critic"]), "content": CHAT_CONTENT}),
    shaped({"role": "assistant", "content": CHAT_CONTENT}, CHAT_ASIDE),
    shaped({"role": "tool", "tool_call_id": NAMES, "content": CHAT_CONTENT}, {"name": NAMES}),
    shaped({"role": "function", "name": NAMES, "content": WORDS | st.none()}),
)

ITEM_PARTS = st.one_of(
    shaped({"type": "input_text", "text": WORDS}),
    shaped({"type": "input_image", "image_url": URLS | st.none(), "detail": "auto"}, {"file_id": NAMES}),
    shaped({"type": "input_file"}, {"file_data": URLS, "file_url": URLS, "file_id": NAMES}),
    shaped({"type": NAMES}),
)
OUTPUT_PARTS = st.one_of(
    shaped({"type": "output_text", "text": WORDS, "annotations": st.lists(JSON, max_size=1)}),
    shaped({"type": "refusal", "refusal": WORDS}),
)
ACTION = st.dictionaries(NAMES, JSON, max_size=2)
OUTPUT = WORDS | st.lists(ITEM_PARTS, max_size=2)
CALL_ITEMS = st.one_of(
    shaped({"type": "function_call", "call_id": NAMES, "name": NAMES, "arguments": ARGUMENTS}, {"id": NAMES}),
    shaped({"type": "custom_tool_call", "call_id": NAMES, "name": NAMES, "input": WORDS}, {"id": NAMES}),
    shaped({"type": "local_shell_call", "id": NAMES, "call_id": NAMES, "action": ACTION, "status": "completed"}),
    shaped({"type": "shell_call", "call_id": NAMES, "action": ACTION}),
    shaped({"type": "apply_patch_call", "call_id": NAMES, "operation": ACTION, "status": "completed"}),
    shaped({"type": "computer_call", "id": NAMES, "call_id": NAMES}, {"action": ACTION, "actions": st.lists(ACTION)}),
    shaped({"type": "tool_search_call", "arguments": ACTION}, {"call_id": NAMES}),
    shaped({"type": "mcp_approval_request", "id": NAMES, "name": NAMES, "arguments": ARGUMENTS, "server_label": NAMES}),
)
SHELL_OUTCOMES = st.sampled_from(
    [{"type": "exit", "exit_code": 0}, {"type": "exit", "exit_code": 2}, {"type": "timeout"}]
)
RESULT_ITEMS = st.one_of(
    shaped({"type": "function_call_output", "call_id": NAMES, "output": OUTPUT}, {"id": NAMES}),
    shaped({"type": "custom_tool_call_output", "call_id": NAMES, "output": OUTPUT}),
    shaped({"type": "local_shell_call_output", "id": NAMES, "output": WORDS}),
    shaped(
        {
            "type": "shell_call_output",
            "call_id": NAMES,
            "output": st.lists(
                st.fixed_dictionaries({"stdout": WORDS, "stderr": WORDS, "outcome": SHELL_OUTCOMES}), max_size=2
            ),
        }
    ),
    shaped(
        {"type": "apply_patch_call_output", "call_id": NAMES, "status": st.sampled_from(["completed", "failed"])},
        {"output": WORDS | st.none()},
    ),
    shaped(
        {
            "type": "computer_call_output",
            "call_id": NAMES,
            "output": st.fixed_dictionaries({"type": st.just("computer_screenshot"), "image_url": URLS}),
        }
    ),
    shaped({"type": "tool_search_output", "tools": st.lists(ACTION, max_size=1)}, {"call_id": NAMES}),
    shaped({"type": "mcp_approval_response", "approval_request_id": NAMES, "approve": st.booleans()}),
)
PASSED_TYPES = [
    *["file_search_call", "web_search_call", "code_interpreter_call", "image_generation_call", "mcp_call"],
    *["mcp_list_tools", "item_reference", "compaction", "program", "program_output", "compaction_trigger"],
    *["additional_tools", "configuration_update", "dream_call", "dream_call_output"],
]
REASONING = shaped(
    {
        "type": "reasoning",
        "id": NAMES,
        "summary": st.lists(st.fixed_dictionaries({"type": st.just("summary_text"), "text": WORDS}), max_size=2),
    },
    {"encrypted_content": WORDS | st.none(), "status": st.just("completed")},
)
INPUT_ITEMS = st.one_of(
    shaped(
        {"role": st.sampled_from(["user", "system", "developer"]), "content": WORDS | st.lists(ITEM_PARTS, max_size=2)}
    ),
    shaped({"type": "message", "role": "user", "content": st.lists(ITEM_PARTS, max_size=2)}),
    shaped(
        {"type": "message", "role": "assistant", "content": st.lists(OUTPUT_PARTS, max_size=2)},
        {"id": NAMES, "status": st.just("completed"), "phase": st.just("commentary")},
    ),
    CALL_ITEMS,
    RESULT_ITEMS,
    REASONING,
    shaped({"type": st.sampled_from(PASSED_TYPES), "id": NAMES}),
)

TEXTS: st.SearchStrategy[Part] = st.builds(Text, text=st.text(min_size=1, max_size=8))
MEDIA: st.SearchStrategy[Part] = st.builds(
    Media,
    kind=st.sampled_from(["image", "document", "audio", "video"]),
    mime=st.sampled_from(["image/png", "application/pdf", "audio/wav", ""]),
    data=st.sampled_from(["", "aGk="]),
    url=st.sampled_from(["", "https://example.org/a"]),
    text=st.sampled_from(["", "a letter"]),
)
OPAQUE: st.SearchStrategy[Part] = st.builds(Opaque, kind=NAMES, value=JSON)
THINKING: st.SearchStrategy[Part] = st.builds(Thinking, text=WORDS, signature=WORDS)
KINDS = st.sampled_from(["function", "custom_tool", "local_shell", "shell", "apply_patch", "computer", "telepathy"])
CALLS: st.SearchStrategy[Part] = st.builds(
    ToolCall, id=NAMES, name=NAMES, arguments=st.sampled_from(["{}", '{"a":1}', "free text"]), kind=KINDS
)
RESULTS: st.SearchStrategy[Part] = st.builds(
    ToolResult,
    call_id=NAMES,
    name=NAMES,
    parts=st.lists(TEXTS | MEDIA | OPAQUE, max_size=3).map(tuple),
    is_error=st.booleans(),
)
MESSAGES = st.one_of(
    st.builds(
        Message,
        role=st.sampled_from(["user", "tool"]),
        parts=st.lists(TEXTS | MEDIA | OPAQUE | RESULTS, min_size=1, max_size=4).map(tuple),
    ),
    st.builds(
        Message,
        role=st.just("assistant"),
        parts=st.lists(TEXTS | THINKING | CALLS | OPAQUE | MEDIA, min_size=1, max_size=4).map(tuple),
    ),
    st.builds(
        Message,
        role=st.sampled_from(["system", "critic", "user"]),
        parts=st.lists(TEXTS | MEDIA, min_size=1, max_size=2).map(tuple),
        kind=st.sampled_from(["", "shell", "note", "digest", "branch_digest"]),
    ),
)
"""Messages of nowhere: every part in every role that may have it, without a wire form."""
