import os

import numpy as np

import basedsl_cute as cute

os.environ["CUTE_DSL_ARCH"] = "sm_90a"


@cute.kernel
def kernel(x: cute.Tensor):
    x[0] = 1.0


@cute.jit
def host(x: cute.Tensor):
    kernel(x).launch(grid=1, block=1)


host(np.zeros(32, np.float32))
