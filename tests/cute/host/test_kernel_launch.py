"""Arguments of `launch(...)` besides grid and block, and those that it refuses."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLCallError, DSLTypeError
from basedsl_cute import arch
from basedsl_cute.device import launch_checks
from basedsl_cute.sim import DeadlockError, LaunchError


@cute.kernel
def meet(out: cute.Tensor, counter: cute.Tensor):
    """Every block adds its number to the first element; after all have, each copies it."""
    block = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        arch.atomic_add(out.iterator, block)
        arch.fence_acq_rel_gpu()
        arch.atomic_add(counter.iterator, cute.Int32(1))
        while arch.atomic_add(counter.iterator, cute.Int32(0)) < arch.grid_dim()[0]:
            arch.nanosleep(sleep_time=20)
        arch.fence_acq_rel_gpu()
        out[1 + block] = arch.atomic_add(out.iterator, cute.Int32(0))


def run_meet(cooperative, blocks=4, smem=0):
    @cute.jit
    def host(out: cute.Tensor, counter: cute.Tensor):
        meet(out, counter).launch(grid=blocks, block=32, cooperative=cooperative, smem=smem)

    out, counter = np.zeros(1 + blocks, np.int32), np.zeros(1, np.int32)
    host(out, counter)
    cute.synchronize()
    return out.tolist()


@pytest.mark.parametrize("cooperative", [False, True])
def test_blocks_that_fit_on_the_gpu_may_wait_for_each_other(target, cooperative):
    assert run_meet(cooperative) == [6, 6, 6, 6, 6]


def test_blocks_that_do_not_fit_need_not_run_together(sim):
    with pytest.raises(DeadlockError, match="polls memory"):
        run_meet(False, blocks=133, smem=200 * 1024)
    with pytest.raises(LaunchError, match="launch of 133 blocks: a GPU runs 132 such blocks"):
        run_meet(True, blocks=133, smem=200 * 1024)


@cute.kernel
def shared_size(out: cute.Tensor, bytes_: cute.Constexpr):
    tile = cute.utils.SmemAllocator().allocate_tensor(cute.Uint8, cute.make_layout((bytes_,)), 128)
    tile[0] = cute.Uint8(7)
    out[0] = tile[0].to(cute.Int32)
    out[1] = arch.dynamic_smem_size()


@pytest.mark.parametrize(
    "bytes_, smem, dynamic",
    [
        (1024, None, 0),
        (1024, 1000, 0),
        (1024, 5120, 4096),
        (65536, 1024, 65536),
        (65536, 81920, 81920),
    ],
)
def test_smem_is_what_a_block_has_in_all(target, bytes_, smem, dynamic):
    @cute.jit
    def host(out: cute.Tensor):
        shared_size(out, bytes_).launch(grid=1, block=1, smem=smem)

    out = np.zeros(2, np.int32)
    host(out)
    cute.synchronize()
    assert out.tolist() == [7, dynamic]


@cute.kernel
def nothing(out: cute.Tensor):
    out[arch.thread_idx()[0]] = 1


def compiled(monkeypatch, **options):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")

    @cute.jit
    def host(out: cute.Tensor):
        nothing(out).launch(grid=2, block=64, **options)

    return cute.compile(host, np.zeros(64, np.int32)).stages.text("ptx")


def test_bounds_for_the_register_allocation(monkeypatch):
    ptx = compiled(monkeypatch, min_blocks_per_mp=3, max_number_threads=[128, 1, 1])
    assert ".minnctapersm 3" in ptx and ".maxntid 128" in ptx
    assert ".reqntid 64" in compiled(monkeypatch, max_number_threads=[0, 0, 0])


def test_hints_that_change_no_code(target):
    @cute.jit
    def host(out: cute.Tensor):
        nothing(out).launch(
            grid=1,
            block=64,
            preferred_smem_carveout=50,
            hint_smem_base_uniform=False,
            use_pdl=False,
        )

    out = np.zeros(64, np.int32)
    host(out)
    cute.synchronize()
    assert out.all()


@pytest.mark.parametrize(
    "options, message",
    [
        ({"cluster": (4, 4, 2)}, "has 32 blocks; a cluster has at most 16"),
        ({"fallback_cluster": (1, 1, 1)}, "fallback_cluster= needs cluster="),
        (
            {"cluster": (1, 1, 1), "fallback_cluster": (2, 1, 1)},
            "fallback_cluster=(2, 1, 1) does not divide cluster=(1, 1, 1)",
        ),
        ({"min_blocks_per_mp": -1}, "min_blocks_per_mp is a static integer, 0 to 32, not -1"),
        ({"max_number_threads": [32]}, "has more threads than max_number_threads"),
        ({"max_number_threads": [1024, 2, 1]}, "is more than the 1024 threads of a block"),
        ({"max_number_threads": [1, 1, 1, 1]}, "is up to three static integers"),
        ({"preferred_smem_carveout": 101}, "is a static percentage, 0 to 100, not 101"),
    ],
)
def test_arguments_out_of_bounds(sim, options, message):
    @cute.jit
    def host(out: cute.Tensor):
        nothing(out).launch(grid=16, block=64, **options)

    with pytest.raises(DSLCallError) as error:
        host(np.zeros(64, np.int32))
    assert message in str(error.value)


def test_a_cluster_is_static(sim):
    @cute.jit
    def host(out: cute.Tensor, n: cute.Int32):
        nothing(out).launch(grid=16, block=64, cluster=(n, 1, 1))

    with pytest.raises(DSLTypeError, match="the shape of a cluster is static") as error:
        host(np.zeros(64, np.int32), 2)
    assert "Constexpr" in str(error.value)


def test_events_of_a_launch_reach_the_launcher(sim, monkeypatch):
    seen = []
    read = launch_checks.LaunchParameters.read

    def reading(config, args, table):
        first = config.completion_event, config.completion_flags
        seen.append((*first, config.programmatic_event, config.programmatic_flags))
        return read(config, args, table)

    monkeypatch.setattr(launch_checks.LaunchParameters, "read", staticmethod(reading))

    @cute.jit
    def host(out: cute.Tensor, one: cute.Event, other: cute.Event, n: cute.Int32):
        for _ in range(n):
            nothing(out).launch(
                grid=1,
                block=64,
                launch_completion_event=one,
                programmatic_event=other,
                programmatic_event_flags=2,
                programmatic_event_trigger_at_block_start=1,
            )
        nothing(out).launch(grid=1, block=64, programmatic_event=other)
        nothing(out).launch(grid=1, block=64)

    host(np.zeros(64, np.int32), 0x123, 0x456, 2)
    both = (0x123, 0, 0x456, 2 | 1 << 32)
    assert seen == [both, both, (0, 0, 0x456, 0), (0, 0, 0, 0)]


class CUevent(int):
    """An event of cuda.bindings, as programs pass it."""


def test_an_event_is_an_argument_and_may_be_left_out(sim, monkeypatch):
    seen = []
    read = launch_checks.LaunchParameters.read

    def reading(config, args, table):
        seen.append(config.completion_event)
        return read(config, args, table)

    monkeypatch.setattr(launch_checks.LaunchParameters, "read", staticmethod(reading))

    @cute.jit
    def host(out: cute.Tensor, event=None):
        nothing(out).launch(grid=1, block=64, launch_completion_event=event)

    out = np.zeros(64, np.int32)
    host(out, CUevent(77))
    host(out)
    cute.compile(host, out, CUevent(1))(out, CUevent(78))
    assert seen == [77, 0, 78]
    with pytest.raises(DSLTypeError, match="a dynamic Float32 is no CUDA event"):
        host(out, 1.5)
