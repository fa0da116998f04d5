"""Counts the secrets that redaction misses and the harmless lines that it changes, on two lists of labelled lines.

A list is a file of JSON lines. A line of the first list has `text` and `secret`. A line of the second list, with
harmless lines, has only `text`. Both may have a `note`. Without paths, the lists of the test suite are read.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from foldline.redact.redact import redact

GOAL_PERCENT = 2.0
_RUN = 8
"""A secret is missed if this many consecutive characters of it stay."""
_SUITE = Path(__file__).parent.parent / "tests" / "redact"


def stays(row: dict[str, Any]) -> bool:
    """Whether a part of the secret stays. A part that also occurs elsewhere in the text does not count."""
    text, secret = row["text"], row["secret"]
    done, elsewhere = redact(text), text.replace(secret, "\n")
    runs = (secret[at : at + _RUN] for at in range(max(1, len(secret) - _RUN + 1)))
    return any(run in done and run not in elsewhere for run in runs)


def changes(row: dict[str, Any]) -> bool:
    """Whether redaction changes a harmless line."""
    text: str = row["text"]
    return redact(text) != text


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def main(argv: list[str]) -> int:
    """Print both shares. The exit status is 1 if a share is above the goal."""
    options = argparse.ArgumentParser(prog="python -m bench secrets", description=(__doc__ or "").split("\n\n")[0])
    options.add_argument("secrets", type=Path, nargs="?", default=_SUITE / "secrets.jsonl")
    options.add_argument("harmless", type=Path, nargs="?", default=_SUITE / "harmless.jsonl")
    options.add_argument("--verbose", action="store_true", help="print what was missed and what was changed")
    given = options.parse_args(argv)
    failed = False
    for label, path, is_wrong in (("missed", given.secrets, stays), ("changed", given.harmless, changes)):
        rows = _rows(path)
        wrong = [row for row in rows if is_wrong(row)]
        share = 100 * len(wrong) / max(1, len(rows))
        failed |= share > GOAL_PERCENT
        print(f"{label:8} {len(wrong):4} of {len(rows):4}  {share:5.1f} %  (goal at most {GOAL_PERCENT:.0f} %)")
        for row in wrong if given.verbose else ():
            print(f"  {row.get('note', '')}: {row['text'][:160]!r} -> {redact(row['text'])[:160]!r}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
