"""`matmul`: the product of two arrays with a fused epilogue, by the kernel that suits them.

A `MatmulPlan` is made once for arrays of the same extents, strides, types and alignment; its code
is compiled once for all extents that share a configuration and divisors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import basedsl_cute as cute
from basedsl import ArrayRecord, DSLTypeError, with_article
from basedsl_cute.algebra.explained_calls import explains_arguments
from basedsl_cute.dsl.hardware_info import HardwareInfo
from basedsl_cute.dsl.machine import current_target
from basedsl_cute.host.tensor_argument import tensor_argument
from basedsl_cute.ops.ampere import gemm as ampere_gemm
from basedsl_cute.ops.ampere import gemm_tma, sgemm
from basedsl_cute.ops.array_libraries import ArrayLibrary, known_libraries, library
from basedsl_cute.ops.blackwell import gemm as blackwell_gemm
from basedsl_cute.ops.flags import flag
from basedsl_cute.ops.gemm.block_scaled import BlockScaled, block_scaled_matmul
from basedsl_cute.ops.gemm.epilogue import FusedEpilogue
from basedsl_cute.ops.gemm.epilogue_operands import NOTHING, epilogue_operands, is_array
from basedsl_cute.ops.gemm.footprint import Footprint
from basedsl_cute.ops.gemm.kernel_selection import (
    Matrices,
    OperandInfo,
    TmaSupport,
    check_conversion,
    check_devices,
    check_operands,
    check_result,
    check_types,
    checked_out,
    choose_kernel,
    configs_to_measure,
    element_type,
    extents_of,
    matrix_views,
    missing_mode,
    operand_info,
    problem_shape,
    with_copies_for_tma,
)
from basedsl_cute.ops.gemm.matrix_views import MatrixView
from basedsl_cute.ops.gemm.operands import kernel_order, matrix, operands_of_kernel
from basedsl_cute.ops.gemm.tuning import TUNE, fastest_config, microseconds
from basedsl_cute.ops.hopper import gemm as hopper_gemm
from basedsl_cute.ops.hopper import parallel_split_k, split_k_gemm
from basedsl_cute.ops.jax_arrays import is_jax
from basedsl_cute.ops.plan_cache import PlanCache, asked_options


@explains_arguments
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
    operands: tuple[Any, ...] = NOTHING,
    tf32: bool = False,
    config: Any = None,
    out_format: str | None = None,
) -> Any:
    """Compute activation(alpha * a @ b + bias) + residual in one kernel (two for a very long K).

    `a` and `b` are arrays of PyTorch, CuPy, JAX or NumPy, with NumPy's meaning of `@`: (..., M, K)
    and (..., K, N), leading modes broadcast, an array of one mode is a vector. Transposed views are
    used as they are; an array with neither rows nor columns contiguous is copied first.

    Elements are Float16, BFloat16, Float8E4M3FN, Float8E5M2, Int8, Uint8, Float32 or Float64.
    Products are accumulated in Float32 (Int32 for integers, Float64 for its like); without columns
    of `a` they are 0. Float32 is multiplied exactly on the CUDA cores;
    with `tf32`, tensor cores multiply the upper 19 bits of the elements.

    Parameters:
        out: the array to write; by default a new row-major one. Its elements are the result's,
            but floats are converted to integers only for an `out_dtype` that says so. It shares no
            memory with the operands, but it may be the residual itself.
        bias: an array with an element for each column, or any that broadcasts to the result.
        activation: "relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh", or a function of a
            vector.
        residual: an array that broadcasts to the result.
        alpha: a number, or an array of one.
        out_dtype: the result's element type, a numeric class or a dtype of the library; by default
            that of `a`, Float32 for 8-bit floats, Int32 for integers.
        epilogue: instead of the five above, a function of the accumulators and the operands that
            gives the result, see `utils.epilogue`. Each function object is compiled apart.
        operands: a tuple of arrays that broadcast to the result, or numbers, for `epilogue`.
        tf32: see above.
        config: a `Config` of a module in `ops.blackwell`, `ops.hopper` or `ops.ampere`, instead of
            the chosen one; or "tune": the one that is fastest in measurements, which the first call
            for arrays of a kind takes on a GPU. The result is kept on disk, for this GPU.
        out_format: a block-scaled format (see `quantize`), which the results of a block-scaled
            product are quantised to in the kernel.

    On data-center Blackwell both may be block-scaled: `matmul(quantize(x, "nvfp4"), quantize(w,
    "nvfp4").T)`. The result is Float32 by default, or a `BlockScaled` with `out_format`.

    Returns `out`, or the new array. PyTorch computes gradients of a, b, bias, residual and alpha,
    and compiles calls, unless there is an `out`, an `epilogue`, an activation of your own or a
    `config` other than "tune", which then holds for the gradients' products too.

    Raises DSLTypeError for arrays of different libraries or devices, extents that do not fit,
    element types without a kernel, operands that require a gradient which cannot be computed, and
    for a `config` whose kernel does not take these arrays.

    >>> import numpy as np
    >>> from basedsl_cute.ops import matmul
    >>> a, b = np.ones((4, 8), np.float16), np.ones((8, 3), np.float16)
    >>> matmul(a, b, bias=np.full(3, -9, np.float16), activation="relu", out_dtype=np.float32)
    array([[0., 0., 0.],
           [0., 0., 0.],
           [0., 0., 0.],
           [0., 0., 0.]], dtype=float32)
    """
    if isinstance(a, BlockScaled) or isinstance(b, BlockScaled):
        lib = library(getattr(a, "elements", a))
        like = getattr(a, "elements", a)
        extras = epilogue_operands(lib, like, bias, residual, alpha, epilogue, operands)
        fused = _fused(activation, alpha, bias, residual, epilogue, extras)
        return block_scaled_matmul(a, b, extras, fused, out, out_dtype, out_format, config)
    if out_format is not None:
        raise DSLTypeError(
            "out_format= is for block-scaled operands", hint="quantize them, or the result"
        )
    tf32 = flag("matmul", "tf32", tf32)
    if is_jax(a):
        from basedsl_cute.ops.gemm.jax_matmul import jax_matmul  # it imports JAX

        if out is not None or epilogue is not None or callable(activation):
            raise DSLTypeError(
                "matmul of JAX arrays takes no out, no epilogue and no activation of your own",
                hint="JAX arrays are immutable, and XLA fuses what follows a product",
            )
        return jax_matmul(a, b, bias, residual, alpha, activation, out_dtype, tf32, config)
    lib = library(a)
    if out is None and lib.is_autocasting():
        from basedsl_cute.ops.torch_autocast import lowered_product  # it imports PyTorch

        a, b, out_dtype = lowered_product(a, b, residual, out_dtype)
    if (
        lib.records(a, b, bias, residual, alpha)
        and (out is epilogue is None)
        and (config is None or config == TUNE)
        and not callable(activation)
    ):
        from basedsl_cute.ops.gemm.torch_matmul import torch_matmul  # it imports PyTorch

        return torch_matmul(
            a, b, bias, residual, alpha, activation, out_dtype, tf32, config == TUNE
        )
    extras = epilogue_operands(lib, a, bias, residual, alpha, epilogue, operands)
    key = (
        lib.key(a),
        _key(lib, b, "b"),
        None if out is None else _key(lib, out, "out"),
        tuple([_key(lib, x, "an operand") if is_array(x) else type(x) for x in extras]),
        (bias is None, residual is None, alpha is None),
        activation,
        epilogue,
        out_dtype,
        tf32,
        config,
        asked_options(),
    )
    try:
        plan = _plans.get(key)
    except TypeError as error:
        raise DSLTypeError(
            f"matmul: activation, epilogue, out_dtype and config are static: {error}"
        ) from None
    if plan is None:
        fused = _fused(activation, alpha, bias, residual, epilogue, extras)
        plan = _plan(Request(lib, a, b, out, extras, fused, out_dtype, tf32, config))
        _plans.keep(key, plan)
    return plan.run(lib, a, b, out, extras)


def _fused(
    activation: Any, alpha: Any, bias: Any, residual: Any, epilogue: Any, extras: tuple[Any, ...]
) -> Any:
    """The epilogue of a call: the user's, one of the keywords, or None."""
    if epilogue is None and (extras or activation is not None):
        return FusedEpilogue(activation, alpha is not None, bias is not None, residual is not None)
    return epilogue


