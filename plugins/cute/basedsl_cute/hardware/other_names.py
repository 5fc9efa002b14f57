"""Names that programs of CUDA C++, numba, Triton and NumPy use, with what they write here.

Keys are folded: without case and underscores, so `threadIdx` and `thread_idx` are one.
"""

from __future__ import annotations

import functools

from basedsl import closest_name

_THREAD = "cute.arch.thread_idx(), a tuple (x, y, z)"
_BLOCK = "cute.arch.block_idx(), a tuple (x, y, z)"
_SHARED = "cute.utils.SmemAllocator().allocate_tensor(cute.Float32, layout)"
_SHUFFLE = "cute.arch.shuffle_sync{}(value, offset)"
_ATOMIC = "cute.arch.atomic_{}(x.iterator + i, value)"
_LOAD = "x[i] reads an element of a tensor, x.load() all of them as a vector"
_STORE = "x[i] = value writes an element of a tensor, x.store(vector) all of them"
_REDUCE = "x.load().reduce(cute.ReductionOp.{}, init, 0) of a thread's values"
_GLOBAL_THREAD = "cute.arch.block_idx()[0] * cute.arch.block_dim()[0] + cute.arch.thread_idx()[0]"
_NEW = "allocate arrays in Python and pass them; cute.make_rmem_tensor(shape, dtype) has registers"

_FUNCTIONS = ("sqrt", "rsqrt", "exp", "exp2", "log", "log2", "log10", "sin", "cos", "tan", "tanh")

