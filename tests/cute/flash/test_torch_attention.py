"""`ops.attention` of PyTorch tensors: gradients, `torch.compile`, a model that trains."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref

import pytest

from basedsl import DSLTypeError
from basedsl_cute.ops import attention
from basedsl_cute.ops.ampere.attention import Config
from basedsl_cute.ops.flash.gradient_plan import gradient_plans
from basedsl_cute.ops.flash.plan import plans

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def normal(*shape, seed=0, grad=True):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(*shape, generator=generator).to(DEVICE, torch.float16)
    return x.requires_grad_(grad)


def exact(q, k, v, bias=None, causal=False):
    """The same by PyTorch in float64, of (batches, length, heads, head)."""
    q, k, v = (x.double().transpose(1, 2) for x in (q, k, v))
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
    s = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    if bias is not None:
        s = s + bias.double()
    if causal:
        s = s.masked_fill(torch.ones_like(s, dtype=torch.bool).triu(1), float("-inf"))
    return (s.softmax(-1) @ v).transpose(1, 2)


def test_gradients():
    q, k, v = normal(1, 40, 4, 32), normal(1, 40, 2, 32, seed=1), normal(1, 40, 2, 32, seed=2)
    bias = torch.randn(4, 40, 40, generator=torch.Generator().manual_seed(3)).to(DEVICE)
    bias.requires_grad_()
    weight = normal(1, 40, 4, 32, seed=4, grad=False)
    found = torch.autograd.grad(
        (attention(q, k, v, bias=bias, causal=True) * weight).sum(), (q, k, v, bias)
    )
    wanted = torch.autograd.grad(
        (exact(q, k, v, bias, causal=True) * weight).sum(), (q, k, v, bias)
    )
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one.double(), other.double(), atol=2e-2, rtol=1e-2)


def test_the_gradient_of_sinks():
    q, k, v = (normal(1, 20, 2, 32, seed=i) for i in range(3))
    sinks = torch.tensor([0.5, -1.0], device=DEVICE, requires_grad=True)
    weight = normal(1, 20, 2, 32, seed=4, grad=False)
    (found,) = torch.autograd.grad((attention(q, k, v, sinks=sinks) * weight).sum(), (sinks,))
    wide = [x.detach().double().transpose(1, 2) for x in (q, k, v)]
    s = wide[0] @ wide[1].transpose(-1, -2) * 32**-0.5
    own = sinks.detach().double().requires_grad_()
    s = torch.cat([s, own[None, :, None, None].expand(1, 2, 20, 1)], -1)
    out = (s.softmax(-1)[..., :-1] @ wide[2]).transpose(1, 2)
    (wanted,) = torch.autograd.grad((out * weight.double()).sum(), (own,))
    torch.testing.assert_close(found.double(), wanted, atol=2e-2, rtol=1e-2)


@pytest.mark.filterwarnings("ignore::basedsl_cute.dsl.steps.SpillWarning")
def test_a_function_of_the_users():
    q, k, v = (normal(1, 24, 2, 32, seed=i) for i in range(3))

    def score(s, batch, head, q, k):
        return s * 0.5 if q > k else s - 1.0

    found = torch.autograd.grad(attention(q, k, v, score=score).float().square().sum(), (q, k, v))
    wide = [x.detach().double().requires_grad_() for x in (q, k, v)]
    a, b, c = (x.transpose(1, 2) for x in wide)
    s = a @ b.transpose(-1, -2) * 32**-0.5
    below = torch.ones(24, 24, dtype=torch.bool, device=DEVICE).tril(-1)
    s = torch.where(below, s * 0.5, s - 1.0)
    wanted = torch.autograd.grad((s.softmax(-1) @ c).square().sum(), wide)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one.double(), other, atol=2e-2, rtol=1e-2)


def test_a_captured_tensor_that_wants_a_gradient_is_refused():
    q = normal(1, 8, 1, 32)
    bias = torch.zeros(8, 8, requires_grad=True)

    def score(s, batch, head, q, k):
        return s + bias[q, k]

    with pytest.raises(DSLTypeError, match="score captures a tensor that requires a gradient"):
        attention(q, q, q, score=score)


def test_the_logarithms_of_sums_have_no_gradient():
    q, k, v = (torch.randn(1, 8, 2, 32).half().requires_grad_() for _ in range(3))
    out, lse = attention(q, k, v, return_lse=True)
    assert out.requires_grad and not lse.requires_grad


def test_transforms_of_functions_are_refused():
    q, k, v = (torch.randn(2, 1, 8, 2, 32).half() for _ in range(3))
    with pytest.raises(DSLTypeError, match="takes no part in transforms"):
        torch.vmap(attention)(q, k, v)


@pytest.mark.parametrize("name", ["scale", "softcap", "alibi"])
def test_an_option_that_is_learned_is_refused(name):
    q, k, v = (normal(1, 20, 2, 32, seed=i) for i in range(3))
    number = torch.ones(2 if name == "alibi" else (), device=DEVICE, requires_grad=True)
    with pytest.raises(DSLTypeError, match=f"{name} requires a gradient"):
        attention(q, k, v, **{name: number})
    with pytest.raises(DSLTypeError, match=f"{name} requires a gradient"):
        attention(q.detach(), k.detach(), v.detach(), **{name: number})
    with torch.no_grad():
        attention(q, k, v, **{name: number})


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
def test_tangents_are_refused():
    q, k, v = (normal(1, 20, 2, 32, seed=i, grad=False) for i in range(3))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(k, torch.ones_like(k))
        with pytest.raises(DSLTypeError, match="computes no tangents"):
            attention(q, dual, v)
        assert attention(q, k, v).shape == q.shape


def test_arrays_of_other_libraries_beside_gradients():
    q, k, v = (normal(1, 20, 2, 32, seed=i) for i in range(3))
    with pytest.raises(DSLTypeError, match="takes no ndarray"):
        attention(q, k.detach().cpu().numpy(), v)


def test_rows_of_no_sequence_are_zeros_where_gradients_are_recorded():
    q, k, v = (normal(20, 2, 32, seed=i) for i in range(3))
    starts = torch.tensor([0, 6, 15], dtype=torch.int32, device=DEVICE)
    for _ in range(3):
        torch.full((20, 2, 32), torch.nan, dtype=q.dtype, device=DEVICE)  # for the next array
        out = attention(q, k, v, cu_seqlens_q=starts, cu_seqlens_k=starts)
        grads = torch.autograd.grad(out.sum(), (q, k, v))
        for x in (out, *grads):
            assert not x[15:].any() and x[:15].any()
    sinks = torch.zeros(2, device=DEVICE, requires_grad=True)
    wanted = torch.autograd.grad(
        sum(
            attention(*(x[None, a:b] for x in (q, k, v)), sinks=sinks).sum()
            for a, b in ((0, 6), (6, 15))
        ),
        sinks,
    )
    for _ in range(3):
        torch.full((2, 20), torch.nan, device=DEVICE)
        out = attention(q, k, v, cu_seqlens_q=starts, cu_seqlens_k=starts, sinks=sinks)
        found = torch.autograd.grad(out.sum(), sinks)
        torch.testing.assert_close(found, wanted, atol=1e-2, rtol=1e-2)


def test_no_gradients_are_recorded_under_no_grad():
    q = normal(1, 8, 1, 32)
    with torch.no_grad():
        assert not attention(q, q, q).requires_grad


def test_the_operation_passes_the_checks_of_pytorch():
    q, k, v = (normal(1, 16, 2, 32, seed=i) for i in range(3))
    attention(q, k, v)  # registers it
    operation = torch.ops.basedsl_cute.attention.default
    rest = (None,) * 5 + (None, None, None, "bottom-right", None, None, None, "bshd")
    torch.library.opcheck(
        operation,
        (q, k, v, *rest),
        test_utils=("test_schema", "test_faketensor", "test_autograd_registration"),
    )
    with torch.no_grad():
        out, lse = attention(q, k, v, causal=True, return_lse=True)
    inputs = [x.detach() for x in (out, q, k, v, out, lse)]
    for bias in (None, torch.zeros(16, 16, device=DEVICE)):
        torch.library.opcheck(
            torch.ops.basedsl_cute.attention_backward.default,
            (*inputs, bias, *rest[1:], bias is not None, True),
            test_utils=("test_schema", "test_faketensor"),
        )


def later_calls():
    """Operands and options of calls, by name: each calls repeats the first with other elements."""
    heads = torch.tensor([0.5, -1.0], device=DEVICE)
    bias = torch.linspace(-1, 1, 20 * 24, device=DEVICE).view(20, 24)
    starts = torch.tensor([0, 7, 20], dtype=torch.int32, device=DEVICE)
    table = torch.tensor([[2, 0], [3, 1]], dtype=torch.int32, device=DEVICE)
    used = torch.tensor([9, 16], dtype=torch.int32, device=DEVICE)
    long, one = ((2, 20, 2, 32), (2, 24, 1, 32)), ((2, 1, 2, 64), (2, 300, 1, 64))
    splits = Config((16, 16), 1, 2, splits=3)
    yield "plain", *long, {}
    yield "logarithms", *long, {"return_lse": True, "causal": True}
    yield "arrays", *long, {"bias": bias, "alibi": heads, "sinks": heads}
    yield "few queries", *one, {}
    yield "splits", *one, {"config": splits, "return_lse": True}
    packed = {"cu_seqlens_q": starts, "cu_seqlens_k": starts}
    yield "packed", (20, 2, 32), (20, 1, 32), packed
    yield "pages", (2, 1, 2, 64), (4, 8, 1, 64), {"block_table": table, "seqused_k": used}


@pytest.mark.parametrize("given", [False, True], ids=["new", "out"])
@pytest.mark.parametrize("case", [*later_calls()], ids=lambda case: case[0])
def test_later_calls_compute_what_the_first_does(case, given):
    _, queries, keys, options = case
    calls = []
    for i in range(4):
        arrays = [
            normal(*n, seed=3 * i + j, grad=False) for j, n in enumerate([queries, keys, keys])
        ]
        own = {name: x.clone() if torch.is_tensor(x) else x for name, x in options.items()}
        if given:
            own["out"] = torch.full(queries, torch.nan, dtype=torch.float16, device=DEVICE)
        found = attention(*arrays, **own)
        assert not given or own["out"] is (found[0] if isinstance(found, tuple) else found)
        calls.append((arrays, found))
    plans.clear()
    for arrays, found in calls:
        torch.testing.assert_close(found, attention(*arrays, **options), rtol=0, atol=0)


@pytest.mark.parametrize("names", [(), ("bias", "sinks")], ids=["plain", "arrays"])
def test_later_gradients_are_as_the_first(names):
    given = {"bias": (20, 24), "sinks": (2,)}
    calls = []
    for i in range(4):
        inputs = [normal(2, 20, 2, 32, seed=5 * i)]
        inputs += [normal(2, 24, 1, 32, seed=5 * i + j) for j in (1, 2)]
        named = {name: normal(*given[name], seed=5 * i + 3) for name in names}
        out = attention(*inputs, causal=True, **named)
        grad = normal(*out.shape, seed=5 * i + 4, grad=False)
        calls.append(
            (inputs, named, grad, torch.autograd.grad(out, [*inputs, *named.values()], grad))
        )
    for inputs, named, grad, found in calls:
        plans.clear()
        gradient_plans.clear()
        out = attention(*inputs, causal=True, **named)
        wanted = torch.autograd.grad(out, [*inputs, *named.values()], grad)
        for x, y in zip(found, wanted, strict=True):
            torch.testing.assert_close(x, y, rtol=1e-2, atol=1e-3)  # blocks add in any order


def test_gradients_of_gradients_are_refused():
    q, k, v = (normal(1, 16, 2, 32, seed=i) for i in range(3))
    (of_q,) = torch.autograd.grad(attention(q, k, v).float().sum(), (q,), create_graph=True)
    with pytest.raises(DSLTypeError, match="attention has no second derivative"):
        torch.autograd.grad(of_q.float().sum(), (k,))
    made = attention(q, k, v, score=lambda s, b, h, i, j: s * 0.5).float().sum()
    (of_q,) = torch.autograd.grad(made, (q,), create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        of_q.float().sum().backward()


def test_a_function_of_the_users_with_sinks_that_want_a_gradient():
    q, k, v = (normal(1, 20, 2, 32, seed=i) for i in range(3))
    sinks = torch.tensor([0.5, -1.0], device=DEVICE, requires_grad=True)
    weight = normal(1, 20, 2, 32, seed=4, grad=False)
    options = {"scale": 0.25, "sinks": sinks}
    plain = attention(q, k, v, **options)
    own = attention(q, k, v, score=lambda s, b, h, i, j: s, **options)
    found, wanted = (torch.autograd.grad((x * weight).sum(), (q, sinks)) for x in (own, plain))
    torch.testing.assert_close(found, wanted, rtol=1e-2, atol=1e-3)


def test_a_graph_keeps_no_more_than_it_needs():
    """Inputs and results are freed with the graph, and after its backward pass."""
    q, k, v = (normal(1, 16, 2, 32, seed=i) for i in range(3))
    hidden = [x * 1 for x in (q, k, v)]
    kept = [weakref.ref(x) for x in hidden]
    out = attention(*hidden).float().sum()
    del hidden
    assert all(x() is not None for x in kept)
    out.backward()
    gc.collect()
    assert all(x() is None for x in kept) and q.grad is not None


def test_a_small_transformer_trains_as_with_pytorchs_own():
    """Five steps of a layer: the losses are those of scaled_dot_product_attention."""

    class Layer(torch.nn.Module):
        def __init__(self, attend):
            super().__init__()
            torch.manual_seed(0)
            self.attend = attend
            self.project = torch.nn.Linear(64, 192)
            self.out = torch.nn.Linear(64, 64)

        def forward(self, x):
            q, k, v = self.project(x).view(2, 16, 3, 2, 32).half().unbind(2)
            return self.out(self.attend(q, k, v).reshape(2, 16, 64).float())

    def own(q, k, v):
        return attention(q, k, v, causal=True)

    def theirs(q, k, v):
        made = torch.nn.functional.scaled_dot_product_attention(
            *(x.transpose(1, 2) for x in (q, k, v)), is_causal=True
        )
        return made.transpose(1, 2)

    losses = []
    x, y = torch.randn(2, 2, 16, 64, generator=torch.Generator().manual_seed(1)).to(DEVICE)
    for attend in (own, theirs):
        model = Layer(attend).to(DEVICE)
        optimiser = torch.optim.SGD(model.parameters(), lr=0.5)
        found = []
        for _ in range(5):
            loss = torch.nn.functional.mse_loss(model(x), y)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            found.append(loss.item())
        losses.append(found)
    assert losses[0][-1] < losses[0][0]
    torch.testing.assert_close(*map(torch.tensor, losses), atol=2e-4, rtol=2e-3)


@pytest.mark.slow
def test_compiled_calls_with_gradients_have_no_graph_breaks():
    @torch.compile(fullgraph=True, dynamic=True, backend="aot_eager")
    def loss(q, k, v, bias):
        return (attention(q, k, v, causal=True, bias=bias).float() * 2).sum()

    for length in (9, 17):
        inputs = [normal(1, length, 2, 32, seed=i).requires_grad_() for i in range(3)]
        inputs.append(normal(length, length, seed=3).requires_grad_())
        found = torch.autograd.grad(loss(*inputs), inputs)
        plain = (attention(*inputs[:3], causal=True, bias=inputs[3]).float() * 2).sum()
        for x, y in zip(found, torch.autograd.grad(plain, inputs), strict=True):
            torch.testing.assert_close(x, y)


@pytest.mark.slow
@pytest.mark.parametrize(
    "first, then", [("torch", "basedsl_cute.ops"), ("basedsl_cute.ops", "torch")]
)
def test_pytorch_may_be_imported_before_ops_or_after(first, then):
    program = f"""
import {first}
import {then}
q = torch.ones(1, 8, 2, 32).half()
attention = basedsl_cute.ops.attention
call = torch.compile(lambda: attention(q, q, q), fullgraph=True, backend="aot_eager")
assert torch.equal(call(), q)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # Dynamo's, at a graph break
def test_a_function_of_the_users_in_a_compiled_call():
    slopes = torch.tensor([0.5, 2.0])
    q, k, v = (normal(1, 16, 2, 32, seed=i) for i in range(3))

    def call(q, k, v):
        return attention(q, k, v, score=lambda s, batch, head, i, j: s * slopes[head])

    wanted = call(q, k, v)
    torch.testing.assert_close(torch.compile(call, backend="aot_eager")(q, k, v), wanted)
