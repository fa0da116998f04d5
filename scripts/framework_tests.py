"""Runs the tests of an adapter with the newest and with the oldest version of its framework that the adapter supports.

    python scripts/framework_tests.py google-adk strands        # or all of them, without a name

Each framework has environments of its own, in `.venv-frameworks`, because frameworks need different versions of the
same packages. The versions are those of the extra in `pyproject.toml`. Each environment has the extra `exact`, because
the figures in `docs/` were made with it.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".venv-frameworks"
TEST_PACKAGES = ["openai", "anthropic", "google-genai", "hypothesis", "psycopg[binary]", "pytest"]
MODEL_PACKAGES = {
    "langchain": ["langchain-anthropic", "langchain-openai"],
    "pydantic-ai": ["pydantic-ai-slim[anthropic,openai]"],
    "agent-framework": ["agent-framework-openai"],
}
"""The packages with the model classes that the tests of an adapter need."""
OLD_PACKAGES = {"pydantic-ai": ["anthropic<1", "openai<3", "httpx"]}
"""The versions of clients that the oldest version of a framework needs. The framework itself does not limit them."""
FRAMEWORKS = (
    "langchain",
    "pydantic-ai",
    "openai-agents",
    "llama-index",
    "strands",
    "google-adk",
    "agent-framework",
    "crewai",
    "haystack",
    "smolagents",
    "hermes",
)


def oldest(requirement: str) -> str:
    """The requirement for the oldest version of a range.

    >>> oldest("google-adk>=2.5,<3")
    'google-adk==2.5'
    """
    return re.sub(r">=([\d.]+).*", r"==\1", requirement)


def run_tests(framework: str, label: str, requirements: list[str]) -> bool:
    """Install the requirements into their environment and run the tests of the adapter there."""
    folder = FOLDER / f"{framework}-{label}"
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    old = OLD_PACKAGES.get(framework, []) if label == "oldest" else []
    packages = [*requirements, *MODEL_PACKAGES.get(framework, []), *TEST_PACKAGES, *old]
    subprocess.run([*install, "--editable", f"{ROOT}[exact]", *packages], check=True)
    shown = subprocess.run(
        [str(python), "-m", "pip", "freeze"], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    name = re.match(r"[\w.-]+", requirements[0])[0]
    print(*(line for line in shown if line.lower().startswith(f"{name}==")), flush=True)
    tests = [str(ROOT / "tests" / "integrations" / file) for file in ("test_adapters.py", "test_examples.py")]
    words = f"{framework} or {framework.replace('-', '_')}"
    return subprocess.run([str(python), "-m", "pytest", "-q", "-k", words, *tests], cwd=ROOT).returncode == 0


def main() -> None:
    """Run the tests of the frameworks that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("framework", nargs="*", help=f"framework to test, of {', '.join(FRAMEWORKS)} (default: all)")
    named = parser.parse_args().framework or FRAMEWORKS
    if unknown := set(named) - set(FRAMEWORKS):
        parser.error(f"unknown framework {unknown.pop()!r}: choose from {', '.join(FRAMEWORKS)}")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    failed = []
    for framework in named:
        for label, wanted in (("newest", extras[framework]), ("oldest", [oldest(each) for each in extras[framework]])):
            if not run_tests(framework, label, wanted):
                failed.append(f"{framework} ({label})")
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
