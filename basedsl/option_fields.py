"""Fields of options records: how they are declared, and which values each takes."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from basedsl.errors import DSLError
from basedsl.location import Span, span_of_frame, user_frames

T = TypeVar("T")


class OptionError(DSLError, ValueError):
    """An option that does not exist, or a value of the wrong type or out of its choices."""


@dataclass(frozen=True)
class OptionInfo:
    """The description of one option. `variables` are the environment variables that set it."""

    name: str
    type_name: str
    default: Any
    doc: str
    affects_output: bool
    variables: tuple[str, ...]
    choices: tuple[Any, ...] = ()


def option(
    default: T,
    doc: str,
    *,
    affects_output: bool,
    choices: tuple[T, ...] = (),
    least: int | None = None,
    env: str = "",
    debug: T | None = None,
) -> T:
    """Declare a field of an options record: its default, and `doc`, a line of documentation.

    `affects_output` puts its value into cache keys: set it if the generated code depends on it.
    `choices` are the values allowed, if not all, `least` the least of an integer; `env` names its
    environment variable (without prefix) if that is not the field's name in capitals; `debug` is
    its value where the option `debug` is set and nothing else says one.
    """
    metadata = {
        "doc": doc,
        "affects_output": affects_output,
        "choices": choices,
        "least": least,
        "env": env,
        "debug": debug,
    }
    field: T = dataclasses.field(default=default, metadata=metadata)
    return field


def negated(text: str) -> str:
    """Return the text of a boolean variable for an option that means the opposite."""
    return "1" if text.strip().lower() in ("0", "false", "no", "off", "") else "0"


def is_set(text: str) -> str:
    """Return the text of a boolean variable that is also set by a word of its own, as
    MLIR_ENABLE_DUMP is by the name of a kernel.
    """
    return "1" if negated(text) == "0" else "0"


def kept(artifact: str) -> Callable[[str], str]:
    """Return how a boolean variable such as KEEP_PTX is read as a value of the option `keep`: true
    keeps `artifact`.
    """
    return lambda text: artifact if negated(text) == "0" else ""


@dataclass(frozen=True)
class ValueKind:
    """The type of an option's values. `type_name` is what `basedsl options` calls it: bool, int,
    str, path or names; `choices` are the values allowed, if not all, `least` the least number;
    `optional` allows None.
    """

    type_name: str
    accepts: Callable[[Any], bool]
    convert: Callable[[str], Any]
    choices: tuple[Any, ...] = ()
    least: int | None = None
    optional: bool = False

    @property
    def is_flag(self) -> bool:
        """True for an option that a command line sets without a value."""
        return self.type_name == "bool"

    def check(self, name: str, value: Any) -> Any:
        """Return `value` as the option `name` keeps it; OptionError if it is not allowed."""
        if self.type_name == "path" and isinstance(value, str):
            value = Path(value)
        if self.type_name == "names" and isinstance(value, list):
            value = tuple(value)
        if value is None and self.optional:
            return None
        if not self.accepts(value) or not self._allows(value):
            raise OptionError(f"option {name} is {self._wanted()}, not {value!r}", line_of_caller())
        return value

    def read(self, text: str, shown: str) -> Any:
        """Return the value that `text` is; errors quote it as `shown`."""
        if self.optional and not text:
            return None
        try:
            value = self.convert(text)
        except ValueError:
            raise OptionError(f"{shown}: the value is {self._wanted()}") from None
        if not self._allows(value):
            raise OptionError(f"{shown}: the value is {self._wanted()}")
        return value

    def _allows(self, value: Any) -> bool:
        if self.choices and value not in self.choices:
            return False
        return self.least is None or value >= self.least

    def _wanted(self) -> str:
        if self.least is not None:
            return f"an integer of at least {self.least}"
        if self.choices:
            return "one of " + ", ".join(str(choice) for choice in self.choices)
        return {
            "bool": "true or false (1 or 0)",
            "int": "an integer",
            "str": "text",
            "path": "a path",
            "names": "names separated by commas",
        }[self.type_name]


def line_of_caller() -> Span | None:
    """Return the user's line that makes a record."""
    # A dataclass's __init__ is code without a file.
    frames = (frame for frame in user_frames() if frame.f_code.co_filename != "<string>")
    frame = next(frames, None)
    return None if frame is None else span_of_frame(frame)


_WORDS = {"1": True, "true": True, "yes": True, "on": True} | {
    "0": False, "false": False, "no": False, "off": False, "": False
}  # fmt: skip


def _read_bool(text: str) -> bool:
    try:
        return _WORDS[text.strip().lower()]
    except KeyError:
        raise ValueError(text) from None


def _read_names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _is_names(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(part, str) for part in value)


_KINDS: dict[Any, ValueKind] = {
    bool: ValueKind("bool", lambda value: isinstance(value, bool), _read_bool),
    int: ValueKind(
        "int", lambda value: isinstance(value, int) and not isinstance(value, bool), int
    ),
    str: ValueKind("str", lambda value: isinstance(value, str), str),
    Path: ValueKind("path", lambda value: isinstance(value, Path), Path),
    tuple[str, ...]: ValueKind("names", _is_names, _read_names),
}


_known: dict[type, dict[str, ValueKind]] = {}


def kinds_of(cls: Any) -> dict[str, ValueKind]:
    """Return the kind of each option of a record, a dataclass whose fields `option` declares; a
    field of another type, or without `option`, raises TypeError.
    """
    known = _known.get(cls)
    if known is not None:
        return known
    hints = typing.get_type_hints(cls)
    found = {}
    for field in dataclasses.fields(cls):
        hint, optional = hints[field.name], False
        if isinstance(hint, types.UnionType):
            (hint,) = (part for part in hint.__args__ if part is not types.NoneType)
            optional = True
        if hint not in _KINDS or "doc" not in field.metadata:
            raise TypeError(
                f"{cls.__name__}.{field.name}: declare it with option(), as bool, int, str, Path "
                "or tuple[str, ...]"
            )
        found[field.name] = dataclasses.replace(
            _KINDS[hint],
            choices=field.metadata["choices"],
            least=field.metadata["least"],
            optional=optional,
        )
    return _known.setdefault(cls, found)
