"""Repair makes a broken history sendable. Repair changes the view, never the record.

Histories break in practice. An abort leaves a call without a result. A fold removes a call but not its result. A stream
ends inside thinking. A tool returns nothing. Two calls get the same id. Every provider refuses a request with such a
history, and every later request of the same conversation. Repair changes as little as the format's grammar demands,
records each change in a note, and returns valid messages as the same objects. Each stage of the repair is a module that
enforces one invariant. `history.py` runs the stages in order.

    repair(messages, "anthropic")          # Repaired: .messages and .notes, for a list that is repaired once

    history = RepairedHistory("anthropic") # for a list that grows
    history.update(messages)               # the same as repair(messages, "anthropic"), but reads only what is new

`update` takes the whole list every time and compares the messages by identity. A list that changed (after a fold) is
repaired from its start.
"""

from foldline.wire.repair.context import RepairNote
from foldline.wire.repair.history import Repaired, repair
from foldline.wire.repair.incremental import RepairedHistory

__all__ = ["RepairNote", "Repaired", "RepairedHistory", "repair"]
