"""setmaxnreg on the simulator: a warpgroup waits for registers that nobody gives back."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.sim import DeadlockError


@cute.kernel
def roles(c: cute.Tensor, less: cute.Constexpr, more: cute.Constexpr):
    """The first warpgroup gives registers back, the others take them and write."""
    if arch.make_warp_uniform(arch.warp_idx()) < 4:
        arch.setmaxregister_decrease(less)
    else:
        arch.setmaxregister_increase(more)
        c[arch.thread_idx()[0] - 128] = 1.0


@cute.jit
def run(c: cute.Tensor, less: cute.Constexpr, more: cute.Constexpr, threads: cute.Constexpr):
    roles(c, less, more).launch(grid=(1, 1, 1), block=(threads, 1, 1))


@pytest.mark.parametrize("threads, less, more", [(256, 40, 240), (384, 40, 232), (512, 40, 152)])
def test_what_is_given_back_can_be_taken(hopper, threads, less, more):
    c = np.zeros(threads - 128, np.float32)
    run(c, less, more, threads)
    cute.synchronize()
    assert c.all()


def test_the_registers_at_entry_are_known_to_ptxas():
    gpu = "--gpu-arch sm_90a"
    compiled = cute.compile(run, np.zeros(128, np.float32), 40, 232, 256, options=gpu)
    assert ".minnctapersm 1" in compiled.__ptx__


@pytest.mark.parametrize("threads, less, more", [(384, 48, 232), (512, 40, 160), (512, 40, 232)])
def test_more_than_there_are(sim, threads, less, more):
    with pytest.raises(DeadlockError) as caught:
        run(np.zeros(threads - 128, np.float32), less, more, threads)
    text = str(caught.value)
    assert f"for {more} registers a thread" in text
    assert "the warpgroups have" in text
