"""`cute.compile`, and its options as types: `cute.compile[KeepPTX, OptLevel(2)](f, x)`.

Each type stands for an option that is also text: `cute.compile(f, x, options="--keep-ptx")`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from basedsl import DSLTypeError, OptionError, users_frames
from basedsl_cute.dsl.compiled import CuteCompiled
from basedsl_cute.dsl.cute import CUTE


class CompileOption:
    """The base of compile options. `kind` is the type of the value, `option` the field of
    `CuteOptions` that it sets. Raises OptionError for a value of another type.
    """

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
        """Return the record of options `settings` with this option set."""
        return settings.replace(**{self.option: self.value})


class _Keep(CompileOption):
    """The base of options that write an artifact to the folder `dump_dir`; False writes none."""

    def apply(self, settings: Any) -> Any:
        names = tuple(name for name in settings.keep if name != self.option)
        return settings.replace(keep=(*names, self.option) if self.value else names)


class KeepPTX(_Keep):
    """Write the kernels' PTX to a file in `dump_dir`."""

    option = "ptx"


class KeepCUBIN(_Keep):
    """Write the kernels' machine code to a file in `dump_dir`; needs ptxas."""

    option = "cubin"


class KeepSASS(_Keep):
    """Write the kernels' machine code as text to a file in `dump_dir`; needs nvdisasm."""

    option = "sass"


class OptLevel(CompileOption):
    """The optimisation level of LLVM and ptxas for kernels: 0 to 3."""

    kind = int
    option = "opt_level"


class EnableAssertions(CompileOption):
    """Compile assertions in kernels for the GPU too (the simulator always checks them)."""

    option = "enable_assertions"


class GenerateLineInfo(CompileOption):
    """Emit line tables, by which profilers map machine code to Python lines."""

    option = "lineinfo"


class PtxasOptions(CompileOption):
    """Further command-line arguments of ptxas, as one string."""

    kind = str
    option = "ptxas_options"


class NvdisasmOptions(CompileOption):
    """Command-line arguments of nvdisasm, as one string."""

    kind = str
    option = "nvdisasm_options"


class GPUArch(CompileOption):
    """The target architecture: "sm_80", "sm_90a", ..., or "sim", the simulator."""

    kind = str
    option = "arch"


class EnableTVMFFI(CompileOption):
    """Accepted without effect: compiled functions take arrays directly in any case."""

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
        """Compile a @jit function for arguments of the types of `args` and `kwargs`, without a
        cache.

        `function` is a @jit function, a bound method of one, or an object whose class has a @jit
        `__call__`. `options` is text as on a command line ("--opt-level 2 --keep-ptx"), or a record
        of options. Returns the compiled function. Raises DSLCallError for anything else than a @jit
        function, OptionError for a wrong option, and the errors of a first call.

        >>> import basedsl_cute as cute
        >>> @cute.jit
        ... def add(a: cute.Int32, b: cute.Int32):
        ...     return a + b
        >>> cute.compile(add, 1, 2)(3, 4)
        7
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
