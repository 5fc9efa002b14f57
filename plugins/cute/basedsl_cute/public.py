"""Every public name of `basedsl_cute`. The package loads this file when the first name is used."""

from basedsl import DSLRuntimeError, const_expr, range, range_constexpr
from basedsl.numeric import dtype
from basedsl_cute import arch, nvgpu, pipeline, runtime, utils
from basedsl_cute.algebra import (
    E,
    LayoutError,
    Ratio,
    ScaledBasis,
    append,
    append_ones,
    assume,
    blocked_product,
    ceil_div,
    coalesce,
    complement,
    composition,
    cosize,
    crd2idx,
    depth,
    dice,
    domain_offset,
    draw,
    elem_less,
    filter,
    filter_zeros,
    find,
    find_if,
    flat_divide,
    flat_product,
    flatten,
    flatten_to_tuple,
    front,
    get,
    group_modes,
    has_underscore,
    idx2crd,
    is_major,
    is_static,
    leading_dim,
    left_inverse,
    local_partition,
    local_tile,
    logical_divide,
    logical_product,
    make_composed_layout,
    make_identity_layout,
    make_layout,
    make_layout_image_mask,
    make_layout_tv,
    make_ordered_layout,
    make_swizzle,
    max_alignment,
    max_common_layout,
    max_common_vector,
    outer_partition,
    prepend,
    prepend_ones,
    product,
    product_each,
    product_like,
    raked_product,
    rank,
    recast_layout,
    repeat,
    repeat_as_tuple,
    repeat_like,
    right_inverse,
    round_up,
    select,
    shape,
    shape_div,
    size,
    size_in_bytes,
    slice_,
    tile_to_shape,
    tiled_divide,
    tiled_product,
    transform_leaf,
    unflatten,
    zipped_divide,
    zipped_product,
)
from basedsl_cute.algebra import congruent as is_congruent
from basedsl_cute.algebra import increment as increment_coord
from basedsl_cute.algebra import weakly_congruent as is_weakly_congruent
from basedsl_cute.arrays.placeholders import sym_int, sym_int32, sym_int64
from basedsl_cute.atoms import (
    CopyAtom,
    MmaAtom,
    ThrCopy,
    ThrMma,
    TiledCopy,
    TiledMma,
    gemm,
    make_copy_atom,
    make_cotiled_copy,
    make_mma_atom,
    make_tiled_copy,
    make_tiled_copy_A,
    make_tiled_copy_B,
    make_tiled_copy_C,
    make_tiled_copy_C_atom,
    make_tiled_copy_D,
    make_tiled_copy_S,
    make_tiled_copy_tv,
    make_tiled_mma,
    mma_atom_call,
)
from basedsl_cute.atoms.copy_tensors import (
    autovec_copy,
    basic_copy,
    basic_copy_if,
    copy,
    copy_atom_call,
)
from basedsl_cute.compat import core, cutlass_dsl, typing
from basedsl_cute.compat.cutlass_dsl import (
    dsl_user_op,
    dynamic_expr,
    extract_mlir_values,
    max,
    min,
    new_from_mlir_values,
    range_dynamic,
)
from basedsl_cute.compat.typing import *
from basedsl_cute.device.driver import DSLCudaRuntimeError
from basedsl_cute.dsl.compile import (
    EnableAssertions,
    EnableTVMFFI,
    GenerateLineInfo,
    GPUArch,
    KeepCUBIN,
    KeepPTX,
    KeepSASS,
    NvdisasmOptions,
    OptLevel,
    PtxasOptions,
    compile,
)
from basedsl_cute.dsl.cute import CUTE
from basedsl_cute.dsl.machine import synchronize, target_description
from basedsl_cute.dsl.toolkit import CUDA_VERSION, target_version
from basedsl_cute.host.adapters import register_jit_arg_adapter
from basedsl_cute.host.stream import Stream
from basedsl_cute.interop import cuda, testing, torch
from basedsl_cute.nvgpu.tma import prefetch
from basedsl_cute.tensors import math
from basedsl_cute.tensors.fast_divmod import FastDivmodDivisor, fast_divmod_create_divisor
from basedsl_cute.tensors.make_tensor import (
    make_fragment_like,
    make_identity_tensor,
    make_ptr,
    make_rmem_tensor,
    make_rmem_tensor_like,
    make_tensor,
    recast_tensor,
)
from basedsl_cute.tensors.math import (
    cos,
    erf,
    exp,
    exp2,
    log,
    log2,
    log10,
    rsqrt,
    sin,
    sqrt,
    tan,
    tanh,
)
from basedsl_cute.tensors.native_struct import native_struct
from basedsl_cute.tensors.pointer import recast_ptr
from basedsl_cute.tensors.print_tensor import print_tensor
from basedsl_cute.tensors.printf import printf
from basedsl_cute.tensors.smem_struct import struct, union
from basedsl_cute.tensors.tensor_ssa import (
    ReductionOp,
    TensorSSA,
    all_,
    any_,
    full,
    full_like,
    ones_like,
    where,
    zeros_like,
)
from basedsl_cute.utils import smem_report

make_fragment = make_rmem_tensor  # an older spelling
jit = CUTE.jit
kernel = CUTE.kernel
