import ml_dtypes
import numpy as np

import basedsl_cute as cute
from basedsl_cute.utils import hopper_helpers as sm90


@cute.kernel
def kernel(a: cute.Tensor, b: cute.Tensor):
    major_a, major_b = sm90.LayoutEnum.from_tensor(a), sm90.LayoutEnum.from_tensor(b)
    sm90.make_trivial_tiled_mma(
        a.element_type,
        b.element_type,
        major_a.sm90_mma_major_mode(),
        major_b.sm90_mma_major_mode(),
        cute.Float32,
        (1, 1, 1),
        (64, 64),
    )


@cute.jit
def host(a: cute.Tensor, b: cute.Tensor):
    kernel(a, b).launch(grid=1, block=128)


a = np.zeros((128, 64), ml_dtypes.float8_e4m3fn)
b = np.zeros((128, 64), ml_dtypes.float8_e4m3fn).T
host(a, b)