def _is_users(epilogue: Any) -> bool:
    """True if an epilogue runs a user's function."""
    return callable(epilogue.activation if isinstance(epilogue, FusedEpilogue) else epilogue)


def _key(lib: ArrayLibrary, x: Any, name: str) -> Any:
    """The cache key of an operand; DSLTypeError for one of another library than `a`."""
    if known_libraries.get(type(x)) is not lib and library(x, f"matmul ({name})") is not lib:
        given = with_article(f"{type(x).__module__}.{type(x).__name__}")
        raise DSLTypeError(
            f"matmul: {name} is {given}, unlike a",
            hint="pass arrays of one library",
        )
    return lib.key(x)


# Plans -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MatmulProblem:
    """The static part of a product: the kernel, and the promises on its operands."""

    kernel: str
    config: Any
    epilogue: Any
    majors: tuple[int, int, int]  # the contiguous modes of A (M, K), B (N, K) and C (M, N)
    vectors: tuple[int, int, int]  # the widest accesses of A, B and C, in elements
    columns: tuple[bool, ...]  # which epilogue operands have an element for each column


class MatmulPlan:
    """The compiled product for arrays of one kind: the same extents, strides, types, alignment."""

    def __init__(
        self,
        call: Callable[..., Any] | None,
        views: tuple[MatrixView, ...],
        shape: tuple[int, ...],
        dtype: Any,
        blocks: int = 0,
        extras: tuple[MatrixView | None, ...] = (),
        footprints: tuple[Footprint | None, ...] = (),
        problem: MatmulProblem | None = None,
        workspace: tuple[tuple[int, ...], Any] | None = None,
    ) -> None:
        self.call = call
        self.problem = problem  # what `call` was compiled for
        self.workspace = workspace  # shape and dtype of an array that it takes before the extras
        self.shape = shape
        self.dtype = dtype
        self.blocks = blocks
        self.a, self.b, self.c = views
        self.extras = extras
        self.footprints = footprints  # of A, B, C and the epilogue's operands, None for numbers
        every = (*views, *(v for v in extras if v is not None))
        self.is_direct = all(v.is_same for v in every)

    def run(self, lib: ArrayLibrary, a: Any, b: Any, out: Any, extras: tuple[Any, ...]) -> Any:
        """Compute the product of arrays of that kind; returns `out`, or a new array."""
        result = lib.empty(self.shape, self.dtype, a) if out is None else out
        call = self.call
        if call is None:  # there are no elements
            return result
        if out is not None:
            self._check_apart(lib, a, b, out, extras)
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

    def _check_apart(
        self, lib: ArrayLibrary, a: Any, b: Any, out: Any, extras: tuple[Any, ...]
    ) -> None:
        """Raise DSLTypeError if `out` overlaps another array. An operand may be the same one: each
        element is read before it is written.
        """
        at, c = lib.address(out), self.footprints[2]
        assert c is not None
        names = ("a", "b", "out", *["an operand"] * len(extras))
        for name, x, its in zip(names, (a, b, None, *extras), self.footprints, strict=True):
            if its is None or x is None:
                continue
            begin = lib.address(x)
            if name == "an operand" and begin == at and c.is_same(its):
                continue
            if c.shares(at, its, begin):
                raise DSLTypeError(
                    f"matmul: out shares memory with {name}", hint="pass another array, or none"
                )


