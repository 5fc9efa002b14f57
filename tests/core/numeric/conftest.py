"""A harness that traces Python functions over numeric values and runs them as native code."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from basedsl.metastage.scf_emitter import ScfEmitter
from basedsl.mlir import MLIRContext, load_bindings
from basedsl.numeric import Boolean, Float32, Int32, Numeric, from_storage
from basedsl.numeric.kit import kit_of
from basedsl.objectstage import native
from basedsl.tracing import trace as tracing

SLOT = 16  # bytes an argument or result takes in the harness's memory

# BFloat16 arithmetic in Float32; the pass marks its conversions as contractible, which would let
# the rounding between two operations go, so the marks are taken off before anything can fold.
EMULATE = ("arith-emulate-unsupported-floats{source-types=bf16 target-type=f32}",)
PASSES = (
    "convert-scf-to-cf",
    "arith-expand{include-bf16=true}",
    "convert-math-to-llvm{approximate-log1p=false}",
    "convert-math-to-libm",
    "convert-to-llvm",
    "reconcile-unrealized-casts",
)

_BINDINGS = load_bindings()
_CONTEXT = MLIRContext(_BINDINGS)


class Emitter(ScfEmitter):
    """`scf`, with the traits of a target that the tests ask for."""

    float_checks = False  # what instructions give, as kernels do

    def __init__(self, trace: tracing.Trace, **traits: bool) -> None:
        super().__init__(trace)
        vars(self).update(traits)


class Program:
    """A module being traced, and the native functions it becomes."""

    def __init__(self, trace: tracing.Trace, module: Any) -> None:
        self.trace = trace
        self.module = module
        self.results: dict[str, list[type[Numeric]]] = {}
        self.arguments: dict[str, list[type[Numeric]]] = {}
        self.code: Any = None

    def add(self, name: str, fn: Callable[..., Any], *types: type[Numeric]) -> Program:
        """Trace `fn` over dynamic values of `types`; it returns numbers, or a tuple of them."""
        ir, func, llvm = self.trace.ir, _BINDINGS.func, _BINDINGS.llvm
        pointer = llvm.PointerType.get()
        with ir.InsertionPoint(self.module.body):
            op = func.FuncOp(name, ([pointer, pointer], []))
        block = op.add_entry_block()
        inputs, outputs = block.arguments
        self.trace.region = tracing.Region("function", None, None)
        try:
            with self.trace.insertion(block):
                values = [self._load(inputs, i, T) for i, T in enumerate(types)]
                result = fn(*values)
                results = result if isinstance(result, tuple) else (result,)
                for i, x in enumerate(results):
                    self._store(outputs, i, x)
                func.ReturnOp([])
        except BaseException:
            op.operation.erase()
            raise
        self.arguments[name] = list(types)
        self.results[name] = [type(x) for x in results]
        return self

    def _address(self, base: Any, i: int) -> Any:
        llvm, ir = _BINDINGS.llvm, self.trace.ir
        return llvm.GEPOp(
            llvm.PointerType.get(), base, [], [i * SLOT], ir.IntegerType.get_signless(8), 0
        ).result

    def _load(self, base: Any, i: int, T: type[Numeric]) -> Numeric:
        llvm, ir, kit = _BINDINGS.llvm, self.trace.ir, kit_of(self.trace)
        stored = ir.IntegerType.get_signless(8) if T is Boolean else kit.type_of(T)
        raw = llvm.LoadOp(stored, self._address(base, i)).result
        if T is Boolean:
            raw = _BINDINGS.arith.trunci(kit.i1, raw)
        return T.from_value(raw)

    def _store(self, base: Any, i: int, x: Numeric) -> None:
        llvm, ir = _BINDINGS.llvm, self.trace.ir
        value = x.ir_value()
        if type(x) is Boolean:
            value = _BINDINGS.arith.extui(ir.IntegerType.get_signless(8), value)
        llvm.StoreOp(value, self._address(base, i))

    def text(self) -> str:
        """The module as MLIR."""
        return str(self.module)

    def compile(self) -> Program:
        """Lower to native code."""
        op = self.module.operation
        assert op.verify()
        self._run(EMULATE)
        op.walk(self._exact)
        self._run(PASSES)
        llvmir = _BINDINGS.llvm.translate_module_to_llvmir(self.module.operation)
        self.code = native.load_object(native.compile_llvmir(llvmir))
        return self

    def _run(self, passes: Sequence[str]) -> None:
        text = f"builtin.module({','.join(passes)})"
        _BINDINGS.passmanager.PassManager.parse(text).run(self.module.operation)

    def _exact(self, op: Any) -> Any:
        if op.name in ("arith.extf", "arith.truncf") and "fastmath" in op.attributes:
            op.attributes["fastmath"] = self.trace.ir.Attribute.parse("#arith.fastmath<none>")
        return self.trace.ir.WalkResult.ADVANCE

    def run(self, name: str, rows: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
        """The results of the function for each row of Python numbers."""
        types, results = self.arguments[name], self.results[name]
        function = self.code.function(name, None, ctypes.c_void_p, ctypes.c_void_p)
        memory = bytearray(max(1, len(rows) * len(types)) * SLOT)
        for r, row in enumerate(rows):
            for i, (T, x) in enumerate(zip(types, row, strict=True)):
                at = (r * len(types) + i) * SLOT
                data = to_bytes(T, x)
                memory[at : at + len(data)] = data
        inputs = np.frombuffer(memory, np.uint8).copy()
        outputs = np.zeros(len(results) * SLOT, np.uint8)
        answers = []
        for r in range(len(rows)):
            function(inputs.ctypes.data + r * len(types) * SLOT, outputs.ctypes.data)
            raw = outputs.tobytes()
            answers.append(tuple(from_bytes(T, raw[i * SLOT :]) for i, T in enumerate(results)))
        return answers


def to_bytes(T: type[Numeric], x: Any) -> bytes:
    """`x` as a `T` lies in memory."""
    if T.width == 128:
        return int(x).to_bytes(16, "little", signed=T.signed)
    return np.asarray(x, T.numpy_dtype).tobytes()


def from_bytes(T: type[Numeric], raw: bytes) -> Any:
    """The Python number of a `T` in memory."""
    if T.width == 128:
        return from_storage(T, raw[:16])
    return np.frombuffer(raw[: T.storage_width // 8], T.numpy_dtype)[0].item()


@contextlib.contextmanager
def tracing_program(
    *, default_int: Any = Int32, default_float: Any = Float32, **traits: bool
) -> Iterator[Program]:
    with _CONTEXT.entered():
        module = _BINDINGS.ir.Module.create()
        trace = tracing.Trace(
            SimpleNamespace(name="test"),
            _BINDINGS,
            module,
            lambda trace: Emitter(trace, **{"checks": False, **traits}),
            default_int=default_int,
            default_float=default_float,
            pick=None,
        )
        with tracing.activate(trace):
            yield Program(trace, module)


@pytest.fixture
def program() -> Callable[..., Any]:
    """A context manager that starts a module: `with program() as p: p.add("f", fn, Int32)`."""
    return tracing_program
