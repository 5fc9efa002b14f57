"""DynamicText, a text made while compiling that shows a dynamic value as `?`.

It is good for people: messages of exceptions, what `print` writes. Where a program asks what is in
it (compares, measures, looks it up), Python would see digits, so that is an error. Functions
written in C read the `?`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from basedsl.errors import DSLTypeError
from basedsl.location import asks_as_library, is_internal, is_library
from basedsl.numeric.text_use import check_text, told
from basedsl.tracing import current_trace_or_none


class DynamicText(str):
    """A text that shows a dynamic value as `?`; asking for its contents is a DSLTypeError."""

    __slots__ = ()

    def __str__(self) -> str:
        check_text(sys._getframe(1))
        return self

    def __format__(self, spec: str) -> str:
        check_text(sys._getframe(1))
        return DynamicText(str.__format__(self, spec))

    def __bool__(self) -> bool:
        return str.__len__(self) > 0


def made_text(make: Callable[..., str]) -> Callable[..., str]:
    """Return a function that calls `make` (`"{}".format`, `", ".join`) and marks the text if it
    shows a dynamic value.
    """

    def call(*args: Any, **kwargs: Any) -> str:
        trace = current_trace_or_none()
        before = 0 if trace is None else trace.texts
        args = tuple(x if isinstance(x, str | dict) else _items(x, make) for x in args)
        text = make(*args, **kwargs)
        shows = any(map(_shows, (*args, *kwargs.values())))
        if shows or (trace is not None and trace.texts != before):
            return DynamicText(text)
        return text

    return call


def joined(parts: tuple[str, ...]) -> str:
    """Return an f-string of its parts."""
    text = "".join(parts)
    return DynamicText(text) if any(map(_shows, parts)) else text


def _items(x: Any, make: Any) -> Any:
    return list(x) if make.__name__ == "join" else x


def _shows(x: Any) -> bool:
    return type(x) is DynamicText or (isinstance(x, list | tuple) and any(map(_shows, x)))


def refuse_text(what: str, *values: Any) -> None:
    """Raise a DSLTypeError if a value is a `DynamicText`; `what` is done with it ("compared")."""
    if any(type(value) is DynamicText for value in values) and current_trace_or_none():
        raise DSLTypeError(
            f"a text that shows a value of run time is {what}",
            notes=(("it is made while compiling, with ? for the value", None),),
            hint="use the number itself: texts are for messages",
        )


_MAKING = (
    *("__add__", "__mul__", "__rmul__", "__mod__", "__rmod__"),
    *("capitalize", "casefold", "center", "expandtabs", "format", "join", "ljust", "lower"),
    *("lstrip", "removeprefix", "removesuffix", "replace", "rjust", "rstrip", "strip", "swapcase"),
    *("title", "translate", "upper", "zfill"),
)
# With an argument: what is left may be empty, and Python asks for the truth of it.
_CUTTING = ("strip", "lstrip", "rstrip", "removeprefix", "removesuffix", "replace", "translate")
_ASKING = {
    **dict.fromkeys(("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"), "compared"),
    "__hash__": "looked up",
    "__len__": "measured",
    **dict.fromkeys(("__contains__", "count", "find", "index", "rfind", "rindex"), "searched"),
    **dict.fromkeys(("__getitem__", "__iter__", "encode"), "read"),
    **dict.fromkeys(("split", "rsplit", "splitlines", "partition", "rpartition"), "split"),
    **dict.fromkeys([n for n in dir(str) if n.startswith("is")], "searched"),
    **dict.fromkeys(("startswith", "endswith"), "searched"),
}


def _making(name: str) -> Callable[..., Any]:
    original = getattr(str, name, None)

    def method(self: str, *args: Any, **kwargs: Any) -> Any:
        if args and name in _CUTTING and not (name == "replace" and args[1]):
            refuse_text("searched", self)
        made = original(self, *args, **kwargs) if original is not None else NotImplemented
        return DynamicText(made) if isinstance(made, str) else made

    return method


def _asking(name: str, what: str) -> Callable[..., Any]:
    original = getattr(str, name)

    def method(self: str, *args: Any, **kwargs: Any) -> Any:
        if _asked_by_the_program(sys._getframe(1)):
            refuse_text(what, self)
        return original(self, *args, **kwargs)

    return method


def _asked_by_the_program(frame: FrameType | None) -> bool:
    """Return True unless the DSL itself asks, or a library that shows the text to people."""
    passed_on = False
    while frame is not None and _is_of_a_library(frame.f_code.co_filename):
        passed_on, frame = True, frame.f_back
    if frame is None or asks_as_library(frame):
        return False
    return not (passed_on and told(frame))


def _is_of_a_library(filename: str) -> bool:
    return (is_library(filename) and not is_internal(filename)) or filename in _asking_for_programs


_asking_for_programs: set[str] = set()


def ask_for_programs(filename: str) -> None:
    """Treat what the code of a file asks of texts as the program's questions: it runs iterators of
    the program, as `sum` does.
    """
    _asking_for_programs.add(filename)


def _radd(self: str, other: Any) -> Any:
    return DynamicText(str.__add__(other, self)) if isinstance(other, str) else NotImplemented


for _name in _MAKING:
    setattr(DynamicText, _name, _making(_name))
for _name, _what in _ASKING.items():
    setattr(DynamicText, _name, _asking(_name, _what))
DynamicText.__radd__ = _radd  # type: ignore[attr-defined]
