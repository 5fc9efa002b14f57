"""`compiled.resources`: what kernels take, in text, in notebooks, and warnings of spills."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLCallError, DSLError
from basedsl_cute.dsl.steps import SpillWarning
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.lowering.ptx.sass import histogram

needs_ptxas = pytest.mark.skipif(ptxas.find_ptxas() is None, reason="no ptxas")
GPU = "--gpu-arch sm_90a"


@cute.kernel
def add_kernel(a: cute.Tensor, b: cute.Tensor):
    smem = cute.make_tensor(cute.arch.alloc_smem(cute.Int32, 1024), 1024)
    i = cute.arch.thread_idx()[0]
    smem[i] = i
    cute.arch.sync_threads()
    b[i] = a[i] + b[i] + smem[127 - i]


@cute.jit
def add(a: cute.Tensor, b: cute.Tensor, threads: cute.Constexpr = 128):
    add_kernel(a, b).launch(grid=(1, 1, 1), block=(threads, 1, 1))


@cute.jit
def add_any(a: cute.Tensor, b: cute.Tensor, threads: cute.Int32):
    add_kernel(a, b).launch(grid=(1, 1, 1), block=(threads, 1, 1))


@cute.kernel
def hungry_kernel(x: cute.Tensor, y: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    held = [x[i * 64 + n] for n in range(64)]
    total = held[0]
    for n in cute.range_constexpr(1, 64):
        total = total * held[n] + 1
    for n in cute.range_constexpr(64):  # each is needed a second time
        y[i * 64 + n] = total * held[n]


@cute.jit
def hungry(x: cute.Tensor, y: cute.Tensor):
    hungry_kernel(x, y).launch(grid=(1, 1, 1), block=(128, 1, 1))


@pytest.fixture
def a():
    return np.zeros(128, np.float32)


@needs_ptxas
def test_the_record(a):
    compiled = cute.compile(add, a, a.copy(), options=GPU)
    (found,) = compiled.resources.values()
    assert compiled.resources["add_kernel"] == found
    assert 4 < found.registers < 40 and found.spills == found.local == 0
    assert (found.threads, found.static_smem + found.dynamic_smem) == (128, 4096)
    assert found.occupancy().blocks == 16 and found.occupancy().limited_by == ("warps",)
    assert found.occupancy(threads=1024).blocks == 2
    assert found.occupancy(smem=100 << 10).limited_by == ("shared memory",)
    assert found.occupancy(arch="sm_86").max_warps == 48


@needs_ptxas
def test_in_print_and_in_notebooks(a):
    compiled = cute.compile(add, a, a.copy(), options=GPU)
    first, second = str(compiled).splitlines()
    assert first.startswith("<compiled add(a: Tensor") and second.startswith("add_kernel: ")
    assert "registers, 0 bytes spilled" in second and "limited by warps occupancy" in second
    page = compiled._repr_html_()
    assert "<th>registers</th>" in page and "<summary>ptx</summary>" in page
    assert ".entry add_kernel" in page and "<summary>cubin</summary>" not in page


@needs_ptxas
def test_a_block_of_a_size_that_is_not_known(a):
    (found,) = cute.compile(add_any, a, a.copy(), 128, options=GPU).resources.values()
    assert found.threads is None and "occupancy" not in found.figures()
    with pytest.raises(DSLCallError, match="say the size of a block at run time"):
        found.occupancy()
    assert found.occupancy(threads=256).blocks == 8


def test_on_the_simulator(a):
    (found,) = cute.compile(add, a, a.copy(), options="--gpu-arch sim").resources.values()
    assert found.registers is None and found.static_smem + found.dynamic_smem == 4096
    with pytest.raises(DSLCallError, match="are not known without machine code"):
        found.occupancy()


@needs_ptxas
def test_spills_warn_at_the_kernel():
    x = np.zeros(128 * 64, np.float32)
    options = f"{GPU} --ptxas-options=--maxrregcount=24"
    with pytest.warns(SpillWarning, match="'hungry_kernel' spills registers: ") as caught:
        compiled = cute.compile(hungry, x, x, options=options)
    line = hungry_kernel.fn.__code__.co_firstlineno
    assert caught[0].filename == __file__ and caught[0].lineno in (line, line + 1)
    assert compiled.resources["hungry_kernel"].spills > 0
    with pytest.raises(DSLError, match="a warning, and warnings_as_errors is set"):
        cute.compile(hungry, x, x, options=f"{options} --warnings-as-errors")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cute.compile(hungry, x, x, options=GPU)
        with pytest.raises(SpillWarning):  # by Python's filters, and no defect of ours
            cute.compile(hungry, x, x, options=options)


@needs_ptxas
@pytest.mark.skipif(ptxas.find_nvdisasm() is None, reason="no nvdisasm")
def test_spills_warn_at_the_line_that_line_tables_tell():
    x = np.zeros(128 * 64, np.float32)
    options = f"{GPU} --ptxas-options=--maxrregcount=24 --lineinfo"
    with pytest.warns(SpillWarning) as caught:
        cute.compile(hungry, x, x, options=options)
    first = hungry_kernel.fn.__code__.co_firstlineno
    assert first + 2 < caught[0].lineno <= first + 8


SASS = """
	.headerflags	@"EF_CUDA_SM90"
        /*0000*/                   LDC R1, c[0x0][0x28] ;       /* 0x00000a00ff017b82 */
        /*0010*/                   S2R R0, SR_TID.X ;
        /*0020*/              @!P0 LDG.E R4, desc[UR4][R2.64] ;
        /*0030*/             @!UP0 LDG.E R5, desc[UR4][R2.64] ;
        /*0040*/                   EXIT ;
"""


def test_instructions_are_counted(a):
    assert list(histogram(SASS).items()) == [("LDG", 2), ("LDC", 1), ("S2R", 1), ("EXIT", 1)]
    on_host = cute.compile(add, a, a.copy(), options="--gpu-arch sim").instruction_histogram()
    assert on_host.total() > 10


@needs_ptxas
@pytest.mark.skipif(ptxas.find_nvdisasm() is None, reason="no nvdisasm")
def test_two_optimisation_levels_are_compared(a):
    counts = [
        cute.compile[cute.OptLevel(level), cute.GPUArch("sm_90a")](add, a, a.copy())
        .instruction_histogram()
        .total()
        for level in (0, 3)
    ]
    assert counts[0] > counts[1] > 0
