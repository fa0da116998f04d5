"""The schemas of the simulated provider are those of the installed SDKs, and share nothing with foldline's formats."""

from __future__ import annotations

import ast
import runpy
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import foldline
from foldline.testing.provider.anthropic_fields import BETA_FIELDS, BETA_TYPES
from foldline.testing.provider.request_schema import read_schema

ROOT = Path(__file__).resolve().parent.parent.parent
GENERATOR: dict[str, Any] = runpy.run_path(str(ROOT / "scripts" / "provider_schemas.py"), run_name="schemas")
PACKAGES = {"anthropic": "anthropic", "openai_chat": "openai", "openai_responses": "openai", "gemini": "google-genai"}


@pytest.mark.parametrize("name", PACKAGES)
def test_a_schema_is_what_the_sdk_says(name: str) -> None:
    stored = read_schema(name)
    if stored["read_from"] != f"{PACKAGES[name]} {version(PACKAGES[name])}":
        pytest.skip(f"read from {stored['read_from']}; run python scripts/provider_schemas.py")
    assert in_one_order(GENERATOR["schemas"]()[name]) == in_one_order(stored)


def in_one_order(value: Any) -> Any:
    """A schema with sorted alternatives: typing returns equal literals and unions in the order it saw first."""
    if isinstance(value, dict):
        return {key: in_one_order(item) for key, item in value.items()}
    return sorted(map(in_one_order, value), key=repr) if isinstance(value, list) else value


def test_everything_that_only_the_beta_types_have_names_its_header() -> None:
    from anthropic.types import message_create_params

    plain = GENERATOR["Schema"]()
    root = plain.typed_dict(message_create_params.MessageCreateParamsNonStreaming)
    beta = read_schema("anthropic")
    fields = set(beta["types"][beta["request"]]["fields"]) - set(plain.types[root]["fields"])
    assert {f"request.{name}" for name in fields} <= set(BETA_FIELDS)
    for name, entry in beta["types"].items():
        known = plain.types.get(name)
        if known and name != beta["request"] and name != beta["count"]:
            assert {f"{name}.{key}" for key in set(entry["fields"]) - set(known["fields"])} <= set(BETA_FIELDS)
    blocks = _tags(beta["types"], "AssistantMessage") - _tags(plain.types, "AssistantMessage")
    assert blocks <= set(BETA_TYPES)


def _tags(types: dict[str, Any], name: str) -> set[str]:
    members = types[name]["fields"]["content"]["union"][1]["list"]["union"]
    return {types[member["object"]]["fields"]["type"]["enum"][0] for member in members}


def test_the_judge_imports_nothing_of_what_it_judges() -> None:
    folder = Path(foldline.__file__).parent / "testing" / "provider"
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for module in names:
                assert not module.startswith("foldline.") or module.startswith(
                    ("foldline.testing.provider", "foldline.measure", "foldline.models", "foldline.errors")
                ), f"{path.name} imports {module}"
