"""`ops` under PyTorch's autocast, in the types that PyTorch's own operations have there."""

from __future__ import annotations

import pytest

from basedsl import DSLTypeError
from basedsl_cute.ops import (
    attention,
    gated_linear,
    layer_norm,
    linear_cross_entropy,
    matmul,
    rms_norm,
    softmax,
)

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
functional = torch.nn.functional
torch_autocast = pytest.importorskip("basedsl_cute.ops.torch_autocast")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def normal(*shape, seed=0, dtype=torch.float32, grad=False):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator).to(DEVICE, dtype).requires_grad_(grad)


def autocast(dtype=torch.bfloat16, **options):
    return torch.autocast(DEVICE, dtype, **options)


def close(found, wanted, tolerance=2e-2):
    assert found.dtype == wanted.dtype
    torch.testing.assert_close(found, wanted, atol=tolerance, rtol=tolerance)


def compare(inputs, found, wanted, dtype=torch.bfloat16):
    """Compare two functions under autocast, and their gradients by a random weight."""
    with autocast(dtype):
        one, other = found(*inputs), wanted(*inputs)
    close(one, other)
    wanting = [x for x in inputs if x.requires_grad]
    if wanting:
        weight = normal(*one.shape, seed=9)
        grads = torch.autograd.grad((one * weight).sum(), wanting)
        expected = torch.autograd.grad((other * weight).sum(), wanting)
        for grad, right in zip(grads, expected, strict=True):
            close(grad, right, 6e-2)


def ours(q, k, v):
    return attention(q, k, v, layout="bhsd")


