"""The examples of the adapters run, and print what the pages show."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.framework_agents.registry import is_installed

ROOT = Path(__file__).resolve().parent.parent.parent
COMMAND = str(Path(sys.executable).with_name("foldline"))
PI = shutil.which(os.environ.get("FOLDLINE_PI", "no agent"))
PAGES = sorted((ROOT / "docs").glob("integrations-*.md"))
PACKAGES = {
    "wrapped_client.py": ("anthropic",),
    "langchain_agent.py": ("langchain", "langchain_anthropic"),
    "pydantic_ai_agent.py": ("pydantic_ai",),
    "openai_agents_agent.py": ("agents",),
    "llama_index_memory.py": ("llama_index",),
    "strands_agent.py": ("strands",),
    "google_adk_agent.py": ("google.adk",),
    "agent_framework_agent.py": ("agent_framework",),
    "crewai_agent.py": ("crewai",),
    "haystack_agent.py": ("haystack",),
    "smolagents_agent.py": ("smolagents",),
    "hermes_agent.py": ("run_agent",),
    "pi_agent.py": (),
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_an_example_prints_what_its_page_shows(page: Path) -> None:
    text = page.read_text()
    found = re.search(r"`python examples/(\w+\.py)`", text)
    shown = re.search(r"<!-- output of the example -->\n```text\n(.*?)```", text, re.DOTALL)
    assert found
    assert shown
    if not all(map(is_installed, PACKAGES[found[1]])) or (found[1] == "pi_agent.py" and PI is None):
        pytest.skip(f"what {found[1]} needs is not installed")
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / found[1])],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT / "src"),
            "FOLDLINE_COMMAND": COMMAND,
        },
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == shown[1]


def test_every_adapter_has_a_page_with_an_example() -> None:
    assert len(PAGES) == len(PACKAGES)