class EmptySums:
    """The plan of a product with K = 0: one of zeros."""

    def __init__(self, request: Request) -> None:
        self.plan = _plan(
            request._replace(
                a=self._zeros(request.lib, request.a, -1), b=self._zeros(request.lib, request.b, -2)
            )
        )

    @staticmethod
    def _zeros(lib: ArrayLibrary, x: Any, mode: int) -> Any:
        """Zeros of the extents of `x`, but of one element along a mode."""
        shape = list(x.shape)
        shape[mode if len(shape) > 1 else 0] = 1
        made = lib.empty(tuple(shape), x.dtype, x)
        made[...] = 0
        return made

    def run(self, lib: ArrayLibrary, a: Any, b: Any, out: Any, extras: tuple[Any, ...]) -> Any:
        """Compute the epilogue of zeros."""
        return self.plan.run(lib, self._zeros(lib, a, -1), self._zeros(lib, b, -2), out, extras)


_plans: PlanCache[MatmulPlan | EmptySums] = PlanCache()
_kernels: dict[Any, Callable[..., Any]] = {}


class Request(NamedTuple):
    """The arguments of a call of `matmul`, with the keywords made into one epilogue."""

    lib: ArrayLibrary
    a: Any
    b: Any
    out: Any
    extras: tuple[Any, ...]  # the epilogue's operands
    epilogue: Any  # a FusedEpilogue, the user's function, or None
    out_dtype: Any
    tf32: bool
    config: Any
    is_candidate: bool = False  # `config` is one of those that tuning compares


class Product(NamedTuple):
    """The checked operands of a product, and the result that it makes."""

    ranks: tuple[int, int]  # of a and b as given
    a: OperandInfo
    b: OperandInfo
    given: list[OperandInfo | None]  # of the epilogue's operands, None for a number
    batch: tuple[int, ...]
    extents: tuple[int, int, int]  # M, N, K
    shape: tuple[int, ...]  # of the result
    dtype: Any  # of the result, in the library's terms

    @property
    def full(self) -> tuple[int, ...]:
        """The shape of the result before the modes of vectors are dropped."""
        return (*self.batch, *self.extents[:2])


