"""Object code in memory without LLVM: the same results, and what it leaves to LLVM."""

from __future__ import annotations

import ctypes
import math
import platform
import struct
import subprocess
import sys

import pytest

from basedsl.errors import DSLRuntimeError
from basedsl.objectstage import elf_loader, native, object_file

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or platform.machine() != "x86_64",
    reason="other machines' code is linked by LLVM",
)

# Code, a table of constants, an initialised and a zero variable, a table of addresses, libm, and a
# function of the caller's, called and taken the address of.
TEXT = """
@squares = internal constant [8 x i64] [i64 0, i64 1, i64 4, i64 9, i64 16, i64 25, i64 36, i64 49]
@counter = global i64 40
@zero = global [64 x i64] zeroinitializer
@table = internal global [2 x ptr] [ptr @one, ptr @two]
@outside_variable = external global i64
declare double @sin(double)
declare i64 @outside(i64)

define internal i64 @one(i64 %x) { %r = add i64 %x, 1 ret i64 %r }
define internal i64 @two(i64 %x) { %r = add i64 %x, 2 ret i64 %r }

define i64 @square(i64 %i) {
  %p = getelementptr [8 x i64], ptr @squares, i64 0, i64 %i
  %v = load i64, ptr %p
  ret i64 %v
}
define i64 @count() {
  %v = load i64, ptr @counter
  %n = add i64 %v, 1
  store i64 %n, ptr @counter
  %p = getelementptr [64 x i64], ptr @zero, i64 0, i64 63
  %z = load i64, ptr %p
  %s = add i64 %z, %n
  ret i64 %s
}
define double @sine(double %x) { %r = call double @sin(double %x) ret double %r }
define i64 @through(i64 %i, i64 %x) {
  %p = getelementptr [2 x ptr], ptr @table, i64 0, i64 %i
  %f = load ptr, ptr %p
  %r = call i64 %f(i64 %x)
  ret i64 %r
}
define i64 @out(i64 %x) uwtable { %r = call i64 @outside(i64 %x) ret i64 %r }
define ptr @where() { ret ptr @outside }
define i64 @variable() { %v = load i64, ptr @outside_variable ret i64 %v }
"""

I64, F64 = ctypes.c_int64, ctypes.c_double
outside = ctypes.CFUNCTYPE(I64, I64)(lambda x: 3 * x)
variable = I64(77)
SYMBOLS = {
    "outside": ctypes.cast(outside, ctypes.c_void_p).value,
    "outside_variable": ctypes.addressof(variable),
}


@pytest.fixture(scope="module")
def code():
    return native.compile_llvmir(TEXT)


@pytest.fixture(params=["image", "LLVM"])
def loaded(request, code, monkeypatch):
    if request.param == "LLVM":
        monkeypatch.setattr(elf_loader, "load_image", lambda file, find: None)
    made = native.load_object(code, SYMBOLS)
    assert isinstance(made._code, elf_loader.LoadedImage) == (request.param == "image")
    return made


def test_every_kind_of_reference(loaded):
    assert [loaded.function("square", I64, I64)(i) for i in range(8)] == [i * i for i in range(8)]
    assert [loaded.function("count", I64)() for _ in range(3)] == [41, 42, 43]
    assert I64.from_address(loaded.address_of("counter")).value == 43
    assert loaded.function("sine", F64, F64)(1.25) == math.sin(1.25)
    assert [loaded.function("through", I64, I64, I64)(i, 10) for i in (0, 1)] == [11, 12]
    assert loaded.function("out", I64, I64)(5) == 15
    assert loaded.function("where", ctypes.c_void_p)() == SYMBOLS["outside"]
    assert loaded.function("variable", I64)() == 77


@pytest.mark.parametrize("name", ["one", "outside", "nothing", ""])
def test_only_what_it_defines_for_others_has_an_address(code, name):
    with pytest.raises(KeyError):
        native.load_object(code, SYMBOLS).address_of(name)


def test_two_images_have_variables_of_their_own(code):
    first, second = (native.load_object(code, SYMBOLS) for _ in range(2))
    assert [first.function("count", I64)() for _ in range(2)] == [41, 42]
    assert second.function("count", I64)() == 41


def test_what_is_missing_is_named(code):
    with pytest.raises(DSLRuntimeError, match="needs outside, outside_variable, which"):
        native.load_object(code)


def test_memory_goes_with_the_code(code):
    made = native.load_object(code, SYMBOLS)
    start = made.address_of("square") & -4096

    def mapped():
        with open("/proc/self/maps") as maps:
            return [line for line in maps if line.startswith(f"{start:x}-")]

    assert "r-xp" in mapped()[0]  # and so not writable
    del made
    assert not mapped() or "r-xp" not in mapped()[0]


UNWOUND = """
import ctypes, sys, threading
from basedsl.objectstage import native
I64 = ctypes.c_int64
leave = ctypes.CDLL(None).pthread_exit
code = open(sys.argv[1], "rb").read()
symbols = {"outside": ctypes.cast(leave, ctypes.c_void_p).value, "outside_variable": 8}
made = native.load_object(code, symbols)
start, out = ctypes.CDLL(None).pthread_create, made.address_of("out")
thread = ctypes.c_void_p()
assert start(ctypes.byref(thread), None, ctypes.c_void_p(out), None) == 0
assert ctypes.CDLL(None).pthread_join(thread, None) == 0
print("joined")
"""


def test_a_thread_that_ends_in_called_code_is_unwound(code, tmp_path):
    path = tmp_path / "code.o"
    path.write_bytes(code)
    done = subprocess.run(
        [sys.executable, "-c", UNWOUND, str(path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "joined\n"), done.stderr


def patched(code, kind):
    """The same file with another kind of relocation in its code."""
    file = object_file.read_object_file(code)
    for table in file.sections:
        if table.kind == object_file.RELA and file.sections[table.info].name == ".text":
            out = bytearray(code)
            struct.pack_into("<I", out, table.offset + 8, kind)
            return bytes(out)
    raise AssertionError


def test_unknown_relocations_are_left_to_llvm(code):
    known = object_file.read_object_file(code)
    assert elf_loader.load_image(known, lambda name: 0) is not None
    assert (
        elf_loader.load_image(object_file.read_object_file(patched(code, 22)), lambda name: 0)
        is None
    )  # TPOFF32
    other = bytearray(code)
    struct.pack_into("<H", other, 0x12, 183)  # AArch64
    assert elf_loader.load_image(object_file.read_object_file(bytes(other)), lambda name: 0) is None


def test_thread_local_variables_are_left_to_llvm():
    text = "@t = thread_local global i64 5\ndefine i64 @f() { %v = load i64, ptr @t ret i64 %v }"
    assert (
        elf_loader.load_image(
            object_file.read_object_file(native.compile_llvmir(text)), lambda name: 0
        )
        is None
    )
