"""The table of the API's operations. Routes, checks of parameters and the OpenAPI document are made from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from foldline import __version__
from foldline.errors import InputError

_TYPES: dict[str, type] = {"string": str, "integer": int, "boolean": bool}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of an operation, in the query or in the JSON body."""

    name: str
    about: str
    type: str = "string"
    default: Any = None
    """The value of an optional parameter that is not given."""
    required: bool = False
    least: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One call of the API."""

    path: str
    call: Callable[..., Any]
    summary: str
    parameters: tuple[Parameter, ...] = ()
    changes: bool = False
    """Whether the call is a POST with a JSON body."""
    returns: Mapping[str, str] = field(default_factory=dict)
    """The fields of the answer, and the JSON type of each."""


SESSION = (
    Parameter(name="owner", about="The owner of the session in a shared ledger.", default=""),
    Parameter(name="session", about="The name of the session.", required=True),
    Parameter(name="branch", about="The branch of the session.", default="main"),
)


def read_parameters(operation: Operation, given: Mapping[str, Any]) -> dict[str, Any]:
    """The checked values of an operation's parameters. Raises `InputError` if a parameter is missing or wrong."""
    known = {one.name for one in operation.parameters}
    for name in given:
        if name not in known:
            raise InputError(f"unknown parameter {name!r}", hint=f"use {', '.join(sorted(known)) or 'none'}")
    values = {}
    for one in operation.parameters:
        value = given.get(one.name)
        if value is None:
            if one.required:
                raise InputError(f"the parameter {one.name!r} is missing", hint=one.about)
            values[one.name] = one.default
            continue
        values[one.name] = _value(one, value)
    return values


def _value(parameter: Parameter, given: Any) -> Any:
    value: Any = given
    if isinstance(value, str) and parameter.type == "integer":
        value = int(value) if value.removeprefix("-").isdecimal() and len(value) < 16 else value
    if isinstance(value, str) and parameter.type == "boolean":
        value = {"true": True, "1": True, "false": False, "0": False}.get(value, value)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    is_right = is_number if parameter.type == "integer" else isinstance(value, _TYPES[parameter.type])
    if not is_right:
        raise InputError(f"{parameter.name} must be of type {parameter.type}, not {value!r:.60}", hint=parameter.about)
    if parameter.least is not None and int(value) < parameter.least:
        raise InputError(f"{parameter.name} must be at least {parameter.least}, not {value}", hint=parameter.about)
    return value


def openapi_document(operations: tuple[Operation, ...]) -> dict[str, Any]:
    """The OpenAPI document of the operations."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "foldline page", "version": __version__},
        "paths": {f"/{one.path}": {"post" if one.changes else "get": _operation_value(one)} for one in operations},
        "components": {"schemas": {"Error": _object({"error": "string", "hint": "string"})}},
    }


def _operation_value(operation: Operation) -> dict[str, Any]:
    error = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}}
    value: dict[str, Any] = {
        "summary": operation.summary,
        "operationId": operation.path.replace("/", "_"),
        "responses": {
            "200": {
                "description": "The answer.",
                "content": {"application/json": {"schema": _object(operation.returns)}},
            },
            "400": {"description": "A parameter is wrong.", **error},
            "403": {"description": "The call is not allowed.", **error},
            "409": {"description": "The session was changed meanwhile.", **error},
        },
    }
    if not operation.changes:
        value["parameters"] = [
            {
                "name": one.name,
                "in": "query",
                "required": one.required,
                "description": one.about,
                "schema": _schema(one),
            }
            for one in operation.parameters
        ]
        return value
    value["parameters"] = [
        {
            "name": "X-Foldline",
            "in": "header",
            "required": True,
            "schema": {"type": "string"},
            "description": "Any text.",
        }
    ]
    body = {
        "type": "object",
        "properties": {one.name: {**_schema(one), "description": one.about} for one in operation.parameters},
        "required": [one.name for one in operation.parameters if one.required],
        "additionalProperties": False,
    }
    value["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    return value


def _schema(parameter: Parameter) -> dict[str, Any]:
    default = {} if parameter.default is None else {"default": parameter.default}
    least = {} if parameter.least is None else {"minimum": parameter.least}
    return {"type": parameter.type, **default, **least}


def _object(fields: Mapping[str, str]) -> dict[str, Any]:
    properties = {name: {"type": kind.split("|") if "|" in kind else kind} for name, kind in fields.items()}
    return {"type": "object", "properties": properties, "required": list(fields)}
