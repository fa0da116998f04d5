"""Output of `foldline watch`. Write errors do not end the watch: the agent would block if nothing read its pipe.

A disk may fill up, a reader may close its pipe, and a signal may arrive during a write. Each failure is reported once.
Notes that cannot be written are kept in memory, up to a limit. The last report says what is still missing.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self, TextIO

from foldline.errors import FoldlineError
from foldline.watch.cost import ProjectCosts
from foldline.watch.scratch import ScratchModel
from foldline.watch.scratch_files import ScratchWriter
from foldline.watch.stdio import write_unbuffered

HELD_CHARS = 4_000_000
"""Maximum number of characters of notes that are kept while notes cannot be written. Further notes are dropped."""
_NOTES, _COSTS = "the notes", "the project's costs"
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


class WriteFailures:
    """The outputs that cannot be written at the moment, and why. Only the first failure of each output is reported."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._reported = set[str]()
        self._current: dict[str, str] = {}

    def add(self, name: str, reason: str) -> None:
        """Record that the output `name` cannot be written. Report this if it is the first failure of the output."""
        self._current[name] = f"{name} cannot be written: {reason}"
        if name not in self._reported:
            self._reported.add(name)
            self._report(self._current[name])

    def remove(self, name: str) -> None:
        """Forget the failure of the output `name`, if there was one. Call this when the output has been written."""
        self._current.pop(name, None)

    @property
    def texts(self) -> list[str]:
        """One text for each output that cannot be written at the moment."""
        return list(self._current.values())


class DeferredSignals:
    """Turns the signals that end a process into a KeyboardInterrupt, but only while the command waits for input.

    Work in progress is finished first, so that an event that was read is also reported and recorded. A second signal
    interrupts at once.
    """

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        self.is_waiting = False
        """Whether the command waits for input."""
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for name in _SIGNALS:
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                self._previous[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Delay a first signal until the `with` block has finished, then raise KeyboardInterrupt."""
        self.is_waiting = False
        yield
        self.is_waiting = True
        if self.signal is not None:
            raise KeyboardInterrupt

    def _receive(self, number: int, _: object) -> None:
        is_second, self.signal = self.signal is not None, signal.Signals(number)
        if self.is_waiting or is_second:
            raise KeyboardInterrupt


class UnbufferedOutput:
    """A standard stream without a buffer. If a write fails, no error is raised and nothing more is written."""

    def __init__(self, file: TextIO | None, name: str, failures: WriteFailures | None = None) -> None:
        self._file, self._name, self._failures = file, name, failures
        self.encoding = file.encoding if file is not None else "utf-8"
        self.closed = file is None
        self._batch: list[str] | None = None

    def pace(self, *, behind: bool) -> None:
        """Write the texts collected so far.

        If more input is waiting (`behind`), later texts are collected until the next call; otherwise each text is
        written at once.
        """
        batch, self._batch = self._batch, [] if behind else None
        if batch:
            self._send_text("".join(batch))

    def send(self, data: bytes) -> None:
        """Write bytes unchanged."""
        if self.closed:
            return
        try:
            write_unbuffered(self._file, data)
        except BrokenPipeError:
            self.closed = True
        except OSError as error:
            self.closed = True
            if self._failures is not None:
                self._failures.add(self._name, f"{error.strerror}; watching goes on")

    def write(self, text: str) -> int:
        """Write a text at once, or collect it until the next call of `pace`."""
        if self._batch is None:
            self._send_text(text)
        else:
            self._batch.append(text)
        return len(text)

    def _send_text(self, text: str) -> None:
        self.send(text.encode(self.encoding, "backslashreplace"))

    def flush(self) -> None:
        """Do nothing: collected texts are written by `pace`."""

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        return self._file is not None and self._file.isatty()


class TolerantScratchWriter:
    """A `ScratchWriter` that reports write errors and keeps the notes for the next attempt."""

    def __init__(self, writer: ScratchWriter, failures: WriteFailures) -> None:
        self._writer, self._failures = writer, failures
        self._is_incomplete = False

    @property
    def path(self) -> Path:
        """Path of the index of the notes."""
        return self._writer.path

    def write_scratch(self, model: ScratchModel) -> bool:
        """Write the notes. Returns False if that failed; the failure is reported."""
        try:
            self._writer.write_scratch(model)
        except (FoldlineError, OSError) as error:
            self._failures.add(_NOTES, _reason(error, self.path.parent))
            if model.weight > HELD_CHARS:
                model.forget()
                self._is_incomplete = True
            return False
        if not self._is_incomplete:
            self._failures.remove(_NOTES)
        return True


class TolerantCostRecorder:
    """Records the cost of this run in the project's cost file.

    If that fails, the error is reported, and the costs of other runs stay as they were last read from the file.
    """

    def __init__(self, costs: ProjectCosts, failures: WriteFailures) -> None:
        self._costs, self._failures = costs, failures

    def record(self, usd: float) -> float:
        """Record the cost of this run in dollars, and return the cost of the project.

        After a write error, the costs of other runs may be outdated.
        """
        try:
            total = self._costs.record(usd)
        except (FoldlineError, OSError) as error:
            self._failures.add(_COSTS, _reason(error, self._costs.path))
            return self._costs.total(usd)
        self._failures.remove(_COSTS)
        return total


def _reason(error: FoldlineError | OSError, place: Path) -> str:
    return f"{error.filename or place}: {error.strerror}" if isinstance(error, OSError) else str(error)
