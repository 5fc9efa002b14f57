import os

import numpy as np

import basedsl_cute as cute
from basedsl.metastage import require

os.environ["CUTE_DSL_ARCH"] = "sm_80"


def low_level():
    trace = require("fence")
    trace.emit(trace.bindings.nvvm.ClusterArriveOp)


@cute.kernel
def kernel(x: cute.Tensor):
    low_level()
    x[0] = 1.0


@cute.jit
def host(x: cute.Tensor):
    kernel(x).launch(grid=1, block=32)


cute.compile(host, np.zeros(32, np.float32))
