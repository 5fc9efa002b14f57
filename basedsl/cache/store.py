"""The folder of cached code: one file per entry, written whole or not at all.

A file is an authentication code of its content (HMAC-SHA256, by a key that is a file of the folder
for its owner's eyes), then the content. Readers accept a file if the code confirms it, before they
look into it, and treat any other as absent, so writers need no lock: each writes a file of its own
and renames it. A file that was put there from elsewhere is no entry. The folder is kept below a
size by removing the entries that were used longest ago.

Entries are machine code that the reader runs, so they are trusted as far as the folder is: it is
made for its owner alone, and a folder or entry that belongs to another user, or that others may
write, is refused with a warning. Entries are opened without following links, and only if they are
regular files.
"""

from __future__ import annotations

import contextlib
import hmac
import itertools
import os
import secrets
import stat
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import platformdirs

SUFFIX = ".code"
_KEY = "key"
_MAGIC = b"basedsl3"
_HEAD = len(_MAGIC) + 32
_ABANDONED_SECONDS = 3600.0
_numbers = itertools.count()
_warned: set[Path] = set()


class CacheWarning(UserWarning):
    """Warns that compiled code could not be kept on disk, or is not read from there."""


class _Untrusted(OSError):
    """The folder or an entry could have been written by somebody else."""


def default_folder() -> Path:
    """Return the cache folder that is used if no option names another."""
    return Path(platformdirs.user_cache_dir("basedsl", appauthor=False)) / "code"


@dataclass(frozen=True)
class Found:
    """A file of the cache: its path, its size in bytes, and the time it was last used."""

    path: Path
    size: int
    used: float

    @property
    def key(self) -> str:
        """The key of the entry."""
        return self.path.name.removesuffix(SUFFIX)


class CacheStore:
    """The entries in `folder`, at most `limit` bytes of them after each write."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder = folder
        self.limit = limit

    def read(self, key: str, *, touch: bool = True) -> bytes | None:
        """Return the content under `key`; None if there is none, or none that is whole. `touch`
        marks it as the one used last.
        """
        name = key + SUFFIX
        try:
            with self._opened() as folder:
                raw = _read_own(self.folder / name, folder)
                content = raw[_HEAD:]
                code = _MAGIC + self._code(folder, content)
                if not hmac.compare_digest(raw[:_HEAD], code):
                    os.unlink(name, dir_fd=folder)
                    return None
                if touch:
                    with contextlib.suppress(OSError):
                        os.utime(name, dir_fd=folder)
        except _Untrusted as error:
            self._warn(f"compiled code is not read from disk: {error}")
            return None
        except OSError:
            return None
        return content

    def write(self, key: str, content: bytes) -> bool:
        """Keep `content` under `key`; return if that worked. A failure warns once per folder."""
        number = f"{os.getpid()}-{threading.get_ident()}-{next(_numbers)}"
        partial = f"{key}.{number}.partial"
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._opened() as folder:
                try:
                    _write_new(partial, folder, _MAGIC + self._code(folder, content) + content)
                    os.replace(partial, key + SUFFIX, src_dir_fd=folder, dst_dir_fd=folder)
                except OSError:
                    with contextlib.suppress(OSError):
                        os.unlink(partial, dir_fd=folder)
                    raise
        except _Untrusted as error:
            self._warn(f"compiled code is not kept on disk: {error}")
            return False
        except OSError as error:
            reason = error.strerror or error
            self._warn(
                f"compiled code is not kept on disk: {self.folder} cannot be written ({reason})"
            )
            return False
        self.shrink(self.limit)
        return True

    def _code(self, folder: int, content: bytes) -> bytes:
        """Return the authentication code of `content`, by the key of the open folder."""
        path = self.folder / _KEY
        try:
            key = _read_own(path, folder)
        except FileNotFoundError:
            partial = f"{_KEY}.{os.getpid()}-{threading.get_ident()}.partial"
            try:
                _write_new(partial, folder, secrets.token_bytes(32))
                with contextlib.suppress(FileExistsError):  # another process was first
                    os.link(partial, _KEY, src_dir_fd=folder, dst_dir_fd=folder)
            finally:
                os.unlink(partial, dir_fd=folder)
            key = _read_own(path, folder)
        return hmac.digest(key, content, "sha256")

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        """Open the folder, if it is its owner's alone; files are then opened relative to it, so
        that no other folder can take its place in between.
        """
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _require_own(os.fstat(folder), "the folder", self.folder)
            yield folder
        finally:
            os.close(folder)

    def _warn(self, message: str) -> None:
        if self.folder not in _warned:
            _warned.add(self.folder)
            warnings.warn(message, CacheWarning, stacklevel=3)

    def is_empty(self) -> bool:
        """Return True if the folder has no entry."""
        try:
            with os.scandir(self.folder) as listing:
                return not any(entry.name.endswith(SUFFIX) for entry in listing)
        except OSError:
            return True

    def entries(self) -> list[Found]:
        """Return all entries, most recently used first."""
        files = self._files(SUFFIX)
        found = [Found(path, status.st_size, status.st_mtime) for path, status in files]
        return sorted(found, key=lambda one: (-one.used, one.path.name))

    def shrink(self, limit: int) -> int:
        """Remove the entries used longest ago until at most `limit` bytes are left; return how
        many.
        """
        total, removed = 0, 0
        for one in self.entries():
            total += one.size
            if total > limit:
                with contextlib.suppress(OSError):
                    one.path.unlink()
                    removed += 1
        for path, status in self._files(".partial"):
            # Left by a writer that was killed: writing takes less than an hour.
            if limit == 0 or time.time() - status.st_mtime > _ABANDONED_SECONDS:
                with contextlib.suppress(OSError):
                    path.unlink()
        return removed

    def clear(self) -> int:
        """Remove everything; return how many entries there were."""
        return self.shrink(0)

    def _files(self, suffix: str) -> Iterator[tuple[Path, os.stat_result]]:
        try:
            with os.scandir(self.folder) as listing:
                paths = [entry.path for entry in listing if entry.name.endswith(suffix)]
        except OSError:
            return
        for path in paths:
            with contextlib.suppress(OSError):
                yield Path(path), os.lstat(path)


def _require_own(status: os.stat_result, kind: str, path: Path) -> None:
    """Raise _Untrusted if a file or folder belongs to another user or others may write it."""
    if status.st_uid != os.geteuid():
        raise _Untrusted(
            f"{kind} {path} belongs to another user; name a folder of yours in BASEDSL_CACHE_DIR"
        )
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise _Untrusted(f"others may write {kind} {path}; `chmod go-w {path}` ends that")


def _read_own(path: Path, folder: int) -> bytes:
    # O_NONBLOCK: opening a FIFO would wait for a writer.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(path.name, flags, dir_fd=folder), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path} is no regular file")
        _require_own(status, "the file", path)
        return file.read()


def _write_new(name: str, folder: int, content: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, 0o600, dir_fd=folder), "wb") as file:
        file.write(content)
