"""`matmul`: the product of two arrays, with what is done to it fused, by the kernel that suits.

What a call takes is decided once for arrays of the same extents, strides, types and alignment (a
`Plan`), and compiled once for all extents that share a configuration and divisors.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import basedsl_cute as cute
from basedsl.errors import DSLTypeError, with_article
from basedsl_cute.arrays.host_tensor import HostTensor
from basedsl_cute.dsl.hardware_info import HardwareInfo
from basedsl_cute.dsl.machine import current_target
from basedsl_cute.hardware.targets import ENVIRONMENT_VARIABLE
from basedsl_cute.host.tensor_argument import tensor_argument
from basedsl_cute.ops.ampere import gemm as ampere_gemm
from basedsl_cute.ops.ampere import gemm_tma, sgemm
from basedsl_cute.ops.gemm.array_libraries import Library, library
from basedsl_cute.ops.gemm.epilogue import Fused
from basedsl_cute.ops.gemm.kernel_selection import (
    ByTma,
    check_devices,
    check_operands,
    check_types,
    checked_out,
    choose,
    element_type,
    extents_of,
    facts,
    views_of,
    walked,
    with_copies_for_tma,
)
from basedsl_cute.ops.gemm.matrix_views import View
from basedsl_cute.ops.gemm.operands import matrix
from basedsl_cute.ops.hopper import gemm as hopper_gemm
from basedsl_cute.ops.hopper import parallel_split_k, split_k_gemm
from basedsl_cute.utils.epilogue import per_column

_MOST_PLANS = 4096
_NOTHING: tuple[Any, ...] = ()


def matmul(
    a: Any,
    b: Any,
    *,
    out: Any = None,
    bias: Any = None,
    activation: Any = None,
    residual: Any = None,
    alpha: float | None = None,
    out_dtype: Any = None,
    epilogue: Any = None,
    operands: tuple[Any, ...] = _NOTHING,
    tf32: bool = False,
    config: Any = None,
) -> Any:
    """activation(alpha * a @ b + bias) + residual, in one kernel (two for a very long K).

    `a` and `b` are arrays of PyTorch, CuPy or NumPy with NumPy's meaning of `@`: (..., M, K) and
    (..., K, N), leading modes broadcast, one mode is a vector. Transposed views are taken as they
    are; what has neither rows nor columns contiguous is copied first. The result is new and
    row-major, or `out`, which must not share memory with `a` or `b`.

    Elements are Float16, BFloat16, Float8E4M3FN, Float8E5M2, Int8, Uint8 or Float32. Sums are
    Float32 (Int32 for integers). Float32 is multiplied exactly on the CUDA cores; `tf32` takes the
    upper 19 bits of elements to tensor cores. The result has the type of `a`, Float32 for 8-bit
    floats, Int32 for integers, or `out_dtype`.

    `bias` has an element for each column; it and `residual` may have any shape that broadcasts to
    the result's. `activation` is "relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh", or a
    function of a vector. `alpha` is a number, or an array of one. Instead of all these,
    `epilogue(sums, *operands)` makes the result of the sums and of arrays like `residual` or
    numbers, see `utils.epilogue`; each function object is compiled apart. `config` is a `Config` of
    `ampere_gemm`, `ampere_gemm_tma`, `hopper_gemm`, `hopper_split_gemm`, `hopper_parallel_split_k`
    or `sgemm`, instead of the one chosen.
    """
    lib = library(a)
    extras = _extras(lib, bias, residual, alpha, epilogue, operands)
    key = (
        lib.key(a),
        _key(lib, b, "b"),
        None if out is None else _key(lib, out, "out"),
        tuple([_key(lib, x, "an operand") if _is_array(x) else type(x) for x in extras]),
        (bias is None, residual is None, alpha is None),
        activation,
        epilogue,
        out_dtype,
        tf32,
        config,
        os.environ.get(ENVIRONMENT_VARIABLE),
    )
    try:
        plan = _plans.get(key)
    except TypeError as error:
        raise DSLTypeError(
            f"matmul: activation, epilogue, out_dtype and config are static: {error}"
        ) from None
    if plan is None:
        if epilogue is None and (extras or activation is not None):
            fused = Fused(activation, alpha is not None, bias is not None, residual is not None)
        else:
            fused = epilogue
        plan = _plan(lib, a, b, out, extras, fused, out_dtype, tf32, config)
        if len(_plans) >= _MOST_PLANS:
            _plans.clear()
        _plans[key] = plan
    return plan.run(lib, a, b, out, extras)


def _is_array(x: Any) -> bool:
    return not isinstance(x, int | float)


def _is_users(epilogue: Any) -> bool:
    """Whether an epilogue runs code that is not this package's."""
    return callable(epilogue.activation if isinstance(epilogue, Fused) else epilogue)


