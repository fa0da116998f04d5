"""Judges a request to Gemini's generateContent: turns, function calls and responses, thought signatures, parts."""

from __future__ import annotations

import base64
import re
from functools import cache
from typing import Any, NoReturn

from foldline.testing.provider.error_reply import ErrorReply, RequestRefused
from foldline.testing.provider.json_rules import check_json
from foldline.testing.provider.model_features import features_of
from foldline.testing.provider.request_schema import Check, SchemaMismatch, compile_schema, read_schema, snake_case

FORMAT = "gemini"
NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}\Z")
DATA = (
    *("text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult"),
    *("toolCall", "toolResponse"),
)
"""The fields that hold the data of a part. Every part has exactly one of these fields."""
MEDIA_TYPES = frozenset(
    {
        *("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"),
        *("application/pdf", "application/json", "application/rtf", "application/x-javascript"),
        *("application/x-typescript", "application/x-python-code", "application/x-ipynb+json"),
    }
)
"""Media types of the guides on images and documents. Audio, video and text of any type are also accepted."""
_KEYS = tuple((name, snake_case(name)) for name in DATA)
_NOT_IN_GEMINI_API = {
    "Blob": {"displayName"},
    "FileData": {"displayName"},
    "Tool": {"retrieval", "enterpriseWebSearch", "parallelAiSearch", "exaAiSearch"},
    "FunctionCall": {"partialArgs", "willContinue"},
    "GenerationConfig": {"modelSelectionConfig", "routingConfig", "audioTimestamp"},
}
"""Fields that only Vertex AI has."""
_SIGNATURES = "https://ai.google.dev/gemini-api/docs/thought-signatures"
Part = dict[str, Any]


def _refuse(rule: str, message: str, status: int = 400) -> NoReturn:
    raise RequestRefused(ErrorReply(format=FORMAT, rule=rule, message=message, status=status, type="INVALID_ARGUMENT"))


def field_of(value: dict[str, Any], name: str) -> Any:
    """A field by its JSON name or its protocol-buffer name.

    >>> field_of({"function_call": {"name": "f"}}, "functionCall")
    {'name': 'f'}
    """
    found = value.get(name)
    return value.get(snake_case(name)) if found is None else found


@cache
def _check() -> Check:
    schema = read_schema(FORMAT)
    types = {
        name: {
            "fields": {
                key: field for key, field in entry["fields"].items() if key not in _NOT_IN_GEMINI_API.get(name, ())
            },
            "required": entry["required"],
        }
        for name, entry in schema["types"].items()
    }
    return compile_schema(types, schema["request"], aliases=True)


def check_gemini(body: Any, *, model: str = "") -> None:
    """Raise the API's error if the API refuses the request.

    `model` is an argument, because the body does not name the model.
    """
    check_json(FORMAT, body)
    body = _without_nulls(body)
    try:
        _check()(body)
    except SchemaMismatch as mismatch:
        _refuse_field(mismatch)
    contents = body.get("contents") or []
    if not contents:
        _refuse("no_contents", "* GenerateContentRequest.contents: contents is not specified\n")
    turns = [_turn(content, f"contents[{number}]") for number, content in enumerate(contents)]
    _check_system(body)
    _check_order(turns)
    if features_of(model or "gemini-3").thought_signatures:
        _check_signatures(turns)
    elif any((response or {}).get("parts") for turn in turns for response in turn.responses):
        text = "Unable to submit request because `function_response.parts` is not supported for this model."
        _refuse("response_parts", text)
    _check_tools(body)
    _check_parameters(body)


def _without_nulls(value: Any) -> Any:
    """The value without fields that are null: the API reads JSON as protocol buffers, where null means "not set"."""
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [_without_nulls(inner) for inner in value] if isinstance(value, list) else value


def _refuse_field(mismatch: SchemaMismatch) -> NoReturn:
    *parents, last = mismatch.path or [""]
    where, rule = _path(parents), f"field_{mismatch.kind}"
    if mismatch.kind == "unknown":
        place = f" at '{where}'" if where else ""
        _refuse(rule, f'Invalid JSON payload received. Unknown name "{last}"{place}: Cannot find field.')
    place, value = _path([*parents, last]), str(mismatch.value)[:80]
    if mismatch.kind == "base64":
        _refuse(rule, f"Invalid value at '{place}' (TYPE_BYTES), Base64 decoding failed for \"{value}\"")
    if mismatch.kind == "enum":
        _refuse(rule, f"Invalid value at '{place}' (TYPE_ENUM), \"{value}\"")
    kind = {"object": "MESSAGE", "array": "LIST"}.get(mismatch.expected[0], mismatch.expected[0].upper())
    _refuse(rule, f"Invalid value at '{place}' (TYPE_{kind}), \"{value}\"")


def _path(keys: list[str | int]) -> str:
    text = ""
    for key in keys:
        text += f"[{key}]" if isinstance(key, int) else f".{snake_case(key)}" if text else snake_case(key)
    return text


