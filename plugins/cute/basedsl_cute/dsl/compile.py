"""`cute.compile`, and its options as types: `cute.compile[KeepPTX, OptLevel(2)](f, x)`.

Each type stands for an option that is also text: `cute.compile(f, x, options="--keep-ptx")`. The
options of every DSL are the core's.
"""

from __future__ import annotations

from typing import Any

from basedsl import (
    BooleanBasedFileDumpOption,
    BooleanCompileOption,
    Compile,
    StringCompileOption,
)
from basedsl_cute.dsl.compiled import CuteCompiled
from basedsl_cute.dsl.cute import CUTE


class KeepPTX(BooleanBasedFileDumpOption):
    """Write the kernels' PTX to a file in `dump_dir`."""

    option = "ptx"


class KeepCUBIN(BooleanBasedFileDumpOption):
    """Write the kernels' machine code to a file in `dump_dir`; needs ptxas."""

    option = "cubin"


class KeepSASS(BooleanBasedFileDumpOption):
    """Write the kernels' machine code as text to a file in `dump_dir`; needs nvdisasm."""

    option = "sass"


class EnableAssertions(BooleanCompileOption):
    """Compile assertions in kernels for the GPU too (the simulator always checks them)."""

    option = "enable_assertions"


class GenerateLineInfo(BooleanCompileOption):
    """Emit line tables, by which profilers map machine code to Python lines."""

    option = "lineinfo"


class PtxasOptions(StringCompileOption):
    """Further command-line arguments of ptxas, as one string: `PtxasOptions("-v")`. One that ptxas
    does not know raises DSLError when the kernel is compiled.
    """

    option = "ptxas_options"


class LinkLibraries(StringCompileOption):
    """Files that kernels are linked with, separated by commas: LLVM bitcode (.bc), PTX, cubins and
    other relocatable objects, and static archives (.a).
    """

    option = "link_libraries"

    def apply(self, settings: Any) -> Any:
        names = tuple(part.strip() for part in str(self.value).split(",") if part.strip())
        return settings.replace(link_libraries=(*settings.link_libraries, *names))


class NvdisasmOptions(StringCompileOption):
    """Command-line arguments of nvdisasm, which writes the file of `KeepSASS`, as one string:
    `NvdisasmOptions("-hex")`.
    """

    option = "nvdisasm_options"


class GPUArch(StringCompileOption):
    """The target architecture: "sm_80", "sm_90a", ..., or "sim", the simulator."""

    option = "arch"


class EnableTVMFFI(BooleanCompileOption):
    """Accepted without effect: compiled functions take arrays directly in any case."""

    option = "enable_tvm_ffi"


class CuteCompile(Compile[CuteCompiled]):
    """`compile(function, *args, options="...")` and `compile[option, ...](function, *args)`.

    `function` is a @jit function, a bound method of one, or an object whose class has a @jit
    `__call__`; the arguments behind it are those of a call, of which the types count. Returns the
    compiled function, whose calls take the run-time arguments.

    >>> import basedsl_cute as cute
    >>> @cute.jit
    ... def add(a: cute.Int32, b: cute.Int32):
    ...     return a + b
    >>> cute.compile(add, 1, 2)(3, 4)
    7
    """

    def prepare(
        self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        tuned = getattr(function, "__cute_tuned__", None)  # of `testing.autotune_jit`
        if tuned is None:
            return function, args, kwargs
        instance = getattr(function, "__self__", None)
        args = args if instance is None else (instance, *args)
        function, complete = tuned
        return function, args, complete(args, kwargs)


compile = CuteCompile(CUTE)
