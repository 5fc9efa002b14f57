"""Small differences that programs written for CuTe's DSL met: each of these runs as written."""

import contextlib
import functools
from typing import NamedTuple

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLError
from basedsl_cute import pipeline, testing
from basedsl_cute.arrays.address_owner import owner_of
from basedsl_cute.base_dsl.enums import Arch
from basedsl_cute.base_dsl.typing import get_c_pointers, get_mlir_types
from basedsl_cute.cutlass_dsl import BaseDSL, new_from_mlir_values
from basedsl_cute.hardware.unsupported import NotOfferedError
from basedsl_cute.runtime import from_dlpack, make_ptr


@cute.jit
def fill_ptr(ptr: cute.Pointer):
    cute.make_tensor(ptr, cute.make_layout((8, 5), stride=(5, 1))).fill(1)


def aligned(count):
    raw = np.zeros(count + 16, np.float32)
    return raw[-(raw.ctypes.data % -64) // 4 :][:count]


def test_pointers_compare_by_address_and_what_they_point_to(sim):
    a = aligned(40)
    compiled = cute.compile(fill_ptr, make_ptr(cute.Float32, 16, cute.AddressSpace.gmem, 16))
    compiled(make_ptr(cute.Float32, a.ctypes.data))
    assert a.sum() == 40
    with pytest.raises(DSLError, match="not aligned to 16 bytes"):
        compiled(make_ptr(cute.Float32, a.ctypes.data + 4))
    with pytest.raises(DSLError, match="its elements are Int32"):
        compiled(make_ptr(cute.Int32, a.ctypes.data))


def test_classes_own_no_memory():
    """A class as `torch.Tensor`, which has the names of its tensors, a global of every program."""
    of_torch = type("Meta", (type,), {"__module__": "torch"})
    tensor_class = of_torch("Tensor", (), {"untyped_storage": lambda self: self, "is_cuda": False})
    array = np.zeros(4)
    assert owner_of(array.ctypes.data) == (array.ctypes.data, array.ctypes.data + 32)
    assert owner_of(1) is None and tensor_class


def test_a_register_tensor_in_host_code(sim):
    @cute.jit
    def host(n: cute.Int32):
        r = cute.make_rmem_tensor((3,), cute.Int32)
        r.fill(n)
        r[1] = r[0] + 5
        return r[0] + r[1] + r[2]

    assert host(2) == 11


def test_a_launch_inside_a_with_of_host_code(sim):
    entered = []

    @contextlib.contextmanager
    def region():
        entered.append(True)
        yield

    @cute.kernel
    def kernel(x: cute.Tensor):
        x[cute.arch.thread_idx()[0]] = 1.0

    @cute.jit
    def host(x: cute.Tensor):
        with region():
            kernel(x).launch(grid=(1, 1, 1), block=(4, 1, 1))

    x = np.zeros(4, np.float32)
    host(x)
    assert entered and (x == 1).all()


def test_integers_of_one_width_are_stored_as_their_bits(target):
    @cute.kernel
    def kernel(x: cute.Tensor):
        r = cute.make_rmem_tensor((2,), cute.Uint32)
        r[0] = cute.arch.prmt(cute.Int32(-1), cute.Int32(2), cute.Int32(0x3210))
        x[0] = r[0]
        x[1] = cute.Int32(-2)

    @cute.jit
    def host(x: cute.Tensor):
        kernel(x).launch(grid=(1, 1, 1), block=(1, 1, 1))

    x = np.zeros(2, np.uint32)
    host(x)
    assert x.tolist() == [2**32 - 1, 2**32 - 2]


def test_tuning_passes_arguments_to_the_function_that_compiles(sim):
    x, made = np.ones(4, np.float32), []

    def compile_it(a, n=1):
        made.append((a is x, n))
        return lambda: None

    arguments = testing.JitArguments(x)
    best = testing.tune(compile_it, {"n": [1, 2]}, arguments, warmup_iterations=1, iterations=1)
    assert made == [(True, 1), (True, 2)] and best["n"] in (1, 2)


def test_an_autotuned_function_can_be_compiled(sim):
    @testing.autotune_jit(params_dict={"n": [3, 4]}, warmup_iterations=1, iterations=1)
    @cute.jit
    def f(x: cute.Tensor, n: cute.Constexpr = 1):
        x[0] = x[0] * 0 + n

    x = np.ones(4, np.float32)
    cute.compile(f, x, n=7)(x)
    assert x[0] == 7
    cute.compile(f, x)(x)
    assert x[0] in (3, 4)


def test_groups_handles_and_states_as_programs_use_them():
    assert pipeline.CooperativeGroup(pipeline.Agent.Thread, 128 / 32).size == 4
    with pytest.raises(DSLError, match="static size"):
        pipeline.CooperativeGroup(pipeline.Agent.Thread, 4.5)
    assert pipeline.PipelineConsumer.ImmutableResourceHandle is pipeline.ConsumerHandle

    class Own(pipeline.PipelineState):
        def skip(self, n):
            self._count += n
            self._index = (self._index + n) % self.stages

    state = Own(4, 0, 1, 0)
    state.skip(5)
    assert (state.index, state.count) == (2, 5)


def test_a_pipeline_of_the_programs_own(target):
    class Own(pipeline.PipelineAsync):
        def produce(self, state):
            self.sync_object_full.arrive(state.index)

    @cute.kernel
    def kernel(x: cute.Tensor):
        t = cute.arch.thread_idx()[0]
        group = pipeline.CooperativeGroup(pipeline.Agent.Thread, 32)
        storage = cute.arch.alloc_smem(cute.Int64, 2)
        made = Own.create(
            barrier_storage=storage, num_stages=1, producer_group=group, consumer_group=group
        )
        shared = cute.make_tensor(cute.arch.alloc_smem(cute.Int32, 32), 32)
        producer = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 1)
        shared[31 - t] = t
        made.sync_object_empty.wait(producer.index, producer.phase)
        made.produce(producer)
        made.consumer_wait(pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 1))
        x[t] = shared[t]

    @cute.jit
    def host(x: cute.Tensor):
        kernel(x).launch(grid=(1, 1, 1), block=(32, 1, 1))

    x = np.zeros(32, np.int32)
    host(x)
    assert (x == np.arange(32)[::-1]).all()