class _GeminiTurn:
    """An element of `contents`: its role, its parts, and the function calls and function responses among the parts."""

    __slots__ = ("calls", "parts", "responses", "role")

    def __init__(self, role: str, parts: list[Part]) -> None:
        self.role = role
        self.parts = parts
        self.calls = [part for part in parts if field_of(part, "functionCall") is not None]
        self.responses = [field_of(part, "functionResponse") for part in parts]
        self.responses = [response for response in self.responses if response is not None]


def _turn(content: dict[str, Any], where: str) -> _GeminiTurn:
    role, parts = content.get("role", "user"), content.get("parts") or []
    if role not in {"user", "model", "function"}:
        _refuse("role", "Please use a valid role: user, model.")
    if not parts:
        _refuse("empty_parts", f"* GenerateContentRequest.{where}.parts: contents.parts must not be empty.\n")
    for index, part in enumerate(parts):
        _check_part(part, f"{where}.parts[{index}]", role)
    return _GeminiTurn(role, parts)


def _check_part(part: Part, where: str, role: str) -> None:
    present = [name for name, alias in _KEYS if name in part or alias in part]
    if len(present) > 1:
        text = f"Invalid value at '{where}' (oneof), oneof field 'data' is already set. Cannot set '{present[1]}'"
        _refuse("part_oneof", text)
    if not present:
        text = f"* GenerateContentRequest.{where}.data: required oneof field 'data' must have one initialized field\n"
        _refuse("empty_part", text)
    kind = present[0]
    if kind in {"inlineData", "fileData"}:
        _check_media_type(field_of(part, kind))
    if kind == "text" and not part["text"] and not field_of(part, "thoughtSignature"):
        text = f"* GenerateContentRequest.{where}.data: required oneof field 'data' must have one initialized field\n"
        _refuse("empty_part", text)
    if kind in {"functionCall", "functionResponse"}:
        value = field_of(part, kind)
        if not value.get("name"):
            _refuse("name", f"* GenerateContentRequest.{where}.{snake_case(kind)}.name: Name cannot be empty.\n")
        if not NAME.match(value["name"]):
            _refuse("name", f"* GenerateContentRequest.{where}.{snake_case(kind)}.name: {_NAME_RULE}\n")
        for inner in value.get("parts") or () if kind == "functionResponse" else ():
            if not (inline := field_of(inner, "inlineData")):
                _refuse(
                    "response_parts", f"* GenerateContentRequest.{where}.function_response.parts: only inline_data.\n"
                )
            _check_media_type(inline)
        if kind == "functionResponse" and "response" not in value:
            text = f"* GenerateContentRequest.{where}.function_response.response: response must be set.\n"
            _refuse("response_missing", text)
        if (kind == "functionCall") != (role == "model"):
            text = f"Please ensure that {'function call' if kind == 'functionCall' else 'function response'} turn has "
            _refuse("part_role", text + ("the role model." if kind == "functionCall" else "the role user or function."))


def _check_media_type(media: dict[str, Any]) -> None:
    """Raise for a media type that Gemini's guides do not list; a file may have no media type."""
    name = field_of(media, "mimeType")
    if not name and "data" in media:
        _refuse("media_type", "Unable to submit request because it must have a mimeType parameter.")
    plain = str(name).partition(";")[0].strip()
    if name and plain not in MEDIA_TYPES and not plain.startswith(("audio/", "video/", "text/")):
        _refuse("media_type", f"Unsupported MIME type: {name}")


_NAME_RULE = (
    "Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores "
    "(_), dots (.), colons (:), or dashes (-), with a maximum length of 64."
)


def _check_system(body: dict[str, Any]) -> None:
    system = field_of(body, "systemInstruction")
    if system is None:
        return
    parts = system.get("parts") or []
    if not parts or any(not part.get("text") for part in parts):
        _refuse("system", "* GenerateContentRequest.system_instruction.parts: text must be specified for each part\n")


def _check_order(turns: list[_GeminiTurn]) -> None:
    """Raise if the turns are in a wrong order.

    Calls must follow a user's turn or a response, responses must directly follow calls, and the last turn must be a
    user's turn.
    """
    if turns[0].role == "model" and not turns[0].calls:
        _refuse("first_role", "Please ensure that multiturn requests alternate between user and model.")
    before: _GeminiTurn | None = None
    for turn in turns:
        if turn.calls and (before is None or before.role == "model"):
            _refuse(
                "call_place",
                "Please ensure that function call turn comes immediately after a user turn or after a function "
                "response turn.",
            )
        if turn.responses and (before is None or not before.calls):
            _refuse(
                "response_place",
                "Please ensure that function response turn comes immediately after a function call turn.",
            )
        if before is not None and before.calls:
            _check_responses(before, turn)
        if before is not None and (before.role == "model") == (turn.role == "model"):
            _refuse("alternation", "Please ensure that multiturn requests alternate between user and model.")
        before = turn
    if turns[-1].role == "model":
        _refuse("last_role", "Please ensure that multiturn requests end with a user role or a function response.")


