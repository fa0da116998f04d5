"""The reference of the public names (docs/api.md), generated from signatures and docstrings.

`scripts/docs.py` puts it into the page. The script fails if a public name is in none of the groups below.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from collections.abc import Iterator
from enum import Enum
from itertools import pairwise
from typing import Any

GROUPS = {
    "Sessions": ("Session", "AsyncSession", "View", "Preview", "Need"),
    "Ledgers": ("open", "Ledger"),
    "One function": ("fit",),
    "Existing clients": ("wrap", "is_overflow"),
    "Digest models": ("digesters",),
    "Tools for the model": ("Tools", "AsyncTools"),
    "Policy": ("Policy",),
    "Reading and rendering": ("read", "read_all", "parse", "render", "Transcript", "Request", "Rendered"),
    "Messages": ("Message", "Part", "Text", "Thinking", "ToolCall", "ToolResult", "Media", "Opaque", "Usage"),
    "Errors": ("FoldlineError", "InputError", "WireError", "FormatUnknown", "ConfigError", "ViewTooLarge"),
}
RETURNED = {
    "recall.result": ("RecallResult", "RecalledPassage", "RecalledMessage"),
    "recall.tools": ("ToolAnswer",),
    "session.reply_tee": ("ReplyTee",),
    "digest.digester": ("DigesterCall", "DigesterReply"),
    "fold": ("Fold", "Digest"),
    "plan.plan": ("Plan",),
    "view.continuation": ("Continuation",),
    "session.record": ("Refusal",),
    "ledger.records": ("SessionInfo", "IntegrityFault"),
    "events": ("Event",),
}
"""Classes of values that users get from foldline and do not create. The keys are the modules that define them."""
_FOR_WORKERS = {"reload", "refresh", "report_reply", "work", "emit", "timeline", "load", "fold_if_due"}
"""Attributes of a session that only foldline's own packages use."""


def reference() -> Iterator[str]:
    """The lines of the reference."""
    import foldline

    listed = {name for names in GROUPS.values() for name in names}
    if missing := set(foldline.__all__) ^ listed:
        raise SystemExit(f"scripts/api_reference.py: {', '.join(sorted(missing))} must be in GROUPS and in __all__")
    for title, names in GROUPS.items():
        yield from (f"## {title}", "")
        for name in names:
            yield from _entry(name, getattr(foldline, name))
    yield from _events()
    note = "Functions on this page return these values or pass them to your functions. Import them only for type hints."
    yield from ("## Returned values", "", note, "")
    for path, names in RETURNED.items():
        module = importlib.import_module(f"foldline.{path}")
        for name in names:
            yield from _entry(name, getattr(module, name), source=f"foldline.{path}")


def _events() -> Iterator[str]:
    """The kinds of events with their facts."""
    from foldline.events import KINDS

    yield from ("## Events", "")
    yield from (
        "A `listener` of `foldline.open` or of `Session` is called with each `Event`. `event.kind` is one of:",
        "",
    )
    yield from ("| kind | `event.facts` | emitted when |", "|---|---|---|")
    for kind, (facts, when) in KINDS.items():
        yield f"| `{kind}` | {', '.join(f'`{fact}`' for fact in facts)} | {when} |"
    yield ""


def _entry(name: str, value: Any, source: str = "") -> Iterator[str]:
    yield from (f"### `{name}`", "")
    if source:
        yield from (f"`from {source} import {name}`", "")
    if inspect.ismodule(value):
        yield from _module(value)
    elif inspect.isclass(value):
        yield from _class(name, value, is_returned=bool(source))
    elif inspect.isfunction(value):
        yield from ("```python", *_signature(name, value), "```", "", *_paragraphs(value), "")
    else:
        yield from (f"`{str(value).replace('foldline.message.', '')}`", "")


def _module(module: Any) -> Iterator[str]:
    for name in sorted(module.__all__):
        yield from _member(name, getattr(module, name)) if inspect.isfunction(getattr(module, name)) else ()
    yield ""


