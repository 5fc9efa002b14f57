"""`Constexpr`: the annotation of a parameter (or variable) that is known while compiling."""

from __future__ import annotations

import types
import typing
from typing import TYPE_CHECKING, Any


class _ConstexprOf:
    """`Constexpr[T]`: static, and an instance of T."""

    def __init__(self, type_: Any) -> None:
        self.type = type_

    def __repr__(self) -> str:
        return f"Constexpr[{getattr(self.type, '__name__', self.type)}]"

    def __call__(self, *args: Any) -> Any:  # so that `typing` takes it for a type
        raise TypeError(f"{self} is an annotation")

    def __or__(self, other: Any) -> Any:
        return typing.Union[self, other]  # noqa: UP007 - an annotation only

    __ror__ = __or__


if TYPE_CHECKING:
    from typing_extensions import TypeVar

    _T = TypeVar("_T", default=Any)
    # To a type checker, `Constexpr[int]` is an int and a bare `Constexpr` anything.
    Constexpr = typing.Annotated[_T, "known while compiling"]
else:

    class Constexpr:
        """Marks a parameter as static: a hashable Python object, part of what code is compiled for.

        `x: Constexpr` takes anything; `x: Constexpr[int]` only an int.
        """

        def __class_getitem__(cls, type_: Any) -> Any:
            return _ConstexprOf(type_)


def constexpr_type(annotation: Any) -> Any:
    """Return the T if `annotation` is `Constexpr[T]`, `object` for a bare `Constexpr` and for an
    optional one, None for other annotations.
    """
    if annotation is Constexpr:
        return object
    if isinstance(annotation, _ConstexprOf):
        return annotation.type
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        # Optional[Constexpr[T]]: static; whether it is a T is not checked.
        return object if any(map(constexpr_type, typing.get_args(annotation))) else None
    return None
