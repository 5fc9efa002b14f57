"""Names of CuTe's own DSL that this package does not offer: using one is an error that says why.

`INSTEAD` has names that are internal to CuTe's own DSL, with what programs write here, and
`UNDOCUMENTED` those whose arguments or results nothing public describes. Programs may import all of
these: they get a stand-in, and only using that is an error.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from basedsl import DSLAttributeError, DSLError, closest_name, is_internal_frame
from basedsl_cute.hardware.other_names import fold, instead_of

_DEBUGGING = "print(x) while compiling shows what a value is, cute.printf(x) its value in a run"
INSTEAD = {
    "testing.add_tensor_init_args": "parser.add_argument() in the program itself",
    "FrontendNext": "leave the option out: there is one front end",
    "arch.nvvm_wrappers": "cute.arch has an instruction's wrapper, or inline_ptx()",
    "arch.sext_unpacked_i4_i8_intrinsic": "convert a vector of Int4 by .to(cute.Int8)",
    "cutlass_dsl.debug_print_mlir_values": _DEBUGGING,
    "cutlass_dsl.set_dynamic_debug": _DEBUGGING,
}

_EPILOGUE = "utils.gemm.sm100.epilogue_tmem_copy_and_partition and its neighbours do an epilogue"
_OWN_CHECK = (
    "make_tiled_tma_atom_A, make_tiled_mma and a launch check tiles, clusters and alignment"
)
_GROUPS = "utils.StaticPersistentGroupTileScheduler finds the group of a tile"
# Name -> what programs write here.
UNDOCUMENTED = {
    "pipeline.ClcState": "utils.ClcDynamicPersistentTileScheduler and "
    "pipeline.PipelineClcFetchAsync hold the state of cluster launch control",
    "utils.blackwell_helpers.check_gemm_tma_alignment": "TMA takes rows of whole 16 bytes, and "
    "make_tiled_tma_atom_A and _B check it",
    "utils.mixed_input_helpers.scale_partition": "tiled_copy.get_slice(thread).partition_S(scales) "
    "with scales of get_smem_layout_scale() partitions them as A",
    "utils.mixed_input_helpers.scale_tma_partition": "cpasync.tma_partition of cute.filter_zeros() "
    "of both tensors",
    "utils.mixed_input_helpers.epilog_tmem_copy_and_partition": _EPILOGUE,
    "utils.mixed_input_helpers.epilog_smem_copy_and_partition": _EPILOGUE,
    "utils.mixed_input_helpers.epilog_gmem_copy_and_partition": _EPILOGUE,
    "utils.mixed_input_helpers.is_valid_scale_granularity": _OWN_CHECK,
    "utils.mixed_input_helpers.is_valid_mma_tiler_and_cluster_shape": _OWN_CHECK,
    "utils.mixed_input_helpers.is_valid_tensor_alignment": _OWN_CHECK,
    "utils.mixed_input_helpers.is_shuffle_a": "cvt_tensor_a(frag, dtype, False) takes 4-bit "
    "elements in their own order",
    "utils.mixed_input_helpers.get_divisibility": "tensor.mark_compact_shape_dynamic(mode, "
    "divisibility=) takes 16 bytes in elements, 128 // dtype.width",
    "utils.mixed_input_helpers.contiguous_group_search": _GROUPS,
    "utils.mixed_input_helpers.create_initial_contiguous_group_search_state": _GROUPS,
    "utils.mixed_input_helpers.make_contiguous_group_work_tile_info": _GROUPS,
}

# Experimental layers of CuTe's DSL, by module, with the names that programs use.
LAYERS = {
    "experimental": """allocate copy dot dot_block_scaled partition_and_copy tma_load
        tma_load_multicast tma_store TMAToUMMAPipeline UMMAtoAsyncPipeline TMAStorePipeline
        jit kernel compile""",
    "experimental.primitives": """AtomicOp CpReduceOp CpReduceType MBarrierScope atomicrmw
        convert_and_pack_integer cp_reduce_async_bulk_global_shared_cta fence_sync_restrict mapa
        mov_b32""",
    "experimental.cuda": "create_tensor_map_tiled create_tensor_map_tiled_from_view",
}
_LAYER = "nvgpu.cpasync.make_tiled_tma_atom, cute.copy, cute.gemm and cute.pipeline do the same"
_INSTRUCTION = "the function of cute.arch, or cute.arch.inline_ptx"
_LAYERED = {f"{module}.{name}" for module, names in LAYERS.items() for name in names.split()}

_ROOT = "basedsl_cute"


class NotOfferedError(DSLError):
    """A name of CuTe's DSL that this package knows and does not have."""


