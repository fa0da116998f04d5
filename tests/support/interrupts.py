"""Exceptions raised in the middle of a call, where a signal or another thread can raise them.

CPython handles signals and asynchronous exceptions where a Python function begins and where a call of C code has
returned. A profile function is called at just these places, so raising from it tries every one of them in turn.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


class Stop(BaseException):
    """An exception that no library knows, as `PyThreadState_SetAsyncExc` may raise."""


def interrupted_at(number: int, call: Callable[[], object], error: type[BaseException] = KeyboardInterrupt) -> bool:
    """Call a function and raise `error` at the place with this number; False if the function ended before it."""
    places = 0

    def profile(_frame: FrameType, event: str, _what: Any) -> None:
        nonlocal places
        if event in {"call", "c_return"}:
            places += 1
            if places == number:
                raise error

    sys.setprofile(profile)
    try:
        call()
    except BaseException as raised:
        if not _is_caused_by(raised, error):
            raise
        return True
    finally:
        sys.setprofile(None)
    return False


def _is_caused_by(raised: BaseException | None, error: type[BaseException]) -> bool:
    """Whether an exception is of this type, or was raised while one was handled (psycopg's pipeline asserts then)."""
    while raised is not None and not isinstance(raised, error):
        raised = raised.__context__
    return raised is not None
