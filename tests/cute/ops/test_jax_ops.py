"""Functions of `ops` for JAX arrays against JAX's own, eager and under `jit`, with gradients."""

from __future__ import annotations

import numpy as np
import pytest

from basedsl import DSLError
from basedsl_cute.ops import (
    attention,
    gated_linear,
    layer_norm,
    linear_cross_entropy,
    matmul,
    rms_norm,
    rotary,
    sample,
    softmax,
    topk,
)

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = pytest.importorskip("jax.numpy")


def normal(*shape, seed=0, dtype=np.float32):
    made = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return jnp.asarray(made).astype(dtype)


def compare(found, wanted, inputs, tolerance=2e-5):
    """Compare two functions of arrays under `jit`, and their gradients."""
    results = jax.tree.leaves(jax.jit(wanted)(*inputs))
    for function in (found, jax.jit(found)):
        for one, other in zip(jax.tree.leaves(function(*inputs)), results, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, other, atol=tolerance, rtol=tolerance)
    weights = [normal(*x.shape, seed=9) for x in results]

    def scalar(function):
        def call(*inputs):
            leaves = jax.tree.leaves(function(*inputs))
            return sum((w * x).sum() for w, x in zip(weights, leaves, strict=True))

        return jax.jit(jax.grad(call, argnums=tuple(range(len(inputs)))))

    for one, other in zip(scalar(found)(*inputs), scalar(wanted)(*inputs), strict=True):
        np.testing.assert_allclose(one, other, atol=5 * tolerance, rtol=5 * tolerance)


def exact_norm(x, weight, bias=0.0, *, is_centred=False, eps=1e-5):
    x = x - x.mean(-1, keepdims=True) if is_centred else x
    return x / jnp.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight + bias


def test_layer_norm():
    inputs = normal(6, 40), normal(40, seed=1), normal(40, seed=2)
    compare(layer_norm, lambda *inputs: exact_norm(*inputs, is_centred=True), inputs)


def test_rms_norm_with_a_residual():
    def wanted(x, weight, residual):
        return exact_norm(x + residual, weight, eps=1e-6), x + residual

    inputs = normal(6, 40), normal(40, seed=1), normal(6, 40, seed=2)
    compare(lambda x, w, r: rms_norm(x, w, residual=r), wanted, inputs)


def test_softmax_and_batches():
    x = normal(3, 5, 40)
    compare(softmax, lambda x: jax.nn.softmax(x), (x,))
    np.testing.assert_allclose(jax.vmap(softmax)(x), jax.nn.softmax(x), atol=1e-6)


def test_topk():
    x = normal(5, 40)
    values, indices = topk(x, 4)
    wanted = jax.lax.top_k(x, 4)
    np.testing.assert_array_equal(values, wanted[0])
    np.testing.assert_array_equal(indices, wanted[1])
    compare(lambda x: topk(x, 4).values, lambda x: jax.lax.top_k(x, 4)[0], (x,))


def test_rotary():
    angles = normal(6, 4, seed=1)
    cos, sin = jnp.cos(angles), jnp.sin(angles)

    def wanted(x):
        one, other = x[..., :4], x[..., 4:]
        c, s = cos[:, None], sin[:, None]
        return jnp.concatenate((one * c - other * s, other * c + one * s), -1)

    compare(lambda x: rotary(x, cos, sin), wanted, (normal(2, 6, 3, 8),))


def test_products():
    a, b = normal(2, 5, 8), normal(8, 6, seed=1)
    bias, residual = normal(6, seed=2), normal(2, 5, 6, seed=3)

    def found(a, b, bias, residual):
        return matmul(a, b, bias=bias, residual=residual, alpha=0.5, activation="gelu_tanh")

    def wanted(a, b, bias, residual):
        return jax.nn.gelu(a @ b * 0.5 + bias, approximate=True) + residual

    compare(found, wanted, (a, b, bias, residual))


@pytest.mark.slow
def test_batches_and_vectors():
    compare(matmul, jnp.matmul, (normal(3, 5, 8), normal(3, 8, 6, seed=1)))
    compare(matmul, jnp.matmul, (normal(8), normal(8, 6, seed=1)))
    made = matmul(normal(5, 8, dtype=jnp.bfloat16), normal(8, 6, dtype=jnp.bfloat16))
    assert made.dtype == jnp.bfloat16


@pytest.mark.slow
def test_gated_linear():
    def wanted(x, gate, up):
        return jax.nn.silu(x @ gate) * (x @ up)

    compare(gated_linear, wanted, (normal(5, 8), normal(8, 6, seed=1), normal(8, 6, seed=2)))


