"""The measure of the digest: what is a locator, and when a text shows it in context."""

from __future__ import annotations

import json

import pytest

from bench.locators import edited_line, in_context, locators
from foldline.message import ToolCall


def call(**arguments: object) -> ToolCall:
    return ToolCall(id="a", name="Edit", arguments=json.dumps(arguments))


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"file_path": "/w/cli/explain.go"}, {"explain.go"}),
        ({"command": "go test ./cli -run TestExplain_Short"}, {"TestExplain_Short"}),
        ({"command": "git show a9a05d4f -- README.md"}, {"a9a05d4f", "README.md"}),
        ({"id": "ENT-1234", "reservation": "JG7FMM", "amount": "471100"}, {"ENT-1234", "JG7FMM", "471100"}),
        ({"pattern": "understanding of it"}, set()),
        ({"file_path": "/w/a_file.go", "old_string": "someName", "new_string": "otherName"}, {"a_file.go"}),
    ],
)
def test_what_a_call_must_know(arguments: dict[str, object], found: set[str]) -> None:
    assert locators(call(**arguments)) == found


def test_a_patch_names_its_files() -> None:
    patch = ToolCall(
        id="a",
        name="apply_patch",
        arguments="*** Begin Patch\n*** Update File: /w/src/main.go\n+someName",
        kind="custom",
    )
    assert locators(patch) == {"main.go"}


SOURCE = "  12\tfunc parseTrailer(raw []byte, limit int) error {\nparseTrailer again\nuse parseTrailer"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a list: parseTrailer otherName", False),
        ("- func parseTrailer(raw []byte, limit int) error { [#3]", True),
        ("- parseTrailer(raw []byte, limit int) [#3]", True),
        ("- func parseTrailer(raw limit int)", False),
        ("- use parseTrailer [#3]", True),
    ],
)
def test_in_context_is_a_run_of_its_line(text: str, shown: bool) -> None:
    assert in_context("parseTrailer", SOURCE, text) is shown


def test_the_line_that_grounds_an_edit() -> None:
    assert (
        edited_line(call(file_path="/w/a.go", old_string="x\n  func parseTrailer(raw []byte) {\n"))
        == "func parseTrailer(raw []byte) {"
    )
    assert edited_line(call(file_path="/w/a.go", old_string="short")) == ""
