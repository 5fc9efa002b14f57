"""Softmax of `ops` as an operation of PyTorch: gradients and `torch.compile`."""

from __future__ import annotations

import pytest

from basedsl_cute.ops import softmax

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
