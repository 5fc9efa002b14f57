"""Specialization of a kernel for one lockstep width: source, code, and the values of its names.

It can be pickled, and then runs in another process of the same Python without translating.
"""

from __future__ import annotations

import ast
import importlib
import linecache
import marshal
import os
import types
from typing import Any, NamedTuple

import numpy as np

from basedsl_cute.sim import affine, numerics
from basedsl_cute.sim.machine.access import MemoryAccess
from basedsl_cute.sim.machine.memory_map import MemoryMap

PRELUDE: dict[str, Any] = {
    "np": np,
    "num": numerics,
    "affine": affine,
    "dense": affine.dense,
    "where": np.where,
    "bool_": np.bool_,
    **{
        f"{kind}{bits}": np.dtype(f"{kind}{bits // 8}").type
        for kind in "iu"
        for bits in (8, 16, 32, 64)
    },
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
}
"""Names that all generated code can use."""


# Modules of the machine whose operations the race check follows by clocks of warps.
_ASYNCHRONOUS = frozenset(
    "tma bulk_copies bulk_groups mbarriers wgmma wgmma_queue dsmem cluster tensor_memory tcgen05 "
    "cluster_launch".split()
)


class RaceFacts(NamedTuple):
    """Facts of a kernel's code for the race check. `written` are the numbers of arguments that it
    may write through, None if that is not known, and `read` those that it is known to read through;
    `syncs` says that fences, atomics or accesses with
    an order are there, and `asynchronous` that units besides the threads use shared memory.
    """

    written: frozenset[int] | None
    read: frozenset[int]
    syncs: bool
    asynchronous: bool

    @staticmethod
    def of(names: dict[str, Any]) -> RaceFacts:
        """The facts of code that names these values."""
        accesses = [value for value in names.values() if isinstance(value, MemoryAccess)]
        writes = [a for a in accesses if a.verb != "read" and a.space not in (3, 5, 7)]
        known = "run_ptx" not in names and all(a.root is not None for a in writes)
        return RaceFacts(
            frozenset(a.root for a in writes if a.root is not None) if known else None,
            frozenset(a.root for a in accesses if a.reads and a.root is not None),
            "run_ptx" in names or any(a.strong for a in accesses),
            not _ASYNCHRONOUS.isdisjoint(names),
        )


class Specialization:
    """The generated function of a kernel, `call`; `waits` says that calling it makes a generator.

    `names` are the values that the source can name besides the prelude; `variables` are those of
    them that hold the address of a variable of `memory_map` which differs by process.
    """

    def __init__(
        self,
        filename: str,
        source: str,
        code: types.CodeType,
        names: dict[str, Any],
        variables: dict[str, str],
        memory_map: MemoryMap,
    ) -> None:
        self.source = source
        self.memory_map = memory_map
        self._filename, self._code = filename, code
        self._names, self._variables = names, variables
        linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
        scope = {**PRELUDE, **names}
        for name, variable in variables.items():
            scope[name] = np.int64(memory_map.address_of(variable))
        exec(code, scope)
        self.call: Any = scope["kernel"]
        self.race_facts = RaceFacts.of(names)
        self.waits = bool(self.call.__code__.co_flags & 0x20)  # CO_GENERATOR

    @staticmethod
    def of_source(
        kernel: str,
        width: str,
        source: str,
        names: dict[str, Any],
        variables: dict[str, str],
        memory_map: MemoryMap,
    ) -> Specialization:
        """Compile the source of `kernel` for `width`."""
        # A file name inside this package marks the generated frames as internal in error messages.
        filename = os.path.join(os.path.dirname(__file__), f"<{kernel} {width}>")
        one = source.count("\ndef ") == 0  # then Python need not make a tree of objects
        code = compile(source if one else _with_blocks(ast.parse(source)), filename, "exec")
        return Specialization(filename, source, code, names, variables, memory_map)

    def __reduce__(self) -> tuple[Any, ...]:
        modules = {
            name: value.__name__
            for name, value in self._names.items()
            if isinstance(value, types.ModuleType)
        }
        plain = {
            name: value
            for name, value in self._names.items()
            if name not in modules and name not in self._variables
        }
        parts = (self._filename, self.source, marshal.dumps(self._code))
        return _restored, (*parts, plain, modules, self._variables, self.memory_map)


def _with_blocks(tree: ast.Module) -> ast.Module:
    """Put the bodies of the functions after the kernel in place of their calls."""
    kernel, *blocks = tree.body
    bodies = {block.name: block.body for block in blocks if isinstance(block, ast.FunctionDef)}
    for node in ast.walk(tree) if bodies else ():
        for name in ("body", "orelse"):
            match getattr(node, name, None):
                case [ast.Expr(ast.Call(ast.Name(block)))] if block in bodies:
                    setattr(node, name, bodies[block])
    return ast.Module([kernel], [])


def _restored(
    filename: str,
    source: str,
    code: bytes,
    plain: dict[str, Any],
    modules: dict[str, str],
    variables: dict[str, str],
    memory_map: MemoryMap,
) -> Specialization:
    names = {name: importlib.import_module(module) for name, module in modules.items()}
    return Specialization(
        filename, source, marshal.loads(code), {**plain, **names}, variables, memory_map
    )
