"""Folds as JSON: the list of a session's folds, and one fold with its digest and the changes from
the previous digest.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Any

from foldline.cli.shared.output import digest_row, without_secrets
from foldline.errors import InputError
from foldline.fold import Fold
from foldline.ledger.records import FoldReference
from foldline.page.session_reader import SessionReader
from foldline.plan.timeline import handle

_DIFF_LINES = 2_000
"""Digests with more lines than this are not compared with each other."""


def fold_row(number: int, reference: FoldReference, fold: Fold) -> dict[str, Any]:
    """A fold with its digest as JSON."""
    row = {
        "number": number,
        "at": reference.at,
        "cut": fold.cut,
        "made_at": fold.made_at,
        "folded": handle(0, fold.cut - 1) if fold.cut else "",
        "before": fold.before,
        "after": fold.after,
        "reason": fold.reason,
        "stubs": len(fold.stubs),
        "pinned": [index + 1 for index in fold.pinned],
        "carried": [index + 1 for index in fold.carried],
        "digest": None,
    }
    if fold.digest is None:
        return row
    digest = fold.digest
    figures = {
        "carried": digest.loss.carried if digest.loss else 0,
        "text": digest.message.text,
        "usage": digest.usage._asdict() if digest.usage else None,
        "native": digest.native is not None,
    }
    return {**row, "digest": without_secrets({**digest_row(fold, digest), **figures})}


def fold_rows(reader: SessionReader) -> list[dict[str, Any]]:
    """The folds that were not undone, oldest first, without the text of their digests."""
    rows = []
    for number, reference in enumerate(reader.log().folds, start=1):
        row = fold_row(number, reference, reader.fold(reference))
        if row["digest"] is not None:
            row["digest"] = {name: value for name, value in row["digest"].items() if name != "text"}
        rows.append(row)
    return rows


def whole_fold(reader: SessionReader, number: int) -> dict[str, Any]:
    """One fold with its digest, and the lines in which the digest differs from the previous one."""
    folds = reader.log().folds
    if not 1 <= number <= len(folds):
        raise InputError(f"there is no fold {number}", hint=f"the session has {len(folds)} folds")
    fold = reader.fold(folds[number - 1])
    before = reader.fold(folds[number - 2]) if number > 1 else None
    row = fold_row(number, folds[number - 1], fold)
    first = before.cut if before else 0
    return {
        **row,
        "is_newest": number == len(folds),
        "first": handle(first, fold.cut - 1) if fold.cut > first else "",
        "changes": _changes(_text_of(before), _text_of(fold)) if before else [],
    }


def _text_of(fold: Fold | None) -> str:
    return fold.digest.message.text if fold and fold.digest else ""


def _changes(before: str, after: str) -> list[list[str]]:
    """The lines of two texts. Each line is marked as `same`, `gone` or `new`."""
    old, new = before.splitlines(), after.splitlines()
    if len(old) > _DIFF_LINES or len(new) > _DIFF_LINES:
        return []
    lines: list[list[str]] = []
    for tag, start, stop, first, last in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            lines += [["same", line] for line in old[start:stop]]
        else:
            lines += [["gone", line] for line in old[start:stop]]
            lines += [["new", line] for line in new[first:last]]
    return [[kind, without_secrets(line)] for kind, line in lines]
