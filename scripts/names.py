"""List names of the package that stand for two things, and names that say nothing.

    python scripts/names.py        # exit status 1 when it finds any

A class name or a module name may stand for one thing only. These count as one thing: a role that every wire format or
database has (`parse.py`), a command in `cli/` and the module that it calls, and a package and its main module.
`compat/window_budget.py` only re-exports `foldline.window_budget`, whose module names are documented.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "foldline"
ROLES = {"parse", "render", "grammar", "stream", "usage", "framing", "validate", "sendable", "signs", "fields"}
"""File names that each folder of a wire format repeats."""
DOCUMENTED = {
    "Context": "documented by the window_budget API",
    "Model": "documented by the window_budget API",
    "Usage": "documented by the window_budget API",
}
"""Classes of `window_budget/` whose names are fixed by the published API. Other classes have the same names."""
METAPHORS = (
    *("desk", "scribe", "teller", "purse", "crowd", "house", "station", "heart", "crew", "elsewhere", "sitting"),
    *("lent", "clothes", "museum"),
)
PARTICIPLES = {
    *("said", "told", "kept", "made", "borne", "seen", "locally", "again", "given", "written", "taken", "answered"),
    *("failed", "heard", "shown", "asked", "found", "named", "chosen", "opened", "gathered", "counted", "noted"),
}
"""Function and class names that name neither a thing nor an action."""


def modules() -> list[Path]:
    """Every module of the package."""
    return sorted(path for path in SOURCE.rglob("*.py") if path.stem not in {"__init__", "__main__"})


def module_names() -> dict[str, list[str]]:
    """Module names that stand for two things, with their files; a package counts by its folder's name."""
    places: dict[str, list[str]] = defaultdict(list)
    packages = [path.parent for path in SOURCE.rglob("__init__.py") if path.parent != SOURCE]
    for path in (*modules(), *packages):
        relative = path.relative_to(SOURCE)
        is_role = relative.parts[0] == "wire" and len(relative.parts) > 2 and path.stem in ROLES
        is_main = path.stem == path.parent.name
        is_documented = relative.parts[0] == "window_budget" or str(relative) == "compat/window_budget.py"
        if not (is_role or is_main or is_documented or relative.parts[0] == "cli"):
            places[path.stem].append(str(relative))
    return {name: found for name, found in places.items() if len(found) > 1}


def definitions() -> Iterator[tuple[Path, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Every class, function and method of the package with its file."""
    for path in modules() + sorted(SOURCE.rglob("__init__.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield path.relative_to(SOURCE), node


def class_names() -> dict[str, list[str]]:
    """Class names that stand for two things, with their files; a leading underscore makes no difference."""
    places: dict[str, list[str]] = defaultdict(list)
    for path, node in definitions():
        documented = path.parts[0] == "window_budget" and node.name in DOCUMENTED
        if isinstance(node, ast.ClassDef) and not documented:
            places[node.name.lstrip("_")].append(str(path))
    return {name: found for name, found in places.items() if len(found) > 1}


def unclear_names() -> list[str]:
    """Classes, functions and methods named by a metaphor or by a bare participle, with their files."""
    found = []
    for path, node in definitions():
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", node.name).lower().strip("_").split("_")
        if node.name.strip("_").lower() in PARTICIPLES or any(word in METAPHORS for word in words):
            found.append(f"{node.name}: {path}")
    return found + [f"{path.stem}: {path.relative_to(SOURCE)}" for path in modules() if path.stem in METAPHORS]


def report() -> list[str]:
    """One line for each name that must change."""
    return [
        *_lines("module", module_names()),
        *_lines("class", class_names()),
        *(f"unclear name {line}" for line in sorted(unclear_names())),
    ]


def _lines(kind: str, clashes: dict[str, list[str]]) -> Iterable[str]:
    return (f"{kind} {name}: {', '.join(found)}" for name, found in sorted(clashes.items()))


if __name__ == "__main__":
    lines = report()
    print(*lines, sep="\n")
    sys.exit(bool(lines))
