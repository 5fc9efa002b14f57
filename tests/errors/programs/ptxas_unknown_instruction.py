import os

import numpy as np

import basedsl_cute as cute
from basedsl import current_trace

os.environ["CUTE_DSL_ARCH"] = "sm_90a"


def assembly(text):
    trace = current_trace("assembly()")
    trace.emit(trace.bindings.llvm.InlineAsmOp, None, [], text, "", has_side_effects=True)


@cute.kernel
def kernel(x: cute.Tensor):
    if cute.arch.thread_idx()[0] == 0:
        assembly("mov.u32 %r1, %tid.w;")
        assembly("fence.everything;")


@cute.jit
def host(x: cute.Tensor):
    kernel(x).launch(grid=1, block=32)


cute.compile(host, np.zeros(32, np.float32))
