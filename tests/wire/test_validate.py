"""The validator: it refuses what breaks a rule, accepts what keeps it, and never raises."""

from __future__ import annotations

import base64
import doctest
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foldline.errors import ConfigError
from foldline.message import Message, assistant, user
from foldline.testing import assert_sendable, violations
from foldline.wire.formats import REQUEST_FORMATS, grammar_of
from foldline.wire.grammar import RequestLimits
from foldline.wire.rendering import render
from foldline.wire.repair import RepairedHistory, repair
from foldline.wire.validate import check, validator
from strategies import sound

each_format = pytest.mark.parametrize("format", REQUEST_FORMATS)


def u(content: Any = "hi", **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": content, **more}


def a(content: Any = "ok", **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def text(said: str = "t", **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": said, **more}


def use(key: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": key, "name": "run", "input": {}, **more}


def res(name: str, content: Any = "r", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": name, "content": content, **more}


def thought(signature: str = "c2ln") -> dict[str, Any]:
    return {"type": "thinking", "thinking": "hm", "signature": signature}


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def image(data: str = PIXEL) -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


SEARCH = {"type": "server_tool_use", "id": "srv", "name": "web_search", "input": {}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srv", "content": []}
MARK = {"cache_control": {"type": "ephemeral"}}
HOUR = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
NATIVE = {"type": "compaction", "content": "so far", "signature": "c2ln"}
LOCAL = {"type": "url", "url": "file:///tmp/x.png"}
WHOLE = {"model": "claude-sonnet-5", "max_tokens": 100}


def png(width: int, height: int) -> str:
    """The header of a PNG of that size, in base64."""
    header = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + width.to_bytes(4) + height.to_bytes(4)
    return base64.b64encode(header + bytes(24)).decode()


ANTHROPIC: list[tuple[str, Any, set[str]]] = [
    ("nothing", [], {"empty-request"}),
    ("one question", [u()], set()),
    ("two users in a row are one turn", [u(), u(), a(), u()], set()),
    ("two assistants in a row are one turn", [u(), a(), a([use("1")]), u([res("1")])], set()),
    ("calls in two messages", [u(), a([use("1")]), a([use("2")]), u([res("2"), res("1")])], {"call-unanswered"}),
    ("results in two messages", [u(), a([use("1"), use("2")]), u([res("2")]), u([res("1")])], {"result-split"}),
    ("starts with the assistant", [a(), u()], {"start"}),
    ("ends with the assistant", [u(), a()], {"end"}),
    ("blank text", [u(" \n")], {"blank"}),
    ("blank block", [u([text(""), text()])], {"blank"}),
    ("empty content", [u(), a([]), u()], {"empty"}),
    (
        "empty string",
        [u("")],
        {
            "empty",
        },
    ),
    ("unanswered", [u(), a([use("1")]), u()], {"call-unanswered"}),
    ("unanswered at the end", [u(), a([use("1")])], {"call-unanswered", "end"}),
    ("one of two unanswered", [u(), a([use("1"), use("2")]), u([res("1")])], {"call-unanswered"}),
    ("orphan", [u([res("1")])], {"result-orphan"}),
    ("late", [u(), a([use("1")]), u([res("1")]), a(), u([res("1")])], {"result-late"}),
    ("one turn too late", [u(), a([use("1")]), u(), a(), u([res("1")])], {"result-late", "call-unanswered"}),
    ("text before the result", [u(), a([use("1")]), u([text(), res("1")])], {"result-order"}),
    ("text before the result, other message", [u(), a([use("1")]), u(), u([res("1")])], {"result-order"}),
    ("text after the result", [u(), a([use("1")]), u([res("1"), text()])], set()),
    ("two results", [u(), a([use("1")]), u([res("1"), res("1")])], {"result-duplicate"}),
    ("id twice in one reply", [u(), a([use("1"), use("1")]), u([res("1"), res("1")])], {"call-duplicate"}),
    ("id twice", [u(), a([use("1")]), u([res("1")]), a([use("1")]), u([res("1")])], {"call-duplicate"}),
    ("call of the user", [u([use("1")]), a(), u()], {"call-role", "call-unanswered"}),
    (
        "result of the assistant",
        [u(), a([use("1"), res("1")]), u()],
        {"result-role", "result-orphan", "call-unanswered"},
    ),
    ("odd id", [u(), a([use("t:0")]), u([res("t:0")])], {"id-form"}),
    ("no id", [u(), a([use("")]), u([res("")])], {"id-form", "call-unanswered", "result-orphan"}),
    ("odd name", [u(), a([use("1", name="a.b")]), u([res("1")])], {"name-form"}),
    ("input is text", [u(), a([use("1", input="{}")]), u([res("1")])], {"input-form"}),
    ("empty result", [u(), a([use("1")]), u([res("1", "")])], set()),
    ("result without content", [u(), a([use("1")]), u([{"type": "tool_result", "tool_use_id": "1"}])], set()),
    ("blank block in a result", [u(), a([use("1")]), u([res("1", [text("")])])], {"blank"}),
    ("empty error", [u(), a([use("1")]), u([res("1", "", is_error=True)])], {"error-result"}),
    ("image in an error", [u(), a([use("1")]), u([res("1", [text(), image()], is_error=True)])], {"error-result"}),
    ("image in a result", [u(), a([use("1")]), u([res("1", [image()])])], set()),
    ("image of the assistant", [u(), a([image(), text()]), u()], {"media-role"}),
    ("signed thinking", [u(), a([thought(), text()]), u()], set()),
    ("signed thinking without words", [u(), a([{**thought(), "thinking": ""}, text()]), u()], set()),
    ("unsigned thinking", [u(), a([thought(""), text()]), u()], {"thinking-unsigned"}),
    ("redacted thinking", [u(), a([{"type": "redacted_thinking", "data": "x"}, text()]), u()], set()),
    ("thinking of the user", [u([thought(), text()])], {"thinking-role"}),
    ("thinking last", [u(), a([text(), thought()]), u()], {"thinking-last"}),
    ("thinking last in one of two messages", [u(), a([thought()]), a(), u()], set()),
    ("server tool", [u(), a([SEARCH, FOUND, text()]), u()], set()),
    ("server tool without its result", [u(), a([SEARCH, text()]), u(), a(), u()], {"call-unanswered"}),
    ("server result without its call", [u(), a([FOUND, text()]), u()], {"result-orphan"}),
    ("paused inside a server tool", [u(), a([text(), SEARCH])], set()),
    ("server tool of the user", [u([SEARCH, FOUND])], {"call-role"}),
    ("unknown block type", [u([{"type": "banana", "x": 1}])], {"block-type"}),
    ("call block in a result", [u(), a([use("1")]), u([res("1", [use("2")])])], {"block-type"}),
    ("lone surrogate", [u("a \ud800")], {"unicode"}),
    ("lone surrogate in the system prompt", {"system": "\udc00", "messages": [u()]}, {"unicode"}),
    ("NaN in the input", [u(), a([use("1", input={"x": float("nan")})]), u([res("1")])], {"number"}),
    ("image without a source", [u([{"type": "image"}])], {"shape"}),
    ("image with an unknown source", [u([{"type": "image", "source": {"type": "disk"}}])], {"block-type"}),
    ("image of another type than stated", [u([image("/9j/4AAQ")])], {"media-form"}),
    ("image that is no base64", [u([image(f"{PIXEL}\n")])], {"media-form"}),
    ("image by a local address", [u([{"type": "image", "source": LOCAL}])], {"media-address"}),
    ("image of 9,000 pixels", [u([image(png(9_000, 10))])], {"media-pixels"}),
    ("twenty large images", [u([image(png(2_001, 10))] * 20)], set()),
    ("more than twenty images, one large", [u([*[image(png(10, 10))] * 20, image(png(10, 2_001))])], {"media-pixels"}),
    ("an hour after five minutes", [u([text("t", **MARK), text("t", **HOUR)])], {"breakpoint-order"}),
    ("five minutes after an hour", {"system": [text("s", **HOUR)], "messages": [u([text("t", **MARK)])]}, set()),
    ("mark on thinking", [u(), a([{**thought(), **MARK}, text()]), u()], {"field"}),
    ("unknown field of a message", [{**u(), "timestamp": 7}], {"field"}),
    ("unknown field of a block in a result", [u(), a([use("1")]), u([res("1", [text("t", name="x")])])], {"field"}),
    ("null where a field may only be missing", [u(), a([use("1")]), u([res("1", is_error=None)])], {"field"}),
    ("a whole request", {**WHOLE, "messages": [u()]}, set()),
    ("no max_tokens", {"model": "claude-sonnet-5", "messages": [u()]}, {"request-field"}),
    ("unknown field of the request", {**WHOLE, "messages": [u()], "foo": 1}, {"request-field"}),
    ("signed compaction first", [u([NATIVE, text()])], set()),
    ("signed compaction of the assistant first", [a([NATIVE]), u()], set()),
    ("signed compaction after another message", [u(), a([NATIVE, text()]), u()], {"compaction-place"}),
    *[
        (f"a {kind} and its call", [u(), a([SEARCH, {**FOUND, "type": kind}, text()]), u()], set[str]())
        for kind in ("code_execution_tool_result", "bash_code_execution_tool_result", "web_fetch_tool_result")
    ],
    ("system inside, after the user", [u(), {"role": "system", "content": "s"}, a(), u()], set()),
    ("system inside, at the end", [u(), a(), u(), {"role": "system", "content": "s"}], set()),
    ("system inside, first", [{"role": "system", "content": "s"}, u()], {"system-place"}),
    ("system inside, after the assistant", [u(), a(), {"role": "system", "content": "s"}, u()], {"system-place"}),
    ("system inside a turn", [u(), {"role": "system", "content": "s"}, u()], {"system-place"}),
    (
        "system between call and result",
        [u(), a([use("1")]), {"role": "system", "content": "s"}, u([res("1")])],
        {"system-place"},
    ),
    ("directive without content", [{"role": "system", "content": []}, u()], set()),
    ("only system", [{"role": "system", "content": "s"}], {"system-place"}),
    ("unknown role", [{"role": "tool", "content": "x"}, u()], {"role"}),
    ("not an object", ["hi"], {"shape"}),
    ("content is a number", [u(5)], {"shape"}),
    ("block without a type", [u([{"text": "x"}])], {"shape"}),
    ("four marks", {"system": [text("s", **MARK)], "messages": [u([text("t", **MARK)] * 3)]}, set()),
    (
        "five marks",
        {**WHOLE, "tools": [MARK], "system": [text("s", **MARK)], "messages": [u([text("t", **MARK)] * 3)]},
        {"breakpoints"},
    ),
    ("marks in results fan out", [u(), a([use("1")]), u([res("1", [text("t", **MARK)] * 4, **MARK)])], {"breakpoints"}),
    ("automatic caching uses a mark", {**WHOLE, **MARK, "messages": [u([text("t", **MARK)] * 4)]}, {"breakpoints"}),
    ("blank system block", {"system": [text("")], "messages": [u()]}, {"blank"}),
    ("no list", {"model": "m"}, {"shape"}),
]


def tool(name: str, content: Any = "r") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": name, "content": content}


def calls(*names: str, content: Any = None, arguments: str = "{}") -> dict[str, Any]:
    listed = [{"id": name, "type": "function", "function": {"name": "run", "arguments": arguments}} for name in names]
    return a(content, tool_calls=listed)


SYSTEM = {"role": "system", "content": "s"}
LEGACY = a(None, function_call={"name": "read", "arguments": "{}"})
LEGACY_RESULT = {"role": "function", "name": "read", "content": "r"}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + PIXEL}}
BITMAP = {"type": "image_url", "image_url": {"url": "data:image/bmp;base64,Qk0AAAAA"}}
UNTYPED = a(None, tool_calls=[{"id": "1", "function": {"name": "run", "arguments": "{}"}}])
INDEXED = a(None, tool_calls=[{**calls("1")["tool_calls"][0], "index": 0}])

OPENAI: list[tuple[str, Any, set[str]]] = [
    ("nothing", [], {"empty-request"}),
    ("only system", [SYSTEM], set()),
    ("anyone may start and end", [SYSTEM, a(), u(), a()], set()),
    ("nobody asked", [SYSTEM, a()], {"no-user"}),
    ("results are not the user's", [calls("1"), tool("1")], {"no-user"}),
    ("empty words are accepted", [u(""), a("")], set()),
    ("null of the user", [u(None)], {"empty"}),
    ("no parts", [u([])], {"empty"}),
    ("nothing from the assistant", [u(), a(None)], {"empty"}),
    ("refusal", [u(), a(None, refusal="no")], set()),
    ("unknown field of a message", {"model": "gpt-5", "messages": [{**u(), "timestamp": 7}]}, {"field"}),
    ("unknown field for another server", {"model": "deepseek-chat", "messages": [{**u(), "timestamp": 7}]}, set()),
    ("unknown field of a part", {"model": "gpt-5", "messages": [u([{**PICTURE, "alt": "x"}])]}, {"field"}),
    ("name with a space", {"model": "gpt-5", "messages": [{**u(), "name": "Bob Smith"}]}, {"name-form"}),
    ("image of an unknown type", {"model": "gpt-5", "messages": [u([BITMAP])]}, {"media-form"}),
    ("image of an unusual type for another server", [u([BITMAP])], set()),
    ("more than 2,048 messages", {"model": "gpt-5", "messages": [u()] * 2_049}, {"message-count"}),
    ("null calls", {"model": "gpt-5", "messages": [u(), a(tool_calls=None)]}, {"field"}),
    ("a call without a type", {"model": "gpt-5", "messages": [u(), UNTYPED, tool("1")]}, {"shape"}),
    ("unknown field of a call", {"model": "gpt-5", "messages": [u(), INDEXED, tool("1")]}, {"field"}),
    ("no model", {"messages": [u()], "temperature": 1}, {"request-field"}),
    ("unknown field of the request", {"model": "gpt-5", "messages": [u()], "system": "s"}, {"request-field"}),
    ("no calls in the list", [u(), a("x", tool_calls=[])], {"empty"}),
    ("answered", [u(), calls("1", "2"), tool("2"), tool("1"), u()], set()),
    ("unanswered", [u(), calls("1"), u()], {"call-unanswered"}),
    ("orphan", [u(), tool("1")], {"result-orphan"}),
    ("text between", [u(), calls("1"), u(), tool("1")], {"call-unanswered", "result-late"}),
    ("system between", [u(), calls("1"), SYSTEM, tool("1")], {"call-unanswered", "result-late"}),
    (
        "two replies before their results",
        [u(), calls("1"), calls("2"), tool("1"), tool("2")],
        {"call-unanswered", "result-late"},
    ),
    ("two results", [u(), calls("1"), tool("1"), tool("1")], {"result-duplicate"}),
    ("id twice in one reply", [u(), calls("1", "1"), tool("1"), tool("1")], {"call-duplicate"}),
    ("id again in another reply", [u(), calls("1"), tool("1"), calls("1"), tool("1")], set()),
    ("id too long", [u(), calls("i" * 65), tool("i" * 65)], {"id-form"}),
    ("no id", [u(), calls(""), tool("")], {"id-form", "call-unanswered", "result-orphan"}),
    (
        "arguments are an object",
        [u(), {**calls("1"), "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": {}}}]}, tool("1")],
        {"input-form"},
    ),
    (
        "custom tool",
        [u(), a(None, tool_calls=[{"id": "1", "type": "custom", "custom": {"name": "f", "input": "x"}}]), tool("1")],
        set(),
    ),
    ("calls of the user", [{**calls("1"), "role": "user"}], {"call-role"}),
    ("legacy", [u(), LEGACY, LEGACY_RESULT], set()),
    ("legacy unanswered", [u(), LEGACY, u()], {"call-unanswered"}),
    ("legacy orphan", [u(), LEGACY_RESULT], {"result-orphan"}),
    ("image of the user", [u([PICTURE])], set()),
    ("image of the assistant", [u(), a([PICTURE])], {"media-role"}),
    ("image in a result", [u(), calls("1"), tool("1", [PICTURE])], {"media-result"}),
    ("unknown part type", [u([{"type": "banana"}])], {"block-type"}),
    ("a call as a part", [u(), a([{"type": "function_call", "call_id": "1"}])], {"block-type"}),
    ("refusal of the user", [u([{"type": "refusal", "refusal": "no"}])], {"block-type"}),
    ("lone surrogate", [u("a \ud800")], {"unicode"}),
    ("NaN in a field", [u(weight=float("nan"))], {"number"}),
    ("arguments are no JSON", [u(), calls("1", arguments='{"cut'), tool("1")], {"input-form"}),
    ("NaN in the arguments", [u(), calls("1", arguments='{"x": NaN}'), tool("1")], {"input-form"}),
    ("unknown role", [{"role": "narrator", "content": "x"}, u()], {"role"}),
    ("no list", {"messages": "x"}, {"shape"}),
]


def fc(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": name, "name": "run", "arguments": "{}", **more}


def fo(name: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": name, "output": "r"}


WEB = {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"type": "search", "query": "q"}}
REASON = {"type": "reasoning", "id": "rs_1", "summary": []}
APPROVAL = {"type": "mcp_approval_request", "id": "ap", "name": "t", "arguments": "{}", "server_label": "s"}
APPROVED = {"type": "mcp_approval_response", "approval_request_id": "ap", "approve": True}

SHELL = {"type": "shell_call", "call_id": "1", "action": {"commands": ["ls"]}}
SHELL_OUTPUT = {"type": "shell_call_output", "call_id": "1"}
OUTPUT = {"stdout": "a.py", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
TIMEOUT = {"type": "timeout"}

RESPONSES: list[tuple[str, Any, set[str]]] = [
    ("nothing", [], {"empty-request"}),
    ("plain text", {"input": "hello"}, set()),
    ("anyone may start and end", [a(), u(), a()], set()),
    ("answered, with words between", [u(), fc("1"), u(), fo("1")], set()),
    ("answered in any order", [u(), fc("1"), fc("2"), fo("2"), fo("1")], set()),
    ("unanswered", [u(), fc("1"), u()], {"call-unanswered"}),
    ("orphan", [u(), fo("1")], {"result-orphan"}),
    ("result first", [u(), fo("1"), fc("1")], {"result-orphan"}),
    ("two results", [u(), fc("1"), fo("1"), fo("1")], {"result-duplicate"}),
    ("call id twice", [u(), fc("1"), fo("1"), fc("1")], {"call-duplicate"}),
    ("item id twice", [u(), a(id="msg_1"), a(id="msg_1")], {"item-duplicate"}),
    ("call id too long", [u(), fc("i" * 65), fo("i" * 65)], {"id-form"}),
    ("arguments are an object", [u(), fc("1", arguments={}), fo("1")], {"input-form"}),
    ("reasoning with its call", [u(), REASON, fc("1"), fo("1")], set()),
    ("reasoning with its message", [u(), REASON, a()], set()),
    ("reasoning with a built-in call", [u(), REASON, WEB, a()], set()),
    ("built-in call without its id", [u(), REASON, {**WEB, "id": None}, a()], {"shape"}),
    ("reasoning without its id", [u(), {"type": "reasoning", "summary": []}, a()], {"shape"}),
    ("unknown field of an item", {"model": "gpt-5", "input": [{**u(), "timestamp": 7}]}, {"field"}),
    ("unknown field for another server", {"model": "grok-4", "input": [{**u(), "timestamp": 7}]}, set()),
    ("unknown status", {"model": "gpt-5", "input": [u(), {**WEB, "status": "done"}, a()]}, {"field"}),
    (
        "unknown field of an action",
        {"model": "gpt-5", "input": [u(), {**WEB, "action": {"type": "open_page", "x": 1}}, a()]},
        {"field"},
    ),
    ("null status", {"model": "gpt-5", "input": [u(), {**fc("1"), "status": None}, fo("1")]}, {"field"}),
    ("no model", {"store": False, "input": [u()]}, {"request-field"}),
    ("unknown field of the request", {"model": "gpt-5", "input": [u()], "max_tokens": 9}, {"request-field"}),
    ("reasoning twice", [u(), REASON, {**REASON, "id": "rs_2"}, fc("1"), fo("1")], set()),
    ("reasoning at the end", [u(), REASON], {"reasoning-alone"}),
    ("reasoning before the user", [u(), REASON, u()], {"reasoning-alone"}),
    ("reasoning before a result", [u(), fc("1"), REASON, fo("1")], {"reasoning-alone"}),
    ("approval pending", [u(), APPROVAL], set()),
    ("approval given", [u(), APPROVAL, APPROVED], set()),
    ("approval of nothing", [u(), APPROVED], {"result-orphan"}),
    (
        "shell",
        [
            u(),
            {"type": "local_shell_call", "id": "l", "call_id": "1", "action": {}, "status": "completed"},
            {"type": "local_shell_call_output", "id": "1", "output": "x"},
        ],
        set(),
    ),
    ("trigger last", [u(), {"type": "compaction_trigger"}], set()),
    ("trigger not last", [{"type": "compaction_trigger"}, u()], {"order"}),
    ("unknown item type", [u(), {"type": "banana"}], {"block-type"}),
    ("a call as a part of a message", [u(), a([fc("1")])], {"block-type"}),
    ("input text of the assistant", [u(), a([{"type": "input_text", "text": "x"}])], {"block-type"}),
    ("output text of the user", [u([{"type": "output_text", "text": "x"}])], {"block-type"}),
    ("a type of Chat Completions", [u([text()])], {"block-type"}),
    ("reasoning without a summary", [u(), {"type": "reasoning"}, a()], {"shape"}),
    ("lone surrogate", {"input": "a \ud800"}, {"unicode"}),
    ("NaN in the arguments", [u(), fc("1", arguments="NaN"), fo("1")], {"input-form"}),
    ("Infinity in a field", [u(weight=float("inf"))], {"number"}),
    (
        "nothing new in a conversation of the server",
        {"model": "gpt-5", "input": [], "previous_response_id": "resp_1"},
        set(),
    ),
    ("a blank input", {"input": " "}, {"empty-request"}),
    ("shell call", [u(), SHELL, {**SHELL_OUTPUT, "output": [OUTPUT]}], set()),
    ("shell call that timed out", [u(), SHELL, {**SHELL_OUTPUT, "output": [{**OUTPUT, "outcome": TIMEOUT}]}], set()),
    ("shell call with a text as output", [u(), SHELL, {**SHELL_OUTPUT, "output": "x"}], {"shape"}),
    (
        "list of an MCP server's tools",
        [u(), {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": []}],
        set(),
    ),
    ("neither type nor role", [{"x": 1}], {"shape"}),
]


def g(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


def fcall(name: str = "f", **more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": {}, **more}}


def fresp(name: str = "f", **more: Any) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": {"output": "r"}, **more}}


GU, GM = g("user", {"text": "hi"}), g("model", {"text": "ok"})

GIF = {"inlineData": {"mimeType": "image/gif", "data": "R0lGODlhAQABAAAA"}}
GEMINI: list[tuple[str, Any, set[str]]] = [
    ("nothing", [], {"empty-request"}),
    ("a talk", [GU, GM, GU], set()),
    ("two users in a row", [GU, GU, GM, GM, GU], set()),
    ("no role is the user", [{"parts": [{"text": "hi"}]}], set()),
    ("starts with the model", [GM, GU], {"start"}),
    ("ends with the model", [GU, GM], {"end"}),
    ("answered", [GU, g("model", fcall()), g("user", fresp())], set()),
    ("answered by a function role", [GU, g("model", fcall()), g("function", fresp())], set()),
    (
        "snake case",
        [
            GU,
            g("model", {"function_call": {"name": "f"}}),
            g("user", {"function_response": {"name": "f", "response": {}}}),
        ],
        set(),
    ),
    ("two of one name", [GU, g("model", fcall(), fcall()), g("user", fresp(), fresp())], set()),
    ("fewer results than calls", [GU, g("model", fcall(), fcall()), g("user", fresp())], {"call-unanswered"}),
    (
        "results in two contents",
        [GU, g("model", fcall(), fcall()), g("user", fresp()), g("user", fresp())],
        {"call-unanswered", "result-orphan"},
    ),
    ("more results than calls", [GU, g("model", fcall()), g("user", fresp(), fresp())], {"result-duplicate"}),
    ("another name", [GU, g("model", fcall()), g("user", fresp("g"))], {"call-unanswered", "result-orphan"}),
    ("by id", [GU, g("model", fcall(id="1"), fcall(id="2")), g("user", fresp(id="2"), fresp(id="1"))], set()),
    ("right id, wrong name", [GU, g("model", fcall(id="1")), g("user", fresp("g", id="1"))], {"result-name"}),
    ("text between", [GU, g("model", fcall()), GU, g("user", fresp())], {"call-unanswered", "result-orphan"}),
    ("call after the model's own words", [GU, GM, g("model", fcall()), g("user", fresp())], {"call-place"}),
    ("words and call in one content", [GU, g("model", {"text": "so"}, fcall()), g("user", fresp())], set()),
    (
        "call after results",
        [GU, g("model", fcall()), g("user", fresp()), g("model", fcall()), g("user", fresp())],
        set(),
    ),
    ("call of the user", [g("user", fcall()), g("user", fresp())], {"call-role", "call-place"}),
    ("result of the model", [GU, g("model", fresp()), GU], {"result-role", "result-orphan"}),
    ("no parts", [GU, g("model"), GU], {"empty"}),
    ("empty text", [g("user", {"text": ""})], {"blank"}),
    ("blanks are accepted", [g("user", {"text": " "})], set()),
    ("empty text that carries a signature", [GU, g("model", {"text": "", "thoughtSignature": "x"}), GU], set()),
    ("part without data", [g("user", {})], {"shape"}),
    (
        "response is text",
        [GU, g("model", fcall()), g("user", {"functionResponse": {"name": "f", "response": "r"}})],
        {"input-form"},
    ),
    ("image of the model", [GU, g("model", {"inlineData": {"mimeType": "image/png", "data": PIXEL}}), GU], set()),
    ("system inside", [GU, g("system", {"text": "s"}), GU], {"role"}),
    ("unknown field", [g("user", {"banana": 1})], {"block-type"}),
    ("image of a type that Gemini does not read", [g("user", GIF)], {"media-form"}),
    ("unknown field of the request", {"contents": [GU], "messages": []}, {"request-field"}),
    ("request in snake case", {"contents": [GU], "generation_config": {"maxOutputTokens": 9}}, set()),
    ("empty system text", {"systemInstruction": {"parts": [{"text": ""}]}, "contents": [GU]}, {"system-form"}),
    ("unpaired call in snake case", [GU, g("model", {"function_call": {"name": "f"}}), GU], {"call-unanswered"}),
    ("two data fields", [g("user", {"text": "a", "inlineData": {"mimeType": "image/png", "data": PIXEL}})], {"shape"}),
    ("lone surrogate", [g("user", {"text": "a \ud800"})], {"unicode"}),
    ("NaN in the args", [GU, g("model", fcall(args={"x": float("inf")})), g("user", fresp())], {"number"}),
]

CASES = [
    pytest.param(format, request, expected, id=f"{format}: {name}")
    for format, table in zip(REQUEST_FORMATS, (ANTHROPIC, OPENAI, RESPONSES, GEMINI), strict=True)
    for name, request, expected in table
]


@pytest.mark.parametrize(("format", "request_", "expected"), CASES)
def test_a_request_breaks_exactly_the_rules_of_its_case(format: str, request_: Any, expected: set[str]) -> None:
    before = json.dumps(request_)
    assert {violation.code for violation in check(format, request_)} == expected
    assert json.dumps(request_) == before


def test_every_answer_of_a_provider_belongs_to_a_rule_that_is_checked() -> None:
    """No answer is stored for a code that no case reaches."""
    for format, table in zip(REQUEST_FORMATS, (ANTHROPIC, OPENAI, RESPONSES, GEMINI), strict=True):
        reached = {code for _, _, expected in table for code in expected} | {"total-bytes"}
        assert set(grammar_of(format).says) <= reached


def test_a_violation_names_the_message_and_the_providers_answer() -> None:
    (found,) = check("anthropic", [u(), a([use("toolu_1")]), u()])
    assert found.index == 1
    assert "toolu_1" in found.message
    assert "`tool_use` ids were found without `tool_result` blocks immediately after" in found.message
    assert str(found).startswith("[call-unanswered] message 1: ")


def test_a_violation_in_merged_turns_names_its_own_message() -> None:
    (found,) = check("anthropic", [u(), u(), u(" ")])
    assert found.index == 2


FIELDS = [
    "messages",
    "input",
    "contents",
    "role",
    "content",
    "parts",
    "type",
    "text",
    "id",
    "name",
    "system",
    "tool_calls",
    "tool_call_id",
    "tool_use_id",
    "call_id",
    "functionCall",
    "functionResponse",
    "source",
    "user",
    "assistant",
    "tool_use",
    "tool_result",
    "function_call",
    "function",
    "output",
    "cache_control",
]


@settings(max_examples=200, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(FIELDS),
                inner
                | st.sampled_from(["user", "assistant", "tool", "text", "tool_use", "tool_result", "message", "model"]),
                max_size=5,
            )
        ),
        max_leaves=25,
    )
)
def test_no_json_value_makes_the_validator_raise(value: Any) -> None:
    for request in (value, [value], {"messages": value, "input": value, "contents": value}):
        for format in REQUEST_FORMATS:
            assert all(isinstance(violation.message, str) for violation in check(format, request))


def test_deep_nesting_does_not_make_the_validator_raise() -> None:
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    for format in REQUEST_FORMATS:
        check(format, [u(deep), {"role": "user", "parts": [deep]}])


@settings(max_examples=50, deadline=None)
@given(messages=sound())
def test_sound_histories_are_sendable_in_every_format(messages: list[Message]) -> None:
    for format in REQUEST_FORMATS:
        assert_sendable(messages, format)


# Sizes --------------------------------------------------------------------------------------------------------------


@each_format
def test_pr17_too_many_media_are_refused(format: str) -> None:
    most = grammar_of(format).limits.media
    assert most is not None
    part = {
        "anthropic": image(),
        "openai": PICTURE,
        "gemini": {"inlineData": {"mimeType": "image/png", "data": PIXEL}},
    }.get(format, {"type": "input_image", "image_url": "https://example.org/a.png"})
    key = "parts" if format == "gemini" else "content"
    assert check(format, [{"role": "user", key: [part] * most}]) == ()
    (found,) = check(format, [{"role": "user", key: [part] * (most + 1)}])
    assert found.code == "media-count"
    assert f"{most + 1} media, {most} are allowed" in found.message


def test_too_large_media_and_too_large_requests_are_refused() -> None:
    most = grammar_of("anthropic").limits.media_bytes or 0
    assert [found.code for found in check("anthropic", [u([image("iVBORw0KGgo" + "i" * (most - 7))])])] == [
        "media-bytes"
    ]
    pictures = [image("iVBORw0KGgo" + "i" * (most - 11))] * 7
    assert [found.code for found in check("anthropic", [u(pictures)])] == ["total-bytes"]
    assert check("anthropic", [u(pictures[:6])]) == ()


def test_the_callers_own_limits_replace_the_defaults() -> None:
    few = RequestLimits(media=1)
    assert [found.code for found in check("openai", [u([PICTURE, PICTURE])], limits=few)] == ["media-count"]
    assert check("openai", [u([PICTURE])], limits=few) == ()


@each_format
def test_limits_name_their_source_and_its_date(format: str) -> None:
    assert grammar_of(format).limits.source.startswith("202")


def test_ca09_ca10_every_cache_breakpoint_of_the_request_counts() -> None:
    """A mark on three parallel results is three blocks, and the caller's own marks count."""
    marked = [res(str(n), **MARK) for n in range(3)]
    body: dict[str, Any] = {"system": [text("s", **MARK)]}
    body["messages"] = [u(), a([use(str(n)) for n in range(3)]), u(marked)]
    assert check("anthropic", body) == ()
    body |= {**WHOLE, "tools": [{"name": "run", "input_schema": {}, **MARK}]}
    assert [found.code for found in check("anthropic", body)] == ["breakpoints"]


# Rules of others ----------------------------------------------------------------------------------------------------


def test_a_stricter_server_is_described_by_a_changed_grammar() -> None:
    """A template that demands alternation, as several open models have it."""
    strict = replace(grammar_of("openai"), alternation="required", start=("user",), end=("user", "tool"))
    assert check("openai", [u(), a(), u()], grammar=strict) == ()
    assert [found.code for found in check("openai", [u(), u(), a()], grammar=strict)] == ["alternation", "end"]


def test_a_grammar_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        grammar_of("openai").blank = "empty"  # type: ignore[misc]  # the point of the test


@pytest.mark.parametrize("name", ["deepseek", "clippy"])
def test_an_unknown_format_is_an_error_that_lists_the_formats(name: str) -> None:
    for action in (lambda: check(name, []), lambda: repair([], name), lambda: RepairedHistory(name)):
        with pytest.raises(ConfigError, match="use one of anthropic, openai, openai-responses, gemini"):
            action()


@pytest.mark.parametrize(("log", "format"), [("claude-code", "anthropic"), ("codex", "openai-responses")])
def test_a_session_log_has_the_grammar_of_the_elements_it_holds(log: str, format: str) -> None:
    assert grammar_of(log) is grammar_of(format)
    with pytest.raises(ConfigError, match="'pi' is not a request format"):
        grammar_of("pi")


# foldline.testing ----------------------------------------------------------------------------------------------------


def test_assert_sendable_takes_bodies_lists_messages_and_rendered_requests() -> None:
    talk = [user("a"), assistant("b"), user("c")]
    assert_sendable(talk, "anthropic")
    assert_sendable(tuple(talk), "gemini")
    assert_sendable(render(talk, "openai"))
    assert_sendable(render(talk, "openai").body, "openai")
    assert_sendable(render(talk, "openai").body["messages"], "openai")
    assert_sendable({"input": "hello"}, "openai-responses")


def test_assert_sendable_lists_every_broken_rule() -> None:
    with pytest.raises(AssertionError) as error:
        assert_sendable([a(" "), u(), a([use("1")])], "anthropic")
    said = str(error.value)
    assert said.startswith("anthropic would refuse this request:\n")
    assert all(code in said for code in ("[start]", "[blank]", "[call-unanswered]", "[end]"))
    assert "does not support assistant message prefill" in said


RUN = {"name": "run", "input_schema": {"type": "object"}}
REFUSED_REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "a forced tool without tools": ("openai", {"model": "gpt-5", "messages": [u()], "tool_choice": "required"}),
    "a length for another model": ("openai", {"model": "gpt-5", "messages": [u()], "max_tokens": 5}),
    "two tools with one name": (
        "anthropic",
        {"model": "claude-opus-4-5", "max_tokens": 5, "messages": [u()], "tools": [RUN, RUN]},
    ),
    "an unknown time to live": (
        "anthropic",
        {
            "model": "claude-opus-4-5",
            "max_tokens": 5,
            "messages": [u([{"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "2h"}}])],
        },
    ),
    "an id of another kind": (
        "openai-responses",
        {
            "model": "gpt-5",
            "input": [u(), {"type": "reasoning", "id": "x_1", "summary": []}, {"role": "assistant", "content": "x"}],
        },
    ),
    "a function name of Gemini": (
        "gemini",
        {
            "contents": [{"role": "user", "parts": [{"text": "x"}]}],
            "tools": [{"functionDeclarations": [{"name": "1 f"}]}],
        },
    ),
}


@pytest.mark.parametrize("name", REFUSED_REQUESTS)
def test_a_whole_request_is_judged_by_its_parameters_too(name: str) -> None:
    format, body = REFUSED_REQUESTS[name]
    with pytest.raises(AssertionError, match=f"{format} would refuse this request"):
        assert_sendable(body, format)
    if format.startswith("openai"):
        assert_sendable({**body, "model": "a-model-of-another-server"}, format)


def test_a_reply_at_the_end_is_accepted_if_the_model_accepts_it() -> None:
    body = {"model": "claude-opus-4-5", "max_tokens": 5, "messages": [u(), {"role": "assistant", "content": "Sure:"}]}
    assert_sendable(body, "anthropic")
    assert [found.code for found in violations({**body, "model": "claude-opus-4-6"}, "anthropic")] == ["end"]


def test_a_request_that_continues_a_stored_response_is_accepted() -> None:
    output = {"type": "function_call_output", "call_id": "call_1", "output": "done"}
    assert_sendable({"model": "gpt-5", "input": [output], "previous_response_id": "resp_1"}, "openai-responses")
    assert_sendable({"model": "gpt-5", "prompt": {"id": "pmpt_1"}}, "openai-responses")
    assert_sendable({"model": "gpt-5", "input": [{"id": "msg_1"}, u()]}, "openai-responses")
    assert violations({"model": "gpt-5", "input": [output]}, "openai-responses") != ()


def test_violations_renders_messages_before_it_checks_them() -> None:
    assert [found.code for found in violations([user("a"), assistant("b")], "gemini")] == ["end"]
    assert violations([user("a"), assistant("b")], "openai") == ()


def test_a_request_needs_a_format_unless_it_was_rendered_in_one() -> None:
    with pytest.raises(ConfigError, match="no wire format was given"):
        violations([u()])
    with pytest.raises(ConfigError, match="rendered in format 'openai'"):
        violations(render([user("a")], "openai"), "anthropic")


def test_examples_in_the_docstrings() -> None:
    assert doctest.testmod(validator).attempted > 0
    assert doctest.testmod(validator).failed == 0
