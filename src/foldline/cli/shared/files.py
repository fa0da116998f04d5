"""Files that commands read and write: one conversation as the model sees it; writing that is whole or not at all."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from foldline import text_lines
from foldline.errors import ConfigError, InputError
from foldline.message import Message
from foldline.replay import seen_together, unmeasured
from foldline.wire import Transcript, read_all

STDOUT = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """The one conversation of a file."""

    file: str
    transcript: Transcript
    messages: tuple[Message, ...]
    """What the model sees of it: since the last compaction that the file records, without the usage of that time."""

    @property
    def before(self) -> int:
        """How many messages an earlier compaction had already taken from the model's sight."""
        return len(self.transcript.messages) - len(self.messages)


def conversation(file: str, form: str | None = None) -> Conversation:
    """Read a file that holds one conversation."""
    found = read_all(file, form)
    if len(found) != 1:
        what = f"holds {len(found)} conversations" if found else "holds no conversation"
        raise InputError(f"{file}: {what}", hint="give a file with one; foldline inspect lists what is in it")
    return Conversation(file=file, transcript=found[0], messages=unmeasured(seen_together(found[0])[-1]))


def gathered(places: Iterable[str]) -> tuple[list[str], list[str]]:
    """The files that were named, and those that only lie in a folder that was."""
    named: list[str] = []
    found: list[str] = []
    for place in places:
        if Path(place).is_dir():
            found += _inside(place)
        else:
            named.append(place)
    return named, [file for file in found if file not in set(named)]


def _inside(folder: str) -> Iterator[str]:
    """Everything in a folder that may be a transcript."""
    for path in sorted(Path(folder).rglob("*")):
        if path.is_file() and path.name.removesuffix(".gz").endswith((".json", ".jsonl")):
            yield str(path)


def content(file: str) -> str:
    """The text of a file, also of a compressed one."""
    return "".join(line.text + "\n" * line.ended for line in text_lines.lines_of_file(file))


def refuse_to_overwrite(target: str, sources: Sequence[str], *, force: bool) -> None:
    """Say no before any work is done: to what exists, and in any case to what was read."""
    if target == STDOUT:
        return
    path = Path(target)
    if path.is_dir():
        raise ConfigError(f"{target} is a folder", hint="name a file to write")
    if any(path.exists() and Path(source).exists() and path.samefile(source) for source in sources):
        raise ConfigError(f"{target} is the file that is read", hint="write to another one: the original is the record")
    if path.exists() and not force:
        raise ConfigError(f"{target} exists", hint="use --force to replace it")
    if not path.parent.is_dir():
        raise ConfigError(f"there is no folder {path.parent}", hint="make it first")


def write(target: str, *chunks: bytes) -> int:
    """Write a file whole or not at all; how many bytes it has."""
    return write_all(target, chunks)


def write_all(target: str, chunks: Iterable[bytes]) -> int:
    """The same with chunks that come one at a time: whoever looks sees the old file or the new one."""
    if target == STDOUT:
        size = sum(sys.stdout.buffer.write(chunk) for chunk in chunks)
        sys.stdout.flush()
        return size
    path = Path(target)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "wb") as file:
            size = sum(file.write(chunk) for chunk in chunks)
        os.chmod(name, _mode(path))
        os.replace(name, path)
        return size  # noqa: TRY300  # the end of what may fail
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _mode(path: Path) -> int:
    """The rights of the file that is replaced, or those that a new file gets."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
