"""Reads and writes files in folders to which other programs can write. Links are not followed.

The scratch folder is in the agent's own work tree. If another program puts a link, a pipe or a hard link there,
foldline must not read or write a file outside the folder. A path can change between its check and its use. So each file
is opened by its name in a folder that is kept open, and not by its path. Errors name the file and say what to do.
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
_CLOSE_ON_EXEC = getattr(os, "O_CLOEXEC", 0)
_PLAIN = _NO_LINK | _CLOSE_ON_EXEC | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_HAS_DIR_FD = os.open in os.supports_dir_fd and hasattr(os, "O_DIRECTORY")
PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700
_DISK_HINTS = {
    errno.ENOSPC: "free some space on the disk",
    errno.EDQUOT: "free some of your quota on the disk",
    errno.EFBIG: "raise the limit on the size of files (ulimit -f)",
    errno.EROFS: "the disk is read-only; name a place that can be written",
    errno.EIO: "check the disk for errors",
}
"""What to do about errors of the disk (not of a single file), by error number."""


def open_plain_file(path: str | Path, flags: int, *, dir_fd: int | None = None) -> int:
    """Open a plain file, and return its file descriptor.

    Raises `OSError` for a link, a pipe, a device or a folder. Never waits.
    """
    try:
        file = os.open(path, flags | _PLAIN, PRIVATE_FILE, dir_fd=dir_fd)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a link", str(path)) from None
        raise
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "not a plain file", str(path))
    return file


class SafeFolder:
    """A folder that is kept open. The methods read and write files in the folder by their names."""

    def __init__(self, parent: Path, name: str) -> None:
        self.path = parent / name
        self._fd: int | None = None

    def make(self) -> None:
        """Create the folder if it is missing."""
        try:
            os.mkdir(self.path, PRIVATE_FOLDER)
        except FileExistsError:
            pass
        except (OSError, ValueError) as error:
            raise self._unusable("cannot be created", error) from None
        self._enter()

    def is_open(self) -> bool:
        """Whether the folder is open, and its path still refers to this folder."""
        return self._fd is not None and os.path.lexists(self.path) and self._enter() == self._fd

    def exists(self) -> bool:
        """Whether the folder exists. Raises `ConfigError` if the path is a link or a file."""
        if not os.path.lexists(self.path):
            return False
        self._enter()
        return True

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold an exclusive lock on the folder, if the system supports locks."""
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
        """Content of a file, starting at an offset; None if the file is missing."""
        file = self._open(name, os.O_RDONLY)
        if file is None:
            return None
        with os.fdopen(file, "rb") as stream:
            stream.seek(start)
            return stream.read()

    def size(self, name: str) -> int:
        """Size of a file; 0 when it is missing."""
        file = self._open(name, os.O_RDONLY)
        if file is None:
            return 0
        try:
            return os.fstat(file).st_size
        finally:
            os.close(file)

    def append(self, name: str, data: bytes, *, after: int | None = None, end: bytes = b"") -> int:
        """Append data to a file, and return the new size.

        If `after` is given, the file is first cut to at most this number of bytes. `data` consists of entries that end
        with the bytes `end`. If the write fails in the middle of an entry, the part of this entry is removed from the
        file again.
        """
        file = self._open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        assert file is not None  # noqa: S101  # O_CREAT creates it
        with os.fdopen(file, "ab", buffering=0) as stream:
            size = os.fstat(file).st_size
            if after is not None and after < size:
                os.ftruncate(file, after)
                size = after
            count = 0
            try:
                while count < len(data):
                    count += stream.write(data[count:]) or 0
            except BaseException as error:
                complete = data.rfind(end, 0, count) + len(end) if end and end in data[:count] else 0
                with suppress(OSError):
                    os.ftruncate(file, size + complete)
                if isinstance(error, OSError):
                    raise self._file_error(name, error) from None
                raise
            return size + count

    def replace(self, name: str, data: bytes) -> None:
        """Replace a whole file atomically.

        The caller must hold the lock, because otherwise this method could delete the temporary file of another process.
        """
        temporary = f".{name}.tmp"
        try:
            with suppress(FileNotFoundError):
                self._unlink(temporary)
        except OSError as error:
            raise self._file_error(temporary, error) from None
        file = self._open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        assert file is not None  # noqa: S101
        try:
            with os.fdopen(file, "wb") as stream:
                stream.write(data)
            (source, folder), (target, _) = self._locate(temporary), self._locate(name)
            os.replace(source, target, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException as error:
            with suppress(OSError):
                self._unlink(temporary)
            if isinstance(error, OSError):
                raise self._file_error(name, error) from None
            raise

    def remove(self) -> None:
        """Delete the folder and its content. If the folder contains links, their targets are not deleted."""
        import shutil  # noqa: PLC0415

        if self.exists():
            self.close()
            shutil.rmtree(self.path)

    def close(self) -> None:
        """Close the folder."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def __del__(self) -> None:
        self.close()

    def _enter(self) -> int:
        """File descriptor of the folder, reopened if the folder was replaced."""
        try:
            found = os.lstat(self.path)
        except (OSError, ValueError) as error:
            raise self._unusable("cannot be used", error) from None
        if not stat.S_ISDIR(found.st_mode):
            raise ConfigError(f"{self.path}: a link or a file, not a folder", hint="remove it, or name another folder")
        if not _HAS_DIR_FD:
            return -1
        if self._fd is not None and os.path.samestat(os.fstat(self._fd), found):
            return self._fd
        self.close()
        try:
            self._fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | _NO_LINK | _CLOSE_ON_EXEC)
        except OSError as error:
            raise self._unusable("cannot be used", error) from None
        return self._fd

    def _locate(self, name: str) -> tuple[str | Path, int | None]:
        """The path and the `dir_fd` for system calls on a file."""
        folder = self._enter()
        return (name, folder) if _HAS_DIR_FD else (self.path / name, None)

    def _open(self, name: str, flags: int) -> int | None:
        """File descriptor of a plain file; None if the file is missing.

        Raises `ConfigError` if the file has several hard links.
        """
        path, folder = self._locate(name)
        try:
            file = open_plain_file(path, flags, dir_fd=folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._file_error(name, error) from None
        if os.fstat(file).st_nlink > 1:
            os.close(file)
            raise self._refusal(name, "it has a second hard link")
        return file

    def _file_error(self, name: str, error: OSError) -> Exception:
        return _disk_error(self.path / name, error) or self._refusal(name, str(error.strerror))

    def _unusable(self, problem: str, error: OSError | ValueError) -> Exception:
        """The error for a folder that cannot be used.

        If the path contains a null byte, the error shows the path in escaped form.
        """
        if isinstance(error, OSError):
            hint = "name an existing folder that you may write to"
            return _disk_error(self.path, error) or ConfigError(f"{self.path}: {problem} ({error.strerror})", hint=hint)
        return ConfigError(f"{str(self.path)!a}: not a valid folder name", hint="name another folder")

    def _refusal(self, name: str, reason: str) -> ConfigError:
        return ConfigError(f"{self.path / name}: refused ({reason})", hint="remove it; foldline will create it anew")

    def _unlink(self, name: str) -> None:
        path, folder = self._locate(name)
        os.unlink(path, dir_fd=folder)


def append_line(path: Path, line: str) -> None:
    """Append a line to a private file in one write, so that the lines of several processes do not mix."""
    data = (line + "\n").encode("utf-8", "replace")
    try:
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _PLAIN, PRIVATE_FILE)
        with os.fdopen(file, "ab", buffering=0) as stream:
            stream.write(data)
    except OSError as error:
        raise _write_error(path, error, "name a file in a folder that you may write to") from None


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file atomically, and keep its mode. If the path is a link, the target of the link is replaced."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise ConfigError(f"{path}: not a regular file", hint="name a file")
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            mode = stat.S_IMODE(os.stat(target).st_mode)
        except FileNotFoundError:
            mode = PRIVATE_FILE
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _PLAIN, mode)
        try:
            with os.fdopen(file, "wb") as stream:
                stream.write(data)
            os.chmod(temporary, mode)
            os.replace(temporary, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        raise _write_error(path, error, "check the permissions of the file and its folder") from None


def _disk_error(path: Path, error: OSError) -> OSError | None:
    """An `OSError` with a hint for an error in `_DISK_HINTS`, such as a full disk; None for any other error."""
    hint = _DISK_HINTS.get(error.errno or 0)
    return OSError(error.errno, f"{error.strerror}: {hint}", str(path)) if hint else None


def _write_error(path: Path, error: OSError, hint: str) -> Exception:
    return _disk_error(path, error) or ConfigError(f"{path}: cannot be written ({error.strerror})", hint=hint)