def test_the_architecture_of_the_target(monkeypatch):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_80")
    assert BaseDSL._get_dsl().get_arch_enum() is Arch.sm_80 < Arch.sm_90a
    monkeypatch.setenv("CUTE_DSL_ARCH", "sim")
    assert BaseDSL._get_dsl().get_arch_enum() is cute.arch.Arch.sm_90a


def copy_where(source, target, inside=None):
    cute.basic_copy_if(inside, source, target)


def test_a_partial_function_is_called_in_a_branch(sim):
    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor):
        thread = cute.arch.thread_idx()[0]
        inside = cute.make_rmem_tensor((4,), cute.Boolean)
        for i in cute.range_constexpr(4):
            inside[i] = i != 2
        copy = functools.partial(copy_where, inside=inside)
        if thread < x.shape[0]:
            copy(x[thread, None], out[thread, None])

    @cute.jit
    def run(x: cute.Tensor, out: cute.Tensor):
        kernel(x, out).launch(grid=1, block=32)

    x, out = np.ones((8, 4), np.float32), np.zeros((8, 4), np.float32)
    run(from_dlpack(x), from_dlpack(out))
    assert out.tolist() == [[1, 1, 0, 1]] * 8


def ptx_of_a_release(**masks):
    @cute.kernel
    def kernel():
        storage = cute.utils.SmemAllocator().allocate_array(cute.Int64, 4)
        group = pipeline.CooperativeGroup(pipeline.Agent.Thread, 32)
        pipe = pipeline.PipelineAsync.create(
            barrier_storage=storage,
            num_stages=2,
            producer_group=group,
            consumer_group=group,
            **masks,
        )
        assert (pipe.producer_mask, pipe.consumer_mask) == (
            masks.get("producer_mask"),
            masks.get("consumer_mask"),
        )
        pipe.producer_commit(pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 2))
        pipe.consumer_release(pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 2))

    @cute.jit
    def run():
        kernel().launch(grid=2, block=32, cluster=(2, 1, 1))

    return cute.compile(run, options="--gpu-arch sm_90a").__ptx__


def test_arrivals_at_the_barriers_of_another_block():
    assert ptx_of_a_release().count("mapa") == 0
    assert ptx_of_a_release(consumer_mask=0).count("mapa") == 1
    assert ptx_of_a_release(consumer_mask=0, producer_mask=1).count("mapa") == 2


def test_a_threads_slice_has_what_the_tiled_mma_has(sim):
    mma = cute.make_tiled_mma(cute.nvgpu.MmaUniversalOp(cute.Float32), (8, 4, 1))
    thread = mma.get_slice(0)
    assert thread.op is mma.op and thread.shape_mnk == mma.shape_mnk
    with pytest.raises(AttributeError):
        _ = thread.nonsense
    assert divmod(17, cute.FastDivmodDivisor(4, is_power_of_2=True, loc=None, ip=None)) == (4, 1)


def test_methods_that_a_program_gives_to_tensors(sim, monkeypatch):
    """`x[:]`, `x[..., i]` and `x.to(dtype)`, as clients add them to the class of all tensors."""
    import basedsl_cute.cute.tensor as tensors

    original = tensors._Tensor.__getitem__

    def getitem(self, coord, *, loc=None, ip=None):
        if coord == slice(None) or coord is Ellipsis:
            coord = (None,) * tensors.rank(self.shape)
        return original(self, coord, loc=loc, ip=ip)

    def to(self, dtype):
        result = cute.make_rmem_tensor_like(self, dtype)
        result.store(self.load().to(dtype))
        return result

    monkeypatch.setattr(tensors._Tensor, "__getitem__", getitem)
    monkeypatch.setattr(tensors._Tensor, "to", to, raising=False)

    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor):
        narrow = cute.make_rmem_tensor_like(x, cute.Float16)
        narrow.store(x[:].load().to(cute.Float16))
        out[...].store(narrow.to(cute.Float32).load())

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor):
        kernel(x, out).launch(grid=1, block=1)

    x, out = np.full((2, 2), 0.1, np.float32), np.zeros((2, 2), np.float32)
    host(from_dlpack(x), from_dlpack(out))
    assert (out == x.astype(np.float16)).all()


