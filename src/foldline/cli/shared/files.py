"""Reads transcripts as the model sees them, and writes files atomically."""

from __future__ import annotations

import gzip
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from foldline import text_lines
from foldline.errors import ConfigError, InputError
from foldline.message import Message
from foldline.session.transcript_session import compacted_messages
from foldline.wire import Transcript, read_all
from foldline.wire.formats import ReadNote
from foldline.wire.named_format import expected_content

STDOUT = "-"
ENDINGS = (".json", ".jsonl", ".traj")
"""How the names of transcripts end. In a folder, other files are not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """One conversation of a file."""

    file: str
    transcript: Transcript
    compacted: int
    """Number of messages that an earlier compaction removed from the model's context."""
    is_whole_file: bool = True
    """Whether this is the only conversation of the file."""

    @property
    def live_messages(self) -> tuple[Message, ...]:
        """The messages that the model sees: those since the last recorded compaction."""
        return self.transcript.messages[self.compacted :]


def read_transcripts(file: str, format: str | None = None) -> list[Transcript]:
    """Read all conversations of a file. Broken lines are left out and named on standard error."""
    refuse_export(file)
    found = read_all(file, format)
    if format is not None and not any(transcript.messages for transcript in found):
        raise InputError(f"{file}: no message in the format {format}", hint=expected_content(format))
    warn_of_broken_lines(file, (note for transcript in found for note in transcript.broken_lines))
    return found


def is_export(file: str) -> bool:
    """Whether a file was written by `foldline export`."""
    first = next((line.text for line in text_lines.lines_of_file(file) if line.text.strip()), "")
    return first.startswith('{"foldline":')


def refuse_export(file: str) -> None:
    """Raise `InputError` if a file was written by `foldline export`."""
    if is_export(file):
        raise InputError(f"{file} is an export of a ledger", hint="add it to a ledger with foldline import")


def warn_of_broken_lines(file: str, lines: Iterable[ReadNote]) -> None:
    """Write a warning to standard error for each broken line."""
    for line in lines:
        click.echo(f"warning: {file}:{line.line}: left out: {line.text}", err=True)


def read_conversation(file: str, format: str | None = None, number: int | None = None) -> Conversation:
    """Read conversation `number` of a file, counted from 1.

    If `number` is None, the file must have only one conversation.
    """
    found = read_transcripts(file, format)
    if not found:
        raise InputError(f"{file} contains no conversation", hint="see what is in it with foldline inspect")
    if number is None and len(found) > 1:
        hint = f"choose one with --conversation, 1 to {len(found)}"
        raise InputError(f"{file} contains {len(found)} conversations", hint=hint)
    if number is not None and number > len(found):
        what = "1 conversation" if len(found) == 1 else f"{len(found)} conversations"
        raise InputError(f"{file} contains only {what}", hint=f"give a number up to {len(found)}")
    chosen = found[(number or 1) - 1]
    return Conversation(
        file=file, transcript=chosen, compacted=compacted_messages(chosen), is_whole_file=len(found) == 1
    )


def expand_paths(places: Iterable[str]) -> tuple[list[str], list[str]]:
    """Two lists: the given paths that are not folders, and the transcripts in the given folders."""
    named: list[str] = []
    found: list[str] = []
    for place in places:
        if Path(place).is_dir():
            found += _inside(place)
        else:
            named.append(place)
    return named, [file for file in found if file not in set(named)]


def _inside(folder: str) -> Iterator[str]:
    """The files in a folder and its subfolders that may be transcripts (see `ENDINGS`), also compressed ones (.gz)."""
    for path in sorted(Path(folder).rglob("*")):
        if path.is_file() and path.name.removesuffix(".gz").endswith(ENDINGS):
            yield str(path)


def read_text(file: str) -> str:
    """The text of a file, decompressed if necessary."""
    return "".join(line.text + "\n" * line.ended for line in text_lines.lines_of_file(file))


def refuse_to_overwrite(target: str, sources: Sequence[str], *, force: bool) -> None:
    """Raise an error if the target must not be written (`ConfigError`) or cannot be written (`OSError`).

    The target must not be a folder or one of the sources, and its folder must exist. An existing file is replaced only
    if `force` is True. Call this before any work is done.
    """
    if target == STDOUT:
        return
    path = Path(target)
    if path.is_dir():
        raise IsADirectoryError(f"{target} is a folder: name a file")
    if any(path.exists() and Path(source).exists() and path.samefile(source) for source in sources):
        raise ConfigError(f"{target} is also the input", hint="write to another file")
    if path.exists() and not force and not _is_special(path):
        raise ConfigError(f"{target} exists already", hint="replace it with --force, or name another file")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent}: create it, or name another file")


def write_file(target: str, chunks: Iterable[bytes]) -> int:
    """Write a file atomically, or to standard output; returns the number of bytes.

    The content of a file whose name ends with .gz is compressed. A device such as /dev/null, or a pipe, is opened for
    writing and never replaced by a new file.
    """
    if target == STDOUT:
        size = sum(sys.stdout.buffer.write(chunk) for chunk in chunks)
        sys.stdout.flush()
        return size
    path = Path(target)
    if path.suffix == ".gz":
        chunks = [gzip.compress(b"".join(chunks), mtime=0)]
    if _is_special(path):
        with path.open("wb") as file:
            return sum(file.write(chunk) for chunk in chunks)
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        error.filename = target  # not the name of the temporary file
        raise
    try:
        with open(handle, "wb") as file:
            size = sum(file.write(chunk) for chunk in chunks)
        os.chmod(name, _mode(path))
        os.replace(name, path)
        return size  # noqa: TRY300  # nothing after it can fail
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _is_special(path: Path) -> bool:
    """Whether the path is a device or a pipe."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _mode(path: Path) -> int:
    """The permissions of the file at this path. If there is no such file, the permissions that a new file gets."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
