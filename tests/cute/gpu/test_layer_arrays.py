"""Functions of `ops` for a layer on a real GPU: CuPy's arrays, and the buffers that XLA passes."""

import numpy as np
import pytest

from basedsl import ArrayRecord
from basedsl_cute.device import driver
from basedsl_cute.ops import jax_arrays, layer_norm, linear_cross_entropy, rms_norm, rotary, softmax
from basedsl_cute.ops.layer.jax_layer import _softmax

pytestmark = pytest.mark.gpu


def exact_softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_cupy_arrays():
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    rng = np.random.default_rng(0)
    x, weight, bias = (rng.standard_normal(s).astype(np.float32) for s in ((6, 1032), 1032, 1032))
    on = [cupy.asarray(one) for one in (x, weight, bias)]
    wide = x.astype(np.float64)
    r = 1 / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(rms_norm(*on[:2]).get(), wide * r * weight, atol=1e-5)
    centred = wide - wide.mean(-1, keepdims=True)
    r = 1 / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(layer_norm(*on).get(), centred * r * weight + bias, atol=1e-5)
    np.testing.assert_allclose(softmax(on[0]).get(), exact_softmax(wide), atol=1e-6)
    angle = rng.standard_normal((6, 4)).astype(np.float32)
    heads = rng.standard_normal((6, 2, 8)).astype(np.float32)
    c, s = np.cos(angle)[:, None], np.sin(angle)[:, None]
    one, other = heads[..., :4], heads[..., 4:]
    turned = np.concatenate((one * c - other * s, other * c + one * s), -1)
    tables = cupy.asarray(np.cos(angle)), cupy.asarray(np.sin(angle))
    np.testing.assert_allclose(rotary(cupy.asarray(heads), *tables).get(), turned, atol=1e-5)
    classes = rng.standard_normal((12, 1032)).astype(np.float32) / 30
    targets = np.array([3, 0, -100, 11, 5, 2])
    found = linear_cross_entropy(on[0], cupy.asarray(classes), cupy.asarray(targets))
    p = exact_softmax(wide @ classes.T.astype(np.float64))
    counted = np.flatnonzero(targets >= 0)
    wanted = -np.log(p[counted, targets[counted]]).mean()
    np.testing.assert_allclose(float(found), wanted, rtol=1e-4)


@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_buffers_as_xla_passes_them(kind):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = torch.randn(6, 1032, device="cuda", dtype=getattr(torch, kind))
    y = torch.full_like(x, float("nan"))
    stream = driver.CudaStream()
    torch.cuda.synchronize()
    inputs, outputs = [ArrayRecord.of(x)], [ArrayRecord.of(y)]
    jax_arrays._run(lambda given, made: _softmax(made, *given), stream, inputs, outputs)
    torch.cuda.synchronize()
    torch.testing.assert_close(y.float(), x.float().softmax(-1), atol=1e-2, rtol=1e-2)
