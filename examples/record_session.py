"""Record the session that `foldline demo` replays: a scripted agent that really works on this repository.

The agent has no model. What it says and which tools it calls stands in `WORK` below; what the tools give back is real:
it reads, searches, edits and tests a temporary copy of this checkout, and every call and result is written down as an
Anthropic request body, the same form a real agent would have sent.

    python examples/record_session.py session.json.gz     # takes a minute or two
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
MODEL = "claude-sonnet-4-5"
SYSTEM = "You are a careful engineer in a checkout of foldline, in ~/foldline. Read before you change; test after."
LONGEST = 9_000
"""Characters of a result that the agent's tools give back at the most."""
TOOLS = {
    "read": "Read lines of a file.",
    "search": "Find a pattern in the files below a folder.",
    "edit": "Replace a text that occurs once in a file.",
    "run": "Run a command in the checkout.",
}


class Say(NamedTuple):
    """What the user asks."""

    text: str


class Do(NamedTuple):
    """One step of the agent: a call, with some words or none."""

    words: str
    tool: str
    given: dict[str, Any]


def read(path: str, start: int = 1, lines: int = 160) -> Do:
    """A step that reads."""
    return Do("", "read", {"path": path, "start": start, "lines": lines})


def search(pattern: str, folder: str = "src/foldline") -> Do:
    """A step that searches."""
    return Do("", "search", {"pattern": pattern, "folder": folder})


def run(*command: str) -> Do:
    """A step that runs something."""
    return Do("", "run", {"command": list(command)})


def edit(words: str, path: str, old: str, new: str) -> Do:
    """A step that edits."""
    return Do(words, "edit", {"path": path, "old": old, "new": new})


_HANDLE = """    return f"#{first + 1}" if last is None or last == first else f"#{first + 1}-{last + 1}"
"""
_HANDLE_SORTED = """    first, last = min(first, last or first), max(first, last or first)
"""
_HANDLE_RIGHT = """    if last is not None and last < first:
        first, last = last, first
"""
_TEST = """

def test_a_handle_is_the_same_from_both_ends() -> None:
    from foldline.plan.timeline import handle

    assert handle(130, 119) == handle(119, 130) == "#120-131"
    assert handle(5) == handle(5, 5) == "#6"
    assert handle(0, 0) == "#1"
    assert handle(3, 0) == "#1-4"
"""
_BREAKPOINTS = """    if policy.breakpoints > 4:
        raise ConfigError("breakpoints cannot be more than 4", hint="providers refuse a fifth")
"""
_PREVIEW = """    if policy.preview_chars > 100_000:
        raise ConfigError("preview_chars cannot be more than 100,000", hint="a stub is meant to be short")
"""
_POLICY_TEST = """

def test_a_preview_is_short() -> None:
    with pytest.raises(ConfigError, match="meant to be short"):
        Policy().but(preview_chars=100_001)
"""
PYTEST = ("python", "-m", "pytest", "-q", "-p", "no:cacheprovider")

