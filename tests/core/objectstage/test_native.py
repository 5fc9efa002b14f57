"""Native code: what compiled functions compute, symbols, reloading, threads, the exit."""

from __future__ import annotations

import ctypes
import math
import struct
import subprocess
import sys
import threading

import numpy as np
import pytest

from basedsl.errors import CompilerBug, DSLRuntimeError
from basedsl.objectstage import PassFailed, native, run_pipeline
from basedsl.objectstage.lowering import native_pipeline
from basedsl.objectstage.native import NativeTarget

F32, F64, I32, I64, PTR = (
    ctypes.c_float,
    ctypes.c_double,
    ctypes.c_int32,
    ctypes.c_int64,
    ctypes.c_void_p,
)


@pytest.mark.parametrize("opt_level", [0, 1, 2, 3])
def test_scalars_at_every_level(compiled, opt_level):
    text = """
    func.func @f(%a: i32, %b: i64, %x: f64) -> f64 {
      %0 = arith.extsi %a : i32 to i64
      %1 = arith.muli %0, %b : i64
      %2 = arith.sitofp %1 : i64 to f64
      %3 = arith.divf %2, %x : f64
      return %3 : f64
    }"""
    f = compiled(text, F64, I32, I64, F64, pipeline=native_pipeline(opt_level=opt_level))
    assert f(-3, 2**40, 0.75) == -3 * 2**40 / 0.75


def test_buffers(compiled):
    text = """
    func.func @f(%p: !llvm.ptr, %n: i64, %a: f32) {
      %c0 = arith.constant 0 : i64
      %c1 = arith.constant 1 : i64
      scf.for %i = %c0 to %n step %c1 : i64 {
        %q = llvm.getelementptr %p[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
        %x = llvm.load %q : !llvm.ptr -> f32
        %y = arith.mulf %x, %a : f32
        llvm.store %y, %q : f32, !llvm.ptr
      }
      return
    }"""
    f = compiled(text, None, PTR, I64, F32)
    array = np.arange(1000, dtype=np.float32)
    f(array.ctypes.data, array.size, 1.5)
    np.testing.assert_array_equal(array, np.arange(1000, dtype=np.float32) * np.float32(1.5))


