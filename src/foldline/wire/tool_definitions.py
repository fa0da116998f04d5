"""Tool definitions in the request formats, and their conversion from one format to another.

A function has the same three values in every format: name, description, JSON Schema. Tools that a provider runs itself
(web search, code execution) exist in one format only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from foldline.errors import InputError
from foldline.wire.sdk_objects import is_sdk_object, sdk_json

_DECLARATIONS = ("functionDeclarations", "function_declarations")
_SCHEMAS = ("input_schema", "parameters", "parametersJsonSchema", "parameters_json_schema", "inputSchema")

_GEMINI_TYPES = ("OBJECT", "ARRAY", "STRING", "INTEGER", "NUMBER", "BOOLEAN", "NULL")


class _Function(NamedTuple):
    name: str
    description: str
    schema: Any


def json_tools(tools: Iterable[Any]) -> tuple[Any, ...]:
    """The definitions, with SDK objects converted to JSON. Raises `InputError` for a Python function and for a text."""
    found = []
    for tool in tools:
        if is_sdk_object(tool):
            found.append(sdk_json(tool))
        elif callable(tool) or isinstance(tool, str):
            shown = getattr(tool, "__name__", type(tool).__name__)
            hint = 'write {"name": …, "description": …, "input_schema": {…}}, or the definition that your SDK uses'
            raise InputError(f"a tool definition must be a dict, not {shown}", hint=hint)
        else:
            found.append(tool)
    return tuple(found)


def convert_tools(tools: Iterable[Mapping[str, Any]], format: str) -> list[Any]:
    """The definitions in a request format. A definition that is in this format already is used unchanged.

    >>> convert_tools([{"name": "ls", "input_schema": {"type": "object"}}], "openai")
    [{'type': 'function', 'function': {'name': 'ls', 'parameters': {'type': 'object'}}}]
    """
    converted: list[Any] = []
    declarations: list[Any] = []
    for tool in tools:
        if _format_of(tool) == format:
            converted.append(tool)
            continue
        for function in _functions(tool, format):
            if format == "gemini":
                declarations.append(_with_schema(function, "parametersJsonSchema"))
            else:
                converted.append(_definition(function, format))
    if declarations:
        converted.append({_DECLARATIONS[0]: declarations})
    return converted


def _format_of(tool: Mapping[str, Any]) -> str:
    """The request format of a definition; "" if the format is not clear, as for an MCP tool."""
    kind = tool.get("type")
    if any(key in tool for key in _DECLARATIONS) or ("name" not in tool and kind is None):
        return "gemini"
    if "input_schema" in tool:
        return "anthropic"
    if "function" in tool or "custom" in tool:
        return "openai"
    if kind is None:
        return ""
    dated = str(kind).rpartition("_")[2]
    return "anthropic" if "name" in tool and dated.isdecimal() and len(dated) == 8 else "openai-responses"


def _functions(tool: Mapping[str, Any], format: str) -> list[_Function]:
    """The functions that a definition declares."""
    listed = next((tool[key] for key in _DECLARATIONS if key in tool), None)
    inner = tool.get("function")
    held = listed if listed is not None else [inner if isinstance(inner, Mapping) else tool]
    functions = []
    for value in held:
        schema = next((value[key] for key in _SCHEMAS if value.get(key) is not None), None)
        known = value.get("type") in (None, "function", "custom")
        if not isinstance(value.get("name"), str) or not known or (schema is None and value.get("format") is not None):
            what = value.get("name") or value.get("type") or ", ".join(map(str, value))
            hint = f"define it for {format} with session.use(tools=…), or render the view in the session's format"
            raise InputError(f"the tool {what!r:.60} has no form in the format {format!r}", hint=hint)
        functions.append(_Function(value["name"], value.get("description") or "", _json_schema(schema or {})))
    return functions


def _json_schema(schema: Any) -> Any:
    """The schema of a function's arguments as JSON Schema of an object. Gemini's own schemas write types in capitals.

    >>> _json_schema({"type": "OBJECT", "properties": {"type": {"type": "STRING"}}})
    {'type': 'object', 'properties': {'type': {'type': 'string'}}}
    """
    if not isinstance(schema, Mapping):
        return schema
    return {"type": "object", **(_with_lower_types(schema) if schema.get("type") in _GEMINI_TYPES else schema)}


def _with_lower_types(schema: Any) -> Any:
    """A schema of Gemini with the types of JSON Schema. Nested schemas are also converted."""
    if isinstance(schema, list):
        return [_with_lower_types(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    kind, properties = schema.get("type"), schema.get("properties")
    changed = {key: _with_lower_types(value) for key, value in schema.items() if key in ("items", "anyOf")}
    if isinstance(properties, Mapping):
        changed["properties"] = {name: _with_lower_types(value) for name, value in properties.items()}
    if kind in _GEMINI_TYPES:
        changed["type"] = str(kind).lower()
    return {**schema, **changed}


def _definition(function: _Function, format: str) -> dict[str, Any]:
    if format == "anthropic":
        return _with_schema(function, "input_schema")
    described = _with_schema(function, "parameters")
    if format == "openai":
        return {"type": "function", "function": described}
    return {"type": "function", **described, "strict": False}  # Responses would otherwise change the schema


def _with_schema(function: _Function, key: str) -> dict[str, Any]:
    described = {"description": function.description} if function.description else {}
    return {"name": function.name, **described, key: function.schema}