NAMES = {
    # CUDA C++
    "threadIdx": _THREAD,
    "thread_id": _THREAD,
    "blockIdx": _BLOCK,
    "block_id": _BLOCK,
    "blockDim": "cute.arch.block_dim(), a tuple (x, y, z)",
    "gridDim": "cute.arch.grid_dim(), a tuple (x, y, z)",
    "warpSize": "cute.arch.WARP_SIZE",
    "lane_id": "cute.arch.lane_idx()",
    "laneid": "cute.arch.lane_idx()",
    "warp_id": "cute.arch.warp_idx()",
    "syncthreads": "cute.arch.sync_threads()",
    "sync_threads": "cute.arch.sync_threads()",
    "syncblock": "cute.arch.sync_threads()",
    "debug_barrier": "cute.arch.sync_threads()",
    "syncwarp": "cute.arch.sync_warp()",
    "warp_sync": "cute.arch.sync_warp()",
    "threadfence": "cute.arch.fence_acq_rel_gpu()",
    "threadfence_block": "cute.arch.fence_acq_rel_cta()",
    "atomicAdd": _ATOMIC.format("add"),
    "atomicMax": _ATOMIC.format("max"),
    "atomicMin": _ATOMIC.format("min"),
    "atomicCAS": "cute.arch.atomic_cas(x.iterator + i, cmp=old, val=new)",
    "atomicExch": _ATOMIC.format("exch"),
    "atomic_exchange": _ATOMIC.format("exch"),
    "shfl": _SHUFFLE.format(""),
    "shfl_sync": _SHUFFLE.format(""),
    "shfl_down": _SHUFFLE.format("_down"),
    "shfl_down_sync": _SHUFFLE.format("_down"),
    "shuffle_down": _SHUFFLE.format("_down"),
    "shfl_up": _SHUFFLE.format("_up"),
    "shfl_up_sync": _SHUFFLE.format("_up"),
    "shfl_xor": _SHUFFLE.format("_bfly"),
    "shfl_xor_sync": _SHUFFLE.format("_bfly"),
    "ballot": "cute.arch.vote_ballot_sync(condition)",
    "ballot_sync": "cute.arch.vote_ballot_sync(condition)",
    "any_sync": "cute.arch.vote_any_sync(condition)",
    "all_sync": "cute.arch.vote_all_sync(condition)",
    "popc": "cute.arch.popc(value)",
    "warp_reduce": "cute.arch.warp_reduction(value, operation)",
    "warp_reduce_sum": "cute.arch.warp_reduction_sum(value)",
    "warp_reduce_max": "cute.arch.warp_reduction_max(value)",
    "cp_async": "cute.copy with the atom of cute.nvgpu.cpasync.CopyG2SOp()",
    "memcpy_async": "cute.copy with the atom of cute.nvgpu.cpasync.CopyG2SOp()",
    "float2": "a vector: x.load() of a tensor of 2 elements",
    "float4": "a vector: x.load() of a tensor of 4 elements",
    "dim3": "a tuple: grid=(x, y, z), block=(x, y, z)",
    "cudaMalloc": "arrays of PyTorch, CuPy or JAX: cute allocates no device memory",
    "cudaMemcpy": "arrays of PyTorch, CuPy or JAX: cute copies no device memory",
    "cudaDeviceSynchronize": "cute.synchronize()",
    "device_synchronize": "cute.synchronize()",
    "synchronize": "cute.synchronize()",
    "shared": _SHARED,
    "shared_memory": _SHARED,
    "make_smem_tensor": _SHARED,
    "smem": _SHARED,
    **{f"{name}f": f"cute.math.{name}(x)" for name in _FUNCTIONS},
    "fmaxf": "cute.max(a, b)",
    "fminf": "cute.min(a, b)",
    "powf": "x ** y, or cute.math.pow(x, y)",
    "fabsf": "Python's abs(x)",
    "INFINITY": 'float("inf")',
    "NAN": 'float("nan")',
    "M_PI": "math.pi, after import math",
    "ldg": _LOAD,
    "clock": "with cute.trace(name): around the code; cute.record_events() has the times",
    "clock64": "with cute.trace(name): around the code; cute.record_events() has the times",
    "syncthreads_count": "cute.arch.sync_threads(), and a sum in shared memory",
    "syncthreads_and": "cute.arch.sync_threads(), and cute.arch.vote_all_sync(condition) of a warp",
    "syncthreads_or": "cute.arch.sync_threads(), and cute.arch.vote_any_sync(condition) of a warp",
    # numba
    "local": "cute.make_rmem_tensor(shape, dtype)",
    "to_device": "pass NumPy's array itself, or one of PyTorch, CuPy or JAX that is on the GPU",
    "copy_to_host": "pass NumPy's array itself: it is written in place",
    "njit": "cute.jit, and a kernel that it launches",
    "vectorize": "a kernel: each thread computes an element",
    "grid": _GLOBAL_THREAD,
    "gridsize": "cute.arch.grid_dim()[0] * cute.arch.block_dim()[0]",
    # Triton
    "program_id": "cute.arch.block_idx()[axis]",
    "num_programs": "cute.arch.grid_dim()[axis]",
    "cdiv": "cute.ceil_div(a, b)",
    "load": _LOAD,
    "store": _STORE,
    "dot": "cute.gemm(tiled_mma, d, a, b, c)",
    "static_range": "cute.range_constexpr(n)",
    "static_print": "print(x) while compiling",
    "device_print": 'cute.printf("{}", x)',
    "max_contiguous": "cute.assume(x, divby=n)",
    "multiple_of": "cute.assume(x, divby=n)",
    "autotune": "cute.testing.autotune_jit",
    "constexpr": "cute.Constexpr",
    # NumPy and PyTorch
    "arange": "the index of the thread, or a loop over range(n)",
    "zeros": _NEW,
    "ones": _NEW,
    "empty": _NEW,
    "array": "pass a NumPy, PyTorch, CuPy or JAX array to a @jit function: a parameter cute.Tensor",
    "tensor": "pass a NumPy, PyTorch, CuPy or JAX array to a @jit function: a parameter "
    "cute.Tensor",
    "asarray": "pass a NumPy, PyTorch, CuPy or JAX array to a @jit function: a parameter "
    "cute.Tensor",
    "from_numpy": "cute.runtime.from_dlpack(array), or pass the array itself",
    "from_torch": "cute.runtime.from_dlpack(array), or pass the array itself",
    "from_dlpack": "cute.runtime.from_dlpack(array), or pass the array itself",
    "sum": _REDUCE.format("ADD"),
    "abs": "Python's abs(x)",
    "fabs": "Python's abs(x)",
    "pow": "x ** y, or cute.math.pow(x, y)",
    "maximum": "cute.max(a, b)",
    "minimum": "cute.min(a, b)",
    "random": "numbers made in Python before the launch, passed as an array",
    "bool": "cute.Boolean",
    "float": "cute.Float32",
    "int": "cute.Int32",
    "half": "cute.Float16",
    "double": "cute.Float64",
    "softmax": "cute.math.exp() and x.load().reduce(...): examples/cute/softmax.py",
    "math": "cute.math, or Python's own after import math",
    "printf": 'cute.printf("{}", x)',
}