class NotOffered:
    """A stand-in for a name that is not offered: programs may import it, name it in annotations and
    defaults, and derive classes of it. Calling it, or making an object of such a class, raises.
    """

    def __init__(self, message: str, hint: str) -> None:
        vars(self).update(_message=message, _hint=hint)

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise NotOfferedError(self._message, hint=self._hint)

    __call__ = __iter__ = __bool__ = __int__ = __index__ = __setattr__ = _refuse

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked by Python itself, such as by inspect
            raise AttributeError(name)
        return self

    def __getitem__(self, key: Any) -> Any:
        return self

    def __or__(self, other: Any) -> Any:
        return self

    __ror__ = __or__

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        def refuse(cls: type, *args: Any, **kwargs: Any) -> Any:
            return self._refuse()

        return (type("NotOfferedBase", (), {"__new__": refuse}),)

    def __repr__(self) -> str:
        return f"<not offered: {self._message}>"


#: The modules in which a name is looked for that another one does not have.
_SEARCHED = ("", "arch", "math", "runtime", "utils", "testing", "nvgpu", "pipeline", "torch")


class MissingImportError(DSLError, ImportError):
    """A name in `from basedsl_cute... import name` that the module does not have."""


def missing_name(module: str, name: str) -> Exception:
    """Return the error for a name that a public module does not have, with what to write."""
    is_dunder = name.startswith("__") and name.endswith("__")
    if is_dunder or (name.startswith("_") and instead_of(name) is None):
        return AttributeError(f"module {module!r} has no attribute {name!r}", name=name)
    inner = module.removeprefix(_ROOT).lstrip(".")
    shown = f"cute.{inner}" if inner else "cute"
    kind = MissingImportError if _is_import(sys._getframe(1)) else DSLAttributeError
    return kind(f"{shown} has no '{name}'", hint=_suggestion(module, inner, name))


def _is_import(frame: FrameType | None) -> bool:
    """True if the innermost user frame executes `from module import name`."""
    while frame is not None and is_internal_frame(frame):
        frame = frame.f_back
    if frame is None or frame.f_lasti < 0:
        return False
    import dis  # only errors ask

    return dis.opname[frame.f_code.co_code[frame.f_lasti]] == "IMPORT_FROM"


def _suggestion(module: str, inner: str, name: str) -> str:
    instead = instead_of(name)
    if instead is not None:
        return f"in cute: {instead}"
    shown = f"cute.{inner}" if inner else "cute"
    near = closest_name(name, _public(module))
    if near is not None:
        return f"did you mean {shown}.{near}?"
    for other in _SEARCHED:
        names = _public(f"{_ROOT}.{other}" if other else _ROOT)
        near = next((one for one in names if fold(one) == fold(name)), None)
        if near is not None:
            return f"did you mean {'cute.' + other if other else 'cute'}.{near}?"
    return f"dir({shown}) lists its names"


def _public(module: str) -> list[str]:
    found = importlib.import_module(module)
    names = {*dir(found), *getattr(found, "__all__", ())}
    return sorted(name for name in names if not name.startswith("_"))


def unsupported_names(module: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of `module`: a stand-in for a name that this table knows, an error
    for any other. Type checkers must not see it, or they would report no name.
    """
    inner = module.removeprefix(_ROOT).lstrip(".")

    def find(name: str) -> Any:
        whole = f"{inner}.{name}" if inner else name
        if whole in INSTEAD:
            return NotOffered(
                f"{whole} is internal to CuTe's own DSL, and not offered", INSTEAD[whole]
            )
        if whole in UNDOCUMENTED:
            return NotOffered(
                f"{whole} is not offered: no public description says what it takes and returns",
                UNDOCUMENTED[whole],
            )
        if whole in _LAYERED:
            return NotOffered(
                f"{whole} belongs to an experimental layer of CuTe's DSL, and is not offered",
                _INSTRUCTION if inner.endswith("primitives") else _LAYER,
            )
        raise missing_name(module, name)

    return find
