"""Parts of tests of whole programs: tensors over arrays, runs on the simulator, what ptxas says."""

import ml_dtypes
import pytest

import basedsl_cute as cute
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.runtime import from_dlpack

needs_ptxas = pytest.mark.skipif(ptxas.find_ptxas() is None, reason="there is no ptxas")


def tensors_of(arrays, leading):
    """Tensors of dynamic extents; `leading` has the contiguous mode of each array."""
    return [
        from_dlpack(x, assumed_align=16).mark_layout_dynamic(leading_dim=d)
        for x, d in zip(arrays, leading, strict=True)
    ]


def simulate(program, tensors):
    """Compile a program for the simulator, and call it."""
    cute.compile(program, *tensors, options="--arch sim")(*tensors)


def precision(dtype):
    """The error of sums of rounded products that tests allow, of numbers near 1."""
    return 2e-2 if dtype is ml_dtypes.bfloat16 else 3e-3


def check_resources(program, tensors, arch="sm_100a"):
    """Fail unless ptxas takes all kernels, without spills and without local memory."""
    compiled = cute.compile(program, *tensors, options=f"--arch {arch}")
    assert compiled.resources
    for kernel in compiled.resources.values():
        assert kernel.spills == kernel.local == 0
