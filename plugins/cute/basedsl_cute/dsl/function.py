"""Cute's decorated functions: their names in the IR and in profilers can be changed."""

from __future__ import annotations

from basedsl.function import C, DSLFunction, P, R
from basedsl_cute.dsl.compiled import CuteCompiled


class CuteFunction(DSLFunction[P, R, C, CuteCompiled]):
    """A @jit or @kernel function."""

    name_prefix = ""
    name_tag = True

    @property
    def symbol(self) -> str:
        """The name of the function in the IR and in profilers, with its prefix."""
        is_plain = self.name_prefix and not self.name_tag
        return self.name_prefix + (self.plain_symbol if is_plain else super().symbol)

    def set_name_prefix(
        self, prefix: str, remove_cutlass_symbol: bool = False, keep_mangled_name: bool = True
    ) -> None:
        """Put `prefix` before the function's name in the IR and in profilers.

        `remove_cutlass_symbol` leaves out the DSL's name, which host functions carry; arguments
        are in no name, so there is nothing that `keep_mangled_name=False` would leave out.
        """
        changed = (prefix, not remove_cutlass_symbol)
        if changed != (self.name_prefix, self.name_tag):
            self.name_prefix, self.name_tag = changed
            self.forget()
