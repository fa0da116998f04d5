"""Folds as JSON: the list of a session's folds, and one fold with its digest.

The digest is compared with the previous digest.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Any

from foldline.cli.shared.output import digest_row, without_secrets
from foldline.digest.audit import audit
from foldline.digest.extract.extraction import extract_facts
from foldline.errors import InputError
from foldline.fold import Fold
from foldline.page.session_reader import RecordedFold, SessionReader
from foldline.plan.timeline import handles_of, left_handles

_DIFF_LINES = 2_000
"""Digests with more lines than this are not compared with each other."""


def fold_rows(reader: SessionReader) -> list[dict[str, Any]]:
    """All folds of a session, oldest first, without the texts of their digests.

    Folds that were taken back are included.
    """
    rows = [_row(reader, number, one) for number, one in enumerate(reader.fold_history().folds, start=1)]
    for row in rows:
        if row["digest"] is not None:
            row["digest"] = {name: value for name, value in row["digest"].items() if name != "text"}
    return rows


def whole_fold(reader: SessionReader, number: int) -> dict[str, Any]:
    """One fold with its digest, and the lines in which the digest differs from the previous digest."""
    fold, history = _fold(reader, number), reader.fold_history()
    recorded = history.folds[number - 1]
    before = reader.fold(recorded.before) if recorded.before else None
    return {
        **_row(reader, number, recorded),
        "previous": history.number_of(recorded.before) or None,
        "back": _returned(reader, fold),
        "stays": _stays(reader, fold),
        "changes": _changes(_text_of(before), _text_of(fold)) if before else [],
    }


def _returned(reader: SessionReader, fold: Fold) -> str:
    """The handles of the messages of a fold that are in the request again; "" if there are none."""
    log = reader.log()
    gone = {index for one in (log.fold.left if log.fold else ()) for index in one}.union(log.removed)
    return handles_of(index for one in fold.left for index in one if index not in gone)


def lost_facts(reader: SessionReader, number: int) -> dict[str, Any]:
    """All facts that the digest of a fold does not show, the most important first.

    The ledger stores only some of these facts, so the facts are extracted from the messages again.
    """
    fold = _fold(reader, number)
    facts = extract_facts(reader.messages(fold.lead, fold.made_at), fold.lead)
    kept = {*fold.pinned, *fold.carried, *range(fold.cut, fold.made_at)}.difference(fold.stubs, fold.removed)
    loss = audit(_text_of(fold), facts, kept_indexes=kept, max_reported=None)
    return {"missing": without_secrets(list(loss.missing))}


def _fold(reader: SessionReader, number: int) -> Fold:
    """The fold with this number. Raises `InputError` if there is none."""
    folds = reader.fold_history().folds
    if not 1 <= number <= len(folds):
        raise InputError(f"there is no fold {number}", hint=f"the session has {len(folds)} folds")
    return reader.fold(folds[number - 1].reference)


def _row(reader: SessionReader, number: int, recorded: RecordedFold) -> dict[str, Any]:
    """A fold with its digest as JSON."""
    log = reader.log()
    fold, before = reader.fold(recorded.reference), reader.fold(recorded.before) if recorded.before else None
    name, undone = recorded.reference.id, [one.id for one in log.undone]
    row: dict[str, Any] = {
        "number": number,
        "id": name,
        "at": _made_at(reader, fold) or recorded.reference.at,
        "applies": bool(log.folds) and name == log.folds[-1].id,
        "taken_back_at": recorded.taken_back_at,
        "can_refold": name in undone[-1:],
        "is_final": recorded.taken_back_at is not None and name not in undone,
        "cut": fold.cut,
        "made_at": fold.made_at,
        "folded": left_handles(fold),
        "first": left_handles(fold, before),
        "left": sum(map(len, fold.left)),
        "before": fold.before,
        "after": fold.after,
        "reason": fold.reason,
        "compacted_by": fold.compacted_by,
        "stubs": len(fold.stubs),
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


def _made_at(reader: SessionReader, fold: Fold) -> float | None:
    """The time of the first message after a compaction that foldline did not make; None for other folds.

    An import records the compaction later.
    """
    after = reader.messages(fold.cut, fold.cut + 1) if fold.compacted_by else []
    return after[0].meta.at if after else None


def _stays(reader: SessionReader, fold: Fold) -> list[dict[str, Any]]:
    """The messages before the cut that stay in the request, each with the reason."""
    pins = {pin.position for pin in reader.log().pins}
    rows = []
    for index in sorted({*fold.pinned, *fold.carried}):
        is_prompt = any(message.is_prompt for message in reader.messages(index, index + 1))
        if index in pins:
            why = "pinned"
        elif is_prompt:
            why = "first prompt" if index == reader.first_prompt() else "newest prompt"
        else:
            why = "with a pin" if pins & {index - 1, index + 1} else "open call"
        rows.append({"message": index + 1, "why": why})
    return rows


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
