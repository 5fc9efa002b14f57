"""Functions of the user's that kernels call: the arrays that they capture become operands.

    bias = np.zeros((8, 128, 128), np.float32)

    def relative(s, batch, head, q, k):
        return s + bias[head, q, k]

`Captured.of(relative)` finds `bias`; inside the kernel the function is called with the tensor in
its place.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import basedsl_cute as cute
from basedsl import DSLTypeError, with_article


class Array(cute.Tensor):
    """An array that a function captures, which has an element at a place in all of its modes.

    One number for several of them is an error: a tensor takes it for the place in memory, and NumPy
    and PyTorch for a row.
    """

    __slots__ = ()

    @classmethod
    def of(cls, tensor: cute.Tensor) -> Array:
        """The same tensor as such an array."""
        made = cls(tensor.iterator, tensor.layout)
        made._origin = tensor._origin
        return made

    def __getitem__(self, coord: Any) -> Any:  # type: ignore[override]  # from brackets alone
        modes = cute.rank(self)
        if modes > 1 and coord is not None and not isinstance(coord, tuple | list):
            raise DSLTypeError(
                f"an array with {modes} modes is indexed by one number",
                hint=f"write x[{', '.join('ijklmnop'[:modes])}]; a function sees no rows",
            )
        return super().__getitem__(coord)


class Captured:
    """A function and the arrays in its closure and among the globals that it names.

    Two are equal if they are the same code over the same static values; the arrays are operands.
    """

    def __init__(self, fn: types.FunctionType, offset: int = 0) -> None:
        self.fn = fn
        self.offset = offset
        # Of the time of the call: a function may get others.
        self.code, self.defaults = fn.__code__, fn.__defaults__ or ()
        self.named = dict(fn.__kwdefaults__ or {})
        self.cells = [i for i, cell in enumerate(fn.__closure__ or ()) if _is_array(_content(cell))]
        self.names = [name for name in _names(fn.__code__) if _is_array(fn.__globals__.get(name))]

    @classmethod
    def of(cls, fn: Callable[..., Any] | None, what: str, offset: int = 0) -> Captured | None:
        """The captured form of a function, whose arrays are operands from number `offset` on."""
        if fn is None:
            return None
        if not isinstance(fn, types.FunctionType):
            raise DSLTypeError(
                f"{what}= is {with_article(type(fn))}", hint="pass a plain Python function"
            )
        return cls(fn, offset)

    @property
    def count(self) -> int:
        """The number of arrays."""
        return len(self.cells) + len(self.names)

    @property
    def arrays(self) -> list[Any]:
        """The arrays, in the order of `traced`."""
        closure = self.fn.__closure__ or ()
        return [
            *(_content(closure[i]) for i in self.cells),
            *(self.fn.__globals__[name] for name in self.names),
        ]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Captured) or self._places() != other._places():
            return False
        own, others = (
            (x.fn, x.code, *x.defaults, *(x.named[name] for name in x.named)) for x in (self, other)
        )
        return len(own) == len(others) and all(a is b for a, b in zip(own, others, strict=True))

    def _places(self) -> tuple[Any, ...]:
        """The places of arrays among the operands and in what the function captures."""
        return self.offset, self.cells, self.names, len(self.defaults), [*self.named]

    def __hash__(self) -> int:
        return hash((self.fn, self.offset))

    def traced(self, operands: Sequence[Any]) -> Callable[..., Any]:
        """The function with the tensors among `operands` in place of its arrays."""
        own = [Array.of(x) for x in operands[self.offset : self.offset + self.count]]
        closure = list(self.fn.__closure__ or ())
        for i, tensor in zip(self.cells, own, strict=False):
            closure[i] = types.CellType(tensor)
        space = self.fn.__globals__
        if self.names:
            space = {**space, **dict(zip(self.names, own[len(self.cells) :], strict=True))}
        made = types.FunctionType(
            self.code, space, self.fn.__name__, self.defaults or None, tuple(closure) or None
        )
        made.__kwdefaults__ = self.named or None
        made.__qualname__ = self.fn.__qualname__
        fn: Callable[..., Any] = cute.jit(made)

        def call(*place: Any) -> Any:
            try:
                result = fn(*place)
            except (IndexError, TypeError) as error:
                if "indices" not in str(error):
                    raise
                raise DSLTypeError(
                    f"{self.fn.__name__}() indexes an array that it does not capture itself",
                    hint="an array in its closure, or among its module's globals, is an operand; "
                    "one in a container, an attribute or another function's is not: bind it to a "
                    "name of this function's before",
                ) from error
            return bool(result) if isinstance(result, np.bool_) else result

        return call


def _is_array(x: Any) -> bool:
    return not isinstance(x, type) and hasattr(x, "__dlpack__")


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return None


def _names(code: types.CodeType) -> list[str]:
    """The globals that a code object names, those of functions inside it included."""
    found = dict.fromkeys(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found.update(dict.fromkeys(_names(constant)))
    return list(found)
