"""Every error foldline raises, in one tree.

    FoldlineError
    ├── InputError              something given cannot be read
    │   ├── WireError           not the JSON it should be: names file, line and field
    │   └── FormatUnknown       readable, but not clear which format it is
    ├── ConfigError             a setting that cannot work, found when it is made
    ├── ViewTooLarge            the protected minimum does not fit: carries the bill by block
    └── LedgerError             the record cannot be read or written; what was acknowledged is still there
        ├── Conflict            somebody else was first: read again and decide anew
        ├── LedgerBusy          somebody else holds it for too long
        ├── LedgerUnavailable   it cannot be reached or written: no such place, read-only, disk full, connection lost
        ├── LedgerCorrupt       what is there is damaged, or is no ledger at all
        └── LedgerTooNew        written by a newer foldline

Each has a `hint` (what to change) and says whether trying again may help (`retryable`).
"""

from __future__ import annotations

from collections.abc import Mapping


class FoldlineError(Exception):
    """Base of all errors of foldline."""

    retryable = False

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}: {self.hint}" if self.hint else self.message


class InputError(FoldlineError):
    """Something given cannot be read."""


class WireError(InputError):
    """Input that is not what its format demands, with the place where it stands."""

    def __init__(self, message: str, *, file: str = "", line: int = 0, field: str = "", hint: str = "") -> None:
        self.file, self.line, self.field = file, line, field
        place = ":".join(str(part) for part in (file, line) if part)
        where = ", ".join(part for part in (place, field and f"field {field}") if part)
        super().__init__(f"{where}: {message}" if where else message, hint=hint)
        self.reason = message

    def at(self, *, file: str = "", line: int = 0) -> WireError:
        """The same error with the place filled in by a caller who knows it."""
        return WireError(self.reason, file=self.file or file, line=self.line or line, field=self.field, hint=self.hint)


class FormatUnknown(InputError):
    """The input is readable, but which format it is must be said by name."""


class ConfigError(FoldlineError):
    """A setting that cannot work."""


class ViewTooLarge(FoldlineError):
    """Nothing more may be folded and the view still does not fit.

    >>> str(ViewTooLarge(131_204, 128_000, {"tools": 41_000, "history": 90_204}))
    '131,204 > 128,000 (tools 41,000, history 90,204): lower keep_tokens or raise the window'
    """

    def __init__(self, tokens: int, limit: int, bill: Mapping[str, int], *, unit: str = "", hint: str = "") -> None:
        self.tokens, self.limit, self.bill = tokens, limit, dict(bill)
        items = ", ".join(f"{block} {size:,}" for block, size in bill.items() if size)
        what = f"{tokens:,} > {limit:,}{' ' + unit if unit else ''}"
        super().__init__(f"{what} ({items})" if items else what, hint=hint or "lower keep_tokens or raise the window")


class LedgerError(FoldlineError):
    """The record cannot be read or written. What was acknowledged before is still there."""


class Conflict(LedgerError):
    """Somebody else was first: what the change was decided on is no longer so. Nothing was written."""

    retryable = True


class LedgerBusy(LedgerError):
    """Somebody else holds the record for longer than it was waited for. Nothing was written."""

    retryable = True


class LedgerUnavailable(LedgerError):
    """The record cannot be reached or written now: no such place, read-only, disk full, connection lost."""

    retryable = True


class LedgerCorrupt(LedgerError):
    """What is stored is damaged, or was never a ledger."""


class LedgerTooNew(LedgerError):
    """The record was written by a newer foldline, whose tables this one does not know."""