def test_memrefs_through_the_c_interface(compiled):
    text = """
    func.func @f(%m: memref<?x?xf64, strided<[?, ?], offset: ?>>) -> f64
        attributes {llvm.emit_c_interface} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %rows = memref.dim %m, %c0 : memref<?x?xf64, strided<[?, ?], offset: ?>>
      %cols = memref.dim %m, %c1 : memref<?x?xf64, strided<[?, ?], offset: ?>>
      %z = arith.constant 0.0 : f64
      %r = scf.for %i = %c0 to %rows step %c1 iter_args(%s = %z) -> f64 {
        %t = scf.for %j = %c0 to %cols step %c1 iter_args(%u = %s) -> f64 {
          %x = memref.load %m[%i, %j] : memref<?x?xf64, strided<[?, ?], offset: ?>>
          %v = arith.addf %u, %x : f64
          scf.yield %v : f64
        }
        scf.yield %t : f64
      }
      return %r : f64
    }"""
    f = compiled(text, F64, PTR, name="_mlir_ciface_f")
    array = np.arange(24.0).reshape(4, 6)[::2, ::3]
    data = array.ctypes.data
    strides = [s // 8 for s in array.strides]
    descriptor = struct.pack("<QQqqqqq", data, data, 0, *array.shape, *strides)
    assert f(ctypes.addressof(ctypes.create_string_buffer(descriptor))) == array.sum()


UNARY = {
    "sin": math.sin, "cos": math.cos, "tan": math.tan, "asin": math.asin, "acos": math.acos,
    "atan": math.atan, "sinh": math.sinh, "cosh": math.cosh, "tanh": math.tanh,
    "asinh": math.asinh, "acosh": math.acosh, "atanh": math.atanh, "exp": math.exp,
    "exp2": math.exp2, "expm1": math.expm1, "log": math.log, "log2": math.log2,
    "log10": math.log10, "log1p": math.log1p, "sqrt": math.sqrt, "cbrt": math.cbrt,
    "erf": math.erf, "erfc": math.erfc, "absf": abs, "ceil": math.ceil, "floor": math.floor,
    "trunc": math.trunc, "roundeven": round, "rsqrt": lambda x: 1 / math.sqrt(x),
}  # fmt: skip
BINARY = {"powf": math.pow, "atan2": math.atan2, "copysign": math.copysign}
DOMAIN = {"acosh": (1.0, 2.5), "asin": (-0.9, 0.9), "acos": (-0.9, 0.9), "atanh": (-0.9, 0.9)}
POSITIVE = ("log", "log2", "log10", "sqrt", "rsqrt", "log1p", "cbrt")


def samples(name):
    low, high = DOMAIN.get(name, (1e-9, 3.0) if name in POSITIVE else (-3.0, 3.0))
    return [low, high, 1e-9 if low < 1e-9 < high else high, (low + high) / 3, high / 1.7]


def module_of(names, kind, arity):
    functions = []
    for name in names:
        parameters = ", ".join(f"%{i}: {kind}" for i in range(arity))
        operands = ", ".join(f"%{i}" for i in range(arity))
        functions.append(
            f"func.func @{name}_f({parameters}) -> {kind} {{\n"
            f"  %r = math.{name} {operands} : {kind}\n  return %r : {kind}\n}}"
        )
    return "\n".join(functions)


@pytest.mark.parametrize(("kind", "c_type", "tolerance"), [("f64", F64, 4e-16), ("f32", F32, 3e-7)])
def test_math_functions(object_of, kind, c_type, tolerance):
    code = native.load_object(object_of(module_of(UNARY, kind, 1)))
    for name, python in UNARY.items():
        f = code.function(f"{name}_f", c_type, c_type)
        for x in samples(name):
            x = c_type(x).value
            assert f(x) == pytest.approx(python(x), rel=tolerance, abs=1e-300), (name, x)


def test_binary_math_functions(object_of):
    code = native.load_object(object_of(module_of(BINARY, "f64", 2)))
    for name, python in BINARY.items():
        f = code.function(f"{name}_f", F64, F64, F64)
        for x, y in ((0.5, 2.5), (2.0, -1.5), (3.0, 0.0)):
            assert f(x, y) == pytest.approx(python(x, y), rel=4e-16), (name, x, y)


def test_small_arguments_keep_their_digits(object_of):
    code = native.load_object(object_of(module_of(["expm1", "log1p"], "f64", 1)))
    for name in ("expm1", "log1p"):
        f = code.function(f"{name}_f", F64, F64)
        assert f(1e-300) == 1e-300
        assert f(1e-10) == getattr(math, name)(1e-10)


def test_special_values(object_of):
    code = native.load_object(object_of(module_of(["sqrt", "log", "floor"], "f64", 1)))
    assert math.isnan(code.function("sqrt_f", F64, F64)(-1.0))
    assert code.function("log_f", F64, F64)(0.0) == -math.inf
    assert math.copysign(1, code.function("floor_f", F64, F64)(-0.0)) == -1


def test_products_and_sums_are_rounded_separately(compiled):
    text = """
    func.func @f(%a: f64, %b: f64, %c: f64) -> f64 {
      %0 = arith.mulf %a, %b : f64
      %1 = arith.addf %0, %c : f64
      return %1 : f64
    }"""
    f = compiled(text, F64, F64, F64, F64, pipeline=native_pipeline(opt_level=3))
    a, b = 1 + 2**-30, 1 - 2**-30
    assert f(a, b, -1.0) == a * b - 1.0
    assert f(a, b, -1.0) != math.fsum([-(2**-60)]), "a fused multiply-add gives this"


def test_sums_are_not_reordered(compiled):
    text = """
    func.func @f(%p: !llvm.ptr, %n: i64) -> f32 {
      %c0 = arith.constant 0 : i64
      %c1 = arith.constant 1 : i64
      %z = arith.constant 0.0 : f32
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %z) -> f32 : i64 {
        %q = llvm.getelementptr %p[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
        %x = llvm.load %q : !llvm.ptr -> f32
        %t = arith.addf %s, %x : f32
        scf.yield %t : f32
      }
      return %r : f32
    }"""
    f = compiled(text, F32, PTR, I64, pipeline=native_pipeline(opt_level=3))
    values = np.random.default_rng(7).standard_normal(4097).astype(np.float32)
    expected = np.float32(0)
    for value in values:
        expected += value
    assert f(values.ctypes.data, values.size) == expected


def test_wide_integers_divide(compiled):
    text = """
    func.func @f(%a: i64, %b: i64) -> i64 {
      %0 = arith.extsi %a : i64 to i128
      %1 = arith.extsi %b : i64 to i128
      %2 = arith.muli %0, %0 : i128
      %3 = arith.divsi %2, %1 : i128
      %4 = arith.trunci %3 : i128 to i64
      return %4 : i64
    }"""
    f = compiled(text, I64, I64, I64)
    a, b = 3 * 2**60 + 7, 2**62 + 3
    assert f(a, b) == a * a // b


def test_vectors(compiled):
    text = """
    func.func @f(%m: memref<?xf32>, %n: index) -> f32 attributes {llvm.emit_c_interface} {
      %c0 = arith.constant 0 : index
      %c8 = arith.constant 8 : index
      %z = arith.constant dense<0.0> : vector<8xf32>
      %r = scf.for %i = %c0 to %n step %c8 iter_args(%s = %z) -> vector<8xf32> {
        %x = vector.load %m[%i] : memref<?xf32>, vector<8xf32>
        %y = math.exp2 %x : vector<8xf32>
        %t = arith.addf %s, %y : vector<8xf32>
        scf.yield %t : vector<8xf32>
      }
      %sum = vector.reduction <add>, %r : vector<8xf32> into f32
      return %sum : f32
    }"""
    f = compiled(text, F32, PTR, I64, name="_mlir_ciface_f")
    array = np.arange(64, dtype=np.float32) % 11
    data = array.ctypes.data
    descriptor = ctypes.create_string_buffer(struct.pack("<QQqqq", data, data, 0, 64, 1))
    assert f(ctypes.addressof(descriptor), 64) == np.exp2(array).sum()


def test_symbols_bound_to_callbacks(compiled):
    seen = []

    @ctypes.CFUNCTYPE(I64, I64, F64)
    def call_me(n, x):
        seen.append((n, x))
        return n * 2

    text = """
    func.func private @callback(i64, f64) -> i64
    func.func @f(%n: i64, %x: f64) -> i64 {
      %0 = call @callback(%n, %x) : (i64, f64) -> i64
      return %0 : i64
    }"""
    address = ctypes.cast(call_me, PTR).value
    f = compiled(text, I64, I64, F64, symbols={"callback": address})
    assert f(21, 0.5) == 42
    assert seen == [(21, 0.5)]


def test_a_missing_symbol_is_named(compiled):
    text = """
    func.func private @nowhere_to_be_found(i64)
    func.func @f(%n: i64) { call @nowhere_to_be_found(%n) : (i64) -> () return }"""
    with pytest.raises(DSLRuntimeError, match="needs nowhere_to_be_found, which"):
        compiled(text, None, I64)


def test_an_unknown_name_is_a_key_error(object_of):
    code = native.load_object(object_of("func.func @f() { return }"))
    with pytest.raises(KeyError, match="no symbol 'g'"):
        code.address_of("g")
    assert code.address_of("f") == code.address_of("f") != 0


def test_same_names_in_different_code_do_not_meet(compiled):
    functions = [
        compiled(f"func.func @f() -> i64 {{ %0 = arith.constant {n} : i64 return %0 : i64 }}", I64)
        for n in range(5)
    ]
    assert [f() for f in functions] == list(range(5))


def test_object_bytes_run_in_another_process(object_of, tmp_path):
    text = """
    func.func @f(%x: f64) -> f64 {
      %c = arith.constant 0.0 : f64
      %0 = arith.cmpf ogt, %x, %c : f64
      cf.assert %0, "x must be positive"
      %1 = math.sin %x : f64
      return %1 : f64
    }"""
    path = tmp_path / "f.o"
    path.write_bytes(object_of(text))
    program = f"""
import ctypes, math, sys
from basedsl.objectstage import asserts, native
data = open({str(path)!r}, "rb").read()
f = native.load_object(data).function("f", ctypes.c_double, ctypes.c_double)
assert f(1.25) == math.sin(1.25)
f(-1.0)
try:
    asserts.raise_failed_assertion()
except AssertionError as error:
    print(error.message, asserts.can_fail(data), "mlir" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "x must be positive True False\n"), done.stderr


def test_eight_threads_compile_and_run_at_once(mlir_context):
    results, errors = {}, []
    gate = threading.Barrier(8)

    def work(n):
        try:
            gate.wait(timeout=30)
            for k in range(4):
                text = f"""
                func.func @f(%x: i64) -> i64 {{
                  %0 = arith.constant {n * 10 + k} : i64
                  %1 = arith.muli %x, %0 : i64
                  return %1 : i64
                }}"""
                with mlir_context.entered():
                    module = mlir_context.bindings.ir.Module.parse(text)
                    data = run_pipeline(native_pipeline(), module, mlir_context).artifact
                    del module
                f = native.load_object(data).function("f", I64, I64)
                results[n, k] = f(7)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert results == {(n, k): 7 * (n * 10 + k) for n in range(8) for k in range(4)}


def test_code_that_is_dropped_leaves_the_rest_working(compiled):
    text = "func.func @f() -> i64 {{ %0 = arith.constant {} : i64 return %0 : i64 }}"
    kept = compiled(text.format(1), I64)
    for n in range(20):
        assert compiled(text.format(n), I64)() == n
    assert kept() == 1


def test_live_code_at_exit_does_not_crash():
    program = """
import ctypes
from basedsl.mlir import MLIRContext, load_bindings
from basedsl.objectstage import native, run_pipeline
from basedsl.objectstage.lowering import native_pipeline
context = MLIRContext(load_bindings())
with context.entered():
    module = context.bindings.ir.Module.parse(
        "func.func @f() -> i64 { %0 = arith.constant 5 : i64 return %0 : i64 }")
    stages = run_pipeline(native_pipeline(), module, context)
f = native.load_object(stages.artifact).function("f", ctypes.c_int64)
cycle = [f, stages, module]
cycle.append(cycle)
print(f())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "5\n", "")


