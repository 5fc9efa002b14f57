"""`ops.matmul` of PyTorch tensors: gradients, `torch.compile`, and what has no gradient."""

from __future__ import annotations

import pytest

from basedsl import DSLTypeError
from basedsl.testing import slow_but
from basedsl_cute.ops import matmul
from basedsl_cute.ops.ampere import gemm as ampere_gemm
from basedsl_cute.ops.gemm import matmul as matmul_module

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
functional = torch.nn.functional

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ACTIVATIONS = {
    None: lambda z: z,
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu_tanh": lambda z: functional.gelu(z, approximate="tanh"),
    "sigmoid": torch.sigmoid,
    "silu": functional.silu,
    "tanh": torch.tanh,
}


def normal(*shape, seed=0, dtype=torch.float16, grad=True):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).to(DEVICE, dtype).requires_grad_(grad)


def compare(inputs, found, wanted, tolerance):
    """Compare two functions of the inputs, and their gradients by a random weight."""
    exact = [x.detach().double().requires_grad_() for x in inputs]
    one, other = found(*inputs), wanted(*exact)
    torch.testing.assert_close(one.double(), other, atol=tolerance, rtol=tolerance)
    weight = normal(*one.shape, seed=9, dtype=torch.float32, grad=False)
    grads = torch.autograd.grad((one.float() * weight).sum(), inputs)
    expected = torch.autograd.grad((other * weight.double()).sum(), exact)
    for x, grad, right in zip(inputs, grads, expected, strict=True):
        assert grad.dtype == x.dtype
        torch.testing.assert_close(grad.double(), right, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("activation", slow_but(ACTIVATIONS, "gelu_tanh"))
def test_every_operand_gets_its_gradient(activation):
    inputs = (
        normal(20, 12),
        normal(12, 24, seed=1),
        normal(24, seed=2),
        normal(20, 24, seed=3),
        torch.tensor([0.5], device=DEVICE, requires_grad=True),
    )

    def found(a, b, bias, residual, alpha):
        return matmul(a, b, bias=bias, residual=residual, alpha=alpha, activation=activation)

    def wanted(a, b, bias, residual, alpha):
        return ACTIVATIONS[activation](alpha * (a @ b) + bias) + residual

    compare(inputs, found, wanted, 3e-2)


SHAPES = {
    "vectors": ((9,), (9,)),
    "a vector and a matrix": ((9,), (9, 5)),
    "a matrix and a vector": ((6, 9), (9,)),
    "a batch and a matrix": ((2, 6, 9), (9, 5)),
    "a matrix and a batch": ((6, 9), (2, 9, 5)),
    "batches of each other": ((2, 1, 6, 9), (3, 9, 5)),
    "a batch and a vector": ((2, 6, 9), (9,)),
    "one element": ((1, 1), (1, 1)),
    "no columns": ((2, 6, 0), (0, 5)),
}


@pytest.mark.parametrize("name", slow_but(SHAPES, "vectors", "a batch and a matrix", "no columns"))
def test_gradients_have_the_shapes_of_their_operands(name):
    inputs = tuple(normal(*s, seed=i, dtype=torch.float32) for i, s in enumerate(SHAPES[name]))
    compare(inputs, matmul, torch.matmul, 1e-5)
    compare(inputs, lambda a, b: matmul(a, b, alpha=2.0), lambda a, b: 2 * (a @ b), 1e-5)


# Where exponentials or squares overflow, and at the corner.
FAR = [0.0, 1e-3, -1e-3, 20.0, -20.0, 90.0, -90.0, 100.0, -100.0, 1e30, -1e30]


@pytest.mark.parametrize("activation", slow_but(ACTIVATIONS, "silu", "relu"))
def test_slopes_of_activations_far_from_zero(activation):
    one = torch.ones(1, 1, device=DEVICE)
    grads = []
    for product in (
        lambda x: matmul(x, one, activation=activation),
        lambda x: ACTIVATIONS[activation](x @ one),
    ):
        x = torch.tensor(FAR, device=DEVICE)[:, None].requires_grad_()
        product(x).sum().backward()
        grads.append(x.grad)
    torch.testing.assert_close(*grads, equal_nan=True)


@pytest.mark.parametrize("activation", slow_but(ACTIVATIONS, "tanh"))
def test_gradients_of_float64_have_its_precision(activation):
    shapes = ((2, 6, 9), (9, 5), (5,), (1,))
    inputs = tuple(normal(*s, seed=i, dtype=torch.float64) for i, s in enumerate(shapes))

    def found(a, b, bias, alpha):
        return matmul(a, b, bias=bias, alpha=alpha, activation=activation)

    def wanted(a, b, bias, alpha):
        return ACTIVATIONS[activation](alpha * (a @ b) + bias)

    exact = [x.detach().requires_grad_() for x in inputs]
    weight = normal(2, 6, 5, seed=9, dtype=torch.float64, grad=False)
    grads = torch.autograd.grad((found(*inputs) * weight).sum(), inputs)
    expected = torch.autograd.grad((wanted(*exact) * weight).sum(), exact)
    for grad, right in zip(grads, expected, strict=True):
        torch.testing.assert_close(grad, right, atol=1e-13, rtol=1e-13)


def test_only_what_requires_a_gradient_gets_one():
    a, b = normal(4, 8), normal(8, 4, seed=1, grad=False)
    matmul(a, b, activation="silu").sum().backward()
    assert a.grad is not None
    assert b.grad is None


def test_the_result_has_the_type_asked_for():
    a, b = normal(4, 8, dtype=torch.bfloat16), normal(8, 4, seed=1, dtype=torch.bfloat16)
    y = matmul(a, b, out_dtype=torch.float32)
    y.sum().backward()
    assert (y.dtype, a.grad.dtype) == (torch.float32, torch.bfloat16)


def test_the_operation_is_one_of_pytorch():
    a, b, bias = normal(4, 8), normal(8, 4, seed=1), normal(4, seed=2)
    y = matmul(a, b, bias=bias, activation="silu")
    assert y.grad_fn is not None
    operation = torch.ops.basedsl_cute.matmul.default
    given = (a, b, bias, None, None, None, "silu", torch.float16, False, False)
    torch.library.opcheck(operation, given, test_utils=("test_schema", "test_faketensor"))


def test_what_has_no_gradient_says_so():
    a, b = normal(4, 8), normal(8, 4)
    for options in (
        {"out": torch.empty(4, 4, dtype=a.dtype, device=DEVICE)},
        {"activation": lambda x: x * 2.0},
        {"epilogue": lambda x: x * 2.0},
    ):
        with pytest.raises(DSLTypeError, match="computes no gradients"):
            matmul(a, b, **options)
    with torch.no_grad():
        assert matmul(a, b, activation=lambda x: x * 2.0).shape == (4, 4)


@pytest.mark.slow
def test_compiled():
    a, b, bias = normal(4, 8), normal(8, 4, seed=1), normal(4, seed=2)

    def layer(a, b, bias):
        return matmul(a, b, bias=bias, activation="gelu") * 2

    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    wanted = torch.autograd.grad(layer(a, b, bias).sum(), (a, b, bias))
    found = torch.autograd.grad(compiled(a, b, bias).sum(), (a, b, bias))
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other)
    with torch.no_grad():
        torch.testing.assert_close(compiled(a, b, bias), layer(a, b, bias))


