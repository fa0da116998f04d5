"""What README and docs print is what the commands print."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS: dict[str, Any] = runpy.run_path(str(ROOT / "scripts" / "docs.py"), run_name="docs")


@pytest.mark.parametrize("page", DOCS["pages"](), ids=lambda page: page.name)
def test_printed_outputs_are_current(page: Path) -> None:
    text = page.read_text()
    assert DOCS["regenerate"](text) == text, f"run python scripts/docs.py: {page.name} is stale"


def test_readme_has_code_by_line_eight() -> None:
    assert "```" in "\n".join((ROOT / "README.md").read_text().splitlines()[:8])


def test_no_page_names_a_machine() -> None:
    for page in [*DOCS["pages"](), ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]:
        assert not {"/work/", "/root/", "../shared"} & set(_words(page.read_text())), page


def _words(text: str) -> set[str]:
    return {mark for mark in ("/work/", "/root/", "../shared") if mark in text}
