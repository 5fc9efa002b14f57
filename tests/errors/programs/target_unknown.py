import os

import numpy as np

import basedsl_cute as cute

os.environ["CUTE_DSL_ARCH"] = "sm_12345"


@cute.jit
def host(x: cute.Tensor):
    pass


host(np.zeros(32, np.float32))