def test_stages_of_native_code_can_be_read(mlir_context):
    text = "func.func @f(%x: f64) -> f64 { %0 = arith.addf %x, %x : f64 return %0 : f64 }"
    with mlir_context.entered():
        module = mlir_context.bindings.ir.Module.parse(text)
        stages = run_pipeline(native_pipeline(), module, mlir_context)
    assert "llvm.fadd" in stages.text("llvm")
    assert "define double @f(double" in stages.text("llvmir")
    assert "target datalayout" in stages.text("optimised")
    assert stages.data("object") is stages.artifact
    assert "f:" in native.assembly(stages.data("optimised"))


def test_llvm_ir_of_a_newer_llvm_is_taken():
    text = """
define i64 @f(i64 %x) #0 {
  %y = add i64 %x, 1
  ret i64 %y
}
attributes #0 = { nounwind brandnewattr memory(none) another(3) willreturn "k"="v" }
"""
    code = native.load_object(native.compile_llvmir(text))
    assert code.function("f", I64, I64)(4) == 5


def test_llvm_ir_that_is_wrong_is_a_compiler_bug():
    with pytest.raises(CompilerBug, match=r"does not accept the LLVM IR: .*undefined value"):
        native.compile_llvmir("define i64 @f() {\n  ret i64 %x\n}\n")