def _plan(request: Request) -> MatmulPlan | EmptySums:
    """Check the arguments of a call, choose its kernel and compile it."""
    if isinstance(request.config, str) and request.config == TUNE:
        return _tuned_plan(request)
    product = _checked(request)
    if product.extents[2] == 0 and 0 not in product.full:
        return EmptySums(request)
    if 0 in product.full:
        return MatmulPlan(
            None, (MatrixView((), (), is_same=True),) * 3, product.shape, product.dtype
        )
    lib, config, tf32 = request.lib, request.config, request.tf32
    result = request.out
    if result is None:
        result = lib.empty(product.shape, product.dtype, request.a)
    infos = (product.a, product.b, _result_info(result, product))
    views, extra_views, columns = matrix_views(
        *infos, product.given, product.batch, product.extents
    )
    if (config is None or request.is_candidate) and (tf32 or product.a.dtype is not cute.Float32):
        views = with_copies_for_tma(views, product.a, product.b, product.extents[2])
    processors = _processors(product.a)
    kernel, config = choose_kernel(
        infos[0].dtype,
        infos[1].dtype,
        infos[2].dtype,
        problem_shape(*views, product.extents[2]),
        tf32,
        _tma_support(views, infos),
        config,
        processors,
    )
    problem = _problem(kernel, config, request.epilogue, views, infos, columns)
    blocks = processors * getattr(config, "blocks_per_sm", 1)
    operands = (request.a, request.b, result)
    arrays = tuple(view.of(x, lib) for view, x in zip(views, operands, strict=True))
    pairs = zip(request.extras, extra_views, strict=True)
    extras = tuple(x if view is None else view.of(x, lib) for x, view in pairs)
    workspace = _workspace(request, product, config, views[2])
    if workspace is not None:
        extras = (lib.empty(*workspace, request.a), *extras)
    return MatmulPlan(
        _compiled(problem, arrays, extras, blocks),
        views,
        product.shape,
        product.dtype,
        blocks,
        extra_views,
        tuple(None if x is None else x.footprint for x in (*infos, *product.given)),
        problem,
        workspace,
    )


def _tuned_plan(request: Request) -> MatmulPlan | EmptySums:
    """The plan that takes least in measurements; on the simulator the usual one."""
    usual = _plan(request._replace(config=None))
    if not (isinstance(usual, MatmulPlan) and usual.problem and current_target().is_gpu):
        return usual
    lib, a, b, extras = request.lib, request.a, request.b, request.extras
    result = lib.empty(usual.shape, usual.dtype, a) if request.out is None else request.out
    infos = (operand_info(a, "a"), operand_info(b, "b"), operand_info(result, "out"))
    views = (usual.a, usual.b, usual.c)
    shape = problem_shape(*views, infos[0].shape[-1])
    candidates = configs_to_measure(
        usual.problem.kernel,
        infos[0].dtype,
        infos[2].dtype,
        shape,
        _tma_support(views, infos),
        _processors(infos[0]),
    )

    def plan_of(config: Any) -> Any:
        return _plan(request._replace(config=config, is_candidate=True))

    def measure(config: Any) -> float:
        plan = plan_of(config)
        arrays = plan.a.of(a, lib), plan.b.of(b, lib), plan.c.of(result, lib)
        pairs = zip(extras, plan.extras, strict=True)
        more = tuple(x if v is None else v.of(x, lib) for x, v in pairs)
        return microseconds(lib, plan, arrays, plan.workspace, more)

    names = tuple(one.dtype.__name__ for one in infos)
    kind = (names, shape, replace(usual.problem, config=None))
    found = fastest_config(candidates, measure, product, kind, lib.stream(a))
    return usual if found is None else plan_of(found)


def _checked(request: Request) -> Product:
    """The product of a call; DSLTypeError for arguments that do not fit together."""
    lib, a, b, out = request.lib, request.a, request.b, request.out
    ranks = (len(ArrayRecord.of(a, "a").shape), len(ArrayRecord.of(b, "b").shape))
    if 0 in ranks:
        raise DSLTypeError("matmul takes vectors and matrices, not a single number")
    info_a = operand_info(a, "a", 0 if ranks[0] == 1 else None)
    info_b = operand_info(b, "b", 1 if ranks[1] == 1 else None)
    check_types(info_a.dtype, info_b.dtype)
    batch, (m, n, k) = extents_of(info_a, info_b)
    shape = (*batch, *((m,) if ranks[0] > 1 else ()), *((n,) if ranks[1] > 1 else ()))
    kind = element_type(lib, request.out_dtype, info_a.dtype, a)
    check_result(kind)
    dtype = lib.dtype(kind)
    if out is not None:
        given_kind = checked_out(out, shape, kind if request.out_dtype is not None else None)
        check_result(given_kind)
        if request.epilogue is None or isinstance(request.epilogue, FusedEpilogue):
            check_conversion(given_kind, kind)
    missing = missing_mode(ranks, len(shape))
    given = [
        operand_info(x, "an operand", missing) if is_array(x) else None for x in request.extras
    ]
    check_devices(info_a, info_b, *given, *([] if out is None else [operand_info(out, "out")]))
    product = Product(ranks, info_a, info_b, given, batch, (m, n, k), shape, dtype)
    check_operands(given, product.full)
    return product


