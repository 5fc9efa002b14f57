"""toy: a small DSL for the CPU, and the worked example of a basedsl plugin.

    import basedsl_toy as toy

    @toy.jit
    def dot(a: toy.Buffer, b: toy.Buffer):
        total = 0.0
        for i in range(len(a)):
            total += a[i] * b[i]
        return total

    dot(np.ones(3), np.full(3, 2.0))      # 6.0: compiled by this call, native code from then on

`jit` decorates a function, `compile(f, *arguments)` compiles it at once for arguments like these,
and `compile[OptLevel(3), KeepIR](f, *arguments)` with options.
Numbers, tuples, lists, dicts and dataclasses of numbers, and NumPy arrays (`Buffer`) cross the
call; a parameter annotated `Constexpr` is known while compiling.

Read `dsl.py` first, then `buffer.py` (its argument type) and `cf_emitter.py` (its control flow).
"""

from basedsl import (
    Boolean,
    Compile,
    Compiled,
    Constexpr,
    DryRun,
    Float32,
    Float64,
    Int32,
    Int64,
    KeepIR,
    OptLevel,
    WarningsAsErrors,
    const_expr,
    external,
    range_constexpr,
)
from basedsl_toy.buffer import Buffer
from basedsl_toy.dsl import TOY

jit = TOY.jit
compile: Compile[Compiled] = Compile(TOY)

__all__ = [
    "TOY",
    "Boolean",
    "Buffer",
    "Constexpr",
    "DryRun",
    "Float32",
    "Float64",
    "Int32",
    "Int64",
    "KeepIR",
    "OptLevel",
    "WarningsAsErrors",
    "compile",
    "const_expr",
    "external",
    "jit",
    "range_constexpr",
]
