"""Kernels linked with functions that others have compiled: bitcode, PTX, cubins, archives; and
what is missing.
"""

from __future__ import annotations

import ctypes
import subprocess

import llvmlite.binding as llvm
import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLCallError, DSLError, DSLTypeError, OptionError
from basedsl_cute.lowering.ptx import ptxas

pytestmark = pytest.mark.skipif(ptxas.find_ptxas() is None, reason="no ptxas")
ARCH = "sm_90a"

PTX = """.version 8.4
.target sm_80
.address_size 64
.visible .func (.param .b32 out) twice_plus(.param .b32 a, .param .b32 b)
{
 .reg .f32 %f<4>;
 ld.param.f32 %f1, [a];
 ld.param.f32 %f2, [b];
 fma.rn.f32 %f3, %f1, 0f40000000, %f2;
 st.param.f32 [out], %f3;
 ret;
}
.visible .func store_one(.param .b64 p)
{
 .reg .b64 %rd<2>;
 ld.param.u64 %rd1, [p];
 st.f32 [%rd1], 0f3F800000;
 ret;
}
"""
LLVMIR = """target triple = "nvptx64-nvidia-cuda"
define float @twice_plus(float %a, float %b) {
  %1 = fmul float %a, 2.0
  %2 = fadd float %1, %b
  ret float %2
}
"""

twice_plus = cute.external("twice_plus", (cute.Float32, cute.Float32), cute.Float32)
store_one = cute.external("store_one", (cute.Pointer,))