def _key(lib: Library, x: Any, name: str) -> Any:
    if library(x) is not lib:
        given = with_article(f"{type(x).__module__}.{type(x).__name__}")
        raise DSLTypeError(
            f"matmul: {name} is {given}, unlike a",
            hint="pass arrays of one library",
        )
    return lib.key(x)


def _extras(
    lib: Library, bias: Any, residual: Any, alpha: Any, epilogue: Any, operands: tuple[Any, ...]
) -> tuple[Any, ...]:
    """The epilogue's operands in the order in which `Fused` takes them, or the user's own."""
    if alpha is bias is residual is epilogue is None and operands is _NOTHING:
        return ()
    if isinstance(alpha, int | np.generic):
        alpha = float(alpha)
    own = tuple([x for x in (alpha, bias, residual) if x is not None])
    if not isinstance(operands, tuple | list):
        raise DSLTypeError(
            f"operands= is {with_article(type(operands))}",
            hint="pass a tuple of arrays and numbers: operands=(x,)",
        )
    if epilogue is None:
        if len(operands):
            raise DSLTypeError("operands= are those of an epilogue", hint="pass epilogue= too")
        return own
    if own:
        raise DSLTypeError(
            "an epilogue replaces bias, residual and alpha",
            hint="take them as operands: epilogue=lambda sums, bias: ..., operands=(bias,)",
        )
    return tuple([x.item() if isinstance(x, np.generic) else x for x in operands])


# Plans -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """What of a product is static: the kernel, and how its operands are to be read."""

    kernel: str
    config: Any
    epilogue: Any
    majors: tuple[int, int, int]  # the contiguous modes of A (M, K), B (N, K) and C (M, N)
    vectors: tuple[int, int, int]
    columns: tuple[bool, ...]  # which epilogue operands have an element for each column


class Plan:
    """How calls with arrays of one kind are done."""

    def __init__(
        self,
        call: Callable[..., Any] | None,
        views: tuple[View, ...],
        shape: tuple[int, ...],
        dtype: Any,
        blocks: int,
        extras: tuple[View | None, ...],
        filled: tuple[int, int, int] = (0, 0, 0),
        problem: Problem | None = None,
        workspace: tuple[tuple[int, ...], Any] | None = None,
    ) -> None:
        self.call = call
        self.problem = problem  # what `call` was compiled for
        self.workspace = workspace  # extents and type of an array that it takes before the extras
        self.shape = shape
        self.dtype = dtype
        self.blocks = blocks
        self.a, self.b, self.c = views
        self.extras = extras
        self.filled = filled  # bytes that A, B and C fill without gaps, 0 if they have gaps
        every = (*views, *(v for v in extras if v is not None))
        self.is_direct = all(v.is_same for v in every)

    def run(self, lib: Library, a: Any, b: Any, out: Any, extras: tuple[Any, ...]) -> Any:
        """The product of arrays of that kind."""
        result = lib.empty(self.shape, self.dtype, a) if out is None else out
        if out is not None:
            self._check_apart(lib, a, b, out)
        call = self.call
        if call is None:  # there are no elements
            return result
        c = result
        if not self.is_direct:
            a, b, c = self.a.of(a, lib), self.b.of(b, lib), self.c.of(c, lib)
            extras = tuple(
                [x if v is None else v.of(x, lib) for x, v in zip(extras, self.extras, strict=True)]
            )
        if self.workspace is not None:
            extras = (lib.empty(*self.workspace, a), *extras)
        call(a, b, c, extras, self.blocks, lib.stream(a))
        return result

    def _check_apart(self, lib: Library, a: Any, b: Any, out: Any) -> None:
        """Where arrays have gaps, that they overlap is seen only if they begin alike."""
        *sizes, written = self.filled
        at = lib.address(out)
        for name, x, size in zip("ab", (a, b), sizes, strict=True):
            begin = lib.address(x)
            overlap = size and written and begin < at + written and at < begin + size
            if begin == at or overlap:
                raise DSLTypeError(
                    f"matmul: out shares memory with {name}", hint="pass another array, or none"
                )


