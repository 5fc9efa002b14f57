"""Compilations that the disk keeps between processes: which, where, and under which key."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

from basedsl.binding.results import Results
from basedsl.cache.entry import cache_key, deserialize, serialize
from basedsl.cache.store import Store, default_folder
from basedsl.language import Language
from basedsl.mlir import MLIRContext
from basedsl.objectstage import Pipeline, Stages
from basedsl.plugin import plugin_manager
from basedsl.stages import BoundCall
from basedsl.staleness.guards import Guards


class DiskEntry(NamedTuple):
    """The place of one compilation on the disk, filled or not."""

    store: Store
    key: str
    language: Language

    def read(
        self, pipeline: Pipeline, context: Callable[[], MLIRContext]
    ) -> tuple[Results, Stages] | None:
        """What `write` was given, in whichever process; None if there is nothing. `context` makes
        the MLIR context, with which modules are printed.
        """
        content = self.store.read(self.key)
        return deserialize(content, pipeline, context) if content else None

    def write(self, call: BoundCall, results: Results, stages: Stages) -> None:
        """Keep a compilation, unless its result is of classes that other processes cannot make."""
        with contextlib.suppress(TypeError):
            self.store.write(self.key, serialize(self.language, call, results, stages))


class Disk:
    """The compilations of one language that the disk keeps."""

    def __init__(self, language: Language) -> None:
        self._language = language

    def store(self, settings: Any) -> Store | None:
        """The folder of entries; None if options or the language want none."""
        if not (settings.cache and self._language.kept_on_disk):
            return None
        folder = settings.cache_dir or default_folder()
        return Store(folder, settings.cache_size * 2**20)

    def entry(self, call: BoundCall, guards: Guards) -> DiskEntry | None:
        """The place of a compilation; None if its key means nothing to other processes, or if a
        plugin sees its stages, which it must see in each process.
        """
        language, symbol = self._language, call.function.symbol
        store = self.store(call.settings)
        if store is None or plugin_manager().stage_observer(language.name, symbol) is not None:
            return None
        key = cache_key(language, call, guards.portable_text)
        return None if key is None else DiskEntry(store, key, language)
