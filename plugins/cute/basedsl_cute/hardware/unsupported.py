"""Names of CuTe's own DSL that this package does not offer: using one is an error that says why.

`TABLE` and `GEFORCE` have the names, module by module, that belong to Blackwell GPUs; of the
modules in `MODULES` nothing is offered. `INSTEAD` has names that are internal to CuTe's own DSL,
with what programs write here. Programs may import all of these: only using them is an error.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from basedsl.errors import DSLError

_DATACENTER = "data-center Blackwell GPUs (sm_100)"
_GEFORCE = "GeForce Blackwell GPUs (sm_120)"

MODULES = (
    "nvgpu.tcgen05",
    "utils.blackwell_helpers",
    "utils.blockscaled_layout",
    "utils.distributed",
    "utils.gemm",
    "utils.mixed_input_helpers",
    "utils.sm100",
)

TABLE = {
    "arch": """alloc_tmem dealloc_tmem retrieve_tmem_ptr relinquish_tmem_alloc_permit
        get_max_tmem_alloc_cols get_min_tmem_alloc_cols fence_view_async_tmem_load
        fence_view_async_tmem_store""",
    "pipeline": """PipelineTmaUmma PipelineUmmaAsync PipelineAsyncUmma PipelineClcFetchAsync
        PipelineTmaMultiConsumersAsync ClcState""",
    "utils": """TmemAllocator get_num_tmem_alloc_cols ClcDynamicPersistentTileScheduler
        ClcDynamicPersistentTileSchedulerParams""",
}
GEFORCE = {"nvgpu.warp": "MmaMXF4Op MmaMXF4NVF4Op MmaMXF8Op MmaMXF8F6F4Op Field"}

_BY_HAND = "write if, while and `not` as in Python: they work on run-time values"
_DEBUGGING = "print(x) while compiling shows what a value is, cute.printf(x) its value in a run"
INSTEAD = {
    "FrontendNext": "leave the option out: there is one front end",
    "arch.Arch": "pass what depends on the GPU as a Constexpr, or see target_version()",
    "arch.nvvm_wrappers": "cute.arch has an instruction's wrapper, or inline_ptx()",
    "arch.sext_unpacked_i4_i8_intrinsic": "convert a vector of Int4 by .to(cute.Int8)",
    "cutlass_dsl.debug_print_mlir_values": _DEBUGGING,
    "cutlass_dsl.if_generate": _BY_HAND,
    "cutlass_dsl.not_": _BY_HAND,
    "cutlass_dsl.set_dynamic_debug": _DEBUGGING,
    "cutlass_dsl.while_generate": _BY_HAND,
    "cutlass_dsl.yield_out": _BY_HAND,
    "pipeline.PipelineOp": "derive a pipeline of your own from pipeline.PipelineAsync",
}

_NEEDED = {
    f"{module}.{name}": gpus
    for table, gpus in ((TABLE, _DATACENTER), (GEFORCE, _GEFORCE))
    for module, names in table.items()
    for name in names.split()
}
_ROOT = "basedsl_cute"


class NotOfferedError(DSLError):
    """A name of CuTe's DSL that this package knows and does not have."""


def unsupported_names(module: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of `module`: NotOfferedError for a name that this table knows,
    AttributeError for any other. Type checkers must not see it, or they would report no name.
    """
    inner = module.removeprefix(_ROOT).lstrip(".")

    def find(name: str) -> Any:
        whole = f"{inner}.{name}" if inner else name
        if whole in MODULES:
            return importlib.import_module(f"{_ROOT}.{whole}")
        gpus = _NEEDED.get(whole)
        if inner in MODULES and not name.startswith("__"):
            gpus = _DATACENTER
        if whole in INSTEAD:
            raise NotOfferedError(
                f"{whole} is internal to CuTe's own DSL, and not offered", hint=INSTEAD[whole]
            )
        if gpus is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        raise NotOfferedError(
            f"{whole} is for {gpus}, which are not supported",
            hint="on Hopper (sm_90a) use nvgpu.warpgroup with TMA, elsewhere nvgpu.warp",
        )

    return find
