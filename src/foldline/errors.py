"""Every error that foldline raises. The base class is `FoldlineError`; errors of a ledger have the base class
`LedgerError`.

Each error has a `hint`, which says what to change. `retryable` says whether a retry may help.
"""

from __future__ import annotations

from collections.abc import Mapping


class FoldlineError(Exception):
    """The base class of all errors of foldline."""

    retryable = False

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}: {self.hint}" if self.hint else self.message


class InputError(FoldlineError):
    """Input that cannot be read."""


def check_type(value: object, kind: type | tuple[type, ...], what: str, *, hint: str) -> None:
    """Raise `InputError` if a value does not have the required type. True and False do not count as numbers.

    >>> check_type(5, str, "the text of a pin", hint='pin("the port is 4711")')
    Traceback (most recent call last):
    foldline.errors.InputError: the text of a pin must be str, not int: pin("the port is 4711")
    """
    if not isinstance(value, kind) or isinstance(value, bool):
        kinds = " or ".join(each.__name__ for each in (kind if isinstance(kind, tuple) else (kind,)))
        raise InputError(f"{what} must be {kinds}, not {type(value).__name__}", hint=hint)


def extra_hint(extra: str) -> str:
    """The hint for an error that is raised because the packages of an optional extra are missing.

    >>> extra_hint("mcp")
    "install foldline[mcp]; in a clone of foldline: pip install '.[mcp]'"

    """
    return f"install foldline[{extra}]; in a clone of foldline: pip install '.[{extra}]'"


class WireError(InputError):
    """Input that does not follow its format. The error names the file, the line and the field."""

    def __init__(self, message: str, *, file: str = "", line: int = 0, field: str = "", hint: str = "") -> None:
        self.file, self.line, self.field = file, line, field
        place = ":".join(str(part) for part in (file, line) if part)
        where = ", ".join(part for part in (place, field and f"field {field}") if part)
        super().__init__(f"{where}: {message}" if where else message, hint=hint)
        self.reason = message

    def at(self, *, file: str = "", line: int = 0) -> WireError:
        """The same error, with `file` and `line` added if the error does not name a file or a line yet."""
        return WireError(self.reason, file=self.file or file, line=self.line or line, field=self.field, hint=self.hint)


class FormatUnknown(InputError):
    """Input whose format cannot be detected; the caller must name the format."""


class ConfigError(FoldlineError, ValueError):
    """A setting that cannot work."""


class ViewTooLarge(FoldlineError):
    """The view does not fit the window, and nothing more may be folded.

    >>> str(ViewTooLarge(131_204, 128_000, {"tools": 41_000, "history": 90_204}))
    '131,204 > 128,000 (tools 41,000, history 90,204): lower keep_tokens or raise the window'
    """

    def __init__(self, tokens: int, limit: int, bill: Mapping[str, int], *, unit: str = "", hint: str = "") -> None:
        self.tokens, self.limit, self.bill = tokens, limit, dict(bill)
        items = ", ".join(f"{block} {size:,}" for block, size in bill.items() if size)
        what = f"{tokens:,} > {limit:,}{' ' + unit if unit else ''}"
        super().__init__(f"{what} ({items})" if items else what, hint=hint or "lower keep_tokens or raise the window")


class Cancelled(FoldlineError):
    """The fold was cancelled before it was complete. Nothing was written."""

    retryable = True


class LedgerError(FoldlineError):
    """The ledger cannot be read or written. Writes that were already confirmed are not lost."""


class Conflict(LedgerError):
    """Another writer changed the branch first. Nothing was written."""

    retryable = True


class LedgerBusy(LedgerError):
    """Another writer held the lock for longer than the timeout. Nothing was written."""

    retryable = True


class LedgerUnavailable(LedgerError):
    """The ledger cannot be reached or written, for example because the disk is full or the connection was lost."""

    retryable = True


class LedgerCorrupt(LedgerError):
    """The database is damaged, or is not a ledger."""


class LedgerTooNew(LedgerError):
    """The ledger was written by a newer version of foldline."""
