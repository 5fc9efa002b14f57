"""The folder of cached code: one file per entry, written whole or not at all.

A file is a digest of its content, then the content. Readers accept a file if the digest confirms it
and treat any other as absent, so writers need no lock: each writes a file of its own and renames
it. The folder is kept below a size by removing the entries that were used longest ago.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import platformdirs

SUFFIX = ".code"
_MAGIC = b"basedsl2"
_HEAD = len(_MAGIC) + 32
_ABANDONED_SECONDS = 3600.0
_numbers = itertools.count()
_warned: set[Path] = set()


class CacheWarning(UserWarning):
    """Warns that compiled code could not be kept on disk."""


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
        path = self.folder / (key + SUFFIX)
        try:
            raw = path.read_bytes()
        except OSError:
            return None
        content = raw[_HEAD:]
        if raw[:_HEAD] != _MAGIC + hashlib.sha256(content).digest():
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        if touch:
            with contextlib.suppress(OSError):
                os.utime(path)
        return content

    def write(self, key: str, content: bytes) -> bool:
        """Keep `content` under `key`; return if that worked. A failure warns once per folder."""
        number = f"{os.getpid()}-{threading.get_ident()}-{next(_numbers)}"
        partial = self.folder / f"{key}.{number}.partial"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            partial.write_bytes(_MAGIC + hashlib.sha256(content).digest() + content)
            partial.replace(self.folder / (key + SUFFIX))
        except OSError as error:
            with contextlib.suppress(OSError):
                partial.unlink()
            if self.folder not in _warned:
                _warned.add(self.folder)
                warnings.warn(
                    f"compiled code is not kept on disk: {self.folder} cannot be written "
                    f"({error.strerror or error})",
                    CacheWarning,
                    stacklevel=2,
                )
            return False
        self.shrink(self.limit)
        return True

    def is_empty(self) -> bool:
        """Return True if the folder has no entry."""
        try:
            with os.scandir(self.folder) as listing:
                return not any(entry.name.endswith(SUFFIX) for entry in listing)
        except OSError:
            return True

    def entries(self) -> list[Found]:
        """Return all entries, most recently used first."""
        found = [Found(path, stat.st_size, stat.st_mtime) for path, stat in self._files(SUFFIX)]
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
        for path, stat in self._files(".partial"):
            # Left by a writer that was killed: writing takes less than an hour.
            if limit == 0 or time.time() - stat.st_mtime > _ABANDONED_SECONDS:
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
                yield Path(path), os.stat(path)
