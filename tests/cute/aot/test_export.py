"""Exporting compiled functions: an object and a header for C, and back into Python."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLError
from basedsl_cute.lowering.ptx.ptxas import find_ptxas
from basedsl_cute.runtime import (
    load_module,
    make_fake_compact_tensor,
    make_fake_stream,
    make_fake_tensor,
)

pytestmark = pytest.mark.skipif(find_ptxas() is None, reason="no ptxas")


@cute.kernel
def add_kernel(x: cute.Tensor, y: cute.Tensor, v: cute.Float32):
    i = cute.arch.block_idx()[0] * 128 + cute.arch.thread_idx()[0]
    if i < cute.size(x):
        x[i] = x[i] + y[i] * v


@cute.jit
def add(x: cute.Tensor, y: cute.Tensor, v: cute.Float32, n: cute.Int64, stream):
    blocks = cute.ceil_div(cute.size(x), 128)
    add_kernel(x, y, v).launch(grid=(blocks, 1, 1), block=(128, 1, 1), stream=stream)
    return blocks, n + 1


def compiled_add(arch=None):
    n = cute.sym_int()
    x, y = (make_fake_compact_tensor(cute.Float32, (n, 2), assumed_align=4) for _ in range(2))
    options = f"--gpu-arch {arch}" if arch else None
    return cute.compile(add, x, y, 1.0, 1, make_fake_stream(), options=options)


# A driver that says what it is asked for.
DRIVER = r"""
#include <stdint.h>
#include <stdio.h>
#include <string.h>
typedef struct { unsigned grid[3], block[3], smem; void *stream, *attrs; unsigned count; } Config;
int cuLibraryLoadData(void **library, const void *image, void *a, void *b, unsigned c, void *d,
                      void *e, unsigned f) {
  printf("image %d\n", memcmp(image, "\177ELF", 4));
  *library = (void *)0x11;
  return 0;
}
int cuLibraryUnload(void *library) { printf("unload %p\n", library); return 0; }
int cuLibraryGetKernel(void **kernel, void *library, const char *name) {
  printf("kernel %s of %p\n", name, library);
  *kernel = (void *)0x22;
  return 0;
}
int cuCtxGetDevice(int *device) { *device = 3; return 0; }
int cuDeviceGetAttribute(int *value, int which, int device) {
  *value = which == 97 && device == 3 ? 232448 : -1;
  return 0;
}
int cuKernelGetAttribute(int *value, int which, void *kernel, int device) {
  *value = 16;
  return 0;
}
int cuKernelSetAttribute(int which, int value, void *kernel, int device) { return 0; }
int cuTensorMapEncodeTiled(void) { return 1; }
int cuLaunchKernelEx(const Config *config, void *kernel, void **args, void **extra) {
  printf("launch %p grid %u block %u smem %u stream %p\n", kernel, config->grid[0],
         config->block[0], config->smem, config->stream);
  return config->stream == (void *)0x99 ? 700 : 0;
}
"""
PROGRAM = r"""
#include <stdio.h>
#include "add.h"
int main(void) {
  static float x[600], y[600];
  sums_Kernel_Module_t module;
  printf("load %d\n", sums_Kernel_Module_Load(&module));
  sums_Tensor_x_t tx = {x, {300}, {300}};
  sums_Tensor_y_t ty = {y, {300}, {300}};
  int32_t blocks = 0;
  int64_t next = 0;
  CUstream good = (CUstream)7, bad = (CUstream)0x99;
  printf("call %d", cute_dsl_sums_wrapper(&module, &tx, &ty, 0.5f, 41, good, &blocks, &next));
  printf(" -> %d %lld\n", blocks, (long long)next);
  printf("fails %d\n", cute_dsl_sums_wrapper(&module, &tx, &ty, 0.5f, 1, bad, &blocks, &next));
  tx.dynamic_shapes[0] = 0;
  ty.dynamic_shapes[0] = 0;
  printf("refused %d\n", cute_dsl_sums_wrapper(&module, &tx, &ty, 0.5f, 1, 0, &blocks, &next));
  return sums_Kernel_Module_Unload(&module);
}
"""


def test_a_c_program_calls_an_exported_function(tmp_path):
    cc = shutil.which("cc")
    if cc is None:
        pytest.skip("no C compiler")
    object_file, header = compiled_add("sm_90a").export_to_c(
        file_path=tmp_path, file_name="add", function_prefix="sums"
    )
    assert (object_file.name, header.name) == ("add.o", "add.h")
    (tmp_path / "cuda.h").write_text("typedef void *CUstream;\n")
    (tmp_path / "driver.c").write_text(DRIVER)
    (tmp_path / "main.c").write_text(PROGRAM)
    command = [cc, "-Wall", "-Werror", "-I.", "main.c", "driver.c", "add.o", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    said = subprocess.run(["./main"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert said.stdout.splitlines() == [
        "image 0",
        "kernel add_kernel of 0x11",
        "load 0",
        "launch 0x22 grid 5 block 128 smem 0 stream 0x7",
        "call 0 -> 5 42",
        "launch 0x22 grid 5 block 128 smem 0 stream 0x99",
        "fails 700",
        "refused 1",
        "unload 0x11",
    ]


def test_the_header_is_also_cpp(tmp_path):
    header = compiled_add("sm_90a").export_to_c(str(tmp_path / "folder" / "add.o"))[1]
    text = header.read_text()
    assert 'extern "C" {' in text and "int32_t dynamic_strides[1];" in text
    assert "cute_dsl_add_wrapper(add_Kernel_Module_t *module, const add_Tensor_x_t *x" in text


EXAMPLE = Path(__file__).parents[3] / "examples" / "cute" / "exported_scale.cpp"


@cute.kernel
def scale_kernel(x: cute.Tensor, by: cute.Float32):
    i = cute.arch.block_idx()[0] * 128 + cute.arch.thread_idx()[0]
    if i < cute.size(x):
        x[i] = x[i] * by


@cute.jit
def scale(x: cute.Tensor, by: cute.Float32):
    scale_kernel(x, by).launch(grid=(8, 1, 1), block=(128, 1, 1))
    return cute.size(x)


def exported_scale(folder):
    m, n = cute.sym_int(divisibility=4), cute.sym_int()
    stride = cute.sym_int(divisibility=4)
    x = make_fake_tensor(cute.Float32, (m, n), stride=(1, stride), assumed_align=16)
    return cute.compile(scale, x, 1.0, options="--gpu-arch sm_90a").export_to_c(folder, "scale")


def test_a_cpp_program_whose_wrong_inputs_are_refused(tmp_path):
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    exported_scale(tmp_path)
    (tmp_path / "cuda.h").write_text("typedef void *CUstream;\n")
    (tmp_path / "driver.c").write_text(DRIVER)
    (tmp_path / "main.cpp").write_text(EXAMPLE.read_text())
    subprocess.run([shutil.which("cc"), "-c", "driver.c"], cwd=tmp_path, check=True)
    command = [compiler, "-Wall", "-Werror", "-I.", "main.cpp", "driver.o", "scale.o", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    said = subprocess.run(["./main"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert [line for line in said.stdout.splitlines() if "0x" not in line] == [
        "image 0",
        "good 0 1024",
        "no tensor 1",
        "no result 1",
        "no data 1",
        "empty 0",
        "misaligned 1",
        "stride 1",
        "extent 1",
        "negative 1",
    ]
    assert said.stdout.count("launch 0x22") == 2  # what is refused launches nothing


def test_the_header_says_which_memory_and_what_divides(tmp_path):
    text = exported_scale(tmp_path)[1].read_text()
    assert "data: an address in GPU memory, a multiple of 16 bytes." in text
    assert "dynamic_shapes[0]: in elements, a multiple of 4." in text
    assert "dynamic_strides[0]: in elements, a multiple of 4." in text
    assert "#define scale_ERROR_ALIGNMENT (-2)" in text and "are in host memory" in text


def test_what_cannot_be_exported(sim, tmp_path):
    with pytest.raises(DSLError, match="was compiled for the simulator"):
        compiled_add().export_to_c(tmp_path, "add")
    compiled = compiled_add("sm_90a")
    with pytest.raises(DSLError, match="no C identifier"):
        compiled.export_to_c(tmp_path, "add", "not-a-name")
    (tmp_path / "empty.o").write_bytes(b"nothing")
    with pytest.raises(DSLError, match=r"empty\.o is no file that export_to_c wrote"):
        load_module(tmp_path / "empty.o")


@pytest.mark.gpu
@pytest.mark.parametrize("linked", [False, True])
def test_an_exported_function_in_python(monkeypatch, tmp_path, linked):
    monkeypatch.delenv("CUTE_DSL_ARCH", raising=False)
    torch = pytest.importorskip("torch")
    path, _ = compiled_add().export_to_c(tmp_path, "add", "sums")
    if linked:
        cc = shutil.which("cc")
        if cc is None:
            pytest.skip("no C compiler")
        library = tmp_path / "libadd.so"
        found = [cc, "-shared", str(path), "-l:libcuda.so.1", "-o", str(library)]
        if subprocess.run(found, check=False).returncode:
            pytest.skip("libcuda is not where the linker looks")
        path = library
    module = load_module(path)
    x = torch.arange(600, dtype=torch.float32, device="cuda").reshape(2, 300).T
    y = torch.ones(2, 300, device="cuda").T
    wanted = x + 0.5
    stream = torch.cuda.current_stream()
    assert module.sums(x, y, 0.5, 41, stream) == (5, 42)
    assert torch.equal(x, wanted)
    assert "sums" in dir(module)
    with pytest.raises(DSLError, match="takes 5 arguments"):
        module.sums(x, y)
    with pytest.raises(DSLError, match=r"'x' was compiled as .* the elements are Float64"):
        module.sums(x.double(), y, 0.5, 41, stream)
    assert np.isfinite(x.cpu().numpy()).all()
