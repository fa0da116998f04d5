"""The rules of the Gemini API, and a function that reads its requests for the validator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from foldline.models.table import Model
from foldline.wire.field_access import key_in, snake
from foldline.wire.grammar import Grammar, RequestLimits
from foldline.wire.object_fields import object_fields, with_inner_list, with_known_fields
from foldline.wire.validate.plain_request import PlainBlock, PlainRequest, PlainTurn, string, text_of

_ROLES = {"user": "user", "model": "assistant", "function": "user"}

_DATA_FIELDS = (
    *("text", "functionCall", "functionResponse", "inlineData", "fileData", "executableCode", "codeExecutionResult"),
    *("toolCall", "toolResponse"),
)
"""The fields of a part that hold its data; a part has exactly one of them."""
_SIDE_FIELDS = (
    *("thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata", "audioTranscription"),
    *("mediaProcessing", "speechMetadata"),
)
_FIELDS = {name: camel for camel in (*_DATA_FIELDS, *_SIDE_FIELDS) for name in (camel, snake(camel))}
"""Maps each field name of a part, in camel or snake case, to the name in camel case (google-genai 3.1, read in November
2026).
"""


_CONTENT = object_fields(nullable="role parts")
_PART = object_fields(nullable=" ".join(_FIELDS))
_REQUEST_FIELDS = (
    *("contents", "systemInstruction", "tools", "toolConfig", "safetySettings", "generationConfig", "cachedContent"),
    *("serviceTier", "store"),
)
_REQUEST = object_fields(nullable=" ".join((*_REQUEST_FIELDS, *map(snake, _REQUEST_FIELDS))))
"""The fields of a request. The API reads null as "not set"."""


def _read_request(elements: list[Any], body: Mapping[str, Any]) -> PlainRequest:
    request = PlainRequest()
    system = _field(body, "systemInstruction", "system_instruction")
    parts = system.get("parts") if isinstance(system, dict) else None
    if isinstance(parts, list) and not (parts and all(isinstance(part, dict) and part.get("text") for part in parts)):
        request.refuse("system-form", -1, "a part of the system instruction has no text")
    for index, content in enumerate(elements):
        if not isinstance(content, dict):
            request.refuse("shape", index, "not an object")
            continue
        name = content.get("role")
        role = "user" if name is None else _ROLES.get(name) if isinstance(name, str) else None
        parts = content.get("parts")
        if role is None:
            request.refuse("role", index, f"the role {content.get('role')!r} is unknown")
        elif parts is not None and not isinstance(parts, list):
            request.refuse("shape", index, "parts is not a list")
        else:
            request.turns.append(PlainTurn(index, role, [_block(part, index, request) for part in parts or ()]))
    return request


def _block(part: Any, index: int, request: PlainRequest) -> PlainBlock:
    if not isinstance(part, dict) or not part:
        request.refuse("shape", index, "a part without data")
        return PlainBlock("other", index)
    _check_fields(part, index, request)
    call, result = _field(part, "functionCall", "function_call"), _field(part, "functionResponse", "function_response")
    if isinstance(call, dict):
        if not isinstance(call.get("args", {}), dict | None):
            request.refuse("input-form", index, "the args of a function call are not an object")
        return PlainBlock("call", index, string(call.get("id")), string(call.get("name")))
    if isinstance(result, dict):
        if not isinstance(result.get("response"), dict):
            request.refuse("input-form", index, "the response of a function is not an object")
        inner = result.get("parts")
        blocks = tuple(_block(each, index, request) for each in inner) if isinstance(inner, list) else ()
        return PlainBlock("result", index, string(result.get("id")), string(result.get("name")), inner=blocks)
    inline = _field(part, "inlineData", "inline_data")
    if isinstance(inline, dict):
        data, mime = string(inline.get("data")), string(_field(inline, "mimeType", "mime_type"))
        is_image = mime.lower().startswith("image/")
        return PlainBlock("media", index, size=len(data), data=data if is_image else "", mime=mime)
    if _field(part, "fileData", "file_data") is not None:
        return PlainBlock("media", index)
    if "text" not in part or _field(part, "thoughtSignature", "thought_signature"):
        return PlainBlock("other", index)
    text = text_of(part, index, request)
    return PlainBlock("thinking" if part.get("thought") is True else "text", index, text=text)


def _check_fields(part: Mapping[str, Any], index: int, request: PlainRequest) -> None:
    unknown = next((name for name in part if name not in _FIELDS), None)
    if unknown is not None:
        request.refuse("block-type", index, f"a part has the unknown field {str(unknown)[:80]!r}")
        return
    count = sum(_FIELDS[name] in _DATA_FIELDS for name, value in part.items() if value is not None)
    if count != 1:
        request.refuse("shape", index, f"a part has {count} data fields, not one")


def _field(part: Mapping[str, Any], camel: str, snake: str) -> Any:
    """The value of a field of Gemini's JSON; None if the field is missing.

    The field name may be in camel case or in snake case.
    """
    return part[camel] if camel in part else part.get(snake)


def _has_valid_input(part: Mapping[str, Any]) -> bool:
    call = part.get("functionCall") or part.get("function_call")
    return isinstance(call, Mapping) and isinstance(call.get("args", {}), Mapping | None)


def _sendable_content(content: dict[str, Any]) -> dict[str, Any]:
    return with_inner_list(with_known_fields(content, _CONTENT), "parts", _sendable_part)


def _sendable_part(part: Any) -> Any:
    """The part in a form that the API accepts; the same object if nothing changes.

    Unknown fields are removed. A response that is not an object is put into an object. A part with only a signature
    gets an empty text.
    """
    if not isinstance(part, dict):
        return part
    part = with_known_fields(part, _PART)
    key = key_in(part, "functionResponse")
    result = part.get(key)
    if isinstance(result, dict) and not isinstance(response := result.get("response"), dict):
        return {**part, key: {**result, "response": {"output": "" if response is None else response}}}
    fields = {name for name, value in part.items() if value is not None}
    is_bare = bool(fields) and fields <= {"thoughtSignature", "thought_signature", "thought"}
    return {**part, "text": ""} if is_bare else part


_CALL_ANSWER = (
    "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
)
GRAMMAR = Grammar(
    name="Gemini",
    read=_read_request,
    limits=RequestLimits(
        media=3000,
        total_bytes=104_857_600,
        source="2026-11: docs.cloud.google.com, page image understanding; blog.google, gemini-api-new-file-limits",
    ),
    request_fields=_REQUEST,
    roles=("user", "model", "function"),
    start=("user",),
    end=("user",),
    pairing="name",
    unique="reply",
    results_are_user=True,
    blank="empty",
    calls_after_user=True,
    inline_system="refused",
    media_roles=("user", "assistant"),
    id_form=r".*",
    name_form=r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}",
    image_types=frozenset(("image/jpeg", "image/png", "image/webp", "image/heic", "image/heif")),
    has_valid_input=_has_valid_input,
    sendable_element=_sendable_content,
    sendable_block=_sendable_part,
    says={
        "empty-request": "contents is not specified",
        "block-type": "Invalid JSON payload received. Unknown name: Cannot find field.",
        "request-field": "Invalid JSON payload received. Unknown name: Cannot find field.",
        "unicode": "Invalid JSON payload received.",
        "number": "Invalid JSON payload received.",
        "system-form": "system_instruction.parts: text must be specified for each part",
        "start": _CALL_ANSWER,
        "end": "Please ensure that multiturn requests end with a user turn or a function response.",
        "blank": "Unable to submit request because it has an empty text parameter.",
        "empty": "contents.parts must not be empty.",
        "call-place": _CALL_ANSWER,
        "call-unanswered": "Please ensure that the number of function response parts is equal to the number of "
        "function call parts of the function call turn.",
        "result-orphan": "Please ensure that function response turn comes immediately after a function call turn.",
    },
)
NO_SIGNATURE = "skip_thought_signature_validator"
"""The value that Gemini 3 accepts instead of a signature, for a call that another model made (see Gemini's page on
thought signatures).
"""


def _signed_call(part: dict[str, Any]) -> dict[str, Any]:
    return part if _field(part, "thoughtSignature", "thought_signature") else {**part, "thoughtSignature": NO_SIGNATURE}


_WITH_SIGNED_CALLS = replace(GRAMMAR, signed_call=_signed_call)
_WITHOUT_MEDIA_IN_RESULTS = replace(GRAMMAR, media_in_results=False)


def model_grammar(model: Model) -> Grammar:
    """The rules for a model.

    Since Gemini 3, the first call of a reply needs a signature, and a result may hold media.
    """
    if model.signed_calls:
        return _WITH_SIGNED_CALLS
    return _WITHOUT_MEDIA_IN_RESULTS if model.vendor == "google" else GRAMMAR
