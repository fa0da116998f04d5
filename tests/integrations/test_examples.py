"""The examples of the adapters run, and print what the pages show."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = sorted((ROOT / "docs").glob("integrations-*.md"))
PACKAGES = {
    "wrapped_client.py": ("anthropic",),
    "langchain_agent.py": ("langchain", "langchain_anthropic"),
    "pydantic_ai_agent.py": ("pydantic_ai",),
    "openai_agents_agent.py": ("agents",),
    "llama_index_memory.py": ("llama_index",),
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_an_example_prints_what_its_page_shows(page: Path) -> None:
    text = page.read_text()
    found = re.search(r"`examples/(\w+\.py)`", text)
    shown = re.search(r"<!-- output of the example -->\n```text\n(.*?)```", text, re.DOTALL)
    assert found
    assert shown
    if not all(find_spec(package) for package in PACKAGES[found[1]]):
        pytest.skip(f"the packages for {found[1]} are not installed")
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / found[1])],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == shown[1]


def test_every_adapter_has_a_page_with_an_example() -> None:
    assert len(PAGES) == len(PACKAGES)
