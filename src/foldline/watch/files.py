"""Files in a folder that somebody else can write to: nothing here follows a link or writes through one.

The scratch folder lies in the agent's own work tree. A link planted there, a pipe, a second name of another file: none
may make foldline read or write anywhere else. So every file is opened by its bare name inside a folder that is held
open, never by a path that could change its meaning between a check and its use.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from foldline.errors import ConfigError

if sys.platform != "win32":
    import fcntl

_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_PLAIN = _NO_LINK | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_BY_FOLDER = os.open in os.supports_dir_fd and hasattr(os, "O_DIRECTORY")
PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700


class Folder:
    """One folder of ours inside another, held open; its files are named, never addressed."""

    def __init__(self, parent: Path, name: str) -> None:
        self.path = parent / name
        self._fd: int | None = None

    def make(self) -> None:
        """Create the folder where it is missing."""
        try:
            os.mkdir(self.path, PRIVATE_FOLDER)
        except FileExistsError:
            pass
        except OSError as error:
            raise ConfigError(f"{self.path}: cannot be made ({error.strerror})", hint="name a work tree") from None
        self._enter()

    def is_open(self) -> bool:
        """Whether the folder was entered and is still the same."""
        return self._fd is not None and os.path.lexists(self.path) and self._enter() == self._fd

    def exists(self) -> bool:
        """Whether there is a folder of ours; a link or a file in its place is an error."""
        if not os.path.lexists(self.path):
            return False
        self._enter()
        return True

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder against other writers of ours, where the system can."""
        if sys.platform == "win32":
            yield
            return
        file = self._enter()
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_UN)

    def read(self, name: str, start: int = 0) -> bytes | None:
        """What a file holds from a place on; None when it is not there."""
        file = self._open(name, os.O_RDONLY)
        if file is None:
            return None
        with os.fdopen(file, "rb") as stream:
            stream.seek(start)
            return stream.read()

    def size(self, name: str) -> int:
        """The size of a file; 0 when it is not there."""
        file = self._open(name, os.O_RDONLY)
        if file is None:
            return 0
        try:
            return os.fstat(file).st_size
        finally:
            os.close(file)

    def append(self, name: str, data: bytes) -> int:
        """Add to the end of a file in one write; its size after that."""
        file = self._open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        assert file is not None  # noqa: S101  # O_CREAT makes it
        with os.fdopen(file, "ab", buffering=0) as stream:
            while data:
                data = data[stream.write(data) or 0 :]
            return os.fstat(stream.fileno()).st_size

    def replace(self, name: str, data: bytes) -> None:
        """Put a whole file in place of another, atomically: a reader sees the old one or the new one."""
        made = f".{name}.{os.getpid()}.tmp"
        with suppress(FileNotFoundError):
            self._unlink(made)
        file = self._open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        assert file is not None  # noqa: S101
        try:
            with os.fdopen(file, "wb") as stream:
                stream.write(data)
            if _BY_FOLDER:
                os.replace(made, name, src_dir_fd=self._enter(), dst_dir_fd=self._enter())
            else:
                os.replace(self.path / made, self.path / name)
        except BaseException:
            with suppress(OSError):
                self._unlink(made)
            raise

    def remove(self) -> None:
        """Delete the folder with all that is in it, and nothing that its links point to."""
        import shutil  # noqa: PLC0415

        if self.exists():
            self.close()
            shutil.rmtree(self.path)

    def close(self) -> None:
        """Let go of the folder."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def __del__(self) -> None:
        self.close()

    def _enter(self) -> int:
        """The open folder, opened anew when it was replaced."""
        try:
            found = os.lstat(self.path)
        except OSError as error:
            raise ConfigError(f"{self.path}: cannot be used ({error.strerror})") from None
        if not stat.S_ISDIR(found.st_mode):
            raise ConfigError(
                f"{self.path}: not a folder of its own but a link or a file",
                hint="remove it, or name another work tree",
            )
        if not _BY_FOLDER:
            return -1
        if self._fd is not None and os.path.samestat(os.fstat(self._fd), found):
            return self._fd
        self.close()
        self._fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | _NO_LINK | getattr(os, "O_CLOEXEC", 0))
        return self._fd

    def _open(self, name: str, flags: int) -> int | None:
        """A plain file of ours, opened; None when it is not there."""
        folder = self._enter()
        try:
            if _BY_FOLDER:
                file = os.open(name, flags | _PLAIN, PRIVATE_FILE, dir_fd=folder)
            else:
                file = os.open(self.path / name, flags | _PLAIN, PRIVATE_FILE)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._refused(name, str(error.strerror)) from None
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            os.close(file)
            raise self._refused(name, "not a plain file")
        return file

    def _refused(self, name: str, why: str) -> ConfigError:
        return ConfigError(f"{self.path / name}: refused ({why})", hint="remove it; foldline writes it anew")

    def _unlink(self, name: str) -> None:
        if _BY_FOLDER:
            os.unlink(name, dir_fd=self._enter())
        else:
            os.unlink(self.path / name)


def append_line(path: Path, line: str) -> None:
    """Add a line to a private file in one write, so that rows of several processes never mix."""
    data = (line + "\n").encode("utf-8", "replace")
    try:
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _PLAIN, PRIVATE_FILE)
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be written ({error.strerror})", hint="name a file in a folder of yours"
        ) from None
    with os.fdopen(file, "ab", buffering=0) as stream:
        stream.write(data)


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file atomically, keeping its mode; through a link, so that the link stays what it is."""
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    made = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        mode = stat.S_IMODE(os.stat(target).st_mode)
    except FileNotFoundError:
        mode = PRIVATE_FILE
    try:
        file = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _PLAIN, mode)
        with os.fdopen(file, "wb") as stream:
            stream.write(data)
        os.chmod(made, mode)
        os.replace(made, target)
    except OSError as error:
        with suppress(OSError):
            os.unlink(made)
        raise ConfigError(f"{path}: cannot be written ({error.strerror})") from None
