"""Cute's decorated functions: their names in the IR and in profilers can be changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from basedsl import DSLFunction
from basedsl_cute.dynamo import unseen_by_dynamo

if TYPE_CHECKING:
    from typing_extensions import ParamSpec, TypeVar

    from basedsl_cute.dsl.compiled import CuteCompiled

    P = ParamSpec("P", default=...)
    R = TypeVar("R", default=Any)
    C = TypeVar("C", default=Any, covariant=True)
else:  # without defaults and compiled functions: they cost imports
    from typing import ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")
    C = TypeVar("C", covariant=True)
    CuteCompiled = Any


class CuteFunction(DSLFunction[P, R, C, CuteCompiled]):
    """A function decorated with @jit or @kernel."""

    name_prefix = ""
    name_tag = True

    @property
    def symbol(self) -> str:
        """The name of the function in the IR and in profilers, with its prefix."""
        is_plain = self.name_prefix and not self.name_tag
        return self.name_prefix + (self.plain_symbol if is_plain else super().symbol)

    def __init__(
        self, language: Any, fn: Any, kind: str, preprocess: bool, call: Any, compile: Any
    ):
        super().__init__(language, fn, kind, preprocess, unseen_by_dynamo(call), compile)

    def set_name_prefix(
        self, prefix: str, remove_cutlass_symbol: bool = False, keep_mangled_name: bool = True
    ) -> None:
        """Put `prefix` before the function's name in the IR and in profilers, and drop what was
        compiled under another name.

        `remove_cutlass_symbol` leaves out the DSL's name, which symbols of host functions begin
        with. `keep_mangled_name` has no effect, because symbols do not contain arguments.
        """
        changed = (prefix, not remove_cutlass_symbol)
        if changed != (self.name_prefix, self.name_tag):
            self.name_prefix, self.name_tag = changed
            self.forget()
