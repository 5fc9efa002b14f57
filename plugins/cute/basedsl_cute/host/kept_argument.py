"""Arguments that never change: adapted once, and packed once for native calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from basedsl import AdaptedArgument, ArgumentType, Unpacker
from basedsl_cute.arrays.unpack import as_bytes, slots_unpacker


class KeptArgument(AdaptedArgument):
    """The argument type of an object that keeps its own type and packed bytes, in its attribute
    `dsl_kept`: None at first. Its method `dsl_form()` gives what is passed, and raises for an
    object that may not be passed any more.
    """

    def unpacker(self) -> Unpacker | None:
        """Return the native form of `pack` for values of exactly this type."""

        def pack(value: Any) -> bytes | None:
            kept = getattr(value, "dsl_kept", None)
            if kept is None:
                return None
            self.adapt(value)
            packed: bytes = kept[1]
            return packed if kept[0] is self.inner or kept[0] == self.inner else None

        return slots_unpacker(self.storage, pack)

    accepting_unpacker = unpacker

    def digest(self) -> str | None:
        """Return text that identifies this type in every process: that of the form's type."""
        inner = self.inner.digest()
        return None if inner is None else f"kept {inner}"


def kept_argument(value: Any, type_of: Callable[[Any], ArgumentType]) -> KeptArgument:
    """Return the argument type of `value`, whose form has the type `type_of(form)`."""
    form = value.dsl_form()
    if value.dsl_kept is None:
        inner = type_of(form)
        value.dsl_kept = inner, as_bytes(inner.storage, inner.pack(form))
    return KeptArgument(value.dsl_kept[0], type(value).dsl_form)
