"""Regenerate the outputs and tables in README and docs; tests/test_docs.py checks that they are current.

    python scripts/docs.py              # all pages
    python scripts/docs.py README.md    # one page

A comment marks a block, and the command's output replaces the text inside the fence:

    <!-- output of: foldline inspect examples/broken-session.json -->
    ```text
    ...
    ```

Reference tables are generated from the code, between `<!-- made of: knobs -->` and `<!-- end -->`.

The output on the page of an adapter (`<!-- output of the example -->`) is kept if the example fails, because most
frameworks are not installed. tests/integrations/test_examples.py checks these outputs.
"""

from __future__ import annotations

import ast
import os
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from itertools import pairwise, takewhile
from pathlib import Path
from typing import get_args

ROOT = Path(__file__).resolve().parent.parent
_BLOCK = re.compile(r"(<!-- output of: (?P<command>.+?) -->\n```\w*\n)(?P<output>.*?)(```\n)", re.DOTALL)
_MADE = re.compile(r"(<!-- made of: (?P<name>\w+) -->\n)(?P<table>.*?)(<!-- end -->\n)", re.DOTALL)
_EXAMPLE = re.compile(
    r"(`python (?P<file>examples/\w+\.py)`.*?<!-- output of the example -->\n```text\n)(?P<output>.*?)(?=```\n)",
    re.DOTALL,
)
_TIME = re.compile(r"\b\d+\.\d+ s\b")
"""A duration, which differs from run to run; pages show 1.0 s."""
_PLAIN = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "PYTHONHASHSEED": "0"}


def pages() -> list[Path]:
    """README and all pages of docs."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def regenerate(text: str) -> str:
    """The page with every output and table generated again."""
    text = _BLOCK.sub(lambda found: found[1] + _run(found["command"]) + found[4], text)
    return _MADE.sub(lambda found: found[1] + "\n" + "\n".join(MAKERS[found["name"]]()) + "\n\n" + found[4], text)


def with_example(text: str) -> str:
    """The page of an adapter with the output of its example generated again, if the example runs."""
    return _EXAMPLE.sub(lambda found: found[1] + (_example_output(found["file"]) or found["output"]), text)


def _example_output(file: str) -> str:
    """What an example prints; "" if it fails."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, file], cwd=ROOT, env=env, capture_output=True, text=True, timeout=300)
    return "" if done.returncode else done.stdout


def _run(command: str) -> str:
    """The output of a `foldline` or `python` command of this checkout, or its last lines (`| tail -9`)."""
    command, _, lines = command.partition(" | tail -")
    name, *arguments = shlex.split(command)
    start = {"foldline": [sys.executable, "-m", "foldline.cli"], "python": [sys.executable]}[name]
    env = {**os.environ, **_PLAIN}
    done = subprocess.run([*start, *arguments], cwd=ROOT, env=env, capture_output=True, text=True, timeout=120)
    if done.stderr.startswith("foldline: "):
        raise SystemExit(f"{command} failed: {done.stderr}")
    printed = _TIME.sub("1.0 s", done.stdout + done.stderr)
    return "".join(line.rstrip() + "\n" for line in printed.rstrip().splitlines()[-int(lines or 0) :])


def _knobs() -> Iterator[str]:
    """Every knob in policy.py by section, with type, default and docstring."""
    source = (ROOT / "src" / "foldline" / "policy.py").read_text()
    lines = source.splitlines()
    policy = next(n for n in ast.parse(source).body if isinstance(n, ast.ClassDef) and n.name == "Policy")
    following = dict(pairwise(policy.body))
    for node in policy.body:
        if not isinstance(node, ast.AnnAssign) or node.value is None:
            continue
        above = lines[node.lineno - 2].strip()
        if above.startswith("# "):
            yield from ("", f"### {above[2:]}", "", "| knob | kind | default | |", "|---|---|---|---|")
        docstring = ast.literal_eval(following[node].value)  # type: ignore[attr-defined]  # every knob has a docstring
        text = " ".join(docstring.split())
        kind = _kind(ast.unparse(node.annotation))
        yield f"| `{ast.unparse(node.target)}` | {kind} | `{ast.unparse(node.value)}` | {text} |"


def _kind(annotation: str) -> str:
    """The type of a knob in words."""
    from foldline import policy

    if annotation.startswith("Literal["):
        return annotation.removeprefix("Literal[").removesuffix("]").replace("'", "").replace(", ", " or ")
    choices = get_args(getattr(policy, annotation, None))
    plain = {"tuple[Rule, ...]": "rules", "tuple[str, ...]": "names", "str": "text"}
    return " or ".join(choices) or plain.get(annotation, annotation.replace("|", "or"))


def _presets() -> Iterator[str]:
    """Every preset with its comment and its knobs."""
    text = (ROOT / "src" / "foldline" / "presets.toml").read_text()
    for name, knobs in tomllib.loads(text).items():
        lines = text.partition(f"[{name}]\n")[2].partition("\n[")[0].strip().splitlines()
        comment = [line.removeprefix("# ") for line in takewhile(lambda line: line.startswith("# "), lines)]
        yield from ("", f"### `{name}`", "", *comment, "", "```toml", *lines[len(comment) :], "```")
        assert knobs


def _commands() -> Iterator[str]:
    from foldline.cli.app import COMMANDS

    yield from ("| command | |", "|---|---|")
    yield from (f"| `foldline {name}` | {row.summary} |" for name, row in COMMANDS.items())


def _exit_codes() -> Iterator[str]:
    from foldline.cli.app import EXIT_CODES

    yield from ("| code | meaning |", "|---|---|")
    yield from (f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items())


def _settings() -> Iterator[str]:
    from foldline.cli.shared.settings import KEYS

    yield from ("| setting | variable | |", "|---|---|---|")
    yield from (f"| `{name}` | `FOLDLINE_{name.upper()}` | {text} |" for name, text in KEYS.items())


def _api() -> Iterator[str]:
    yield from runpy.run_path(str(ROOT / "scripts" / "api_reference.py"))["reference"]()


MAKERS: dict[str, Callable[[], Iterator[str]]] = {
    "knobs": _knobs,
    "presets": _presets,
    "commands": _commands,
    "exit_codes": _exit_codes,
    "settings": _settings,
    "api": _api,
}


if __name__ == "__main__":
    for page in [Path(name).resolve() for name in sys.argv[1:]] or pages():
        old = page.read_text()
        new = with_example(regenerate(old))
        if new != old:
            page.write_text(new)
            print(f"updated {page.relative_to(ROOT)}")
