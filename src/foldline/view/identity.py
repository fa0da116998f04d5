"""The identity of a view, which tells which request a usage figure measured.

An identity is derived from the record, so the same view has the same identity in every process. A reply is stored with
the identity of the view that it answers. The usage of the reply is then used only for that view and for views that grew
from it.
"""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

from foldline.errors import InputError
from foldline.fold import Fold

_FOLD_LENGTH, _SETTINGS_LENGTH = 8, 4
"""The lengths of the two parts of a key: the hash of the fold and the hash of the settings."""
_SHORT, _LONG = 2, 4
"""The number of fields in the short and in the long text form of an identity."""


class ViewIdentity(NamedTuple):
    """The identity of a view. The text form is `key.tools` or `key.tools.length.tokens`.

    >>> str(ViewIdentity.parse("3f0c9a12b4de.5400.12.80211"))
    '3f0c9a12b4de.5400.12.80211'
    """

    key: str
    """The hash of the fold, and then the hash of the settings (model, format and counter)."""
    tools: int
    """Estimated tokens of the request that are in no message, such as tool definitions."""
    length: int = -1
    """The number of messages of the session when the view was made; -1 means all messages before the reply."""
    tokens: int = 0
    """Estimated tokens of the messages in the view, if `length` is given."""

    def __str__(self) -> str:
        key, tools, length, tokens = self
        return f"{key}.{tools}.{length}.{tokens}" if length >= 0 else f"{key}.{tools}"

    @property
    def extension(self) -> ViewIdentity:
        """The identity for a later view that grew from this one and ends directly before the reply to it."""
        return self if self.length < 0 else ViewIdentity(self.key, self.tools)

    @property
    def fold_key(self) -> str:
        """The hash of the fold."""
        return self.key[:_FOLD_LENGTH]

    def shares_fold(self, key: str) -> bool:
        """Whether a view with this key has the same fold, with the same or other settings."""
        return self.key[:_FOLD_LENGTH] == key[:_FOLD_LENGTH]

    @classmethod
    def read(cls, text: str) -> ViewIdentity | None:
        """The identity in a stored text; None if the text is not an identity."""
        fields = text.split(".", _LONG)
        try:
            if len(fields) == _LONG:
                return cls(fields[0], int(fields[1]), int(fields[2]), int(fields[3]))
            return cls(fields[0], int(fields[1])) if len(fields) == _SHORT else None
        except ValueError:
            return None

    @classmethod
    def parse(cls, text: str) -> ViewIdentity:
        """The identity in a text that a caller gives. Raises `InputError` if the text is not an identity."""
        found = cls.read(text)
        if found is None:
            raise InputError(f"{text[:80]!r} is not the identity of a view", hint="give a view, or its `identity`")
        return found


UNKNOWN_VIEW = ViewIdentity("?", 0)
"""The identity of an unknown view. A usage figure with this identity is not used for any view."""


def view_key(fold: Fold | None, *settings: str) -> str:
    """The key of all views with the same fold and settings.

    The settings are the names of model, format, counter and framing.
    """
    facts: list[object] = []
    if fold is not None:
        digest = fold.digest.message if fold.digest else None
        facts += [fold.cut, fold.made_at, fold.pinned, fold.carried, digest and (digest.role, digest.text)]
        facts += ["native"] if fold.digest and fold.digest.native else []
        facts += [[(index, fold.stubs[index][1]) for index in sorted(fold.stubs)]]
    return _hash(facts)[:_FOLD_LENGTH] + _hash(settings)[:_SETTINGS_LENGTH]


def _hash(value: object) -> str:
    return sha256(repr(value).encode("utf-8", "surrogatepass")).hexdigest()
