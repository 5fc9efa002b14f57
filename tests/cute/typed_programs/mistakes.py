"""Mistakes that a type checker reports, each on its line, with the name in the comment behind it:
`tests/cute/test_public.py`. Nothing here runs.
"""

import basedsl_cute as cute
import basedsl_toy as toy


@cute.kernel
def kernel(x: cute.Tensor) -> None:
    x[cute.arch.thread_id()] = 0  # reported: thread_id


@cute.jit
def launching(x: cute.Tensor) -> None:
    kernel(x).launch(grid=(1, 1, 1), block=(32, 1, 1), smen=0)  # reported: smen
    kernel(x).launch(grid=(1, 1, 1), block=(32, 1, 1), cluster=2)  # reported: cluster
    kernel(x).launch((1, 1, 1), (32, 1, 1))  # reported: launch
    kernel(x).lanch(grid=(1, 1, 1), block=(32, 1, 1))  # reported: lanch
    kernel.launch(grid=(1, 1, 1), block=(32, 1, 1))  # reported: launch


@cute.jit(preprocess=False)
def traced(n: cute.Int32) -> cute.Int32:
    return n


class Method:
    @cute.kernel
    def kernel(self, x: cute.Tensor) -> None: ...

    @cute.jit
    def launching(self, x: cute.Tensor) -> None:
        self.kernel(x).launch(grid=(1, 1, 1), block=(32, 1, 1), smen=0)  # reported: smen


@toy.jit
def double(x: toy.Int64) -> toy.Int64:
    return toy.Int64(2 * x)


_ = (
    cute.make_layuot(3),  # reported: make_layuot
    cute.make_layout(3).shap,  # reported: shap
    cute.nvgpu.tcgen06,  # reported: tcgen06
    cute.nvgpu.warp.Mma,  # reported: Mma
    cute.pipeline.Pipe,  # reported: Pipe
    cute.pipeline.PipelineTmaStore.create(num_stags=3),  # reported: num_stags
    cute.utils.Util,  # reported: Util
    cute.cutlass_dsl.Dsl,  # reported: Dsl
    launching.compyle(1),  # reported: compyle
    traced.sorce,  # reported: sorce
    Method().launching.compyle(1),  # reported: compyle
    Method.launching.compyle(1),  # reported: compyle
    cute.compile(launching, 1).__ptxx__,  # reported: __ptxx__
    cute.jit(preproces=False),  # reported: preproces
    toy.jitt,  # reported: jitt
    double.compile(1).stage,  # reported: stage
)