def test_all_products_of_a_tuned_call_are_tuned(monkeypatch):
    asked = []
    plain = matmul_module._tuned_plan

    def tuned_plan(request):
        asked.append(request)
        return plain(request)

    monkeypatch.setattr(matmul_module, "_tuned_plan", tuned_plan)
    a, b = normal(19, 12), normal(12, 21, seed=1)
    y = matmul(a, b, activation="relu", config="tune")
    wanted = torch.relu(a.double() @ b.double())
    torch.testing.assert_close(y.double(), wanted, atol=1e-2, rtol=1e-2)
    grads = torch.autograd.grad(y.sum(), (a, b))
    for one, right in zip(grads, torch.autograd.grad(wanted.sum(), (a, b)), strict=True):
        torch.testing.assert_close(one, right, atol=2e-2, rtol=2e-2)
    assert len(asked) == 4  # the product, its slope and both gradients


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_tensors_without_strides_are_named():
    x = torch.ones(4, 4, device=DEVICE)
    with pytest.raises(DSLTypeError, match=r"layout torch\.sparse_coo; a tensor needs strides"):
        matmul(x.to_sparse(), x)
    with pytest.raises(DSLTypeError, match="is nested; a tensor needs strides"):
        matmul(torch.nested.nested_tensor([x, x]), x)


def test_another_configuration_has_no_gradient():
    a, b = normal(19, 12), normal(12, 21, seed=1)
    with pytest.raises(DSLTypeError, match="this computes no gradients"):
        matmul(a, b, config=ampere_gemm.Config())