@cute.kernel
def calling_kernel(x: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    x[i] = twice_plus(x[i], 3)


@cute.jit
def calling(x: cute.Tensor):
    calling_kernel(x).launch(grid=(1, 1, 1), block=(32, 1, 1))


@cute.kernel
def storing_kernel(x: cute.Tensor):
    store_one(x.iterator + cute.arch.thread_idx()[0])


@cute.jit
def storing(x: cute.Tensor):
    storing_kernel(x).launch(grid=(1, 1, 1), block=(32, 1, 1))


@pytest.fixture
def x():
    return np.ones(32, np.float32)


def lto_ir(arch):
    """Make LTO-IR of `twice_plus` by libnvvm, as nvcc -dlto does."""
    nvvm = ctypes.CDLL(str(ptxas.find_libnvvm()))
    version = "!nvvmir.version = !{!0}\n!0 = !{i32 2, i32 0}\n"
    layout = 'target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"\n'
    text, program = (layout + LLVMIR + version).encode(), ctypes.c_void_p()
    size = ctypes.c_size_t()
    options = (ctypes.c_char_p * 2)(
        f"-arch={arch.replace('sm_', 'compute_')}".encode(), b"-gen-lto"
    )
    nvvm.nvvmCreateProgram(ctypes.byref(program))
    nvvm.nvvmAddModuleToProgram(program, text, ctypes.c_size_t(len(text)), b"lib")
    assert nvvm.nvvmCompileProgram(program, 2, options) == 0
    nvvm.nvvmGetCompiledResultSize(program, ctypes.byref(size))
    made = ctypes.create_string_buffer(size.value)
    nvvm.nvvmGetCompiledResult(program, made)
    nvvm.nvvmDestroyProgram(ctypes.byref(program))
    return made.raw


def library(folder, kind, arch=ARCH):
    path = folder / f"lib.{kind}"
    if kind == "ptx":
        path.write_text(PTX)
    elif kind == "ltoir":
        path.write_bytes(lto_ir(arch))
    elif kind == "bc":
        path.write_bytes(llvm.parse_assembly(LLVMIR, llvm.create_context()).as_bitcode())
    else:
        source = folder / "source.ptx"
        source.write_text(PTX)
        made = path if kind in ("cubin", "o") else folder / "lib.o"
        tool = ptxas.find_ptxas()
        subprocess.run([tool, f"-arch={arch}", "-c", source, "-o", made], check=True)
        if kind == "a":
            path.write_bytes(archive(made.read_bytes()))
        if kind == "fatbin":
            number = arch.removeprefix("sm_")
            image = f"--image3=kind=elf,sm={number},file={made}"
            tool = tool.with_name("fatbinary")
            subprocess.run([tool, f"--create={path}", "-64", image], check=True, cwd=folder)
    return str(path)


def archive(member):
    """An archive, in the format of ar(5), of a text file and `member`."""
    made = b"!<arch>\n"
    for name, data in (("text", b"odd"), ("lib.o", member)):
        header = f"{name + '/':<16}{0:<12}{0:<6}{0:<6}{644:<8}{len(data):<10}`\n"
        made += header.encode() + data + b"\n" * (len(data) % 2)
    return made


def compiled(function, x, *libraries):
    options = cute.GPUArch(ARCH), *map(cute.LinkLibraries, libraries)
    return cute.compile[options](function, x)


@pytest.mark.parametrize("kind", ["ptx", "cubin", "o", "a", "fatbin"])
@pytest.mark.parametrize("function", [calling, storing])
def test_machine_code_is_linked(tmp_path, x, kind, function):
    code = compiled(function, x, library(tmp_path, kind))
    assert "call" in code.__ptx__ and ".extern .func" in code.__ptx__
    assert code.__cubin__[:4] == b"\x7fELF" and int.from_bytes(code.__cubin__[16:18], "little") == 2
    assert b"twice_plus" in code.__cubin__ or b"store_one" in code.__cubin__


def test_bitcode_is_linked_and_inlined(tmp_path, x):
    code = compiled(calling, x, library(tmp_path, "bc"))
    assert ".extern" not in code.__ptx__ and code.__cubin__[:4] == b"\x7fELF"


def test_a_symbol_that_nothing_defines_is_named_with_its_line(x, tmp_path):
    line = calling_kernel.fn.__code__.co_firstlineno + 3
    (tmp_path / "other.ptx").write_text(PTX.replace("twice_plus", "thrice"))
    for libraries in ((), (str(tmp_path / "other.ptx"),)):
        with pytest.raises(DSLError, match="a kernel calls 'twice_plus', which nothing") as caught:
            compiled(calling, x, *libraries)
        assert (caught.value.span.filename, caught.value.span.line) == (__file__, line)
        assert "LinkLibraries" in caught.value.hint


without_libnvvm = pytest.mark.skipif(ptxas.find_libnvvm() is None, reason="no libnvvm")


@without_libnvvm
def test_lto_ir_is_linked(tmp_path, x):
    code = compiled(calling, x, library(tmp_path, "ltoir"))
    assert ".extern .func" in code.__ptx__
    assert code.__cubin__[:4] == b"\x7fELF" and int.from_bytes(code.__cubin__[16:18], "little") == 2
    assert b"twice_plus" in code.__cubin__


@without_libnvvm
def test_lto_ir_for_a_newer_gpu_is_named(tmp_path, x):
    with pytest.raises(DSLError, match=r"lib\.ltoir is LTO-IR that libnvvm cannot read for sm_90a"):
        compiled(calling, x, library(tmp_path, "ltoir", "sm_100a"))


@pytest.mark.parametrize("kind", ["cubin", "a", "fatbin"])
def test_a_library_for_another_architecture_is_named(tmp_path, x, kind):
    with pytest.raises(DSLError, match=rf"the library lib.{kind} has no code for sm_90a"):
        compiled(calling, x, library(tmp_path, kind, "sm_80"))


def test_ptx_for_a_newer_gpu_is_named(tmp_path, x):
    (tmp_path / "new.ptx").write_text(PTX.replace("8.4", "8.6").replace("sm_80", "sm_100"))
    with pytest.raises(DSLError, match=r"the library new\.ptx is PTX for a newer GPU than sm_90a"):
        compiled(calling, x, str(tmp_path / "new.ptx"))


def test_libraries_of_the_toolkit_are_found_by_name(x, tmp_path):
    if ptxas.find_toolkit_library("libcudadevrt.a") is None:
        pytest.skip("the CUDA toolkit has no libcudadevrt.a")
    code = compiled(calling, x, "libcudadevrt.a", library(tmp_path, "a"))
    assert code.__cubin__[:4] == b"\x7fELF"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nope.cubin", "which is no file"),
        ("lib.so", "whose kind cannot be linked"),
        *(
            (f"text.{kind}", f"which is no .{kind} file")
            for kind in ("bc", "o", "a", "fatbin", "ltoir")
        ),
    ],
)
def test_files_that_cannot_be_linked(tmp_path, x, name, message):
    if name.startswith("text"):
        (tmp_path / name).write_text("text")
    with pytest.raises(OptionError, match=message):
        compiled(calling, x, str(tmp_path / name))


def test_the_simulator_says_that_it_cannot(sim, x):
    with pytest.raises(DSLError, match="external function 'twice_plus', which is for GPUs"):
        calling(x)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["ptx", "cubin", "o", "bc", "a", "fatbin"])
def test_it_runs(tmp_path, x, kind):
    from basedsl_cute.dsl.machine import current_target

    arch = current_target().name
    made = library(tmp_path, kind, arch)
    cute.compile[cute.GPUArch(arch), cute.LinkLibraries(made)](calling, x)(x)
    assert (x == 5).all()


def test_declarations():
    assert repr(twice_plus) == "<external twice_plus(Float32, Float32) -> Float32>"
    with pytest.raises(DSLTypeError, match="the name of an external function is a symbol"):
        cute.external("not a symbol", ())
    with pytest.raises(DSLTypeError, match="takes and returns numeric types, not <class 'int'>"):
        cute.external("f", (int,))
    with pytest.raises(DSLError):
        twice_plus(1.0, 2.0)


def test_another_number_of_arguments(x):
    @cute.kernel
    def wrong_kernel(x: cute.Tensor):
        x[0] = twice_plus(x[0])

    @cute.jit
    def wrong(x: cute.Tensor):
        wrong_kernel(x).launch(grid=(1, 1, 1), block=(32, 1, 1))

    with pytest.raises(DSLCallError, match="'twice_plus' is declared with 2 arguments, got 1"):
        compiled(wrong, x)
