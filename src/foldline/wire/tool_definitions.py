"""Tool definitions in the request formats, and their conversion from one format to another.

A function has the same three values in every format: name, description, JSON Schema. Tools that a provider runs itself
(web search, code execution) exist in one format only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from foldline.errors import InputError, check_type
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
    hint = 'write {"name": …, "description": …, "input_schema": {…}}, or the definition that your SDK uses'
    check_type(tools, Iterable, "tools", hint="pass a list of tool definitions")
    for tool in tools:
        if is_sdk_object(tool):
            found.append(sdk_json(tool))
        elif not isinstance(tool, Mapping):
            shown = getattr(tool, "__name__", type(tool).__name__)
            raise InputError(f"a tool definition must be a dict, not {shown}", hint=hint)
        else:
            found.append(tool)
    return tuple(found)


def tools_hash(tools: Iterable[Any]) -> str:
    """A hash of the definitions; "" if there are none.

    Some providers accept a thinking block only if the tools have not changed since the block was written. These
    providers ignore cache marks and deferred tools, so the hash ignores them, too.

    >>> tools_hash([{"name": "ls", "defer_loading": True}])
    ''
    """
    shown = [
        {key: value for key, value in tool.items() if key != "cache_control"} if isinstance(tool, Mapping) else tool
        for tool in tools
        if not (isinstance(tool, Mapping) and tool.get("defer_loading"))
    ]
    try:
        text = repr(shown)
    except RecursionError:  # a request with such deep nesting cannot be sent either
        text = repr([len(shown), *(name for tool in shown if isinstance(tool, Mapping) for name in tool_names(tool))])
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12] if shown else ""


def convert_tools(tools: Iterable[Mapping[str, Any]], format: str) -> list[Any]:
    """The definitions in a request format.

    A definition that is in this format already is used unchanged, unless its schema is incomplete.

    >>> convert_tools([{"name": "ls", "input_schema": {"type": "object"}}], "openai")
    [{'type': 'function', 'function': {'name': 'ls', 'parameters': {'type': 'object'}}}]
    """
    converted: list[Any] = []
    declarations: list[Any] = []
    for tool in tools:
        if _format_of(tool) == format:
            converted.append(_with_complete_schema(tool))
            continue
        if (custom := _custom_tool(tool, format)) is not None:
            converted.append(custom)
            continue
        for function in _functions(tool, format):
            if format == "gemini":
                declarations.append(_with_schema(function, "parametersJsonSchema"))
            else:
                converted.append(_definition(function, format))
    if declarations:
        converted.append({_DECLARATIONS[0]: declarations})
    return converted


def _with_complete_schema(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """The definition with a valid schema.

    If an Anthropic schema has no `type`, the type "object" is added. If the `parameters` of an OpenAI function are
    null, the field is removed.

    >>> _with_complete_schema({"name": "ls", "input_schema": {}})
    {'name': 'ls', 'input_schema': {'type': 'object'}}
    """
    schema, inner = tool.get("input_schema"), tool.get("function")
    if isinstance(schema, Mapping) and "type" not in schema:
        return {**tool, "input_schema": {"type": "object", **schema}}
    if isinstance(inner, Mapping) and inner.get("parameters", "") is None:
        return {**tool, "function": {key: value for key, value in inner.items() if key != "parameters"}}
    return tool


def single_tools(tools: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The definitions, each with one tool. A definition of Gemini may have several tools.

    >>> list(single_tools([{"functionDeclarations": [{"name": "ls"}, {"name": "cat"}], "googleSearch": {}}]))
    [{'functionDeclarations': [{'name': 'ls'}]}, {'functionDeclarations': [{'name': 'cat'}]}, {'googleSearch': {}}]
    """
    for tool in tools:
        if _format_of(tool) != "gemini":
            yield tool
            continue
        for key, value in tool.items():
            if key in _DECLARATIONS and isinstance(value, list):
                yield from ({key: [one]} for one in value if isinstance(one, Mapping))
            else:
                yield {key: value}


def tool_names(tool: Mapping[str, Any]) -> list[str]:
    """The tool names in a definition of any format. The list is empty for a tool without a name.

    >>> tool_names({"functionDeclarations": [{"name": "ls"}, {"name": "cat"}]})
    ['ls', 'cat']
    """
    listed = next((tool[key] for key in _DECLARATIONS if key in tool), None)
    inner = next((tool[key] for key in ("function", "custom") if isinstance(tool.get(key), Mapping)), tool)
    return [each["name"] for each in (listed or [inner]) if isinstance(each.get("name"), str)]


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


def _custom_tool(tool: Mapping[str, Any], format: str) -> dict[str, Any] | None:
    """A custom tool, converted from one of OpenAI's formats to the other; None for any other tool.

    The input of a custom tool is a text. `format` is the format to which the tool is converted.

    >>> grammar = {"type": "grammar", "syntax": "lark", "definition": "start: WORD"}
    >>> _custom_tool({"type": "custom", "name": "patch", "format": grammar}, "openai")["custom"]["format"]["grammar"]
    {'syntax': 'lark', 'definition': 'start: WORD'}
    """
    inner = tool.get("custom")
    if format == "openai-responses" and isinstance(inner, Mapping):
        shape = inner.get("format")
        grammar = shape.get("grammar") if isinstance(shape, Mapping) else None
        changed = {"format": {"type": "grammar", **grammar}} if isinstance(grammar, Mapping) else {}
        return {"type": "custom", **inner, **changed}
    if format == "openai" and tool.get("type") == "custom" and "input_schema" not in tool and inner is None:
        held = {key: tool[key] for key in ("name", "description", "format") if key in tool}
        shape = tool.get("format")
        if isinstance(shape, Mapping) and shape.get("type") == "grammar":
            rest = {key: value for key, value in shape.items() if key != "type"}
            held["format"] = {"type": "grammar", "grammar": rest}
        return {"type": "custom", "custom": held}
    return None


def _functions(tool: Mapping[str, Any], format: str) -> list[_Function]:
    """The functions that a definition declares."""
    listed = next((tool[key] for key in _DECLARATIONS if key in tool), None)
    inner = next((tool[key] for key in ("function", "custom") if isinstance(tool.get(key), Mapping)), tool)
    held = listed if listed is not None else [inner]
    functions = []
    for value in held:
        schema = next((value[key] for key in _SCHEMAS if value.get(key) is not None), None)
        known = value.get("type") in (None, "function", "custom") and not isinstance(tool.get("custom"), Mapping)
        if not isinstance(value.get("name"), str) or not known or (schema is None and value.get("format") is not None):
            what = value.get("name") or value.get("type") or ", ".join(map(str, value))
            hint = f"define the tool for {format} with session.use(tools=…), or render in the session's own format"
            raise InputError(f"the tool {what!r:.60} cannot be written in the format {format!r}", hint=hint)
        functions.append(_Function(value["name"], value.get("description") or "", _json_schema(schema or {})))
    return functions


def _json_schema(schema: Any) -> Any:
    """The schema of a function's arguments as a JSON Schema. Gemini's own schemas write types in capitals.

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
