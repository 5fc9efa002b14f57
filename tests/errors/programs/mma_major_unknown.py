import numpy as np

import basedsl_cute as cute
from basedsl_cute.utils.layout_enum import LayoutEnum


@cute.kernel
def kernel(a: cute.Tensor):
    LayoutEnum.from_tensor(a)


@cute.jit
def host(a: cute.Tensor):
    kernel(a).launch(grid=1, block=128)


a = np.zeros((128, 64), np.float16)
host(a[::2, ::2])
