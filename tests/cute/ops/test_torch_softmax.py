"""Softmax, top k and sampling of `ops` as operations of PyTorch: gradients and `torch.compile`."""

from __future__ import annotations

import pytest

from basedsl_cute.ops import sample, softmax, topk

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def normal(*shape, seed=0, grad=True):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).to(DEVICE).requires_grad_(grad)


def compare(function):
    x, grad = normal(2, 3, 40), normal(2, 3, 40, seed=1, grad=False)
    y, wanted = function(x), x.softmax(-1)
    torch.testing.assert_close(y, wanted)
    (found,) = torch.autograd.grad(y, x, grad)
    torch.testing.assert_close(found, torch.autograd.grad(wanted, x, grad)[0])


def test_softmax():
    compare(softmax)


@pytest.mark.slow
def test_compiled():
    compare(torch.compile(softmax, fullgraph=True, backend="aot_eager"))


def test_topk():
    x, grad = normal(3, 40), normal(3, 5, seed=1, grad=False)
    values, indices = topk(x, 5)
    wanted = x.topk(5)
    torch.testing.assert_close((values, indices), tuple(wanted))
    (found,) = torch.autograd.grad(values, x, grad)
    torch.testing.assert_close(found, torch.autograd.grad(wanted.values, x, grad)[0])


def test_draws_need_no_gradient():
    x = normal(6, 40)
    found = sample(x * 1, seed=3, top_k=7, top_p=0.9)
    assert not found.requires_grad
    assert torch.equal(found, sample(x.detach(), seed=3, top_k=7, top_p=0.9))
    k = torch.full((6,), 7, dtype=torch.int32, device=DEVICE)
    assert torch.equal(found, sample(x, seed=3, top_k=k, top_p=0.9))


@pytest.mark.slow
def test_compiled_draws():
    x = normal(6, 40, grad=False)

    def draw(x, offset):
        values, indices = topk(x, 9)
        return indices.gather(-1, sample(values, seed=1, offset=offset, top_p=0.9)[:, None])

    compiled = torch.compile(draw, fullgraph=True, backend="aot_eager")
    for offset in (0, 1, 2):
        assert torch.equal(compiled(x, offset), draw(x, offset))