_plans: dict[Any, Plan] = {}
_kernels: dict[Any, Callable[..., Any]] = {}


def _plan(
    lib: Library,
    a: Any,
    b: Any,
    out: Any,
    extras: tuple[Any, ...],
    fused: Any,
    out_dtype: Any,
    tf32: bool,
    config: Any,
) -> Plan:
    ranks = tuple(len(HostTensor.of(x, name).shape) for x, name in ((a, "a"), (b, "b")))
    if 0 in ranks:
        raise DSLTypeError("matmul takes vectors and matrices, not a single number")
    of_a = facts(a, "a", 0 if ranks[0] == 1 else None)
    of_b = facts(b, "b", 1 if ranks[1] == 1 else None)
    check_types(of_a.dtype, of_b.dtype)
    batch, (m, n, k) = extents_of(of_a, of_b)
    full = (*batch, m, n)
    shape = (*batch, *((m,) if ranks[0] > 1 else ()), *((n,) if ranks[1] > 1 else ()))
    column = len(shape) if ranks[1] == 1 else None  # the mode that results lack
    if ranks[0] == 1:
        column = -1 if column is None else 0
    kind = element_type(lib, out_dtype, of_a.dtype, a)
    made = lib.dtype(kind)
    if out is not None:
        kind = checked_out(out, shape, kind if out_dtype is not None else None)
    given = [facts(x, "an operand", column) if _is_array(x) else None for x in extras]
    check_devices(of_a, of_b, *given, *([] if out is None else [facts(out, "out")]))
    check_operands(given, full)
    if 0 in full:
        return Plan(None, (View((), (), is_same=True),) * 3, shape, made, 0, ())

    result = lib.empty(shape, made, a) if out is None else out
    of_c = facts(result, "out")
    if ranks == (1, 1):
        of_c.shape, of_c.strides = (1, 1), (1, 1)
    elif 1 in ranks:
        place = len(batch) if ranks[0] == 1 else len(batch) + 1
        of_c.shape = (*of_c.shape[:place], 1, *of_c.shape[place:])
        of_c.strides = (*of_c.strides[:place], 1, *of_c.strides[place:])
    views = views_of(of_a, of_b, of_c, given, batch, (m, n, k))
    matrices, seen, columns = views
    if config is None and (tf32 or of_a.dtype is not cute.Float32):
        matrices = with_copies_for_tma(matrices, of_a, of_b, k)
    addresses = [x.host.address for x in (of_a, of_b, of_c)]
    sizes = [x.size for x in (of_a, of_b, of_c)]
    every = list(zip(matrices, addresses, sizes, strict=True))
    leads = [v.lead == -1 for v in matrices]
    loads = all(v.suits_tma(x, size) for v, x, size in every[:2])
    wgmma = loads and (of_a.dtype.width == 16 or leads[:2] == [True, False])
    stores = matrices[2].suits_tma(*every[2][1:]) and matrices[2].suits_tma_store(of_c.size)
    device = of_a.host.device[1] if of_a.host.is_on_gpu else None
    processors = HardwareInfo(device).get_device_multiprocessor_count()
    kernel, config = choose(
        of_a.dtype,
        of_b.dtype,
        of_c.dtype,
        walked(*matrices, k),
        tf32,
        ByTma(loads, wgmma, stores),
        config,
        processors,
    )
    problem = Problem(
        kernel,
        config,
        fused,
        (int(leads[0]), int(not leads[1]), int(leads[2])),
        tuple(v.vector(x, size) for v, x, size in every),
        columns,
    )
    blocks = processors * getattr(config, "blocks_per_sm", 1)
    arrays = tuple(v.of(x, lib) for v, x in zip(matrices, (a, b, result), strict=True))
    more = tuple(x if v is None else v.of(x, lib) for x, v in zip(extras, seen, strict=True))
    filled = (of_a.filled, of_b.filled, of_c.filled)
    workspace = None
    if isinstance(config, parallel_split_k.Config):
        sums = lib.dtype(cute.Int32 if of_a.dtype.is_integer else cute.Float32)
        workspace = config.workspace(*matrices[2].shape[-2:], not leads[2]), sums
        more = (lib.empty(*workspace, a), *more)
    call = _compiled(problem, arrays, more, blocks)
    return Plan(call, matrices, shape, made, blocks, seen, filled, problem, workspace)


