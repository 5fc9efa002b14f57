"""A float32 matrix product on the CUDA cores: the kernel is `basedsl_cute.ops.ampere.sgemm`.

    python examples/cute/sgemm.py

Every thread owns 8 x 16 elements of C (MmaUniversalOp, tiled so that four of them are consecutive);
tiles of A and B come by cp.async, three stages ahead, with rows contiguous in padded shared memory.
"""

import numpy as np

import basedsl_cute as cute
from basedsl_cute.ops.ampere.sgemm import Config, sgemm

if __name__ == "__main__":
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((rows, 44)).astype(np.float32) for rows in (72, 136))
    c = np.full((72, 136), np.nan, np.float32)
    sgemm(a, b, c, Config(tile=(32, 64, 8), warps=(2, 1)), None, (), (4, 4, 4))
    cute.synchronize()
    exact = a.astype(np.float64) @ b.T.astype(np.float64)
    print(f"largest error: {np.abs(c - exact).max():.1e}")
