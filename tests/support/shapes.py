"""Does a JSON value have the shape that docs/json.md documents? The page's own blocks are the shapes.

A shape is JSON: an object lists its keys (`"key?"` may be missing, `"*"` stands for any key), a list has the shape of
its items, and a leaf names a kind: `text`, `count`, `number`, `yes`, or several with `|`, or a text in quotes `'…'`.
"""

from __future__ import annotations

import json
import re
from typing import Any

from support.command import NO_DATA, ROOT, foldline

_BLOCK = re.compile(r"^## `foldline (?P<name>[\w -]+)`.*?^```json\n(?P<shape>.*?)^```$", re.DOTALL | re.MULTILINE)


def documented(command: str) -> Any:
    """The shape that the page gives for a command."""
    page = (ROOT / "docs" / "json.md").read_text()
    return {found["name"]: json.loads(found["shape"]) for found in _BLOCK.finditer(page)}[command]


def report(command: str, *arguments: str, shape: str = "", home: str = NO_DATA) -> Any:
    """Run a command with `--json` and return its report, which must have the documented shape."""
    done = foldline(command, *arguments, "--json", XDG_DATA_HOME=home)
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout)
    assert not wrong(found, documented(shape or command))
    return found


def wrong(value: Any, shape: Any, at: str = "$") -> list[str]:
    """Where a value differs from its shape."""
    if isinstance(shape, dict):
        return _wrong_object(value, shape, at)
    if isinstance(shape, list):
        if not isinstance(value, list):
            return [f"{at}: not a list"]
        return [fault for place, item in enumerate(value) for fault in wrong(item, shape[0], f"{at}[{place}]")]
    return [] if any(_is(value, kind) for kind in shape.split(" | ")) else [f"{at}: {value!r} is not {shape}"]


def _wrong_object(value: Any, shape: dict[str, Any], at: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{at}: not an object"]
    faults: list[str] = []
    for key, inner in shape.items():
        name = key.removesuffix("?")
        if name in value:
            faults += wrong(value[name], inner, f"{at}.{name}")
        elif key != "*" and not key.endswith("?"):
            faults.append(f"{at}: no {name}")
    known = {key.removesuffix("?") for key in shape}
    for name in value.keys() - known:
        faults += (
            wrong(value[name], shape["*"], f"{at}.{name}") if "*" in shape else [f"{at}: {name} is not documented"]
        )
    return faults


def _is(value: Any, kind: str) -> bool:
    match kind:
        case "text":
            return isinstance(value, str)
        case "count":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        case "yes":
            return isinstance(value, bool)
        case "null":
            return value is None
        case "texts":
            return isinstance(value, list) and all(isinstance(item, str) for item in value)
    return bool(value == kind.strip("'"))
