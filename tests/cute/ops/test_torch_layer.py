"""Rotary embedding, gated layers and losses of `ops` as operations of PyTorch, with gradients."""

from __future__ import annotations

import pytest

from basedsl import DSLTypeError
from basedsl_cute.ops import (
    attention,
    gated_linear,
    linear_cross_entropy,
    matmul,
    rms_norm,
    rotary,
    sample,
    softmax,
    topk,
)

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def normal(*shape, seed=0, grad=True):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).to(DEVICE).requires_grad_(grad)


def sample_one(x):
    return sample(x, seed=1)


def compare(found, wanted, inputs):
    one, other = found(*inputs), wanted(*inputs)
    grad = normal(*one.shape, seed=9, grad=False)
    grads = torch.autograd.grad(one, inputs, grad)
    for x, right in zip(
        (one, *grads), (other, *torch.autograd.grad(other, inputs, grad)), strict=True
    ):
        torch.testing.assert_close(x, right, atol=2e-5, rtol=2e-5)


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary(interleaved):
    angles = torch.randn(6, 4, generator=torch.Generator().manual_seed(1)).to(DEVICE)
    cos, sin = angles.cos(), angles.sin()

    def turned(x):
        pairs = x.unflatten(-1, (4, 2)) if interleaved else x.unflatten(-1, (2, 4)).mT
        one, other = pairs.unbind(-1)
        c, s = cos[:, None], sin[:, None]
        made = torch.stack((one * c - other * s, other * c + one * s), -1)
        return (made if interleaved else made.mT).flatten(-2)

    compare(lambda x: rotary(x, cos, sin, interleaved=interleaved), turned, (normal(2, 6, 3, 8),))


def gated(x, gate, up):
    return torch.nn.functional.silu(x @ gate) * (x @ up)


def test_gated_linear():
    inputs = normal(2, 5, 8), normal(8, 6, seed=1), normal(8, 6, seed=2)
    compare(gated_linear, gated, inputs)


def test_gates_far_below_zero_have_slopes():
    x = torch.tensor([[-100.0], [-1e30], [100.0]], device=DEVICE, requires_grad=True)
    inputs = x, *(torch.full((1, 1), n, device=DEVICE, requires_grad=True) for n in (1.0, 1e-20))
    compare(gated_linear, gated, inputs)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8])
def test_an_ignored_index_that_targets_cannot_hold(dtype):
    """-100 as Uint8 is 156, and 255 as Int8 is -1."""
    classes = {torch.uint8: 156, torch.int8: 100}[dtype]
    targets = torch.tensor([3, classes, 5], dtype=dtype, device=DEVICE)
    ignored = {torch.uint8: -100, torch.int8: 100 + 256}[dtype]
    inputs = normal(3, 8), normal(160, 8, seed=1)

    def wanted(x, weight):
        return torch.nn.functional.cross_entropy(x @ weight.T, targets.long())

    def found(x, weight):
        return linear_cross_entropy(x, weight, targets, ignore_index=ignored)

    compare(found, wanted, inputs)


def test_linear_cross_entropy():
    targets = torch.tensor([3, 0, -100, 11, 5], device=DEVICE)

    def wanted(x, weight):
        return torch.nn.functional.cross_entropy(x @ weight.T, targets) * 2

    inputs = normal(5, 8), normal(12, 8, seed=1)
    compare(lambda x, w: linear_cross_entropy(x, w, targets) * 2, wanted, inputs)


def test_a_class_that_there_is_not_has_no_number_for_a_gradient():
    x, weight = normal(3, 8), normal(6, 8, seed=1)
    linear_cross_entropy(x, weight, torch.tensor([3, 6, -100], device=DEVICE)).backward()
    assert x.grad.isnan().any(1).tolist() == [False, True, False]
    assert weight.grad.isnan().all()


def test_linear_cross_entropy_has_no_second_derivative():
    x, weight, targets = normal(3, 8), normal(6, 8, seed=1), torch.tensor([3, 0, 5], device=DEVICE)
    loss = linear_cross_entropy(x, weight, targets)
    with pytest.raises(DSLTypeError, match="linear_cross_entropy has no second derivative"):
        torch.autograd.grad(loss, x, create_graph=True)


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("softmax", softmax),
        ("norm", rms_norm),
        ("attention", lambda x: attention(*[x.half().reshape(1, 4, 1, 16)] * 3)),
        ("gated_linear", lambda x: gated_linear(x, x, x)),
    ],
)
def test_second_derivatives_are_refused_in_words_of_the_caller(name, operation):
    x = normal(8, 8)
    (grad,) = torch.autograd.grad(operation(x).square().sum(), x, create_graph=True)
    with pytest.raises(DSLTypeError, match=f"^{name} has no second derivative"):
        torch.autograd.grad(grad.sum(), x)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
@pytest.mark.parametrize("operation", [softmax, rms_norm, lambda x: matmul(x, x), sample_one])
def test_transforms_and_tangents_are_refused(operation):
    x = normal(8, 8, grad=False)
    with pytest.raises(DSLTypeError, match="takes no part in transforms"):
        torch.func.vmap(operation)(x[None])
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
        with pytest.raises(DSLTypeError, match="computes no tangents"):
            operation(dual)


def test_results_whose_users_have_no_gradient():
    class Cut(torch.autograd.Function):
        """A function of tensors that has no gradient by any of them."""

        @staticmethod
        def forward(ctx, *given):
            return given[0].new_zeros(())

        @staticmethod
        def backward(ctx, grad):
            return (None,) * 3

    x, weight = normal(3, 8), normal(8, 8, seed=1)
    targets = torch.tensor([1, 2, 3], device=DEVICE)
    given = (
        topk(x, 2).values,
        gated_linear(x, weight, weight),
        linear_cross_entropy(x, weight, targets),
    )
    Cut.apply(*given).backward()
    assert x.grad is None


@pytest.mark.slow
def test_compiled():
    inputs = normal(5, 8), normal(8, 6, seed=1), normal(8, 6, seed=2)
    compiled = torch.compile(gated_linear, fullgraph=True, backend="aot_eager")
    compare(compiled, gated, inputs)
    cos, sin = normal(6, 4, grad=False), normal(6, 4, seed=1, grad=False)
    compiled = torch.compile(rotary, fullgraph=True, backend="aot_eager")
    compare(lambda x: compiled(x, cos, sin), lambda x: rotary(x, cos, sin), (normal(2, 6, 3, 8),))


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_compiled_loss(dynamic):
    targets = torch.tensor([3, 0, -100, 11, 5], device=DEVICE)
    compiled = torch.compile(
        linear_cross_entropy, fullgraph=True, backend="aot_eager", dynamic=dynamic
    )

    def wanted(x, weight):
        return torch.nn.functional.cross_entropy(x @ weight.T, targets) * 2

    compare(lambda x, w: compiled(x, w, targets) * 2, wanted, (normal(5, 8), normal(12, 8, seed=1)))


def test_compiled_draws_of_options_that_change():
    logits = normal(5, 8, grad=False)

    def drawn(temperature, top_k):
        return sample(logits, seed=1, temperature=temperature, top_k=top_k)

    compiled = torch.compile(drawn, fullgraph=True, backend="aot_eager", dynamic=True)
    for options in ((0.7, 3), (0.9, 5)):
        assert torch.equal(compiled(*options), drawn(*options))