ATTENDED = [
    pytest.param(torch.bfloat16, torch.float32, torch.bfloat16, id="normalised q and k"),
    pytest.param(torch.float16, torch.float32, torch.float32, id="Float32", marks=pytest.mark.slow),
    pytest.param(torch.bfloat16, torch.float16, torch.bfloat16, id="both", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize(("dtype", "of_qk", "of_v"), ATTENDED)
def test_attention(dtype, of_qk, of_v, grad):
    inputs = (
        normal(1, 2, 12, 32, dtype=of_qk, grad=grad),
        normal(1, 2, 12, 32, seed=1, dtype=of_qk, grad=grad),
        normal(1, 2, 12, 32, seed=2, dtype=of_v, grad=grad),
    )
    compare(inputs, ours, functional.scaled_dot_product_attention, dtype)


def test_attention_with_a_mask_and_a_cache():
    def mask(batch, head, q, k):
        return k != 2

    q, k, v = (normal(1, 12, 2, 32, seed=i, grad=True) for i in range(3))
    used = torch.tensor([7], dtype=torch.int32, device=DEVICE)
    with autocast():
        assert attention(q, k, v, mask=mask).dtype == torch.bfloat16
        with torch.no_grad():
            found = attention(q, k, v, seqused_k=used)
            wanted = functional.scaled_dot_product_attention(
                q.transpose(1, 2), k[:, :7].transpose(1, 2), v[:, :7].transpose(1, 2)
            )
    close(found, wanted.transpose(1, 2))


@pytest.mark.parametrize("grad", [False, True])
def test_product(grad):
    inputs = (
        normal(6, 16, dtype=torch.bfloat16, grad=grad),
        normal(24, 16, seed=1, grad=grad),
        normal(24, seed=2, grad=grad),
    )

    def found(x, weight, bias):
        return matmul(x, weight.mT, bias=bias)

    compare(inputs, found, functional.linear)


@pytest.mark.parametrize("grad", [False, True])
def test_a_wide_residual_stays_wide(grad):
    inputs = tuple(normal(16, 16, seed=i, grad=grad) for i in range(3))
    compare(inputs, lambda a, b, r: matmul(a, b, residual=r), lambda a, b, r: a @ b + r)


def test_what_autocast_leaves_alone():
    a, b = normal(5, 6), normal(6, 4, seed=1)
    with autocast():
        assert matmul(a.double(), b.double()).dtype == torch.float64
        assert matmul(a, b, out_dtype=torch.float32).dtype == torch.float32
        out = torch.empty(5, 4, device=DEVICE)
        close(matmul(a, b, out=out), torch.mm(a, b, out=torch.empty_like(out)), 1e-5)
        with autocast(enabled=False):
            close(matmul(a, b), a @ b, 1e-5)
        with pytest.raises(DSLTypeError, match="does not multiply"):
            matmul(a.double(), b)


@pytest.mark.parametrize("grad", [False, True])
def test_gated_layer(grad):
    inputs = (
        normal(6, 16, dtype=torch.bfloat16, grad=grad),
        normal(16, 24, seed=1, grad=grad),
        normal(16, 24, seed=2, grad=grad),
    )
    compare(inputs, gated_linear, lambda x, g, u: functional.silu(x @ g) * (x @ u))


@pytest.mark.parametrize("grad", [False, True])
def test_cross_entropy(grad):
    targets = torch.tensor([1, 0, 7, 3], device=DEVICE)
    inputs = (normal(4, 16, dtype=torch.bfloat16, grad=grad), normal(8, 16, seed=1, grad=grad))

    def wanted(x, weight):
        return functional.cross_entropy(functional.linear(x, weight), targets)

    compare(inputs, lambda x, weight: linear_cross_entropy(x, weight, targets), wanted)


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_rows(dtype, grad):
    x = (normal(3, 16, dtype=dtype, grad=grad),)
    compare(x, rms_norm, lambda x: functional.rms_norm(x, (16,), eps=1e-6))
    compare(x, layer_norm, lambda x: functional.layer_norm(x, (16,)))
    compare(x, softmax, lambda x: functional.softmax(x, -1))


def test_rows_of_a_gpu_are_wide(monkeypatch):
    widens = dict.fromkeys(torch_autocast._WIDENS, frozenset((DEVICE,)))
    monkeypatch.setattr(torch_autocast, "_WIDENS", widens)
    x = normal(3, 16, dtype=torch.bfloat16, grad=True)
    with autocast():
        for operation in (rms_norm, layer_norm, softmax):
            found = operation(x)
            close(found, operation(x.float()))
            found.sum().backward()
            assert x.grad.dtype == torch.bfloat16


def test_a_residual_of_another_type():
    x, residual = normal(3, 16, dtype=torch.bfloat16, grad=True), normal(3, 16, seed=1)
    with autocast():
        y, z = rms_norm(x, residual=residual)
    assert torch.equal(z, x + residual)
    close(y, functional.rms_norm(x + residual, (16,), eps=1e-6), 1e-5)
    y.sum().backward()
    assert x.grad.dtype == torch.bfloat16
    with pytest.raises(DSLTypeError, match="residual is of"):
        rms_norm(x, residual=residual)


def block(x, weight):
    q = rms_norm(matmul(x, weight)).reshape(1, 8, 2, 32)
    with autocast(enabled=False):
        exact = matmul(x, weight)
    return attention(q.float(), q, q).reshape(8, 64), exact


def test_an_operation_computes_as_it_was_called():
    """Graphs that a compiler has recorded without autocast may run where it is enabled."""
    a, b = normal(5, 6), normal(6, 4, seed=1)
    matmul(a.requires_grad_(), b)  # makes the operation
    operation = torch.ops.basedsl_cute.matmul
    rest = (None, None, None, None, None, torch.float32, False, False)
    wanted = operation(a, b, *rest)
    with autocast():
        assert torch.equal(operation(a, b, *rest), wanted)


@pytest.mark.slow
def test_compiled():
    x, weight = normal(8, 64, grad=True), normal(64, 64, seed=1, grad=True)
    compiled = torch.compile(block, fullgraph=True, backend="aot_eager")
    with autocast():
        found, wanted = compiled(x, weight), block(x, weight)
    for one, other in zip(found, wanted, strict=True):
        close(one, other)
    sums = [a.float().sum() + b.sum() for a, b in (found, wanted)]
    for one, other in zip(*[torch.autograd.grad(s, (x, weight)) for s in sums], strict=True):
        close(one, other, 6e-2)


@pytest.mark.slow
def test_compiled_code_is_for_the_type_of_its_time():
    compiled = torch.compile(lambda a, b: matmul(a, b), fullgraph=True, backend="aot_eager")
    a, b = normal(5, 6), normal(6, 4, seed=1)
    for _ in range(2):
        assert compiled(a, b).dtype == torch.float32
        for dtype in (torch.bfloat16, torch.float16):
            with autocast(dtype):
                assert compiled(a, b).dtype == dtype