def test_linear_cross_entropy():
    targets = jnp.array([3, 0, -100, 11, 5])

    def wanted(x, weight):
        logs = jax.nn.log_softmax(x @ weight.T)
        return -logs[jnp.arange(5), targets].sum(where=targets >= 0) / 4

    def found(x, weight):
        return linear_cross_entropy(x, weight, targets)

    compare(found, wanted, (normal(5, 8), normal(12, 8, seed=1)))


def test_draws_are_those_from_other_arrays():
    logits = 3 * normal(3, 5, 40)
    plain = np.asarray(logits)
    draw = jax.jit(lambda x, n, t: sample(x, seed=2**40 + 7, offset=n, temperature=t, top_k=9))
    for offset, given in ((0, 0), (2**31 + 1, jnp.uint32(2**31 + 1))):
        found = draw(logits, given, 0.75)
        wanted = sample(plain, seed=2**40 + 7, offset=offset, temperature=0.75, top_k=9)
        assert found.dtype == jnp.arange(0).dtype
        np.testing.assert_array_equal(found, wanted)
    found = jax.vmap(lambda x, n: sample(x, seed=1, offset=n))(logits, jnp.arange(3))
    wanted = [sample(x, seed=1, offset=n) for n, x in enumerate(plain)]
    np.testing.assert_array_equal(found, wanted)
    heat = jnp.linspace(0.0, 2.0, 15).reshape(3, 5)
    found = sample(logits, seed=1, temperature=heat)
    np.testing.assert_array_equal(found, sample(plain, seed=1, temperature=np.asarray(heat)))
    for bad in ({"seed": jnp.float32(1)}, {"temperature": heat[0]}, {"top_k": jnp.float32(3)}):
        with pytest.raises(DSLError, match=f"sample: {next(iter(bad))} is float32 of"):
            sample(logits, **{"seed": 1} | bad)


def test_errors_are_ours_while_tracing():
    x, integers = normal(4, 40), jnp.ones((4, 40), jnp.int32)
    calls = [
        (lambda: softmax(integers), "softmax: x is of int32"),
        (lambda: softmax(x[0, 0]), "has no rows of elements"),
        (lambda: topk(x, 41), "k is 41"),
        (lambda: topk(x, 2.0), "k is 2.0"),
        (lambda: rms_norm(x, x[0, :3]), "weight is"),
        (lambda: sample(integers, seed=1), "logits is of int32"),
        (lambda: matmul(x, x.T, activation="mish"), "activation='mish' is unknown"),
        (lambda: linear_cross_entropy(x, x, jnp.ones(4)), "targets are of float32"),
        (lambda: linear_cross_entropy(x, x, jnp.ones(3, jnp.int32)), "3 targets for 4 rows"),
    ]
    for call, message in calls:
        with pytest.raises(DSLError, match=message):
            call()


def test_what_jax_arrays_do_not_have():
    a, b = normal(5, 8), normal(8, 6)
    with pytest.raises(DSLError, match="JAX arrays takes no out"):
        matmul(a, b, out=np.zeros((5, 6), np.float32))
    with pytest.raises(DSLError, match=r"8 columns and 5 rows"):
        matmul(a, normal(5, 6))
    with pytest.raises(Exception, match="a row has 300000 elements"):
        softmax(jnp.zeros((1, 300000)))


def exact_attention(q, k, v):
    """Causal attention of (batches, length, heads, head), keys with one head for all."""
    scores = jnp.einsum("bqhd,bkgd->bhqk", q, k).astype(jnp.float32) * q.shape[-1] ** -0.5
    length = q.shape[1]
    scores = jnp.where(jnp.tri(length, dtype=bool), scores, -jnp.inf)
    weights = jax.nn.softmax(scores, axis=-1).astype(q.dtype)
    return jnp.einsum("bhqk,bkgd->bqhd", weights, v)


def test_attention():
    shapes = (2, 20, 2, 32), (2, 20, 1, 32), (2, 20, 1, 32)
    inputs = tuple(normal(*s, seed=n, dtype=np.float16) for n, s in enumerate(shapes))
    compare(lambda q, k, v: attention(q, k, v, causal=True), exact_attention, inputs, 2e-3)
    out, lse = attention(*inputs, window=(4, 0), return_lse=True)
    assert (out.shape, lse.shape, lse.dtype) == ((2, 20, 2, 32), (2, 2, 20), np.float32)
    mapped = jax.vmap(lambda q, k, v: attention(q[None], k[None], v[None], causal=True)[0])
    np.testing.assert_allclose(mapped(*inputs), exact_attention(*inputs), atol=2e-3)
    with pytest.raises(DSLError, match="attention takes no out with arrays of JAX"):
        attention(*inputs, out=np.zeros((2, 20, 2, 32), np.float16))


def queries_keys_values(batches=2, length=20):
    shapes = ((batches, length, 2, 32), *[(batches, length, 1, 32)] * 2)
    return tuple(normal(*s, seed=n, dtype=np.float16) for n, s in enumerate(shapes))


