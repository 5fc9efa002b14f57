"""cute: CuTe tensor algebra and GPU kernels in Python. `import basedsl_cute as cute`.

Layers, each importing only those above it: `algebra` (layouts on plain integers), `dialect` (the
`cute` MLIR dialect), `tensor` and `memory`, `arch`, `utils`, `lowering` (to NVVM, PTX, machine
code), `runtime` (arrays, driver), `sim` (the simulator), `executors`; `dsl.py` ties them together.
"""

from basedsl import Constexpr, const_expr, range, range_constexpr
from basedsl.numeric import (
    BFloat16,
    Boolean,
    Float16,
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Numeric,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
)
from basedsl_cute import arch, utils
from basedsl_cute.algebra import (
    Layout,
    ceil_div,
    cosize,
    elem_less,
    make_layout,
    rank,
)
from basedsl_cute.dsl import CUTE
from basedsl_cute.host import synchronize, target_description
from basedsl_cute.memory import make_rmem_tensor, make_tensor
from basedsl_cute.printing import printf
from basedsl_cute.queries import shape, size
from basedsl_cute.selection import where
from basedsl_cute.stream import Stream
from basedsl_cute.tensor import Iterator as Pointer
from basedsl_cute.tensor import Tensor

jit = CUTE.jit
kernel = CUTE.kernel
compile = CUTE.compile