def _compiled(
    problem: Problem, arrays: tuple[Any, ...], extras: tuple[Any, ...], blocks: int
) -> Callable[..., Any]:
    """The product for arrays of these kinds, compiled."""
    if _is_users(problem.epilogue):
        # What a user's function reads may change; a call of the jit function notices.
        return lambda *arguments: product(*arguments, problem)
    kinds = tuple(tensor_argument(x, None, "") for x in arrays)
    more = tuple(tensor_argument(x, None, "") if _is_array(x) else type(x) for x in extras)
    key = (problem, kinds, more, current_target().name)
    found = _kernels.get(key)
    if found is None:
        found = _kernels[key] = cute.compile(product, *arrays, extras, blocks, 0, problem)
    return found


@cute.jit
def product(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    extras: tuple,
    blocks: cute.Int32,
    stream: cute.Int64,
    problem: cute.Constexpr,
):
    """C = epilogue(A B) for arrays (M, K), (K, N), (M, N), or with batches as a first mode."""
    a, b, c = _kernel_order(a), cute.select(_kernel_order(b), [1, 0, 2]), _kernel_order(c)
    a, b, c = (
        matrix(x, vector, major)
        for x, vector, major in zip((a, b, c), problem.vectors, problem.majors, strict=True)
    )
    workspace = None
    if cute.const_expr(problem.kernel == "hopper parts"):
        workspace, extras = extras[0], extras[1:]
    operands = tuple(
        x
        if not isinstance(x, cute.Tensor)
        else per_column(x, c.shape)
        if is_column
        else _kernel_order(x)
        for x, is_column in zip(extras, problem.columns, strict=True)
    )
    on = cute.Stream(stream.ir_value())
    rest = (problem.config, problem.epilogue, operands)
    if cute.const_expr(problem.kernel == "hopper"):
        hopper_gemm.gemm(a, b, c, blocks, *rest, stream=on)
    elif cute.const_expr(problem.kernel == "hopper split"):
        vector = min(problem.vectors[2], split_k_gemm.VECTOR)
        split_k_gemm.gemm(a, b, c, *rest, vector, stream=on)
    elif cute.const_expr(problem.kernel == "hopper parts"):
        vector = min(problem.vectors[2], parallel_split_k.VECTOR)
        parallel_split_k.gemm(a, b, c, workspace, blocks, *rest, vector, stream=on)
    elif cute.const_expr(problem.kernel == "warp-tma"):
        gemm_tma.gemm(a, b, c, blocks, *rest, problem.vectors[2], stream=on)
    elif cute.const_expr(problem.kernel == "warp"):
        ampere_gemm.gemm(a, b, c, blocks, *rest, problem.vectors, stream=on)
    else:
        sgemm.sgemm(a, b, c, *rest, problem.vectors, stream=on)


def _kernel_order(x: Any) -> Any:
    """(rows, columns, batches) of (rows, columns) or (batches, rows, columns)."""
    if cute.rank(x.layout) == 3:
        return cute.select(x, [1, 2, 0])
    return cute.append_ones(x, up_to_rank=3)
