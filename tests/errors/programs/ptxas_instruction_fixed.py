import os

import numpy as np

import basedsl_cute as cute
from basedsl import current_trace

os.environ["CUTE_DSL_ARCH"] = "sm_90"


def cluster_arrive():
    trace = current_trace("cluster_arrive()")
    assembly = trace.bindings.llvm.InlineAsmOp
    trace.emit(assembly, None, [], "barrier.cluster.arrive;", "", has_side_effects=True)


@cute.kernel
def kernel(x: cute.Tensor):
    cluster_arrive()
    x[0] = 1.0


@cute.jit
def host(x: cute.Tensor):
    kernel(x).launch(grid=1, block=32)


cute.compile(host, np.zeros(32, np.float32))
