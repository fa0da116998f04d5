"""Outputs in README and docs are current, and links and named files exist."""

from __future__ import annotations

import re
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


@pytest.mark.parametrize("page", DOCS["pages"](), ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[\w-]+)?\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_the_picture_of_the_readme_is_current() -> None:
    made = runpy.run_path(str(ROOT / "scripts" / "window_picture.py"), run_name="picture")
    assert made["TARGET"].read_text() == made["picture"](), "run python scripts/window_picture.py"


@pytest.mark.parametrize("name", ["anthropic_agent.py", "openai_async_agent.py"])
def test_a_complete_agent_has_at_most_45_lines(name: str) -> None:
    assert len((ROOT / "examples" / name).read_text().splitlines()) <= 45


def test_readme_has_code_by_line_eight() -> None:
    assert "```" in "\n".join((ROOT / "README.md").read_text().splitlines()[:8])


def test_an_extra_is_installed_from_the_folder_of_the_repository() -> None:
    """The package is on no index, so `pip install 'foldline[…]'` would fail."""
    files = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("plugins/**/*.md"), *ROOT.glob("src/**/*.py")]
    assert not [file for file in files if re.search(r"pip install '?foldline\b", file.read_text())]


def test_no_page_names_a_machine() -> None:
    for page in [*DOCS["pages"](), ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]:
        assert not {"/work/", "/root/", "../shared"} & set(_words(page.read_text())), page


def _words(text: str) -> set[str]:
    return {mark for mark in ("/work/", "/root/", "../shared") if mark in text}


def test_every_path_that_contributing_names_exists() -> None:
    rows = re.findall(r"^\| [^|]+ \| (`src.*) \|$", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert len(rows) >= 12
    for row in rows:
        paths = re.findall(r"`(src/[^`]+)`", row)
        assert 1 <= len(paths) <= 2, row
        for path in paths:
            assert (ROOT / path).exists(), path
            assert (ROOT / path).is_dir() == path.endswith("/"), path


def test_contributing_draws_every_folder_and_module_at_the_top() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    for path in (ROOT / "src" / "foldline").iterdir():
        if path.name not in {"__pycache__", "py.typed"}:
            assert (path.name if path.is_file() else f"{path.name}/") in text, path.name