def test_attention_with_a_bias_and_sinks():
    q, k, v = queries_keys_values()
    bias, sinks = normal(2, 20, 20, seed=3), normal(2, seed=4)

    def exact(q, k, v, bias, sinks):
        scores = jnp.einsum("bqhd,bkgd->bhqk", q, k).astype(jnp.float32) * 32**-0.5 + bias
        scores = jnp.where(jnp.tri(20, dtype=bool), scores, -jnp.inf)
        logits = jnp.broadcast_to(sinks[None, :, None, None], (2, 2, 20, 1))
        weights = jax.nn.softmax(jnp.concatenate([scores, logits], -1), axis=-1)[..., :-1]
        return jnp.einsum("bhqk,bkgd->bqhd", weights.astype(q.dtype), v)

    def found(q, k, v, bias, sinks):
        return attention(q, k, v, bias=bias, sinks=sinks, causal=True)

    compare(found, exact, (q, k, v, bias, sinks), 3e-3)
    many = jnp.stack([bias, 2 * bias])
    mapped = jax.jit(jax.vmap(lambda q, bias: attention(q[None], k[:1], v[:1], bias=bias)[0]))
    one_by_one = [attention(q[i : i + 1], k[:1], v[:1], bias=many[i])[0] for i in range(2)]
    np.testing.assert_allclose(mapped(q, many), jnp.stack(one_by_one), atol=2e-3)


def test_attention_with_functions_and_lengths():
    q, k, v = queries_keys_values()
    wanted = exact_attention(q, k, v)
    slopes = jnp.zeros(2, jnp.float32)
    found = attention(q, k, v, alibi=slopes, mask=lambda b, h, q, k: k <= q)
    np.testing.assert_allclose(found, wanted, atol=2e-3)
    starts = jnp.array([0, 20, 40], jnp.int32)
    flat = [x.reshape(-1, *x.shape[2:]) for x in (q, k, v)]

    def packed(q, k, v):
        return attention(q, k, v, cu_seqlens_q=starts, cu_seqlens_k=starts, causal=True)

    def exact(q, k, v):
        return exact_attention(*[x.reshape(2, 20, *x.shape[1:]) for x in (q, k, v)]).reshape(
            q.shape
        )

    compare(packed, exact, flat, 2e-3)
    used = jnp.array([20, 7], jnp.int32)
    found = attention(q, k, v, seqused_k=used)
    np.testing.assert_allclose(found[1:], attention(q[1:], k[1:, :7], v[1:, :7]), atol=2e-3)
    with pytest.raises(DSLError, match="no gradients with seqused_k"):
        jax.grad(lambda q: attention(q, k, v, seqused_k=used).astype(jnp.float32).sum())(q)
    with pytest.raises(DSLError, match="score captures an array"):
        attention(q, k, v, score=lambda s, b, h, q, k: s - slopes[h])


def test_attention_of_nothing():
    q, k = normal(2, 7, 4, 32, dtype=jnp.float16), normal(2, 9, 2, 32, seed=1, dtype=jnp.float16)
    for one, other in ((q[:0], k[:0]), (q[:, :0], k), (q, k[:, :0])):
        out, lse = attention(one, other, other, return_lse=True)
        assert out.shape == one.shape and lse.shape == (*one.shape[::2], one.shape[1])
        assert not out.any() and jnp.isneginf(lse).all()


def test_numbers_of_attention_are_known_while_tracing():
    q = normal(1, 4, 2, 32, dtype=jnp.float16)
    for scale in (jnp.float32(0.5), np.array(0.5)):
        np.testing.assert_array_equal(
            attention(q, q, q, scale=scale), attention(q, q, q, scale=0.5)
        )
    with pytest.raises(DSLError, match="scale is traced by JAX"):
        jax.grad(lambda s: attention(q, q, q, scale=s).astype(jnp.float32).sum())(0.5)
    with pytest.raises(DSLError, match=r"attention takes no float32 arrays of JAX \(v\)"):
        attention(q, q, q.astype(jnp.float32))


def test_rows_of_no_sequence_of_jax_arrays_are_zeros():
    q, k, v = (normal(20, 2, 32, seed=i, dtype=jnp.float16) for i in range(3))
    starts, sinks = jnp.asarray([0, 6, 15], jnp.int32), jnp.zeros(2)

    def call(q, k, v, sinks):
        return attention(q, k, v, cu_seqlens_q=starts, cu_seqlens_k=starts, sinks=sinks)

    grads = jax.grad(lambda *x: call(*x).astype(jnp.float32).sum(), (0, 1, 2, 3))(q, k, v, sinks)
    for x in (call(q, k, v, sinks), *grads[:3]):
        assert not x[15:].any() and x[:15].any()
    assert jnp.isfinite(grads[3]).all()
