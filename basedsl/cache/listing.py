"""The compilations in a folder of the disk cache, with their stages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from basedsl.cache.entry import read_header, read_stages
from basedsl.cache.store import CacheStore, default_folder
from basedsl.objectstage import Pipeline, Stages
from basedsl.plugin import plugin_manager


class CachedCompilation:
    """A compilation on disk: the names of its DSL and function, the argument types as text, the
    time it was made in seconds since 1970, and its stages.

    `key` is its key in the disk cache, `content` the bytes of its file.
    """

    def __init__(self, key: str, content: bytes) -> None:
        head = read_header(content)
        self.key = key
        self.dsl: str = head["dsl"]
        self.function: str = head["function"]
        self.arguments: str = head["shown"]
        self.made: float = head["made"]
        self._content = content
        self._stages: Stages | None = None

    def __repr__(self) -> str:
        return f"<cached {self.dsl} {self.function}({self.arguments})>"

    def __iter__(self) -> Iterator[Any]:
        """Yield the module and this object, as programs unpack a cached compilation."""
        return iter((self.ir_module, self))

    @property
    def stages(self) -> Stages:
        """The outputs of the stages. Printing a module loads the DSL."""
        if self._stages is None:
            context = lambda: plugin_manager().get_dsl(self.dsl).mlir  # noqa: E731
            self._stages = read_stages(self._content, lambda: Pipeline("cached"), context)
        return self._stages

    @property
    def ir_module(self) -> Any:
        """The module that tracing built."""
        return self.stages[self.stages.names[0]].module()


def cached_compilations(
    folder: Path | None = None, capacity: int | None = None
) -> dict[str, CachedCompilation]:
    """Return the compilations in a folder of the disk cache, by default the user's, by their keys;
    the `capacity` that were used last, or all.
    """
    store = CacheStore(folder or default_folder(), 0)
    found: dict[str, CachedCompilation] = {}
    for one in store.entries():
        if capacity is not None and len(found) >= capacity:
            break
        content = store.read(one.key, touch=False)
        if content is None:
            continue
        try:
            found[one.key] = CachedCompilation(one.key, content)
        except (ValueError, KeyError):  # code of the library itself
            continue
    return found