def test_names_that_clients_replace():
    """Replacing them has no effect, since nothing here works by them."""
    import basedsl_cute.base_dsl.ast_preprocessor as preprocessor
    import basedsl_cute.cute._tvm_ffi_args_spec_converter as converter
    from basedsl_cute.base_dsl.tvm_ffi_builder import spec

    assert callable(preprocessor.DSLPreprocessor.visit_If)
    with pytest.raises(NotOfferedError, match="TVM's calling conv"):
        converter._convert_single_arg(1, "n", int, None)
    assert spec.ConstNone("x").name == "x"
    assert cute.utils.SmemAllocator.capacity_in_bytes("sm_90") == 227 * 1024
    assert cute.nvgpu.cpasync.ReductionKind.ADD is cute.ReductionOp.ADD


class Options(NamedTuple):
    """An argument that describes itself by its numbers, as clients' named tuples do."""

    count: cute.Int32
    text: str = "x"
    factor: cute.Float32 = cute.Float32(0.5)

    def _dynamic(self):
        return [x for x in self if not isinstance(x, str)]

    def __c_pointers__(self):
        return [p for x in self._dynamic() for p in get_c_pointers(x)]

    def __get_mlir_types__(self):
        return [t for x in self._dynamic() for t in get_mlir_types(x)]

    def __new_from_mlir_values__(self, values):
        count, factor = (
            new_from_mlir_values(x, [v]) for x, v in zip(self._dynamic(), values, strict=True)
        )
        return Options(count, self.text, factor)


def test_numbers_in_an_object_that_describes_itself_are_dynamic(sim):
    @cute.kernel
    def kernel(out: cute.Tensor, options: Options):
        out[0] = options.count * options.factor

    @cute.jit
    def run(out: cute.Tensor, options: Options):
        kernel(out, options).launch(grid=1, block=1)

    out = np.zeros(1, np.float32)
    compiled = cute.compile(run, out, Options(cute.Int32(8)))
    compiled(out, Options(cute.Int32(8)))
    assert out[0] == 4
    compiled(out, Options(cute.Int32(6), "x", cute.Float32(-1.5)))
    assert out[0] == -9


def test_values_that_do_not_fit_a_tree(sim):
    @cute.jit
    def host(n: cute.Int32):
        new_from_mlir_values((n, 3), [n.ir_value()] * 3)

    with pytest.raises(DSLError, match="gets 3 values for 2 numbers"):
        host(2)


def test_barriers_that_a_pipeline_allocates(sim):
    @cute.kernel
    def kernel(out: cute.Tensor):
        t = cute.arch.thread_idx()[0]
        smem = cute.utils.SmemAllocator()
        reserved = cute.utils.SmemPartition.RESERVED
        ring = smem.allocate_tensor(cute.Int32, 32, partition=reserved)
        group = pipeline.CooperativeGroup(pipeline.Agent.Thread, 32)
        pipe = pipeline.PipelineAsync.create(
            num_stages=1, producer_group=group, consumer_group=group
        )
        if cute.arch.warp_idx() == 0:
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 1)
            pipe.producer_acquire(state)
            ring[t] = 3 * t
            pipe.producer_commit(state)
        else:
            state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 1)
            pipe.consumer_wait(state)
            out[t - 32] = ring[63 - t]

    @cute.jit
    def run(out: cute.Tensor):
        kernel(out).launch(grid=1, block=64)

    out = np.zeros(32, np.int32)
    run(out)
    assert out.tolist() == list(range(93, -1, -3))


def test_upper_halves_of_products(sim):
    @cute.kernel
    def kernel(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor):
        t = cute.arch.thread_idx()[0]
        out[t] = cute.arch.mul_hi(a[t], b[t])

    @cute.jit
    def run(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor):
        kernel(a, b, out).launch(grid=1, block=32)

    rng = np.random.default_rng(0)
    for dtype, wide in ((np.int32, np.int64), (np.uint32, np.uint64)):
        a, b = (rng.integers(0, 2**32, 32, np.uint32).view(dtype) for _ in range(2))
        out = np.zeros(32, dtype)
        run(a, b, out)
        assert (out == (a.astype(wide) * b.astype(wide) >> 32).astype(dtype)).all()
    with pytest.raises(DSLError, match="takes 32-bit integers, not Int64"):
        run(a.astype(np.int64), b, out)
