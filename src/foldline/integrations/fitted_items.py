"""`fit` for the message objects of a framework. It takes a list and returns a list, without a session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from foldline.fitting import fit
from foldline.integrations.item_codec import ItemCodec


def fit_items(items: Sequence[Any], codec: ItemCodec, **options: Any) -> Sequence[Any]:
    """The items, shortened so that they fit the window. `options` are those of `foldline.fit`.

    If the list already fits, the same list object is returned. An unchanged message is returned as the caller's own
    object.
    """
    owners: dict[int, Any] = {}
    messages = []
    for item in items:
        for message in codec.read(item):
            owners[id(message)] = item
            messages.append(message)
    fitting = fit(messages, **options)
    if fitting is messages:
        return items
    shown: list[Any] = []
    for message in fitting:
        item = owners.get(id(message))
        shown += [item] if item is not None and len(codec.read(item)) == 1 else codec.write([message], item)
    return shown
