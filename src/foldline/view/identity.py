"""The identity of a view, which tells to which request a usage figure belongs.

An identity is derived from the record, so the same view has the same identity in every process. A reply is stored with
the identity of the view that it answers. The usage of the reply is then used only for that view, and for views that
have the same messages and more messages at the end.

Some providers bind thinking to its prefix (the system prompt, the tools and the messages before it): they accept a
thinking block only if its prefix has not changed since the block was written. For such a provider, the identity also
has a binding. The binding is a hash that says which prefix was sent. The thinking of a reply is bound to the view that
the reply answers. In a later view with another binding, this thinking is unbound.
"""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

from foldline.errors import InputError
from foldline.fold import Fold

_FOLD_LENGTH, _SETTINGS_LENGTH = 8, 4
"""The lengths of the two parts of a key: the hash of the fold and the hash of the settings."""
_SHORT, _LONG = 2, 4
"""The number of fields in the short and in the long text form of an identity. A binding is one more field."""
_BINDING_LENGTH = 12


class ViewIdentity(NamedTuple):
    """The identity of a view.

    `str()` returns the values of the fields, separated by dots: `key.tools.length.tokens`. If `length` is -1, the text
    has only `key.tools`. If there is a binding, `.binding` follows at the end.

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
    binding: str = ""
    """The hash that says which prefix was sent (see `binding_key`).

    The hash covers everything before the reply that can change without a new message: the fold, the model, the tools, …

    "" if the provider does not bind thinking to its prefix, or if the prefix that was sent is unknown.
    """

    def __str__(self) -> str:
        key, tools, length, tokens, binding = self
        bound = f".{binding}" if binding else ""
        return f"{key}.{tools}.{length}.{tokens}{bound}" if length >= 0 else f"{key}.{tools}{bound}"

    @property
    def extension(self) -> ViewIdentity:
        """The identity of the longer view that has this view's messages and all later messages before the reply."""
        return self if self.length < 0 else ViewIdentity(self.key, self.tools, binding=self.binding)

    @property
    def with_unknown_prefix(self) -> ViewIdentity:
        """The same identity without its binding, for a request whose prefix differs from the prefix of the view.

        A client's own request can contain thinking that the view leaves out. Then it is not known which prefix the
        thinking of the reply is bound to. Without a binding, this thinking counts as unbound in every later view.
        """
        return self._replace(binding="")

    @property
    def fold_key(self) -> str:
        """The hash of the fold."""
        return self.key[:_FOLD_LENGTH]

    def shares_fold(self, key: str) -> bool:
        """Whether a view with this key has the same fold. The settings may differ."""
        return self.key[:_FOLD_LENGTH] == key[:_FOLD_LENGTH]

    @classmethod
    def read(cls, text: str) -> ViewIdentity | None:
        """The identity in a stored text; None if the text is not an identity."""
        fields = text.split(".", _LONG + 1)
        binding = fields.pop() if len(fields) in (_SHORT + 1, _LONG + 1) else ""
        try:
            if len(fields) == _LONG:
                return cls(fields[0], int(fields[1]), int(fields[2]), int(fields[3]), binding)
            return cls(fields[0], int(fields[1]), binding=binding) if len(fields) == _SHORT else None
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
    facts = _facts(fold)
    if fold is not None:
        facts += [[(index, fold.stubs[index][1]) for index in sorted(fold.stubs)]]
    return _hash(facts)[:_FOLD_LENGTH] + _hash(settings)[:_SETTINGS_LENGTH]


def binding_key(fold: Fold | None, *settings: object) -> str:
    """The hash of a fold (without its stubs) and of the settings that change a request: model, format, tools, …

    Providers that bind thinking to its prefix accept the thinking only if these values are the same.
    """
    return _hash((_facts(fold), settings))[:_BINDING_LENGTH]


def binding_after(binding: str, index: int, tokens: int) -> str:
    """The binding of all replies after a message that the view shows in shortened form.

    `binding` is the binding of the replies before that message. `index` is the position of the message, and `tokens` is
    the size of the shortened form.
    """
    return _hash((binding, index, tokens))[:_BINDING_LENGTH]


def _facts(fold: Fold | None) -> list[object]:
    """The values of a fold that determine the view, except the stubs."""
    if fold is None:
        return []
    digest = fold.digest.message if fold.digest else None
    facts = [fold.cut, fold.made_at, fold.pinned, fold.carried, digest and (digest.role, digest.text)]
    facts += [fold.removed] if fold.removed else []
    return facts + (["native"] if fold.digest and fold.digest.native else [])


def _hash(value: object) -> str:
    return sha256(repr(value).encode("utf-8", "surrogatepass")).hexdigest()
