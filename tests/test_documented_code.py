"""Every Python block and every command in README and docs runs, and the Python blocks pass mypy in strict mode."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from foldline.testing import SimulatedProvider
from support.command import ROOT
from support.documented_code import PAGES, program, reader_folder, shell_lines

WITH_CODE = [page for page in PAGES if program(page)]
WITH_COMMANDS = [page for page in PAGES if shell_lines(page)]
STAYS = re.compile(r"foldline (?:serve|worker|page|watch -f)\b")
"""Commands that run until they are stopped."""
NEEDS_MORE = re.compile(r"^\./demo|^\./test|postgresql://|^pip |^curl ")
"""Commands that install something, or need a server that runs; other tests run `./demo` and PostgreSQL."""


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedProvider]:
    with SimulatedProvider() as started:
        for vendor, url in {"ANTHROPIC": started.url, "OPENAI": started.openai_url}.items():
            monkeypatch.setenv(f"{vendor}_BASE_URL", url)
            monkeypatch.setenv(f"{vendor}_API_KEY", "any")
        yield started


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.name)
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # a snippet may leave its client open
def test_python_blocks_of_a_page_run(
    page: Path, provider: SimulatedProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader_folder(tmp_path)
    monkeypatch.chdir(tmp_path)
    exec(compile(program(page), page.name, "exec"), {"__name__": "snippet"})
    assert not provider.refused


def test_python_blocks_of_all_pages_pass_mypy_in_strict_mode(tmp_path: Path) -> None:
    for page in WITH_CODE:
        (tmp_path / f"{'_'.join(page.relative_to(ROOT).with_suffix('').parts)}.py".replace("-", "_")).write_text(
            program(page)
        )
    files = sorted(map(str, tmp_path.glob("*.py")))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *files],
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.name)
def test_commands_of_a_page_run(page: Path, tmp_path: Path) -> None:
    environment = reader_folder(tmp_path)
    if not any(line.startswith("foldline import") for line in shell_lines(page)):
        _run("foldline import src/foldline/cli/demo.json.gz", tmp_path, environment)
        _run("foldline import src/foldline/cli/demo.json.gz --ledger agent.db", tmp_path, environment)
    for line in shell_lines(page):
        if NEEDS_MORE.search(line):
            continue
        run = _run_a_while if STAYS.search(line) else _run
        code, said = run(line, tmp_path, environment)
        assert code == 0, f"{line}: exit code {code}\n{said}"


def _run(line: str, folder: Path, environment: dict[str, str]) -> tuple[int, str]:
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        input="y\n",
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def _run_a_while(line: str, folder: Path, environment: dict[str, str]) -> tuple[int, str]:
    """Start a command that stays, and stop it when it has said something or after some seconds."""
    output = folder / "output.txt"
    with output.open("w") as file:
        started = subprocess.Popen(
            ["bash", "-c", f"exec {line}"], cwd=folder, env=environment, stdout=file, stderr=file
        )
        until = time.monotonic() + 10
        while started.poll() is None and not output.stat().st_size and time.monotonic() < until:
            time.sleep(0.05)
        with suppress(subprocess.TimeoutExpired):
            started.wait(timeout=0.5)  # a command that printed an error ends by itself
        if (code := started.poll()) is None:
            started.send_signal(signal.SIGTERM)
            started.wait(timeout=20)
            code = 0
    return code, output.read_text()
