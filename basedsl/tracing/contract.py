"""Checks that a language's emitter keeps its part of the protocol, with errors that name it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from basedsl.errors import DSLSyntaxError, plugin_defect

_CONSTRUCTS = {
    "for_": ("a loop of run time", "for i in range_constexpr(...) is unrolled while compiling"),
    "while_": ("a `while` of run time", "make its condition known while compiling"),
    "if_": ("a branch of run time", "make its condition known while compiling"),
    "assert_": ("an assertion of run time", "check what is known while compiling"),
}


class PartialEmitter:
    """Stands for an emitter that lacks some constructs: programs that use one get an error."""

    def __init__(self, language: Any, emitter: Any) -> None:
        self._language = language
        self._emitter = emitter

    def __getattr__(self, name: str) -> Any:
        if name not in _CONSTRUCTS or hasattr(self._emitter, name):
            return getattr(self._emitter, name)

        def refuse(*args: Any, **kwargs: Any) -> NoReturn:
            what, hint = _CONSTRUCTS[name]
            raise DSLSyntaxError(f"the DSL '{self._language.name}' has no {what[2:]}", hint=hint)

        return refuse


def complete(language: Any, emitter: Any) -> Any:
    """Return the emitter that a language made, with errors in place of constructs that it lacks."""
    if emitter is None:
        raise plugin_defect(
            language, "emitter() returned None", hint="return an object with the methods of Emitter"
        )
    if all(hasattr(emitter, name) for name in _CONSTRUCTS):
        return emitter
    return PartialEmitter(language, emitter)


def carried(trace: Any, method: str, values: Any, count: int, *, given: bool = False) -> list[Any]:
    """Return the values that the emitter's `method` returned (or, with `given`, passed to a body)
    for `count` carried ones; an error that names the plugin if it is another number.
    """
    found = list(values) if isinstance(values, Iterable) else None
    if found is not None and len(found) == count:
        return found
    emitter = type(getattr(trace.emitter, "_emitter", trace.emitter)).__name__
    number = f"{len(found)} values" if found is not None else f"{values!r}"
    verb = "passed" if given else "returned"
    where = " to a body" if given else ""
    raise plugin_defect(
        trace.language,
        f"{emitter}.{method} {verb} {number}{where}, where {count} are carried",
        hint="one value for each that is carried, in their order",
    )
