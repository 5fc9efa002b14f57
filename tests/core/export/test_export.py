"""Export of functions without kernels: toy's and the tile DSL's, to C and back into Python."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import basedsl_toy as toy
from basedsl import (
    DSL,
    ArgumentType,
    CParameter,
    DSLCallError,
    DSLRuntimeError,
    Int32,
    Int128,
    Language,
    NativeTarget,
)

CC, CXX = shutil.which("cc"), shutil.which("c++")
TILE = Path(__file__).parents[3] / "examples" / "tile" / "programs.py"


@toy.jit
def scaled(a: toy.Int64, b: toy.Int64, x: toy.Buffer[toy.Float32, 1]):
    for i in range(len(x)):
        x[i] = x[i] * a
    return a // b, x[3]


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The folder of scaled.o and scaled.h."""
    folder = tmp_path_factory.mktemp("exported")
    compiled = toy.compile(scaled, 1, 2, np.ones(4, np.float32))
    paths = compiled.export_to_c(folder, "scaled")
    assert paths == (folder / "scaled.o", folder / "scaled.h")
    return folder


def run_c(folder, main, *objects, compiler=None, name="main.c"):
    compiler = compiler or CC
    if compiler is None:
        pytest.skip("no C compiler")
    (folder / name).write_text(main)
    flags = ["-Wall", "-Werror", "-I.", "-lm", "-lpthread", "-o", "main"]
    subprocess.run([compiler, name, *objects, *flags], cwd=folder, check=True)
    done = subprocess.run(["./main"], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


CALLS = r"""
#include <stdio.h>
#include "scaled.h"
static int64_t q = 0;
static float r = 0;
static void call(const char *what, int64_t a, int64_t b, const scaled_x_t *x) {
  const int32_t status = scaled(a, b, x, &q, &r);
  const char *failure = scaled_failure();
  printf("%s: %d %d %g %s\n", what, (int)status, (int)q, r, failure ? failure : "-");
}
int main(void) {
  float data[4] = {1, 2, 3, 4}, every[8] = {1, 0, 2, 0, 3, 0, 4, 0};
  scaled_x_t x = {data, {4}, {4}}, apart = {every, {4}, {8}};
  call("good", 7, 2, &x);
  call("strided", -7, 2, &apart);
  call("zero", 7, 0, &x);
  x.shape[0] = 2;
  call("short", 7, 2, &x);
  call("no array", 7, 2, 0);
  x.shape[0] = -1;
  call("negative", 7, 2, &x);
  x.shape[0] = 4;
  x.data = 0;
  call("no data", 7, 2, &x);
  x.data = (char *)data + 1;
  call("misaligned", 7, 2, &x);
  printf("%d\n", scaled(7, 2, &apart, 0, &r) == scaled_ERROR_NULL);
  printf("%g %g\n", every[2], every[3]);
  return 0;
}
"""
SAID = [
    "good: 0 3 28 -",
    "strided: 0 -4 -28 -",
    "zero: 1 0 0 ZeroDivisionError: integer division or modulo by zero",
    "short: 1 0 0 IndexError: index out of range",
    "no array: -1 0 0 IndexError: index out of range",
    "negative: -3 0 0 IndexError: index out of range",
    "no data: -1 0 0 IndexError: index out of range",
    "misaligned: -2 0 0 IndexError: index out of range",
    "1",
    "-14 0",
]


def test_a_c_program_calls_a_function_of_toy(exported):
    assert run_c(exported, CALLS, "scaled.o") == SAID


def test_the_header_is_also_cpp(exported):
    if CXX is None:
        pytest.skip("no C++ compiler")
    assert run_c(exported, CALLS, "scaled.o", compiler=CXX, name="main.cpp") == SAID


THREADS = r"""
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "scaled.h"
static void *many(void *fails) {
  float data[4] = {1, 1, 1, 1};
  const scaled_x_t x = {data, {4}, {4}};
  int64_t q, wrong = 0;
  float r;
  for (int i = 0; i < 20000; i++) {
    const int32_t status = scaled(1, fails ? 0 : 1, &x, &q, &r);
    const char *failure = scaled_failure();
    if (fails ? status != 1 || !failure || strncmp(failure, "ZeroDiv", 7) : status || failure)
      wrong++;
  }
  return (void *)wrong;
}
int main(void) {
  pthread_t threads[4];
  void *wrong = 0;
  for (long i = 0; i < 4; i++) pthread_create(&threads[i], 0, many, (void *)(i & 1));
  for (int i = 0; i < 4; i++) { void *one; pthread_join(threads[i], &one); if (one) wrong = one; }
  printf("%d wrong\n", (int)(long)wrong);
}
"""


def test_threads_of_c_have_their_own_failures(exported):
    assert run_c(exported, THREADS, "scaled.o") == ["0 wrong"]


@pytest.mark.parametrize("linked", [False, True])
def test_an_exported_function_in_python(exported, tmp_path, linked):
    path = exported / "scaled.o"
    if linked:
        if CC is None:
            pytest.skip("no C compiler")
        subprocess.run([CC, "-shared", path, "-o", tmp_path / "lib.so"], check=True)
        path = tmp_path / "lib.so"
    module = toy.TOY.load_module(path)
    x = np.arange(6, dtype=np.float32)
    assert module.scaled(7, 2, x) == (3, 21.0)
    assert module.scaled(a=-7, b=2, x=x[::-1]) == (-4, -7.0 * 7 * 2)
    assert repr(module.scaled).startswith("<exported scaled(a: Int64, b: Int64, x: Buffer")
    with pytest.raises(ZeroDivisionError) as caught:
        module.scaled(7, 0, x)
    assert caught.value.span.filename == __file__
    with pytest.raises(IndexError):
        module.scaled(7, 2, x[:2])
    with pytest.raises(DSLCallError, match=r"'x' was exported as Buffer\[Float32, 1\], got"):
        module.scaled(7, 2, x.astype(np.float64))
    with pytest.raises(DSLCallError, match=r"takes 3 arguments \(a, b, x\), got 1"):
        module.scaled(7)
    with pytest.raises(AttributeError, match="only: scaled"):
        _ = module.other


def test_python_threads_raise_their_own_exceptions(exported):
    function = toy.TOY.load_module(exported / "scaled.o").scaled
    wrong = []

    def many(b):
        x = np.ones(4, np.float32)
        for _ in range(200):
            try:
                function(1, b, x)
                wrong.append(b == 0)
            except ZeroDivisionError:
                wrong.append(b != 0)

    threads = [threading.Thread(target=many, args=(i % 2,)) for i in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(wrong) == 800 and not any(wrong)


def test_two_functions_in_one_program(exported, tmp_path):
    @toy.jit
    def power(base: toy.Int32, n: toy.Int32):
        out = toy.Int32(1)
        for _ in range(n):
            out = out * base
        return out

    toy.compile(power, Int32(2), Int32(3)).export_to_c(tmp_path / "power.o")
    main = r"""
#include <stdio.h>
#include "power.h"
#include "scaled.h"
int main(void) {
  float data[4] = {1, 2, 3, 4}, r;
  const scaled_x_t x = {data, {4}, {4}};
  int64_t q;
  int32_t p;
  const int32_t status = scaled(9, 2, &x, &q, &r) | power(3, 4, &p);
  printf("%d %d %d\n", status, (int)q, p);
}
"""
    for name in ("scaled.o", "scaled.h"):
        shutil.copy(exported / name, tmp_path / name)
    assert run_c(tmp_path, main, "scaled.o", "power.o") == ["0 4 81"]


def test_code_for_another_machine(tmp_path):
    compiled = toy.compile(scaled, 1, 2, np.ones(4, np.float32))
    target = NativeTarget(triple="aarch64-unknown-linux-gnu")
    path, _ = compiled.export_to_c(tmp_path, "scaled", target=target)
    assert int.from_bytes(path.read_bytes()[18:20], "little") == 183  # ELF: EM_AARCH64


def test_what_cannot_be_exported(tmp_path, exported):
    compiled = toy.compile(scaled, 1, 2, np.ones(4, np.float32))
    with pytest.raises(DSLCallError, match="no C identifier"):
        compiled.export_to_c(tmp_path, "scaled", "not-a-name")

    @toy.jit
    def wide(x: Int128):
        return x

    with pytest.raises(DSLCallError, match="'x' is Int128, which has no C type"):
        toy.compile(wide, Int128(1)).export_to_c(tmp_path, "wide")
    data = (exported / "scaled.o").read_bytes()
    for at in (0, 100, len(data) // 2, len(data) - 1):
        changed = tmp_path / "changed.o"
        changed.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(DSLRuntimeError, match="is no file that export_to_c wrote"):
            toy.TOY.load_module(changed)


def test_a_dsl_does_not_load_another_ones_functions(exported):
    class Other(Language):
        name = "other"
        exported_packages = ("basedsl",)

    with pytest.raises(DSLRuntimeError, match="a class of basedsl_toy"):
        DSL(Other()).load_module(exported / "scaled.o")


@dataclass(frozen=True)
class PairArgument(ArgumentType):
    """A complex number, as two floats."""

    def ir_types(self, ir):
        return [ir.F32Type.get(), ir.F64Type.get()]

    def proxy(self, values):
        return toy.Float32.from_value(values[0]), toy.Float64.from_value(values[1])

    def pack(self, value):
        return value.real, value.imag

    def __str__(self):
        return "a pair"


class SaidArgument(PairArgument):
    """The same, which says how C passes it."""

    def c_parameters(self, name):
        fields = ("real", "imag")
        return [CParameter(name, "struct", self.storage, fields=fields, text="a pair")]


class Pairs(Language):
    """A DSL with a parameter of two numbers of different sizes."""

    name = "pairs"
    argument = PairArgument

    def argument_type(self, value, annotation, name):
        return self.argument() if isinstance(value, complex) else None


def double(z, n):
    return z[0] * n, z[1] * n


def test_argument_type_says_how_c_passes_it(tmp_path):
    plain = DSL(Pairs())
    with pytest.raises(DSLCallError, match="'z' is a pair, which has no C type") as caught:
        plain.compile(plain.jit(double), 1j, 1.0).export_to_c(tmp_path, "twice")
    assert "PairArgument, would define c_parameters" in str(caught.value)

    said = DSL(type("Said", (Pairs,), {"argument": SaidArgument, "name": "said"})())
    said.compile(said.jit(double), 1j, 1.0).export_to_c(tmp_path, "twice")
    main = r"""
#include <stdio.h>
#include "twice.h"
int main(void) {
  const twice_z_t z = {1.5f, -2.25};
  double a, b;
  const int32_t status = twice(&z, 2.0, &a, &b);
  printf("%d %g %g %d\n", status, a, b, twice(0, 2.0, &a, &b) == twice_ERROR_NULL);
}
"""
    assert run_c(tmp_path, main, "twice.o") == ["0 3 -4.5 1"]


@pytest.fixture(scope="module")
def programs():
    spec = importlib.util.spec_from_file_location("tile_programs", TILE)
    module = importlib.util.module_from_spec(spec)
    before = list(sys.path)
    spec.loader.exec_module(module)
    yield module
    sys.path[:] = before


def test_a_c_program_launches_a_kernel_of_the_tile_dsl(programs, tmp_path):
    """The DSL gives C what its code calls: a launcher that runs the blocks one after another."""
    x = np.zeros(1000, np.float32)
    tile = programs.tile.TILE
    compiled = tile.compile(programs.saxpy, 2.0, x, x)
    # Of this processor: what has no masked loads takes minutes to compile.
    compiled.export_to_c(tmp_path, "saxpy", target=NativeTarget())
    main = r"""
#include <stdio.h>
#include "saxpy.h"
static float x[1000], y[1000];
int main(void) {
  for (int i = 0; i < 1000; i++) { x[i] = i; y[i] = 1; }
  saxpy_x_t a = {x, {1000}, {1}};
  const saxpy_y_t b = {y, {1000}, {1}};
  const int32_t status = saxpy(3, &a, &b);
  printf("%d %g %g\n", status, y[0], y[999]);
  a.strides[0] = 2;
  printf("%d\n", saxpy(3, &a, &b) == saxpy_ERROR_STRIDE);
}
"""
    assert run_c(tmp_path, main, "saxpy.o") == ["0 1 2998", "1"]
    y = np.ones(1000, np.float32)
    tile.load_module(tmp_path / "saxpy.o").saxpy(2.0, np.arange(1000, dtype=np.float32), y)
    np.testing.assert_array_equal(y, 1 + 2 * np.arange(1000))
