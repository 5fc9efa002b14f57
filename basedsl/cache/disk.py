"""Look-up of compilations in the disk cache: which are stored, and under which key."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

from basedsl.binding.results import Results
from basedsl.cache.entry import cache_key, deserialize, serialize
from basedsl.cache.store import CacheStore, default_folder
from basedsl.compile_hooks import observers_of
from basedsl.language import Language
from basedsl.mlir import MLIRContext
from basedsl.objectstage import Pipeline, Stages
from basedsl.plugin import plugin_manager
from basedsl.stages import BoundCall
from basedsl.staleness.guards import Guards


class DiskEntry(NamedTuple):
    """The entry of one compilation in the disk cache, which may not be written yet."""

    store: CacheStore
    key: str
    language: Language

    def read(
        self,
        call: BoundCall,
        pipeline: Callable[[], Pipeline],
        context: Callable[[], MLIRContext],
    ) -> tuple[Results, Stages] | None:
        """Return the results and stages that a process wrote here; None if the entry is empty.
        `pipeline` makes the pipeline, for who asks the stages for it, and `context` the MLIR
        context, which only printing a module needs.
        """
        content = self.store.read(self.key)
        return deserialize(content, call.arguments, pipeline, context) if content else None

    def write(self, call: BoundCall, results: Results, stages: Stages) -> None:
        """Store a compilation, unless its result contains classes that cannot be serialised."""
        with contextlib.suppress(TypeError):
            self.store.write(self.key, serialize(self.language, call, results, stages))


class Disk:
    """The disk cache as one language uses it."""

    def __init__(self, language: Language) -> None:
        self._language = language

    def store(self, settings: Any) -> CacheStore | None:
        """Return the folder of entries; None if the options or the language turn the cache off."""
        if not (settings.cache and self._language.kept_on_disk):
            return None
        own = plugin_manager().cache_store(self._language.name, settings)
        if own is not None:
            return own  # type: ignore[no-any-return]
        folder = settings.cache_dir or default_folder()
        return CacheStore(folder, settings.cache_size * 2**20)

    def entry(self, call: BoundCall, guards: Guards) -> DiskEntry | None:
        """Return the entry of a call's compilation. None if the call has no key that holds in other
        processes, and where the stages must run in this one: options show them, a hook observes
        them, or a plugin may replace their outputs.
        """
        language = self._language
        if call.settings.shows_stages or observers_of(language.name):
            return None
        store = self.store(call.settings)
        if store is None or plugin_manager().replaces_stages(language.name):
            return None
        key = cache_key(language, call, guards.portable_text)
        return None if key is None else DiskEntry(store, key, language)