WORK: tuple[Say | Do, ...] = (
    Say(
        "Find out how a view decides what to fold: the gate, the cut, the order in which things give way. Do not "
        "change anything yet. For the whole session: never touch docs/promises.md; the ticket is FL-2231."
    ),
    search("def gate"),
    read("src/foldline/plan/gate.py"),
    read("src/foldline/plan/cut.py"),
    read("src/foldline/plan/plan.py", 1, 130),
    read("src/foldline/plan/plan.py", 130, 130),
    search("legal_after"),
    read("src/foldline/plan/timeline.py", 1, 120),
    read("src/foldline/plan/timeline.py", 120, 130),
    read("src/foldline/session/state.py", 1, 140),
    read("src/foldline/session/state.py", 140, 140),
    Say("Good. Make `handle` in plan/timeline.py give the same name when its ends are swapped, with a test."),
    search(r"handle\("),
    read("src/foldline/plan/timeline.py", 215, 40),
    edit("The ends are put in order first.", "src/foldline/plan/timeline.py", _HANDLE, _HANDLE_SORTED + _HANDLE),
    edit("A test for it.", "tests/plan/test_legal_cuts.py", "\n\n@", _TEST + "\n\n@"),
    run(*PYTEST, "tests/plan/test_legal_cuts.py"),
    Do(
        "`last or first` takes 0 for nothing: `handle(3, 0)` is wrong. I look at it again.",
        "read",
        {"path": "src/foldline/plan/timeline.py", "start": 225, "lines": 25},
    ),
    edit(
        "Only a last that lies before the first is turned.",
        "src/foldline/plan/timeline.py",
        _HANDLE_SORTED,
        _HANDLE_RIGHT,
    ),
    run(*PYTEST, "tests/plan/test_legal_cuts.py"),
    run(*PYTEST, "tests/plan/test_blocks.py", "tests/view"),
    Say("Now the policy: refuse preview_chars above 100,000, with a hint. Look how the other checks are done."),
    search("ConfigError", "src/foldline"),
    read("src/foldline/policy.py", 1, 120),
    read("src/foldline/policy.py", 120, 120),
    read("src/foldline/policy.py", 240, 150),
    edit(
        "The check stands beside the one for breakpoints.",
        "src/foldline/policy.py",
        _BREAKPOINTS,
        _BREAKPOINTS + _PREVIEW,
    ),
    read("tests/test_policy.py", 1, 100),
    edit(
        "And its test.",
        "tests/test_policy.py",
        "\n\ndef test_an_argument_may_name_the_preset",
        _POLICY_TEST + "\n\ndef test_an_argument_may_name_the_preset",
    ),
    run(*PYTEST, "tests/test_policy.py"),
    search("preview_chars"),
    read("src/foldline/plan/prune.py", 1, 110),
    read("src/foldline/plan/prune.py", 110, 110),
    run(*PYTEST, "tests/plan/test_prune.py"),
    Say("Where does the price of the prompt cache come in? I want to understand thrifty before we ship this."),
    search("tariff"),
    read("src/foldline/plan/fold_cost.py", 1, 130),
    read("src/foldline/plan/fold_cost.py", 130, 140),
    read("src/foldline/plan/hindsight.py"),
    read("src/foldline/models/table.py", 1, 140),
    read("src/foldline/measure/models.toml", 1, 120),
    search("claude-sonnet-4-5", "src/foldline/measure"),
    read("bench/economy.py", 1, 110),
    Say("And how exact is the counting underneath? Is there anything we rely on here that is only an estimate?"),
    read("src/foldline/measure/estimator.py", 1, 130),
    read("src/foldline/measure/estimator.py", 130, 120),
    read("src/foldline/measure/usage_anchor.py", 1, 150),
    read("src/foldline/measure/usage_anchor.py", 150, 140),
    read("src/foldline/measure/message_size.py"),
    run(*PYTEST, "tests/measure/test_counter.py"),
    Say("Fine. Check that nothing else broke: everything that uses handle or previews. Then show me the whole change."),
    search(r"handle\(|preview_", "tests"),
    run(*PYTEST, "tests/plan", "tests/view", "tests/test_policy.py"),
    read("src/foldline/view/compose.py"),
    run("git", "--no-pager", "diff", "--stat"),
    run("git", "--no-pager", "diff"),
)
ENDS = (
    "The gate tests rules, the cut keeps floors and whole steps, then the largest results give way. I changed nothing.",
    "`handle` now gives the same name from both ends. The first version took 0 for nothing; the test found it.",
    "preview_chars above 100,000 is refused, with a hint, and has a test.",
    "thrifty folds when the rent paid on what could leave has reached the price of folding; prices are in models.toml.",
    "Sizes are estimates until the provider reports usage; then only what came since is estimated.",
    "Both changes are in, each with a test, and the tests of planning, views and policy pass.",
)
"""What the agent says when a turn is done."""


