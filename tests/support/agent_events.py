"""Events as an agent's stream has them: plain ones by name, and anything at all from Hypothesis."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

MODEL = "claude-sonnet-4-5-20250929"


def reply(tokens: int, *content: Any, model: str = MODEL, session: str = "s1", **fields: Any) -> dict[str, Any]:
    """A reply whose call filled the window with so many tokens."""
    usage = {"input_tokens": 3, "cache_creation_input_tokens": 0, "cache_read_input_tokens": tokens - 3}
    message = {"id": f"msg_{tokens}", "role": "assistant", "model": model, "content": list(content), "usage": usage}
    return {"type": "assistant", "message": message, "parent_tool_use_id": None, "session_id": session, **fields}


def call(name: str, id: str = "t1", **given: Any) -> dict[str, Any]:  # noqa: A002
    """A tool call in a reply."""
    return {"type": "tool_use", "id": id, "name": name, "input": given}


def answer(text: Any, id: str = "t1", *, error: bool = False, **fields: Any) -> dict[str, Any]:  # noqa: A002
    """The result of a call."""
    block = {"type": "tool_result", "tool_use_id": id, "content": text, "is_error": error}
    return {"type": "user", "message": {"role": "user", "content": [block]}, "session_id": "s1", **fields}


def said(text: Any, **fields: Any) -> dict[str, Any]:
    """Something a person wrote."""
    return {"type": "user", "message": {"role": "user", "content": text}, "session_id": "s1", **fields}


def result(**fields: Any) -> dict[str, Any]:
    """The end of a turn."""
    return {"type": "result", "subtype": "success", "is_error": False, "session_id": "s1", **fields}


def boundary(trigger: str = "auto", before: int = 155_000, **fields: Any) -> dict[str, Any]:
    """A compaction."""
    facts = {"trigger": trigger, "pre_tokens": before}
    return {"type": "system", "subtype": "compact_boundary", "compact_metadata": facts, "session_id": "s1", **fields}


def lines(*events: Any) -> bytes:
    """Events as a stream has them."""
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


_WORDS = (
    *(
        "type",
        "subtype",
        "message",
        "content",
        "usage",
        "input",
        "name",
        "id",
        "session_id",
        "model",
        "text",
        "is_error",
    ),
    *("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens", "total_cost_usd"),
    *("modelUsage", "contextWindow", "compact_metadata", "pre_tokens", "tool_use_id", "file_path", "payload", "info"),
    *("parent_tool_use_id", "isSidechain", "sessionId", "old_string", "new_string", "command", "stop_reason"),
)
_VALUES = (
    *("assistant", "user", "result", "system", "tool_use", "tool_result", "text", "compact_boundary", "init", "Edit"),
    *(
        "Write",
        "Bash",
        "s1",
        "s2",
        MODEL,
        "event_msg",
        "token_count",
        "compacted",
        "/compact",
        "<command-name>",
        "end_turn",
    ),
)
_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 400_000),
    st.integers(),
    st.floats(),
    st.sampled_from(_VALUES),
    st.text(max_size=30),
)
ANYTHING: SearchStrategy[Any] = st.recursive(
    _LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.one_of(st.sampled_from(_WORDS), st.text(max_size=8)), inner, max_size=6)
    ),
    max_leaves=20,
)
"""Any JSON, made of the words that matter more often than of others."""


@st.composite
def broken(draw: st.DrawFn) -> Any:
    """A sound event in which one thing, at any depth, is something else."""
    event: Any = draw(SOUND)
    place = event
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return event
        key = draw(st.sampled_from(keys))
        inner = place[key]
        if isinstance(inner, (dict, list)) and inner and draw(st.booleans()):
            place = inner
            continue
        place[key] = draw(ANYTHING)
        return event


_SESSIONS = st.sampled_from(("s1", "s1", "s1", "s2"))
SOUND: SearchStrategy[dict[str, Any]] = st.one_of(
    st.builds(lambda size, session: reply(size, session=session), st.integers(3, 260_000), _SESSIONS),
    st.builds(said, st.text(max_size=300)),
    st.builds(
        lambda path, name: reply(9, call(name, file_path=path, old_string="a", new_string="b")),
        st.text(max_size=20),
        st.sampled_from(("Write", "Edit", "MultiEdit", "Read")),
    ),
    st.builds(lambda text, bad: answer(text, error=bad), st.text(max_size=60), st.booleans()),
    st.builds(lambda usd: result(total_cost_usd=usd, usage={"input_tokens": 9}), st.floats(0, 50)),
    st.builds(boundary),
    st.builds(lambda session: {"type": "system", "subtype": "init", "model": MODEL, "session_id": session}, _SESSIONS),
)
EVENTS: SearchStrategy[Any] = st.one_of(SOUND, broken(), ANYTHING)
"""What a stream can hold: sound events, events with a fault in them, and anything."""
