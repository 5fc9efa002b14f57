"""`cute.compile`, and its options as types: `cute.compile[KeepPTX, OptLevel(2)](f, x)`.

Each type stands for an option that is also text: `cute.compile(f, x, options="--keep-ptx")`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from basedsl.errors import DSLTypeError, users_frames
from basedsl.options import OptionError
from basedsl_cute.dsl.compiled import CuteCompiled
from basedsl_cute.dsl.cute import CUTE


class CompileOption:
    """One option with its value. `kind` is the type of the value, `option` the field it sets."""

    kind: ClassVar[type] = bool
    option: ClassVar[str]

    def __init__(self, value: Any = None) -> None:
        if value is None and self.kind is bool:
            value = True
        if type(value) is not self.kind:
            raise OptionError(
                f"{type(self).__name__} takes a value of type {self.kind.__name__}, not {value!r}"
            )
        self.value = value

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value!r})"

    def apply(self, settings: Any) -> Any:
        """`settings` with this option."""
        return settings.replace(**{self.option: self.value})


class _Keep(CompileOption):
    """An artifact that is also written to the folder of dumps."""

    def apply(self, settings: Any) -> Any:
        names = tuple(name for name in settings.keep if name != self.option)
        return settings.replace(keep=(*names, self.option) if self.value else names)


class KeepPTX(_Keep):
    """Save the PTX."""

    option = "ptx"


class KeepCUBIN(_Keep):
    """Save the machine code."""

    option = "cubin"


class KeepSASS(_Keep):
    """Save the machine code as text; takes nvdisasm."""

    option = "sass"


class OptLevel(CompileOption):
    """How much LLVM and ptxas optimise kernels: 0 to 3."""

    kind = int
    option = "opt_level"


class EnableAssertions(CompileOption):
    """Keep assertions in kernels on the GPU."""

    option = "enable_assertions"


class GenerateLineInfo(CompileOption):
    """Line tables for profilers."""

    option = "lineinfo"


class PtxasOptions(CompileOption):
    """Further options of ptxas."""

    kind = str
    option = "ptxas_options"


class NvdisasmOptions(CompileOption):
    """Options of nvdisasm."""

    kind = str
    option = "nvdisasm_options"


class GPUArch(CompileOption):
    """What code is made for: sm_90a, ..., or sim."""

    kind = str
    option = "arch"


class EnableTVMFFI(CompileOption):
    """Accepted for programs that ask: compiled functions take arrays directly in any case."""

    option = "enable_tvm_ffi"


class Compile:
    """`compile(f, *args, options="...")` and `compile[option, ...](f, *args)`."""

    def __init__(self, options: tuple[CompileOption, ...] = ()) -> None:
        self._options = options

    def __getitem__(self, options: Any) -> Compile:
        given = options if isinstance(options, tuple) else (options,)
        return Compile((*self._options, *map(_as_option, given)))

    def __call__(
        self, function: Any, *args: Any, options: Any = None, **kwargs: Any
    ) -> CuteCompiled:
        """Compile a @jit function for arguments like these; always compiles, caches nothing.

        `function` is a @jit function, a bound method, or an object whose `__call__` is one;
        `options` is text as on a command line.
        """
        with users_frames():
            settings = CUTE.settings(options)
            for option in self._options:
                settings = option.apply(settings)
            tuned = getattr(function, "__cute_tuned__", None)  # of `testing.autotune_jit`
            if tuned is not None:
                instance = getattr(function, "__self__", None)
                args = args if instance is None else (instance, *args)
                function, complete = tuned
                kwargs = complete(args, kwargs)
            return CUTE.compile(function, *args, options=settings, **kwargs)


def _as_option(given: Any) -> CompileOption:
    if isinstance(given, CompileOption):
        return given
    if isinstance(given, type) and issubclass(given, CompileOption):
        return given()
    known = ", ".join(sorted(cls.__name__ for cls in _all(CompileOption)))
    raise DSLTypeError(f"compile[...] takes compile options, not {given!r}", hint=f"these: {known}")


def _all(cls: type[CompileOption]) -> list[type[CompileOption]]:
    found = []
    for one in cls.__subclasses__():
        found += _all(one) or [one]
    return found


compile = Compile()