def main() -> None:
    """Record the session."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path, help="where to write: a .json.gz")
    parser.add_argument("--no-run", action="store_true", help="leave the commands out; reads, searches and edits stay")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "foldline")
        _copy(copy)
        messages = list(_messages(copy, run=not options.no_run))
    body = {"model": MODEL, "max_tokens": 8_000, "system": SYSTEM, "tools": _tools(), "messages": messages}
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    options.out.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{len(messages)} messages, {len(text):,} characters, {options.out.stat().st_size:,} bytes in {options.out}")


def _copy(copy: Path) -> None:
    """A copy to work on, with a repository of its own, so that it can say what changed."""
    names = [name for name in ("src", "tests", "bench", "docs", "examples", "pyproject.toml") if (ROOT / name).exists()]
    for name in names:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "*.gz"))
        else:
            shutil.copy(ROOT / name, copy / name)
    for command in (
        ["init", "-q"],
        ["add", "-A"],
        ["-c", "user.name=demo", "-c", "user.email=demo@example.com", "commit", "-qm", "start"],
    ):
        subprocess.run(["git", *command], cwd=copy, check=True, env=_environment(copy))


def _environment(copy: Path) -> dict[str, str]:
    keep = {name: os.environ[name] for name in ("PATH", "LANG", "SYSTEMROOT") if name in os.environ}
    return {**keep, "HOME": str(copy), "PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1"}


def _tools() -> list[dict[str, Any]]:
    schema = {"type": "object", "additionalProperties": True}
    return [{"name": name, "description": text, "input_schema": schema} for name, text in TOOLS.items()]


def _messages(copy: Path, *, run: bool) -> Iterator[dict[str, Any]]:
    ends = iter(ENDS)
    for number, step in enumerate(WORK):
        if isinstance(step, Say):
            if number:
                yield {"role": "assistant", "content": next(ends)}
            yield {"role": "user", "content": step.text}
        elif run or step.tool != "run":
            call = {"type": "tool_use", "id": f"toolu_{number:03}", "name": step.tool, "input": step.given}
            said = [{"type": "text", "text": step.words}] if step.words else []
            yield {"role": "assistant", "content": [*said, call]}
            result = {"type": "tool_result", "tool_use_id": call["id"], "content": _do(step, copy)}
            yield {"role": "user", "content": [result]}
    yield {"role": "assistant", "content": next(ends)}


def _do(step: Do, copy: Path) -> str:
    """What a tool really gives back, with the machine's own paths and times left out."""
    found = {"read": _read, "search": _search, "edit": _edit, "run": _run}[step.tool](copy, **step.given)
    plain = re.sub(r"\bin \d+\.\d+s", "in 0.5s", found.replace(str(copy), "~/foldline").replace(sys.prefix, "~/venv"))
    return plain if len(plain) <= LONGEST else plain[:LONGEST] + f"\n[{len(plain) - LONGEST:,} more characters]"


def _read(copy: Path, path: str, start: int, lines: int) -> str:
    text = (copy / path).read_text().splitlines()[start - 1 : start - 1 + lines]
    return "\n".join(f"{number:>5}  {line}" for number, line in enumerate(text, start=start))


def _search(copy: Path, pattern: str, folder: str) -> str:
    hits = []
    for path in sorted((copy / folder).rglob("*")):
        if path.suffix in (".py", ".toml", ".md"):
            for number, line in enumerate(path.read_text().splitlines(), start=1):
                if re.search(pattern, line):
                    hits.append(f"{path.relative_to(copy)}:{number}: {line.strip()}")
    return "\n".join(hits[:80]) or "nothing found"


def _edit(copy: Path, path: str, old: str, new: str) -> str:
    text = (copy / path).read_text()
    if old not in text:
        raise SystemExit(f"{path} has changed: the script's edit no longer applies ({old.strip()[:60]!r})")
    (copy / path).write_text(text.replace(old, new, 1))
    return f"{path}: replaced {old.count(chr(10))} lines by {new.count(chr(10))}"


def _run(copy: Path, command: list[str]) -> str:
    real = [sys.executable, *command[1:]] if command[0] == "python" else command
    done = subprocess.run(
        real, cwd=copy, env=_environment(copy), capture_output=True, text=True, timeout=300, check=False
    )
    said = (done.stdout + done.stderr).rstrip()
    return f"{said}\n[exit status {done.returncode}]" if done.returncode else said or "[no output]"


if __name__ == "__main__":
    main()