# Of tensors, where arrays of NumPy and PyTorch have these.
OF_TENSORS = {
    "sum": _REDUCE.format("ADD"),
    "max": _REDUCE.format("MAX"),
    "min": _REDUCE.format("MIN"),
    "mean": _REDUCE.format("ADD") + " / cute.size(x)",
    "size": "cute.size(x)",
    "numel": "cute.size(x)",
    "len": "cute.size(x)",
    "length": "cute.size(x)",
    "nelement": "cute.size(x)",
    "ndim": "cute.rank(x)",
    "dim": "cute.rank(x)",
    "rank": "cute.rank(x)",
    "T": "cute.make_tensor(x.iterator, cute.select(x.layout, [1, 0]))",
    "transpose": "cute.make_tensor(x.iterator, cute.select(x.layout, [1, 0]))",
    "permute": "cute.make_tensor(x.iterator, cute.select(x.layout, modes))",
    "view": "cute.make_tensor(x.iterator, cute.make_layout(shape))",
    "flatten": "cute.make_tensor(x.iterator, cute.make_layout(cute.size(x)))",
    "ravel": "cute.make_tensor(x.iterator, cute.make_layout(cute.size(x)))",
    "item": "x[i] of an element",
    "astype": "x[i].to(cute.Float16) of an element, x.load().to(cute.Float16) of all",
    "type_as": "x.load().to(y.element_type)",
    "float": "x.load().to(cute.Float32)",
    "half": "x.load().to(cute.Float16)",
    "copy": "cute.autovec_copy(source, destination)",
    "copy_": "cute.autovec_copy(source, destination)",
    "clone": "cute.make_rmem_tensor_like(x), and cute.autovec_copy(x, it)",
    "zero_": "x.fill(0)",
    "fill_": "x.fill(value)",
    "data_ptr": "x.iterator",
    "data": "x.iterator",
    "ptr": "x.iterator",
    "strides": "x.stride",
    "sqrt": "cute.math.sqrt(x.load())",
    "exp": "cute.math.exp(x.load())",
    "at": "x[i] = value",
}

# Of numbers inside kernels.
OF_NUMBERS = {
    "astype": "x.to(cute.Float16)",
    "type": "x.to(cute.Float16)",
    "view": "cute.TensorSSA.from_elements([x]).bitcast(cute.Int32)[0]",
    "bitcast": "cute.TensorSSA.from_elements([x]).bitcast(cute.Int32)[0]",
    "item": "x itself: it is a number",
    "x": "index the tuple: tidx, tidy, tidz = cute.arch.thread_idx()",
    "y": "index the tuple: tidx, tidy, tidz = cute.arch.thread_idx()",
    "dtype": "type(x)",
    "sqrt": "cute.math.sqrt(x)",
    "exp": "cute.math.exp(x)",
}

# What programs import under these names.
MODULES = {
    "tl": "Triton",
    "triton": "Triton",
    "cuda": "numba",
    "cp": "CuPy",
    "torch": "PyTorch",
}


def fold(name: str) -> str:
    """A name without what people remember differently: case and underscores."""
    return name.replace("_", "").lower()


_FOLDED = {fold(name): instead for name, instead in NAMES.items()}


def instead_of(name: str) -> str | None:
    """Return what to write for a name of the field that this package spells differently; None for
    others.

    >>> instead_of("__syncthreads")
    'cute.arch.sync_threads()'
    >>> instead_of("make_layout")
    """
    return _FOLDED.get(fold(name))


@functools.lru_cache(maxsize=64)  # a search takes 0.1 ms, and `hasattr` asks for one each time
def tensor_attribute_instead(kind: type, name: str) -> str:
    """Return what to write for an attribute that tensors, of the class `kind`, do not have."""
    near = closest_name(name, [one for one in dir(kind) if not one.startswith("_")])
    if near is not None and name not in OF_TENSORS:
        return f"did you mean x.{near}?"
    return OF_TENSORS.get(name, "a tensor has x.shape, x.stride, x.layout, x.iterator, x.load()")
