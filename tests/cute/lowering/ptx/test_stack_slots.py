"""Equal code in two branches leaves their tensors in registers."""

import numpy as np

import basedsl_cute as cute
from basedsl_cute.runtime import from_dlpack


@cute.jit
def double(x: cute.Tensor, y: cute.Tensor, n: cute.Int32):
    t = cute.arch.thread_idx()[0]
    values = cute.make_rmem_tensor(8, cute.Float32)
    cute.autovec_copy(x[None, t], values)
    if cute.arch.warp_idx() == 0:
        for _ in range(n):
            cute.arch.sync_warp()
    for i in cute.range_constexpr(8):
        values[i] = values[i] * 2.0
    cute.autovec_copy(values, y[None, t])


@cute.kernel
def kernel(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor, n: cute.Int32):
    if n > 5:
        double(x, y, n)
    else:
        double(x, z, n)


@cute.jit
def host(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor, n: cute.Int32):
    kernel(x, y, z, n).launch(grid=(1, 1, 1), block=(32, 1, 1))


def test_two_branches_with_equal_code():
    x, y, z = (
        from_dlpack(np.zeros((8, 32), np.float32, order="F"), assumed_align=16) for _ in range(3)
    )
    compiled = cute.compile(host, x, y, z, 3, options="--arch sm_80")
    text = compiled.stages.text("ptx")
    assert ".local" not in text and "ld.global.v4" in text
