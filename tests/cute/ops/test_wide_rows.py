"""Rows of norms and softmax by accesses of 256 bits, which targets have from sm_100 on."""

import re
from functools import partial
from itertools import product

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.testing import slow_but
from basedsl_cute.hardware.targets import TARGETS
from basedsl_cute.ops import layer_norm, rms_norm, softmax
from basedsl_cute.ops.array_libraries import library
from basedsl_cute.ops.layer import norm, rows
from basedsl_cute.ops.layer import softmax as softmax_module
from tests.cute.blackwell.test_block_scaled_gemm import aligned

COLUMNS = 1056  # 66 vectors of 16 elements: whole ones for each of 32 lanes, and some more


def arrays(dtype, columns=COLUMNS):
    rng = np.random.default_rng(0)
    x = aligned(rng.standard_normal((3, columns)).astype(dtype))
    weight = aligned(rng.standard_normal(columns).astype(np.float32))
    return x, weight, aligned(np.zeros_like(x))


def plan_of(x, weight):
    return rows.row_plan(library(x, "test"), "test", x.shape[-1], cute.Float16, (x, weight))


@pytest.mark.parametrize(
    ("target", "vector"), [("sm_80", 8), ("sm_90a", 8), ("sm_100a", 16), ("sm_120a", 16)]
)
def test_vectors_by_target(monkeypatch, target, vector):
    monkeypatch.setenv("CUTE_DSL_ARCH", target)
    x, weight, _ = arrays(np.float16)
    plan = plan_of(x, weight)
    assert (plan.vector, plan.access) == (vector, TARGETS[target].global_access_bytes)
    short = arrays(np.float16, 256)
    assert plan_of(*short[:2]).vector == 8  # a vector for each lane of a warp
    odd = aligned(np.zeros(COLUMNS + 8, np.float16))[8:].reshape(1, COLUMNS)
    assert odd.ctypes.data % 32 == 16 and plan_of(odd, None).access == 16


def widths(target, launch, given, static):
    """The bits of each vector access to global memory in a kernel's PTX."""
    text = cute.compile(launch, *given, *static, 0, options=f"--arch {target}").stages.text("ptx")
    found = re.findall(r"\b(ld|st)\.global\S*?\.v(\d)\.b(\d+)", text)
    return {(kind, int(count) * int(bits)) for kind, count, bits in found}


@pytest.mark.parametrize(
    ("target", "bits"), [pytest.param("sm_90a", 128, marks=pytest.mark.slow), ("sm_100a", 256)]
)
def test_accesses_in_ptx(monkeypatch, target, bits):
    monkeypatch.setenv("CUTE_DSL_ARCH", target)
    x, weight, y = arrays(np.float16)
    plan = plan_of(x, weight)
    normal = widths(target, norm._launch, (x, None, weight, None, y, None, 3, 1e-5), (False, plan))
    assert normal == widths(target, softmax_module._launch, (x, y, 3), (plan,))
    assert normal == {("ld", bits), ("st", bits)}


def of_norm(x, weight, *, is_centred):
    x = x - is_centred * x.mean(-1, keepdims=True)
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * weight


def of_softmax(x, weight):
    weights = np.exp(x - x.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


CASES = {
    "rms_norm": (lambda x, w: rms_norm(x, w, eps=1e-5), partial(of_norm, is_centred=False)),
    "layer_norm": (lambda x, w: layer_norm(x, w, eps=1e-5), partial(of_norm, is_centred=True)),
    "softmax": (lambda x, w: softmax(x), of_softmax),
}
QUICK = ("rms_norm", np.float32)
ALL = slow_but(product(CASES, (np.float16, np.float32)), QUICK)


@pytest.mark.parametrize(("name", "dtype"), ALL)
def test_on_the_simulator(monkeypatch, sim, name, dtype):
    monkeypatch.setattr(type(TARGETS["sim"]), "global_access_bytes", 32)
    x, weight, _ = arrays(dtype)
    assert plan_of(x, weight).access == 32
    call, exact = CASES[name]
    tolerance = 1e-5 if dtype is np.float32 else 2e-2
    np.testing.assert_allclose(call(x, weight), exact(x.astype(float), weight), atol=tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("is_long", [False, True])
def test_gradients_on_the_simulator(monkeypatch, sim, is_long):
    """By vectors of 32 bytes as by vectors of 16."""
    if is_long:
        monkeypatch.setattr(rows, "_ALONE", 512)
        monkeypatch.setattr(rows, "_SHARE", 512)
    x, weight, _ = arrays(np.float32)
    grad = aligned(np.random.default_rng(1).standard_normal(x.shape).astype(np.float32))
    found = []
    for access in (16, 32):
        norm._plans.clear()
        monkeypatch.setattr(type(TARGETS["sim"]), "global_access_bytes", access)
        found.append(norm.norm_backward("rms_norm", grad, x, weight, None, 1e-5))
    norm._plans.clear()
    for narrow, wide in zip(*found, strict=True):
        if narrow is not None:
            np.testing.assert_allclose(wide, narrow, rtol=1e-4, atol=1e-5)
