"""Print which functions and files of the package run when a message is added and rendered, and when a fold is made.

    python scripts/trace.py            # counts, and the functions by file
    python scripts/trace.py --counts   # counts only

Both are run in memory. The message is a plain text in a session whose wire format is known. The fold is a manual one
with the local digest, in a session of 40 turns with tool calls. Each file counts once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import foldline
from foldline import Policy, Session

ROOT = Path(foldline.__file__).parent
MODEL = "claude-sonnet-4-5"
TURNS = 40


def visits(run: Callable[[], object]) -> dict[str, list[str]]:
    """The functions of the package that a call runs, by file, in the order of their first run."""
    found: dict[str, list[str]] = {}

    def profile(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        path = Path(code.co_filename)
        if event != "call" or code.co_name.startswith("<") or not path.is_relative_to(ROOT):
            return
        functions = found.setdefault(str(path.relative_to(ROOT)), [])
        if code.co_qualname not in functions:
            functions.append(code.co_qualname)

    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(None)
    return found


def add_and_render() -> dict[str, list[str]]:
    """Trace a message through `add`, `view` and `render`."""
    session = Session(model=MODEL)

    def turn() -> None:
        session.add({"role": "user", "content": "Why does the build fail?"})
        session.view().render("anthropic")

    turn()  # the first run also imports modules and reads files
    return visits(turn)


def fold() -> dict[str, list[str]]:
    """Trace a fold."""
    session = _long_session()
    _long_session().fold()  # the first run also imports modules and reads files
    return visits(session.fold)


def _long_session() -> Session:
    session = Session(model=MODEL, policy=Policy.preset("balanced").but(window_tokens=20_000))
    for turn in range(TURNS):
        call = {"type": "tool_use", "id": f"call_{turn}", "name": "read", "input": {"path": f"src/module_{turn}.py"}}
        result = {"type": "tool_result", "tool_use_id": f"call_{turn}", "content": "def run():\n    return 1\n" * 60}
        session.add({"role": "user", "content": f"Please look at module {turn} and fix what is wrong there."})
        session.add({"role": "assistant", "content": [call]})
        session.add({"role": "user", "content": [result]})
        session.add({"role": "assistant", "content": "It returns 1 where it should return 2; I will change that."})
    return session


def main() -> None:
    """Print both traces."""
    for name, found in (("add, view, render", add_and_render()), ("fold", fold())):
        print(f"{name}: {sum(map(len, found.values()))} functions in {len(found)} files")
        if "--counts" not in sys.argv:
            print(*(f"    {path}: {', '.join(functions)}" for path, functions in found.items()), sep="\n")


if __name__ == "__main__":
    main()
