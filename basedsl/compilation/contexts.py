"""The MLIR contexts of one language: one in each package of bindings that its calls choose."""

from __future__ import annotations

import threading
from typing import Any

from basedsl.language import Language
from basedsl.mlir import Bindings, MLIRContext, load_bindings
from basedsl.plugin import plugin_manager


class Contexts:
    """The contexts of `language`, each made with its bindings at the first use."""

    def __init__(self, language: Language) -> None:
        self._language = language
        self._lock = threading.RLock()
        self._by_package: dict[str, MLIRContext] = {}

    def __len__(self) -> int:
        return len(self._by_package)

    def of(self, settings: Any) -> MLIRContext:
        """Return the context in the bindings that the language names, else the option `mlir` of
        `settings`, else the first that are installed. Raises DSLRuntimeError without bindings.
        """
        language = self._language
        package = language.bindings_package or settings.mlir
        found = self._by_package.get(package)
        if found is None:
            with self._lock:
                found = self._by_package.get(package)
                if found is None:
                    found = self._by_package[package] = MLIRContext(
                        load_bindings(package or None, language.dialects),
                        self._load_dialects,
                        allow_unregistered_dialects=language.allow_unregistered_dialects,
                    )
        return found

    def _load_dialects(self, bindings: Bindings) -> None:
        self._language.load_dialects(bindings)
        plugin_manager().load_dialects(self._language.name, bindings)