def _class(name: str, value: type, *, is_returned: bool) -> Iterator[str]:
    bases = [base.__name__ for base in value.__bases__ if base.__module__.startswith("foldline")]
    is_value = hasattr(value, "__dataclass_fields__") or hasattr(value, "_fields")
    if "__init__" in vars(value) and not is_value and not is_returned:
        yield from ("```python", *_signature(name, vars(value)["__init__"]), "```", "")
    yield from (*_paragraphs(value), "")
    if "__init__" in vars(value) and vars(value)["__init__"].__doc__ and not is_value:
        yield from (*_paragraphs(vars(value)["__init__"]), "")
    if bases:
        yield from (f"A subclass of `{bases[0]}`.", "")
    if name == "Policy":
        yield from ("[The policy](policy.md#knobs) lists all knobs.", "")
    has_fields = (is_value or issubclass(value, Enum)) and name != "Policy"
    members = [*(_fields(value) if has_fields else ()), *_members(value)]
    yield from (*members, "") if members else ()


def _fields(value: type) -> Iterator[str]:
    """The fields of a value or the members of an enum, with the docstrings that follow them in the source."""
    body = ast.parse(textwrap.dedent(inspect.getsource(value))).body[0]
    assert isinstance(body, ast.ClassDef)
    following = dict(pairwise(body.body))
    for node in body.body:
        if not isinstance(node, ast.AnnAssign | ast.Assign) or ast.unparse(node).startswith("_"):
            continue
        after = following.get(node)
        is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        text = f": {_line(str(ast.literal_eval(after.value)))}" if is_text and isinstance(after, ast.Expr) else ""
        if isinstance(node.value, ast.Call):  # a dataclass field with options
            node.value = next((each.value for each in node.value.keywords if each.arg == "default"), None)
        yield f"- `{ast.unparse(node)}`{text}"


def _members(value: type) -> Iterator[str]:
    for name, member in vars(value).items():
        if name.startswith("_") or (value.__name__ == "Session" and name in _FOR_WORKERS):
            continue
        if isinstance(member, property):
            returns = inspect.signature(member.fget).return_annotation if member.fget else ""
            yield f"- `{name}: {_type(returns)}`: {_first(member)}"
        elif isinstance(member, classmethod | staticmethod):
            yield from _member(f"{value.__name__}.{name}", member.__func__)
        elif inspect.isfunction(member):
            yield from _member(name, member)


def _member(name: str, function: Any) -> Iterator[str]:
    yield f"- `{' '.join(line.strip() for line in _signature(name, function, width=10_000))}`: {_first(function)}"


def _signature(name: str, function: Any, width: int = 100) -> list[str]:
    """The call of a function with its types, on one line or with one parameter per line."""
    signature = inspect.signature(function)
    is_block = inspect.isgeneratorfunction(inspect.unwrap(function)) and hasattr(function, "__wrapped__")
    start = "await " if inspect.iscoroutinefunction(function) else "with " if is_block else ""
    parameters = [each for each in signature.parameters.values() if each.name not in {"self", "cls"}]
    shown = [_parameter(each) for each in parameters]
    kinds = [each.kind for each in parameters]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        shown.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    returns = _type(signature.return_annotation)
    returns = returns.removeprefix("Iterator[").removesuffix("]") if is_block else returns
    end = f") -> {returns}" if returns not in {"None", ""} else ")"
    line = f"{start}{name}({', '.join(shown)}{end}"
    return [line] if len(line) <= width else [f"{start}{name}(", *(f"    {each}," for each in shown), end]


def _parameter(parameter: inspect.Parameter) -> str:
    star = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(parameter.kind.name, "")
    default = "" if parameter.default is inspect.Parameter.empty else f" = {_value(parameter.default)}"
    return f"{star}{parameter.name}: {_type(parameter.annotation)}{default}"


def _value(default: Any) -> str:
    return f"{default.__module__}.{default.__name__}" if inspect.isbuiltin(default) else repr(default)


def _type(annotation: Any) -> str:
    if annotation in (inspect.Signature.empty, inspect.Parameter.empty):
        return ""
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def _first(value: Any) -> str:
    return _line((inspect.getdoc(value) or "").partition("\n\n")[0])


def _line(text: str) -> str:
    return " ".join(text.partition("\n\n")[0].split())


def _paragraphs(value: Any) -> list[str]:
    """A docstring as Markdown. Indented lines and doctests become a code block."""
    lines: list[str] = []
    for paragraph in (inspect.getdoc(value) or "").split("\n\n"):
        is_code = paragraph.startswith(("    ", ">>> "))
        lines += ["```python", *textwrap.dedent(paragraph).splitlines(), "```"] if is_code else paragraph.splitlines()
        lines.append("")
    return lines[:-1]
