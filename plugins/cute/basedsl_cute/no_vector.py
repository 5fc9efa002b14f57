"""What tensors are asked for as if they were vectors: errors that say how to get one."""

from __future__ import annotations

from typing import Any, NoReturn

from basedsl.errors import DSLAttributeError, DSLTypeError

_OF_VECTORS = ("to", "reduce", "broadcast_to", "reshape", "bitcast")


class NoVector:
    """A base of what is memory: operators and a vector's methods are errors."""

    __slots__ = ()

    def _refuse(self, *other: Any) -> NoReturn:
        raise DSLTypeError(
            "a tensor is memory, and is not computed with",
            hint="x.load() is the vector of its elements, x[i] one of them",
        )

    __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = _refuse
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = _refuse
    __and__ = __or__ = __xor__ = __rand__ = __ror__ = __rxor__ = _refuse
    __neg__ = __pos__ = __abs__ = __invert__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = _refuse

    def __getattr__(self, name: str) -> Any:
        if name in _OF_VECTORS:
            raise DSLAttributeError(
                f"{name}() is of vectors, and this is a tensor", hint=f"x.load().{name}(...)"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
