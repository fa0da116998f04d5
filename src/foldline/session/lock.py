"""Threads that share a session take turns: each call finds the session as the one before it left it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

Call = TypeVar("Call", bound=Callable[..., Any])


def in_turn(call: Call) -> Call:
    """A method that holds its object's `turn` until it is done; what it calls itself need not wait for it."""

    @wraps(call)
    def held(self: Any, *args: Any, **options: Any) -> Any:
        with self.turn:
            return call(self, *args, **options)

    return cast("Call", held)
