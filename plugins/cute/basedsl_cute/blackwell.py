"""What belongs to Blackwell GPUs is not offered, and says so where a program first uses it.

`TABLE` names it, module by module; `MODULES` are modules of which nothing is offered. Programs may
import all of these: only using them is an error.
"""

from __future__ import annotations

import importlib
import types
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

_NEEDED = {
    f"{module}.{name}": gpus
    for table, gpus in ((TABLE, _DATACENTER), (GEFORCE, _GEFORCE))
    for module, names in table.items()
    for name in names.split()
}
_ROOT = __package__ or "basedsl_cute"


class NotOfferedError(DSLError):
    """A name of CuTe's DSL that this package knows and does not have."""


def absent(module: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module of this package: what it lacks because of the GPUs it is for
    is an error that names them; every other unknown name is none of its attributes.
    """
    inner = module.removeprefix(_ROOT).lstrip(".")

    def find(name: str) -> Any:
        whole = f"{inner}.{name}"
        if whole in MODULES:
            return importlib.import_module(f"{_ROOT}.{whole}")
        gpus = _NEEDED.get(whole)
        if inner in MODULES and not name.startswith("__"):
            gpus = _DATACENTER
        if gpus is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        raise NotOfferedError(
            f"{whole} is for {gpus}, which are not supported",
            hint="on Hopper (sm_90a) use nvgpu.warpgroup with TMA, elsewhere nvgpu.warp",
        )

    return find


def module(name: str) -> types.ModuleType:
    """The module `name` of `MODULES`: everything in it is an error."""
    made = types.ModuleType(f"{_ROOT}.{name}", f"`{name}`: for {_DATACENTER}, not offered.")
    made.__getattr__ = absent(made.__name__)  # type: ignore[method-assign]
    return made