def _check_responses(before: _GeminiTurn, turn: _GeminiTurn) -> None:
    calls = [field_of(part, "functionCall") for part in before.calls]
    if len(turn.responses) != len(calls):
        _refuse(
            "response_count",
            "Please ensure that the number of function response parts is equal to the number of function call parts "
            "of the function call turn.",
        )
    names = sorted(call["name"] for call in calls)
    if names != sorted(response["name"] for response in turn.responses):
        _refuse(
            "response_name",
            "Please ensure that the function response parts have the names of the function call parts of the function "
            "call turn.",
        )
    ids = sorted(call["id"] for call in calls if call.get("id"))
    answers = sorted(response["id"] for response in turn.responses if response.get("id"))
    if len(set(ids)) != len(ids):
        _refuse("duplicate_id", "Please ensure that the ids of the function call parts are unique.")
    if answers and ids and answers != ids:
        text = "Please ensure that the function response parts have the ids of the function call parts."
        _refuse("response_id", text)


DUMMY_SIGNATURES = frozenset(
    form
    for text in ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
    for form in (text, base64.urlsafe_b64encode(text.encode()).decode())
)
"""Documented values that may be sent instead of a signature, in a history that another model wrote."""


def signatures_of(body: dict[str, Any]) -> list[str]:
    """The thought signatures of a request, without the dummy signatures that Gemini documents."""
    parts = [part for content in body.get("contents") or () for part in content.get("parts") or ()]
    found = [field_of(part, "thoughtSignature") for part in parts]
    return [text for text in found if text and text not in DUMMY_SIGNATURES]


def _check_signatures(turns: list[_GeminiTurn]) -> None:
    """Raise if the first function call of a step in the current turn has no thought signature."""
    start = max((number for number, turn in enumerate(turns) if turn.role != "model" and not turn.responses), default=0)
    for number in range(start, len(turns)):
        turn = turns[number]
        if turn.calls and not field_of(turn.calls[0], "thoughtSignature"):
            name = field_of(turn.calls[0], "functionCall")["name"]
            _refuse(
                "signature_missing",
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to "
                "work correctly, and missing thought_signature may lead to degraded model performance. Additional "
                f"data, function call `default_api:{name}` , position {number + 1}. Please refer to {_SIGNATURES} for "
                "more details.",
            )


def _check_tools(body: dict[str, Any]) -> None:
    seen = set[str]()
    for number, tool in enumerate(body.get("tools") or ()):
        for index, declaration in enumerate(field_of(tool, "functionDeclarations") or ()):
            where = f"GenerateContentRequest.tools[{number}].function_declarations[{index}]"
            name = declaration.get("name", "")
            if not NAME.match(name):
                _refuse("tool_definition", f"* {where}.name: {_NAME_RULE}\n")
            if name in seen:
                _refuse("tool_definition", f"Duplicate function declaration found: {name}")
            seen.add(name)
            _check_schema(declaration.get("parameters"), f"{where}.parameters")


def _check_schema(schema: Any, where: str) -> None:
    """Raise for a list without the type of its elements, and for a required property that is not defined."""
    if not isinstance(schema, dict):
        return
    if str(schema.get("type", "")).upper() == "ARRAY" and not schema.get("items"):
        _refuse("schema", f"* {where}.items: missing field.\n")
    properties = schema.get("properties") or {}
    for number, name in enumerate(schema.get("required") or ()):
        if name not in properties:
            _refuse("schema", f"* {where}.required[{number}]: property is not defined\n")
    for name, inner in properties.items():
        _check_schema(inner, f"{where}.properties[{name}]")
    _check_schema(schema.get("items"), f"{where}.items")


def _check_parameters(body: dict[str, Any]) -> None:
    """Raise for parameters that exclude each other."""
    fixed = ("systemInstruction", "tools", "toolConfig")
    if field_of(body, "cachedContent") and any(field_of(body, name) for name in fixed):
        text = "CachedContent can not be used with GenerateContent request setting system_instruction, tools or "
        _refuse("cached_content", f"{text}tool_config.\n\nProposed fix: move those values to CachedContent.")
    calling = field_of(field_of(body, "toolConfig") or {}, "functionCallingConfig") or {}
    mode = str(calling.get("mode", "AUTO")).upper()
    if field_of(calling, "allowedFunctionNames") and mode not in {"ANY", "VALIDATED"}:
        _refuse("tool_config", "Function calling config: allowed_function_names is only allowed with the mode ANY.")
    thinking = field_of(field_of(body, "generationConfig") or {}, "thinkingConfig") or {}
    if None not in (field_of(thinking, "thinkingBudget"), field_of(thinking, "thinkingLevel")):
        _refuse("thinking", "You can only set only one of thinking budget and thinking level.")