def test_target_describes_what_code_depends_on():
    ours, other = NativeTarget().describe(), NativeTarget(3, "x86-64", "").describe()
    assert ours == NativeTarget().describe()
    assert ours != other
    assert ours != NativeTarget(3).describe()


def test_describing_a_target_loads_no_compiler():
    code = "import sys; from basedsl.objectstage.native import NativeTarget as T; T().describe()"
    code += "; assert 'llvmlite' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "func.func @f(%x: f8E4M3FN) -> f8E4M3FN {\n"
            '  %0 = arith.addf %x, %x : f8E4M3FN loc("user.py":4:5)\n  return %0 : f8E4M3FN }',
            "the operation arith.addf has no lowering for this target",
        ),
        (
            "func.func @f(%a: tensor<4xf32>, %i: index) -> f32 {\n"
            '  %0 = tensor.extract %a[%i] : tensor<4xf32> loc("user.py":4:5)\n  return %0 : f32 }',
            "the operation tensor.extract has no lowering for this target",
        ),
        (
            "func.func @f(%a: i32) -> i64 {\n"
            '  %0 = builtin.unrealized_conversion_cast %a : i32 to i64 loc("user.py":4:5)\n'
            "  return %0 : i64 }",
            "a conversion from i32 to i64 is left over",
        ),
    ],
)
def test_what_cannot_be_lowered_is_told_not_crashed_on(
    object_of, text, message, tmp_path, monkeypatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(PassFailed, match=message) as caught:
        object_of(text)
    assert (caught.value.span.filename, caught.value.span.line) == ("user.py", 4)


def test_without_llvmlite(monkeypatch):
    """Macs with Intel's processors have no wheels of it."""
    monkeypatch.setitem(sys.modules, "llvmlite.ir", None)
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    native.begin_import()
    with pytest.raises(DSLRuntimeError, match="code for the CPU needs llvmlite") as caught:
        native._llvm.__wrapped__()
    assert caught.value.hint == "pip install llvmlite"
