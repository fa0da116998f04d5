"""Files in a folder that somebody else can write to: nothing here follows a link or writes through one.

The scratch folder lies in the agent's own work tree. A link planted there, a pipe, a second name of another file: none
may make foldline read or write anywhere else. So every file is opened by its bare name inside a folder that is held
open, never by a path that could change its meaning between a check and its use. What cannot be written says which file
it was and what to change, and leaves the file as it was.
"""

from __future__ import annotations

import errno
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
_ADVICE = {
    errno.ENOSPC: "free some space on the disk",
    errno.EDQUOT: "free some of your quota on the disk",
    errno.EFBIG: "raise the limit on the size of files (ulimit -f)",
    errno.EROFS: "the disk is read-only; name a place that can be written",
    errno.EIO: "look after the disk",
}
"""What to change where not the file is wrong but the disk that it is on."""


class SafeFolder:
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
        except (OSError, ValueError) as error:
            raise self._unusable("cannot be made", error) from None
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
        with suppress(OSError):
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

    def append(self, name: str, data: bytes, *, after: int | None = None, end: bytes = b"") -> int:
        """Add to the end of a file, or after so many bytes of it; its size then.

        Where there is no room for all of it, what fits stays as far as the last whole piece, by how pieces end.
        """
        file = self._open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        assert file is not None  # noqa: S101  # O_CREAT makes it
        with os.fdopen(file, "ab", buffering=0) as stream:
            size = os.fstat(file).st_size
            if after is not None and after < size:
                os.ftruncate(file, after)
                size = after
            written = 0
            try:
                while written < len(data):
                    written += stream.write(data[written:]) or 0
            except BaseException as error:
                whole = data.rfind(end, 0, written) + len(end) if end and end in data[:written] else 0
                with suppress(OSError):
                    os.ftruncate(file, size + whole)
                if isinstance(error, OSError):
                    raise self._failed(name, error) from None
                raise
            return size + written

    def replace(self, name: str, data: bytes) -> None:
        """Put a whole file in place of another, atomically: a reader sees the old one or the new one.

        Whoever does so holds the folder; what one that was killed left behind has the same name and goes first.
        """
        made = f".{name}.tmp"
        try:
            with suppress(FileNotFoundError):
                self._unlink(made)
        except OSError as error:
            raise self._failed(made, error) from None
        file = self._open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        assert file is not None  # noqa: S101
        try:
            with os.fdopen(file, "wb") as stream:
                stream.write(data)
            if _BY_FOLDER:
                os.replace(made, name, src_dir_fd=self._enter(), dst_dir_fd=self._enter())
            else:
                os.replace(self.path / made, self.path / name)
        except BaseException as error:
            with suppress(OSError):
                self._unlink(made)
            if isinstance(error, OSError):
                raise self._failed(name, error) from None
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
        except (OSError, ValueError) as error:
            raise self._unusable("cannot be used", error) from None
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
        try:
            self._fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | _NO_LINK | getattr(os, "O_CLOEXEC", 0))
        except OSError as error:
            raise self._unusable("cannot be used", error) from None
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
            raise self._failed(name, error) from None
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            os.close(file)
            raise self._refused(name, "not a plain file")
        return file

    def _failed(self, name: str, error: OSError) -> Exception:
        """What to say of a file: where its disk is to blame, that; else the file itself is none of ours."""
        return _of_disk(self.path / name, error) or self._refused(name, str(error.strerror))

    def _unusable(self, what: str, error: OSError | ValueError) -> Exception:
        """What to say of the folder; a name that no folder can have is shown so that it can be printed."""
        if isinstance(error, OSError):
            hint = "name a work tree that is there and yours"
            return _of_disk(self.path, error) or ConfigError(f"{self.path}: {what} ({error.strerror})", hint=hint)
        return ConfigError(f"{str(self.path)!a}: no folder can have that name", hint="name another work tree")

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
        with os.fdopen(file, "ab", buffering=0) as stream:
            stream.write(data)
    except OSError as error:
        raise _unwritable(path, error, "name a file in a folder of yours") from None


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file atomically, keeping its mode; through a link, so that the link stays what it is."""
    target = Path(os.path.realpath(path))
    made = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            mode = stat.S_IMODE(os.stat(target).st_mode)
        except FileNotFoundError:
            mode = PRIVATE_FILE
        with suppress(FileNotFoundError):
            os.unlink(made)
        file = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _PLAIN, mode)
        try:
            with os.fdopen(file, "wb") as stream:
                stream.write(data)
            os.chmod(made, mode)
            os.replace(made, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(made)
            raise
    except OSError as error:
        raise _unwritable(path, error, "look at who may write there") from None


def _of_disk(path: Path, error: OSError) -> OSError | None:
    """An error of the disk, with the file that could not be written and what to change; None for any other error."""
    advice = _ADVICE.get(error.errno or 0)
    return OSError(error.errno, f"{error.strerror}: {advice}", str(path)) if advice else None


def _unwritable(path: Path, error: OSError, hint: str) -> Exception:
    return _of_disk(path, error) or ConfigError(f"{path}: cannot be written ({error.strerror})", hint=hint)
