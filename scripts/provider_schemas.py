"""Regenerate the request schemas of the simulated provider from the types of the installed vendor SDKs.

    python scripts/provider_schemas.py        # writes src/foldline/testing/provider/schemas/*.json

A schema has one entry per object type: its fields and which of them are required. A field is a scalar name, or one of
{"enum": [...]}, {"list": field}, {"map": field}, {"object": type name}, {"union": [field, ...]}.
"""

from __future__ import annotations

import enum
import json
import sys
import types
import typing
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import typing_extensions

TARGET = Path(__file__).resolve().parent.parent / "src" / "foldline" / "testing" / "provider" / "schemas"
SCALARS = {str: "string", bool: "boolean", int: "integer", float: "number", bytes: "bytes", type(None): "null"}
WRAPPERS = (typing.Required, typing.NotRequired, typing_extensions.Required, typing_extensions.NotRequired)
NOT_IN_BODY = {"betas"}
"""Parameters of SDK methods that are sent as headers."""


class Schema:
    """Collects the object types that a type refers to."""

    def __init__(self) -> None:
        self.types: dict[str, Any] = {}
        self._names: dict[type, str] = {}

    def field(self, kind: Any) -> Any:
        """The schema of a field's type; None for types that cannot be sent as JSON (files, response objects)."""
        origin, arguments = get_origin(kind), get_args(kind)
        if origin in WRAPPERS or origin is typing.Annotated:
            return self.field(arguments[0])
        if kind is Any or kind is object:
            return "any"
        if kind in SCALARS:
            return SCALARS[kind]
        if origin is typing.Literal:
            return {"enum": list(arguments)}
        if origin in (typing.Union, types.UnionType):
            return self._union(arguments)
        if typing_extensions.is_typeddict(kind):
            return {"object": self.typed_dict(kind)}
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            return {"enum": [member.value for member in kind if not member.value.endswith("_UNSPECIFIED")]}
        if isinstance(kind, type) and kind.__module__ == "google.genai.types":
            return {"object": self.model(kind)}
        if kind is dict or origin in (dict, typing.Mapping) or getattr(origin, "__name__", "") == "Mapping":
            return {"map": self.field(arguments[1]) if arguments else "any"}
        if getattr(origin, "__name__", "") in {"list", "Iterable", "Sequence", "SequenceNotStr"}:
            return {"list": self.field(arguments[0])}
        return None

    def _union(self, arguments: tuple[Any, ...]) -> Any:
        members: list[Any] = []
        for argument in arguments:
            member = self.field(argument)
            parts = member["union"] if isinstance(member, dict) and "union" in member else [member]
            members += [part for part in parts if part is not None and part not in members]
        if "string" in members:
            members = [part for part in members if not (isinstance(part, dict) and "enum" in part)]
        return {"union": members} if len(members) > 1 else (members or [None])[0]

    def _name(self, kind: type) -> str:
        name = kind.__name__.removeprefix("Beta").removesuffix("Param").removesuffix("Param")
        if name in self.types:
            name = f"{name}In{kind.__module__.rsplit('.', 1)[-1].title().replace('_', '')}"
        assert name not in self.types, name
        self._names[kind] = name
        self.types[name] = None
        return name

    def typed_dict(self, kind: type) -> str:
        """The name of a TypedDict's schema. The schema is created when it is first needed."""
        if kind in self._names:
            return self._names[kind]
        name = self._name(kind)
        hints = get_type_hints(kind, include_extras=True)
        required = [key for key, hint in hints.items() if get_origin(hint) in WRAPPERS[::2]]
        fields = {key: self.field(hint) for key, hint in hints.items() if key not in NOT_IN_BODY}
        self.types[name] = {"fields": fields, "required": sorted(required)}
        return name

    def model(self, kind: Any) -> str:
        """The name of a google-genai model's schema, with the names that its fields have on the wire."""
        if kind in self._names:
            return self._names[kind]
        name = self._name(kind)
        hints = get_type_hints(kind)
        fields = {}
        for key, info in kind.model_fields.items():
            field = self.field(hints[key])
            if isinstance(field, dict) and "union" in field:
                rest = [part for part in field["union"] if part != "null"]
                field = {"union": rest} if len(rest) > 1 else (rest or [None])[0]
            if field is not None:
                fields[info.alias or key] = field
        self.types[name] = {"fields": fields, "required": []}
        return name


def anthropic_schema() -> dict[str, Any]:
    """Requests to /v1/messages, including the fields that need a beta header."""
    from anthropic.types.beta import message_count_tokens_params, message_create_params

    schema = Schema()
    root = schema.typed_dict(message_create_params.MessageCreateParamsNonStreaming)
    schema.types[root]["fields"]["stream"] = "boolean"
    count = schema.typed_dict(message_count_tokens_params.MessageCountTokensParams)
    return {"read_from": f"anthropic {version('anthropic')}", "request": root, "count": count, "types": schema.types}


def openai_schema(module: Any, name: str) -> dict[str, Any]:
    """Requests to one of OpenAI's endpoints."""
    schema = Schema()
    root = schema.typed_dict(getattr(module, name))
    schema.types[root]["fields"]["stream"] = {"union": ["boolean", "null"]}
    return {"read_from": f"openai {version('openai')}", "request": root, "types": schema.types}


def gemini_schema() -> dict[str, Any]:
    """Requests to models/…:generateContent."""
    from google.genai import types as genai

    schema = Schema()
    content = {"object": schema.model(genai.Content)}
    fields = {
        "contents": {"list": content},
        "systemInstruction": content,
        "tools": {"list": {"object": schema.model(genai.Tool)}},
        "toolConfig": {"object": schema.model(genai.ToolConfig)},
        "safetySettings": {"list": {"object": schema.model(genai.SafetySetting)}},
        "generationConfig": {"object": schema.model(genai.GenerationConfig)},
        "cachedContent": "string",
        "serviceTier": "string",
        "store": "boolean",
    }
    schema.types["GenerateContentRequest"] = {"fields": fields, "required": []}
    read_from = f"google-genai {version('google-genai')}"
    return {"read_from": read_from, "request": "GenerateContentRequest", "types": schema.types}


def schemas() -> dict[str, dict[str, Any]]:
    """Every schema by the name of its file."""
    from openai.types.chat import completion_create_params
    from openai.types.responses import response_create_params

    return {
        "anthropic": anthropic_schema(),
        "openai_chat": openai_schema(completion_create_params, "CompletionCreateParamsNonStreaming"),
        "openai_responses": openai_schema(response_create_params, "ResponseCreateParamsNonStreaming"),
        "gemini": gemini_schema(),
    }


def text_of(schema: dict[str, Any]) -> str:
    """A schema's file: one line per object type."""
    head = {key: value for key, value in schema.items() if key != "types"}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(schema['types'][name])}" for name in sorted(schema["types"]))
    return json.dumps(head)[:-1] + ', "types": {\n' + lines + "\n}}\n"


if __name__ == "__main__":
    for name, schema in schemas().items():
        (TARGET / f"{name}.json").write_text(text_of(schema))
        sys.stdout.write(f"{name}: {len(schema['types'])} types\n")
