"""What gives way around a watch must not end it: the agent waits on the pipe that it reads.

A disk may fill up, a reader may leave, a signal may come in the middle of a write. Each is said once in plain words,
what cannot be written is held as long as there is room for it, and the end tells what is still missing.
"""

from __future__ import annotations

import select
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self, TextIO, TypeAlias

from foldline.errors import FoldlineError
from foldline.watch.cost import ProjectCosts
from foldline.watch.scratch import ScratchModel
from foldline.watch.scratch_files import ScratchWriter

HELD_CHARS = 4_000_000
"""How much of the notes waits for a place to be written to; what is more is lost."""
_NOTES, _COSTS = "the notes", "the project's costs"
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")

Tell: TypeAlias = Callable[[str], None]


class WriteFailures:
    """What could not be written, by its name; each is told once."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._told = set[str]()
        self._now: dict[str, str] = {}

    def add(self, what: str, why: str) -> None:
        """Something cannot be written."""
        self._now[what] = f"{what} cannot be written: {why}"
        if what not in self._told:
            self._told.add(what)
            self._tell(self._now[what])

    def mended(self, what: str) -> None:
        """It can be written again, and nothing of it is lost."""
        self._now.pop(what, None)

    @property
    def texts(self) -> list[str]:
        """What is missing now."""
        return list(self._now.values())


class DeferredSignals:
    """Turns the signals that end a process into a KeyboardInterrupt, but only while it waits for something to read.

    Whatever is under way is finished first: an event that was taken is told and noted. Who sends a second signal does
    not want to wait for that.
    """

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        self.waits = False
        """Whether nothing is under way."""
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for name in _SIGNALS:
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                self._before[number] = signal.signal(number, self._come)
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Something that is finished before a signal takes effect, in the middle of waiting."""
        self.waits = False
        yield
        self.waits = True
        if self.signal is not None:
            raise KeyboardInterrupt

    def _come(self, number: int, _: object) -> None:
        again, self.signal = self.signal is not None, signal.Signals(number)
        if self.waits or again:
            raise KeyboardInterrupt


class UnbufferedOutput:
    """A stream for others to read; when nobody does, or it takes no more, nothing fails."""

    def __init__(self, file: TextIO | None, what: str, missing: WriteFailures | None = None) -> None:
        self._file, self._what, self._missing = file, what, missing
        self._raw: Any = getattr(file.buffer, "raw", file.buffer) if file is not None else None
        """What is behind the stream's buffer: nothing that was refused may wait there for the end."""
        self.encoding = file.encoding if file is not None else "utf-8"
        self.closed = file is None
        self._held: list[str] | None = None

    def pace(self, *, behind: bool) -> None:
        """Hold what is written while more waits to be read, and let it go when nothing does."""
        held, self._held = self._held, [] if behind else None
        if held:
            self._send_text("".join(held))

    def send(self, data: bytes) -> None:
        """Write bytes on as they are."""
        while data and not self.closed:
            try:
                written = self._raw.write(data)
            except BrokenPipeError:
                self.closed = True
            except OSError as error:
                self.closed = True
                if self._missing is not None:
                    self._missing.add(self._what, f"{error.strerror}; watching goes on")
            else:
                if written is None:  # its owner set it not to wait
                    select.select([], [self._raw], [])
                else:
                    data = data[written:]

    def write(self, text: str) -> int:
        """Write a text at once, or hold it for a moment."""
        if self._held is None:
            self._send_text(text)
        else:
            self._held.append(text)
        return len(text)

    def _send_text(self, text: str) -> None:
        self.send(text.encode(self.encoding, "backslashreplace"))

    def flush(self) -> None:
        """Nothing waits here."""

    def isatty(self) -> bool:
        """Whether a person reads it."""
        return self._file is not None and self._file.isatty()


class TolerantScratchWriter:
    """A writer of notes that gives way where they cannot be written; they wait for the next time."""

    def __init__(self, writer: ScratchWriter, missing: WriteFailures) -> None:
        self._writer, self._missing = writer, missing
        self._lost = False

    @property
    def path(self) -> Path:
        """The index."""
        return self._writer.path

    def write_scratch(self, model: ScratchModel) -> bool:
        """Write the notes, or say why not; whether they are written."""
        try:
            self._writer.write_scratch(model)
        except (FoldlineError, OSError) as error:
            self._missing.add(_NOTES, _why(error, self.path.parent))
            if model.weight > HELD_CHARS:
                model.forget()
                self._lost = True
            return False
        if not self._lost:
            self._missing.mended(_NOTES)
        return True


class TolerantCostRecorder:
    """What a project's jobs have spent, for a watch that goes on when that cannot be written."""

    def __init__(self, costs: ProjectCosts, missing: WriteFailures) -> None:
        self._costs, self._missing = costs, missing

    def record(self, usd: float) -> float:
        """Note what this run has spent; what the project has, as far as it is known."""
        try:
            total = self._costs.record(usd)
        except (FoldlineError, OSError) as error:
            self._missing.add(_COSTS, _why(error, self._costs.path))
            return self._costs.known(usd)
        self._missing.mended(_COSTS)
        return total


def _why(error: FoldlineError | OSError, place: Path) -> str:
    """What is wrong, and where."""
    if isinstance(error, OSError):
        return f"{error.filename or place}: {error.strerror}"
    return str(error)
