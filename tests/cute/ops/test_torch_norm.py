"""Norms of `ops` as operations of PyTorch: gradients and `torch.compile`."""

from __future__ import annotations

import pytest

from basedsl import DSLTypeError
from basedsl_cute.ops import layer_norm, rms_norm

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
functional = torch.nn.functional

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def normal(*shape, seed=0, dtype=torch.float32, grad=True):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).to(DEVICE, dtype).requires_grad_(grad)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_layer_norm(dtype):
    x, weight, bias = normal(6, 40, dtype=dtype), normal(40, seed=1), normal(40, seed=2)
    exact = [t.detach().double().requires_grad_() for t in (x, weight, bias)]
    y = layer_norm(x, weight, bias)
    wanted = functional.layer_norm(exact[0], (40,), *exact[1:])
    grad = normal(6, 40, seed=3, dtype=dtype, grad=False)
    found = torch.autograd.grad(y, (x, weight, bias), grad)
    right = torch.autograd.grad(wanted, exact, grad.double())
    tolerance = 1e-5 if dtype is torch.float32 else 5e-2
    for one, other in zip((y, *found), (wanted, *right), strict=True):
        torch.testing.assert_close(one.double(), other, atol=tolerance, rtol=tolerance)


def layer(x, residual, weight):
    y, z = rms_norm(x, weight, residual=residual)
    return (y * 2 + z).sum()


def test_rms_norm_with_a_residual():
    x, residual, weight = normal(6, 40), normal(6, 40, seed=1), normal(40, seed=2)
    found = torch.autograd.grad(layer(x, residual, weight), (x, residual, weight))
    z = (x + residual).detach().requires_grad_()
    other = weight.detach().requires_grad_()
    wanted = (functional.rms_norm(z, (40,), other, 1e-6) * 2 + z).sum()
    of_z, of_weight = torch.autograd.grad(wanted, (z, other))
    for one, right in zip(found, (of_z, of_z, of_weight), strict=True):
        torch.testing.assert_close(one, right, atol=1e-5, rtol=1e-5)


def test_only_the_sum_is_used():
    x, residual, weight = normal(6, 40), normal(6, 40, seed=1), normal(40, seed=2)
    _, z = rms_norm(x, weight, residual=residual)
    found = torch.autograd.grad((z * 3).sum(), (x, residual, weight))
    for one, value in zip(found, (3, 3, 0), strict=True):
        torch.testing.assert_close(one, torch.full_like(one, value))


def test_the_operation_is_one_of_pytorch():
    x, weight = normal(6, 40), normal(40, seed=1)
    rms_norm(x, weight)
    operation = torch.ops.basedsl_cute.norm.default
    tests = ("test_schema", "test_faketensor")
    torch.library.opcheck(operation, ("rms_norm", x, weight, None, x, 1e-6), test_utils=tests)


def test_a_second_derivative_is_an_error():
    x, weight = normal(6, 40), normal(40, seed=1)
    (grad,) = torch.autograd.grad(rms_norm(x, weight).square().sum(), x, create_graph=True)
    with pytest.raises(DSLTypeError, match=r"^norm has no second derivative"):
        torch.autograd.grad(grad.square().sum(), x)


def test_modes_see_the_operation():
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **kwargs or {})

    x = normal(6, 40, grad=False)
    with Watch():
        rms_norm(x.requires_grad_())
    assert any("basedsl_cute.norm" in one for one in seen)


@pytest.mark.slow
def test_compiled():
    given = normal(6, 40), normal(6, 40, seed=1), normal(40, seed=2)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    found = torch.autograd.grad(compiled(*given), given)
    for one, other in zip(found, torch.autograd.grad(layer(*given), given), strict=True):
        torch.testing.assert_close(one, other)
