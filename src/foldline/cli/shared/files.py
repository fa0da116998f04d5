"""Functions that read a transcript as the conversation that the model sees, and that write files atomically."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from foldline import text_lines
from foldline.errors import ConfigError, InputError
from foldline.message import Message
from foldline.replay import context_segments, without_usage
from foldline.wire import Transcript, read_all
from foldline.wire.formats import ReadNote

STDOUT = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A file that holds one conversation."""

    file: str
    transcript: Transcript
    """All messages, without their reported usage."""
    compacted: int
    """Number of messages that an earlier compaction removed from the model's context."""

    @property
    def live_messages(self) -> tuple[Message, ...]:
        """The messages that the model sees: those since the last recorded compaction."""
        return self.transcript.messages[self.compacted :]


def read_transcripts(file: str, format: str | None = None) -> list[Transcript]:
    """Read all conversations of a file; standard error names the lines that were left out because they are broken."""
    found = read_all(file, format)
    warn_of_broken_lines(file, (note for transcript in found for note in transcript.broken_lines))
    return found


def warn_of_broken_lines(file: str, lines: Iterable[ReadNote]) -> None:
    """Write a warning to standard error for each line."""
    for line in lines:
        click.echo(f"warning: {file}:{line.line}: left out: {line.text}", err=True)


def read_conversation(file: str, format: str | None = None) -> Conversation:
    """Read a file that holds one conversation."""
    found = read_transcripts(file, format)
    if len(found) != 1:
        what = f"{len(found)} conversations; the command needs exactly one" if found else "no conversation"
        raise InputError(f"{file} contains {what}", hint="see what is in it with foldline inspect")
    compacted = len(found[0].messages) - len(context_segments(found[0])[-1])
    transcript = replace(found[0], messages=without_usage(found[0].messages))
    return Conversation(file=file, transcript=transcript, compacted=compacted)


def expand_paths(places: Iterable[str]) -> tuple[list[str], list[str]]:
    """Two lists: the given paths that are not folders, and the .json and .jsonl files in the given folders."""
    named: list[str] = []
    found: list[str] = []
    for place in places:
        if Path(place).is_dir():
            found += _inside(place)
        else:
            named.append(place)
    return named, [file for file in found if file not in set(named)]


def _inside(folder: str) -> Iterator[str]:
    """The .json and .jsonl files in a folder and its subfolders, including those with the ending .gz."""
    for path in sorted(Path(folder).rglob("*")):
        if path.is_file() and path.name.removesuffix(".gz").endswith((".json", ".jsonl")):
            yield str(path)


def read_text(file: str) -> str:
    """The text of a file, decompressed if necessary."""
    return "".join(line.text + "\n" * line.ended for line in text_lines.lines_of_file(file))


def refuse_to_overwrite(target: str, sources: Sequence[str], *, force: bool) -> None:
    """Raise `ConfigError` if the target cannot be written.

    That is the case if it is a folder or one of the sources, its folder does not exist, or it exists already and
    `force` is False. Call this before any work is done.
    """
    if target == STDOUT:
        return
    path = Path(target)
    if path.is_dir():
        raise ConfigError(f"{target} is a folder", hint="name a file")
    if any(path.exists() and Path(source).exists() and path.samefile(source) for source in sources):
        raise ConfigError(f"{target} is also the input", hint="write to another file")
    if path.exists() and not force:
        raise ConfigError(f"{target} exists already", hint="replace it with --force, or name another file")
    if not path.parent.is_dir():
        raise ConfigError(f"there is no folder {path.parent}", hint="create it, or name another file")


def write_file(target: str, chunks: Iterable[bytes]) -> int:
    """Write a file atomically, or to standard output; returns the number of bytes."""
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
        return size  # noqa: TRY300  # nothing after it can fail
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _mode(path: Path) -> int:
    """The permissions of the replaced file, or those of a new file."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