def _result_info(result: Any, product: Product) -> OperandInfo:
    """The facts of the result, with a mode of extent 1 for each vector operand."""
    info = operand_info(result, "out")
    if product.ranks == (1, 1):
        info.shape, info.strides = (1, 1), (1, 1)
    elif 1 in product.ranks:
        place = len(product.batch) + (0 if product.ranks[0] == 1 else 1)
        info.shape = (*info.shape[:place], 1, *info.shape[place:])
        info.strides = (*info.strides[:place], 1, *info.strides[place:])
    return info


def _processors(a: OperandInfo) -> int:
    """The number of multiprocessors of the device that `a` is on."""
    device = a.host.device[1] if a.host.is_on_gpu else None
    return HardwareInfo(device).get_device_multiprocessor_count()


def _tma_support(views: Matrices, infos: tuple[OperandInfo, ...]) -> TmaSupport:
    view_a, view_b, view_c = views
    a, b, c = infos
    loads = view_a.suits_tma(a.host.address, a.size) and view_b.suits_tma(b.host.address, b.size)
    k_contiguous = view_a.lead == -1 and view_b.lead != -1
    stores = view_c.suits_tma(c.host.address, c.size) and view_c.suits_tma_store(c.size)
    return TmaSupport(loads, loads and (a.dtype.width == 16 or k_contiguous), stores)


def _problem(
    kernel: str,
    config: Any,
    epilogue: Any,
    views: Matrices,
    infos: tuple[OperandInfo, ...],
    columns: tuple[bool, ...],
) -> MatmulProblem:
    """The static part of the product: B is (N, K) for the kernels, and (K, N) in its view."""
    a, b, c = (view.lead == -1 for view in views)
    vector_a, vector_b, vector_c = (
        view.vector(info.host.address, info.size) for view, info in zip(views, infos, strict=True)
    )
    majors = (int(a), int(not b), int(c))
    return MatmulProblem(kernel, config, epilogue, majors, (vector_a, vector_b, vector_c), columns)


def _workspace(
    request: Request, product: Product, config: Any, view: MatrixView
) -> tuple[tuple[int, ...], Any] | None:
    """Shape and dtype of the array of partial sums that the configuration needs, if any."""
    if not isinstance(config, parallel_split_k.Config):
        return None
    sums = cute.Int32 if product.a.dtype.is_integer else cute.Float32
    m, n = view.shape[-2:]
    return config.workspace(m, n, view.lead != -1), request.lib.dtype(sums)


def _compiled(
    problem: MatmulProblem, arrays: tuple[Any, ...], extras: tuple[Any, ...], blocks: int
) -> Callable[..., Any]:
    """The compiled product for arrays of these types, from the cache if possible."""
    if _is_users(problem.epilogue):
        # A user's function may read values that change: a call of the jit function checks them.
        return lambda *arguments: product(*arguments, problem)
    kinds = tuple(tensor_argument(x, None, "") for x in arrays)
    more = tuple(tensor_argument(x, None, "") if is_array(x) else type(x) for x in extras)
    key = (problem, kinds, more, current_target().name, asked_options())
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
    a, b, c = kernel_order(a), cute.select(kernel_order(b), [1, 0, 2]), kernel_order(c)
    a, b, c = (
        matrix(x, vector, major)
        for x, vector, major in zip((a, b, c), problem.vectors, problem.majors, strict=True)
    )
    workspace = None
    if cute.const_expr(problem.kernel == "hopper parts"):
        workspace, extras = extras[0], extras[1:]
    operands = operands_of_kernel(extras, problem.columns, c.shape)
    on = cute.Stream(stream.ir_value())
    rest = (problem.config, problem.epilogue, operands)
    if cute.const_expr(problem.kernel == "blackwell"):
        blackwell_gemm.gemm(a, b, c, blocks, *rest, stream=on)
    elif cute.const_expr(problem.kernel == "hopper"):
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
