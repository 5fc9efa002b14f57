"""`cute.torch.custom_op`: operations of PyTorch, and bare calls under torch.compile."""

import importlib

import pytest

import basedsl_cute as cute
from basedsl import DSLCallError, DSLNameError, DSLTypeError

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


@cute.kernel
def scale_kernel(x: cute.Tensor, y: cute.Tensor, factor: cute.Float32):
    i = cute.arch.thread_idx()[0]
    y[i] = x[i] * factor


@cute.jit
def scale_host(x: cute.Tensor, y: cute.Tensor):
    scale_kernel(x, y, cute.Float32(2.0)).launch(grid=1, block=cute.size(x))


def backward(ctx, gradient):
    return scale(gradient.contiguous(), ctx.factor), None


def setup_context(ctx, inputs, output):
    ctx.factor = inputs[1]


@cute.torch.custom_op(
    "basedsl_tests::scale",
    outputs=lambda x, factor: torch.empty_like(x),
    backward=backward,
    setup_context=setup_context,
)
@cute.jit
def scale(x: cute.Tensor, factor: cute.Float32, y: cute.Tensor, stream: cute.Stream):
    scale_kernel(x, y, factor).launch(grid=1, block=cute.size(x), stream=stream)


@cute.torch.custom_op("basedsl_tests::double_", mutates_args=("x",))
@cute.jit
def double_(x: cute.Tensor):
    scale_kernel(x, x, cute.Float32(2.0)).launch(grid=1, block=cute.size(x))


@cute.kernel
def split_kernel(x: cute.Tensor, low: cute.Tensor, high: cute.Tensor, at: cute.Constexpr):
    i = cute.arch.thread_idx()[0]
    low[i] = cute.min(x[i], at)
    high[i] = cute.max(x[i], at)


@cute.torch.custom_op(
    "basedsl_tests::split",
    outputs=lambda x, at: (torch.empty_like(x), torch.empty_like(x)),
    num_outputs=2,
)
@cute.jit
def split(x: cute.Tensor, at: cute.Constexpr[float], low: cute.Tensor, high: cute.Tensor):
    split_kernel(x, low, high, at).launch(grid=1, block=cute.size(x))


def test_an_operation_and_its_gradient(sim):
    x = torch.arange(8.0, requires_grad=True)
    torch.testing.assert_close(scale(x, 3.0), 3 * torch.arange(8.0), check_device=True)
    scale(x, 3.0).sum().backward()
    torch.testing.assert_close(x.grad, torch.full((8,), 3.0))


@pytest.mark.parametrize("grad", [False, True])
def test_pytorch_accepts_the_operation(sim, grad):
    torch.library.opcheck(scale, (torch.arange(8.0, requires_grad=grad), 2.0))
    torch.library.opcheck(double_, (torch.ones(8),))
    torch.library.opcheck(split, (torch.arange(8.0), 3.0))


def test_outputs_and_inputs_that_are_written(sim):
    low, high = split(torch.arange(8.0), 3.0)
    assert low.max() == high.min() == 3
    x = torch.ones(8)
    assert double_(x) is None
    torch.testing.assert_close(x, torch.full((8,), 2.0))


def test_the_whole_graph_is_compiled(sim):
    def model(x):
        return scale(x + 1, 2.0) * 3

    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    x = torch.arange(8.0, requires_grad=True)
    torch.testing.assert_close(compiled(x), 6 * (x + 1))
    compiled(x).sum().backward()
    torch.testing.assert_close(x.grad, torch.full((8,), 6.0))


@pytest.mark.filterwarnings("ignore")  # of TorchDynamo, about the graph break
def test_a_bare_call_breaks_the_graph(sim):
    torch._dynamo.reset()

    def model(x):
        y = torch.empty_like(x)
        scale_host(x + 1, y)
        return y * 3

    for _ in range(3):  # the first call compiles, later ones are native
        compiled = torch.compile(model, backend="eager")
        torch.testing.assert_close(compiled(torch.arange(8.0)), 6 * (torch.arange(8.0) + 1))
        torch._dynamo.reset()
    (reason,) = torch._dynamo.explain(model)(torch.arange(8.0)).break_reasons
    assert reason.graph_break


def test_errors_show_no_frames_of_dynamo(sim):
    importlib.import_module("torch._dynamo")

    @cute.jit
    def wrong(x: cute.Tensor):
        if x[0] > 0:
            result = x[1]
        x[2] = result

    with pytest.raises(DSLNameError, match="'result' is read here") as caught:
        wrong(torch.ones(8))
    assert "_dynamo" not in str(caught.value)
    assert [entry.name for entry in caught.traceback][1:] == ["wrong"]


def test_tensors_that_require_grad_are_taken_where_grad_mode_is_off(sim):
    x, y = torch.ones(8, requires_grad=True), torch.empty(8)
    with pytest.raises(DSLTypeError, match="requires grad") as caught:
        scale_host(x, y)
    assert "cute.torch.custom_op" in caught.value.hint
    for _ in range(3):
        with torch.no_grad():
            scale_host(x, y)
    torch.testing.assert_close(y, torch.full((8,), 2.0))

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = torch.empty_like(x)
            scale_host(x, y)
            return y

        @staticmethod
        def backward(ctx, gradient):
            return 2 * gradient

    Twice.apply(x).sum().backward()
    torch.testing.assert_close(x.grad, torch.full((8,), 2.0))


def test_what_cannot_be_an_operation():
    with pytest.raises(DSLCallError, match="decorates a @jit function"):
        cute.torch.custom_op("basedsl_tests::none")(lambda x: x)
    with pytest.raises(DSLCallError, match="has no parameter 'z'"):
        cute.torch.custom_op("basedsl_tests::none", mutates_args=("z",))(scale_host)


def test_a_name_without_a_library():
    with pytest.raises(DSLCallError, match="takes the operation's name, not 'double'"):
        cute.torch.custom_op("double")
