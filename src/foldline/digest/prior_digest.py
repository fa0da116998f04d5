"""A digest read back: its lines by section, so that it can be merged with what came after it and need not be quoted."""

from __future__ import annotations

import re
from collections.abc import Iterator

_KINDS = {
    "objective": "request",
    "guardrails": "constraint",
    "shipped": "done",
    "stuck": "error",
    "rationale": "decision",
    "plan": "open",
}
"""What the lines of a section are. What was active then is not any more; what was carried over are lines with names."""
_HEADING = re.compile(r"#+\s+(\w+)|(Shipped|Active|Stuck):?$")
_HANDLES = re.compile(r"\s*\[(#\d+(?:-\d+)?(?:, #\d+(?:-\d+)?)*)\]\s*$")
_NUMBERS = re.compile(r"#(\d+)(?:-(\d+))?")
_NOTHING = {"", "none", "none."}


def entries(text: str, index: int) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    r"""The lines of a digest that is message `index`: kind ("" for none), words, and the messages they come from.

    >>> list(entries("# Plan\n- ship it [#3-4]\nnone", 9))
    [('open', 'ship it', (2, 3))]
    """
    section = ""
    for raw in text.split("\n"):
        line = raw.strip()
        heading = _HEADING.match(line)
        if heading:
            section = (heading[1] or heading[2]).lower()
            continue
        handles = _HANDLES.search(line)
        said = (line[: handles.start()] if handles else line).removeprefix("- ").strip()
        if said.lower() not in _NOTHING:
            kind = _KINDS.get(section, "") if line.startswith("- ") else ""
            yield kind, said, _numbers(handles[1], index) if handles else (index,)


def _numbers(handles: str, index: int) -> tuple[int, ...]:
    """The messages that handles name, as far as they stand before the digest; else the digest itself."""
    found = [int(number) - 1 for pair in _NUMBERS.findall(handles) for number in pair if number]
    return tuple(sorted({number for number in found if 0 <= number < index})) or (index,)
