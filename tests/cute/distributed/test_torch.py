"""Collectives as operations of PyTorch: without GPUs, through the backend of the process group."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from basedsl import DSLCallError, DSLError, DSLRuntimeError, DSLTypeError  # noqa: E402
from basedsl_cute import distributed  # noqa: E402
from basedsl_cute.ops import distributed as ops  # noqa: E402
from basedsl_cute.ops.distributed import launches  # noqa: E402
from basedsl_cute.ops.distributed.launches import Launch, Launches  # noqa: E402

ROOT = Path(__file__).parents[3]
LAUNCHER = [sys.executable, "-m", "torch.distributed.run", "--standalone"]


@pytest.fixture
def group(tmp_path):
    """A process group of this process alone."""
    dist = torch.distributed
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    yield dist.group.WORLD
    ops.forget(dist.group.WORLD)
    dist.destroy_process_group()


def test_a_group_on_the_cpu_says_so_once(group):
    x = torch.arange(4.0)
    with pytest.warns(UserWarning, match="its tensors are on the cpu"):
        y = ops.all_reduce(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gathered, part = ops.all_gather(x, group), ops.reduce_scatter(x, group.group_name)
    assert all(torch.equal(each, x) for each in (y, gathered, part))
    assert y.data_ptr() != x.data_ptr()


@pytest.mark.filterwarnings("ignore:collectives of group")
def test_gradients_and_fake_kernels(group):
    x = torch.ones(2, 3, requires_grad=True)
    (
        ops.all_reduce(x).sum() + 2 * ops.all_gather(x).sum() + 3 * ops.reduce_scatter(x).sum()
    ).backward()
    assert torch.equal(x.grad, torch.full((2, 3), 6.0))
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        x = torch.empty(4, 3)
        for operation in (ops.all_reduce, ops.all_gather, ops.reduce_scatter):
            assert operation(x).shape == (4, 3)


@pytest.mark.filterwarnings("ignore:collectives of group")
@pytest.mark.parametrize(
    "operation", [ops.all_gather_matmul, ops.matmul_reduce_scatter, ops.matmul_all_reduce]
)
def test_products_and_their_gradients(group, operation):
    x, weight = (torch.randn(4, 6, dtype=torch.float64) for _ in range(2))
    x, weight = x.requires_grad_(), weight.requires_grad_()
    grad = torch.randn(4, 4, dtype=torch.float64)
    y = operation(x, weight, group)
    wanted = x @ weight.T
    assert torch.equal(y, wanted)
    got = torch.autograd.grad(y, (x, weight), grad)
    for one, other in zip(got, torch.autograd.grad(wanted, (x, weight), grad), strict=True):
        torch.testing.assert_close(one, other)
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        assert operation(torch.empty(8, 6), torch.empty(5, 6)).shape == (8, 5)


@pytest.mark.filterwarnings("ignore:collectives of group")
def test_compiled_in_one_graph(group):
    def layer(x, weight):
        return ops.all_reduce(ops.all_gather_matmul(x, weight, group).relu())

    x, weight = torch.randn(4, 6, requires_grad=True), torch.randn(5, 6)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    wanted, got = layer(x, weight), compiled(x, weight)
    assert torch.equal(got, wanted)
    (one,) = torch.autograd.grad(got.sum(), x)
    (other,) = torch.autograd.grad(wanted.sum(), x)
    assert torch.equal(one, other)


@pytest.mark.filterwarnings("ignore:collectives of group")
def test_a_mesh_is_a_group(group):
    mesh = torch.distributed.init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp"))
    assert torch.equal(ops.all_reduce(torch.ones(2), mesh["tp"]), torch.ones(2))
    with pytest.raises(DSLCallError, match="a mesh of 2 modes is no group"):
        ops.all_reduce(torch.ones(2), mesh)
    ops.forget(mesh["tp"].get_group())


def test_memory_that_no_peer_reaches(group):
    with pytest.raises(DSLCallError, match="the tensor is on cpu"):
        distributed.from_torch(torch.zeros(3), group)


def test_groups_and_tensors_that_do_not_fit(group):
    x = torch.ones(4, 8)
    with pytest.raises(DSLTypeError, match="an object of type int is no process group"):
        ops.all_reduce(x, 3)
    for call in (ops.all_gather, ops.reduce_scatter):
        with pytest.raises(DSLTypeError, match="takes tensors with rows, not a scalar"):
            call(torch.ones(()))
    for call in (ops.all_gather_matmul, ops.matmul_reduce_scatter, ops.matmul_all_reduce):
        with pytest.raises(DSLTypeError, match=r"takes two matrices, and x has 3 mode\(s\)"):
            call(torch.ones(2, 4, 8), x)
        with pytest.raises(DSLTypeError, match="and weight has 1 mode"):
            call(x, x[0])


def test_without_a_process_group():
    with pytest.raises(DSLRuntimeError, match="there is no process group yet"):
        ops.all_reduce(torch.ones(4))
    with pytest.raises(DSLCallError, match="not in the process group"):
        distributed.from_torch(torch.zeros(3))


def torchrun(program, ranks):
    """Run a program without GPUs, and return what it says."""
    done = subprocess.run(
        [*LAUNCHER, f"--nproc-per-node={ranks}", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"},
    )
    return done.stdout + done.stderr


@pytest.mark.slow
def test_a_tensor_parallel_layer_under_torchrun():
    said = torchrun(ROOT / "examples" / "torch" / "tensor_parallel.py", 2)
    assert "a layer on 2 ranks is equal to the layer on one" in said, said


@pytest.mark.slow
def test_grids_of_hosts_under_torchrun():
    said = torchrun(Path(__file__).parent / "grid_of_ranks.py", 4)
    assert said.count("3 grids are right on cpu") == 4, said


@pytest.mark.slow
def test_attention_over_ranks_under_torchrun():
    said = torchrun(Path(__file__).parent / "context_of_ranks.py", 2)
    assert said.count("attention over 2 ranks is right on cpu") == 2, said


@pytest.mark.slow
def test_a_layer_of_dtensors_under_torchrun():
    said = torchrun(Path(__file__).parent / "layer_of_dtensors.py", 2)
    assert said.count("a layer of DTensors is right on cpu") == 2, said


def test_equal_calls_run_the_launch_that_was_made_first():
    plans, calls = [], []

    class Made(Launch):
        def run(self, arrays, stream):
            self.code = lambda *given: calls.append(given)

    def plan(a, b, factor):
        plans.append((a.count, a.address % 16, factor))
        return Made(None, "memory", (a.count, factor), ())

    kept = Launches(lambda: "stream")
    x = torch.zeros(4, 8)
    for _ in range(3):
        kept.call(plan, (x, torch.zeros(32)), 2)
    assert len(plans) == 1 and len(calls) == 2
    assert calls[0][0].shape == (32,) and calls[0][2:] == ("memory", 32, 2, "stream")
    flat = torch.zeros(33)
    others = [(x, flat[1:], 2), (x, flat[:32], 3), (x.double(), flat[:32], 2), (x[:2], flat, 2)]
    for a, b, factor in others:
        kept.call(plan, (a, b), factor)
    assert len(plans) == 5 and len(calls) == 2
    with pytest.raises(DSLTypeError, match="not contiguous"):
        kept.call(plan, (x.T, flat), 2)


def test_a_call_like_the_last_one_is_not_looked_up(monkeypatch):
    plans, calls = [], []

    def code(a, b, *given):
        if a.data_ptr() % 16:
            raise DSLCallError("compiled for other arrays")
        calls.append(given)

    class Made(Launch):
        def run(self, arrays, stream):
            self.code = code if arrays[0].address % 16 == 0 else lambda *given: calls.append("odd")

    def plan(a, b, *more):
        plans.append((a.count, a.address % 16, *more))
        return Made(None, "memory", (a.count,), ())

    kept = Launches(lambda: "stream")
    x, y, odd = torch.zeros(32), torch.zeros(32), torch.zeros(33)[1:]
    for _ in range(2):
        kept.call(plan, (x, y))
    with monkeypatch.context() as without:
        without.setattr(launches, "_key", None)
        kept.call(plan, (y, x))
        for given in ((x[:16], y), (x, y[:31]), (x.numpy(), y)):
            with pytest.raises(TypeError):  # looked up
                kept.call(plan, given)
        with pytest.raises(TypeError):
            kept.call(plan, (x, y), 1)
    assert calls == [("memory", 32, "stream")] * 2
    kept.call(plan, (odd, y))
    kept.call(plan, (odd, y))
    assert plans == [(32, 0), (32, 4)] and calls[2:] == ["odd"]
    one, imaginary = torch.ones(1), torch.tensor([1j]).conj().imag
    assert imaginary.is_neg() and imaginary.is_contiguous()
    kept = Launches(lambda: "stream")
    for _ in range(3):
        kept.call(plan, (one, one))
    with pytest.raises(DSLError, match="neg"):
        kept.call(plan, (imaginary, one))
