"""Checks that argument types which a plugin calls equal are so: equal ones share compiled code."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, cast

from basedsl.binding.arguments import ArgumentType
from basedsl.errors import plugin_defect


def check_equal(
    language: Any, compiled: Sequence[ArgumentType], called: Sequence[ArgumentType]
) -> None:
    """Raise CompilerBug, which names the plugin, if an argument type of a call equals the one that
    code was compiled for but prints differently.
    """
    for known, found in zip(compiled, called, strict=True):
        if known is found or _compares_all(cast(Any, type(known))):
            continue
        if str(known) != str(found):
            raise plugin_defect(
                language,
                f"{type(known).__name__}.__eq__ takes {known} and {found} for equal",
                hint="compare all that compiled code depends on, such as the element type; "
                "a frozen dataclass does",
            )


@functools.cache
def _compares_all(cls: type) -> bool:
    """Return True if equality of the class is certain: it is the core's, or a dataclass's own over
    all fields.
    """
    if cls.__module__.startswith("basedsl."):
        return True
    code = getattr(cls.__eq__, "__code__", None)
    generated = dataclasses.is_dataclass(cls) and (
        code is not None and code.co_filename == "<string>"
    )
    return generated and all(field.compare for field in dataclasses.fields(cls))
