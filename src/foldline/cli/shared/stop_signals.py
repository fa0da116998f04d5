"""The signals that stop a service."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

_NUMBERS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def exit_at_stop_signal() -> Iterator[None]:
    """End the command with code 0 if SIGTERM or Ctrl-C arrives in the `with` block.

    While uvicorn serves, it handles the signals itself. When uvicorn has stopped, it raises the signal again, and the
    handler of this function ends the command. If a signal arrives while the event loop starts, asyncio cannot close the
    loop and raises `RuntimeError`. This error ends the command with code 0, too.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []

    def stop(number: int, _frame: object) -> NoReturn:
        received.append(number)
        raise SystemExit(0)

    before = {number: signal.signal(number, stop) for number in _NUMBERS}
    try:
        yield
    except RuntimeError:
        if not received:
            raise
        raise SystemExit(0) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
