"""The house rules that a reader would otherwise have to check by eye: who may import whom, and what is public."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import foldline

SOURCE = Path(foldline.__file__).parent

BASE = {"message", "policy", "errors", "fold", "placeholders", "json_text", "text_lines"}
MAY_IMPORT = {
    "message": set[str](),
    "errors": set[str](),
    "json_text": {"errors"},
    "text_lines": {"errors"},
    "placeholders": {"message", "errors"},
    "fold": {"message"},
    "policy": {"errors"},
    "tool_calls": BASE,
    "human_input": {"message"},
    "call_outcomes": {"human_input", "tool_calls"},
    "events": BASE,
    "redact": BASE,
    "models": BASE,
    "measure": BASE | {"models"},
    "plan": BASE | {"models", "measure", "tool_calls", "human_input"},
    "wire": BASE | {"models", "measure"},
    "ledger": BASE,
}
MAY_IMPORT["digest"] = BASE | {"models", "measure", "tool_calls", "plan", "ledger", "wire", "redact"}
MAY_IMPORT["digest"] |= {"human_input", "call_outcomes"}
MAY_IMPORT["view"] = MAY_IMPORT["recall"] = MAY_IMPORT["digest"]
MAY_IMPORT["digest"] = MAY_IMPORT["view"] | {"view"}
MAY_IMPORT["session"] = MAY_IMPORT["digest"] | {"digest", "digesters", "recall", "events"}
MAY_IMPORT["testing"] = MAY_IMPORT["session"] | {"session"}
MAY_IMPORT["digesters"] = MAY_IMPORT["digest"] | {"digest"}
MAY_IMPORT["replay"] = MAY_IMPORT["session"] | {"session"}
for room in ("fitting", "watch", "compat", "window_budget", "page", "proxy", "integrations", "cli"):
    MAY_IMPORT[room] = MAY_IMPORT["replay"] | {"replay", "testing", "watch", "compat", "window_budget", "proxy", "cli"}
    MAY_IMPORT[room] |= {"page", "integrations", "fitting"}

NO_WAITING = {"time", "asyncio", "threading", "socket", "subprocess", "sqlite3", "random", "os", "io", "pathlib"}


def imports(path: Path) -> set[str]:
    """Every module a file imports, also inside functions, as dotted names."""
    found = set[str]()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            found.add(node.module or "")
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


FILES = sorted(path for path in SOURCE.rglob("*.py") if path.parent != SOURCE or path.stem != "__init__")


def test_every_room_has_its_neighbours() -> None:
    assert {room_of(path) for path in FILES} <= set(MAY_IMPORT)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_one_way(path: Path) -> None:
    room = room_of(path)
    rooms = {name.split(".")[1] for name in imports(path) if name.startswith("foldline.")} & set(MAY_IMPORT)
    assert rooms - {room} <= MAY_IMPORT[room], f"{room} may not import {rooms - {room} - MAY_IMPORT[room]}"


@pytest.mark.parametrize("path", [p for p in FILES if room_of(p) == "plan"], ids=lambda path: path.name)
def test_planning_cannot_block(path: Path) -> None:
    assert not {name.split(".")[0] for name in imports(path)} & NO_WAITING


def test_public_names() -> None:
    """A new public name is a promise: it is added here on purpose."""
    assert sorted(foldline.__all__) == PUBLIC
    assert all(getattr(foldline, name) is not None for name in foldline.__all__)
    assert set(foldline.__all__) <= set(dir(foldline))
    with pytest.raises(AttributeError, match="nothing_like_this"):
        foldline.nothing_like_this  # noqa: B018


PUBLIC = [
    *["AsyncSession", "AsyncTools", "ConfigError", "FoldlineError", "FormatUnknown", "InputError", "Ledger", "Media"],
    *["Message", "Need", "Opaque", "Part", "Policy", "Preview", "Rendered", "Request", "Session", "Text", "Thinking"],
    *[
        "ToolCall",
        "ToolResult",
        "Tools",
        "Transcript",
        "Usage",
        "View",
        "ViewTooLarge",
        "WireError",
        "digesters",
        "fit",
    ],
    *["is_overflow", "open", "parse", "read", "read_all", "render", "wrap"],
]


def test_import_is_light() -> None:
    """`import foldline` loads nothing that is optional, nor even its own rooms."""
    code = (
        "import sys, foldline; print(*sorted(m for m in sys.modules if m.split('.')[0] not in sys.stdlib_module_names))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    ours = [name for name in loaded if name.split(".")[0] == "foldline"]
    assert ours == ["foldline"]
    assert not {"rich", "click", "splintr", "tiktoken", "openai", "anthropic", "numpy"} & set(loaded)


def test_core_dependencies_are_few() -> None:
    import tomllib

    project = SOURCE.parent.parent / "pyproject.toml"
    if not project.exists():
        pytest.skip("not run from a checkout")
    assert len(tomllib.loads(project.read_text())["project"]["dependencies"]) <= 5


def test_every_name_stands_for_one_thing() -> None:
    """Run `scripts/names.py` for the same list."""
    from scripts import names

    assert names.report() == []
