"""Registers and spills of the attention kernels, by ptxas, without a GPU."""

from __future__ import annotations

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute.dsl.steps import SpillWarning
from basedsl_cute.hardware.targets import target_of
from basedsl_cute.lowering.ptx.ptxas import find_ptxas, toolkit_version
from basedsl_cute.ops.ampere import attention as ampere
from basedsl_cute.ops.ampere import attention_backward as ampere_backward
from basedsl_cute.ops.flash import attention as flash
from basedsl_cute.ops.flash import gradients
from basedsl_cute.ops.flash.captured import Captured
from basedsl_cute.ops.flash.turn import BLOCK
from basedsl_cute.ops.flash.variant import Variant
from basedsl_cute.ops.hopper import attention_backward
from basedsl_cute.ops.hopper.attention_shares import part_views

FLOAT8 = pytest.importorskip("ml_dtypes").float8_e4m3fn
pytestmark = pytest.mark.skipif(find_ptxas() is None, reason="no ptxas")

# ptxas of CUDA 13.0 to 13.2 keeps one or two words of a thread in memory in the forward kernels
# without a mask for heads of 128, 192 and 256; that of 13.3 and later none.
FEW_SPILLS = 8 if (toolkit_version() or (13, 3)) < (13, 3) else 0  # bytes


@pytest.mark.parametrize("right", [None, 0])
@pytest.mark.parametrize("head", flash.HOPPER_CONFIGS)
def test_the_kernel_for_hopper_spills_nothing(head, right):
    check(head, flash.HOPPER_CONFIGS[head][right is None], Variant(right=right))


def test_the_kernel_for_few_keys_spills_nothing():
    check(128, flash._HOPPER_FEW_KEYS, Variant(right=0))


@pytest.mark.slow
def test_the_kernel_for_a_window_spills_nothing():
    check(128, flash._HOPPER_WINDOW, Variant(left=1024, right=0))


@pytest.mark.slow
@pytest.mark.parametrize("head", flash.HOPPER_CONFIGS)
def test_the_kernel_for_hopper_with_a_mask_of_the_users_spills_nothing(head):
    config = flash.HOPPER_MASK if head == 128 else flash.HOPPER_CONFIGS[head][0]
    check(head, config, Variant(mask=Captured.of(near, "mask")))


@pytest.mark.slow
@pytest.mark.parametrize("head", flash.HOPPER_CONFIGS)
def test_the_kernel_for_hopper_with_a_mask_that_is_no_span_spills_nothing(head):
    config = flash.HOPPER_MASK if head == 128 else flash.HOPPER_CONFIGS[head][0]
    check(head, config, Variant(mask=Captured.of(banded, "mask")))


@pytest.mark.slow
@pytest.mark.parametrize("head", flash.HOPPER_CONFIGS)
def test_the_kernel_for_hopper_with_a_score_of_the_users_spills_nothing(head):
    functions = {"mask": Captured.of(near, "mask"), "score": Captured.of(nearer, "score")}
    check(head, flash.HOPPER_CONFIGS[head][2], Variant(**functions))


@pytest.mark.slow
@pytest.mark.parametrize("right", [None, 0])
@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_120"])
def test_the_kernel_by_mma_sync_for_many_queries_spills_nothing(arch, right, monkeypatch):
    monkeypatch.setattr(flash, "current_target", lambda: SimpleNamespace(name=arch))
    check(128, flash.many_queries_config(right), Variant(right=right), arch)


@pytest.mark.slow
@pytest.mark.parametrize("right", [None, 0])
@pytest.mark.parametrize(("head", "warps", "stages"), [(64, 8, 6), (128, 8, 3), (256, 4, 3)])
def test_the_kernel_whose_warps_share_keys_spills_nothing(head, warps, stages, right):
    config = ampere.Config((16, 16), 1, packed=2, key_warps=warps, stages=stages)
    check(head, config, Variant(right=right), kind="decoding", allowed=0)


def test_a_kernel_that_begins_early_waits_before_it_reads():
    config = ampere.Config((16, 16), 1, packed=2, key_warps=8, stages=3, early=True, overlap=True)
    compiled = check(128, config, Variant(), kind="decoding")
    text = compiled.__ptx__
    assert text.count("griddepcontrol.wait;") == 1
    waits = text.index("griddepcontrol.wait;")
    reads = ("ld.global", "cp.async.cg", "st.global")
    assert all(waits < text.index(name) for name in reads if name in text)
    assert "cp.async.cg" in text and "st.global" in text


@pytest.mark.slow
@pytest.mark.parametrize("right", [None, 0])
def test_the_kernel_by_mma_sync_with_a_ring_of_stages_spills_nothing(right):
    config = ampere.Config((256, 64), 8, slack=8, stages=3, heads_first=right is not None)
    check(128, config, Variant(right=right), "sm_90", allowed=0)


@pytest.mark.slow
@pytest.mark.parametrize("head", flash.NARROW_CONFIGS)
@pytest.mark.parametrize("right", [None, 0])
def test_the_kernel_for_8_bits_spills_nothing(head, right):
    for config in set(flash.NARROW_CONFIGS[head]):
        check(head, config, Variant(right=right), dtype=FLOAT8, allowed=0)


@pytest.mark.slow
@pytest.mark.parametrize("head", flash.NARROW_CONFIGS)
def test_the_kernel_for_8_bits_with_a_mask_of_the_users_spills_nothing(head):
    mask = Variant(mask=Captured.of(near, "mask"))
    check(head, flash.NARROW_CONFIGS[head][2], mask, dtype=FLOAT8, allowed=0)


@pytest.mark.slow
@pytest.mark.parametrize("right", [None, 0])
def test_the_kernel_with_tiles_from_the_end_spills_nothing(right):
    config = replace(flash.HOPPER_CONFIGS[64][right is None], from_end=True, by_groups=True)
    check(64, config, Variant(right=right), allowed=0)


@pytest.mark.slow
@pytest.mark.parametrize("head", flash.HOPPER_CONFIGS)
def test_the_kernel_whose_last_tasks_are_shared_spills_nothing(head):
    configs = [(flash.HOPPER_CONFIGS[head][1], np.float16)]
    if head in (64, 128):
        configs.append((flash.NARROW_BY_PRODUCTS[head][0], FLOAT8))
        configs.append((flash.NARROW_CONFIGS[head][0], FLOAT8))
    for config, dtype in configs:
        check(head, replace(config, shares_last=True), Variant(), dtype=dtype)


@pytest.mark.slow
@pytest.mark.parametrize("head", flash.NARROW_BY_PRODUCTS)
@pytest.mark.parametrize("right", [None, 0])
def test_the_kernel_for_8_bits_without_logarithms_spills_nothing(head, right):
    config = flash.NARROW_BY_PRODUCTS[head][right is not None]
    check(head, config, Variant(right=right), dtype=FLOAT8, allowed=0)


def near(batch, head, q, k):
    return k <= q and q - k < 1000


def nearer(s, batch, head, q, k):
    return s - 0.01 * (q - k)


def banded(batch, head, q, k):
    return (k <= q and q - k < 20) or (q // 64 == 1 and k < 3)


def check(
    head, config, variant, arch="sm_90a", dtype=np.float16, kind="forward", allowed=FEW_SPILLS
):
    x = np.zeros((4, 2, 256, head), dtype).transpose(2, 3, 1, 0)
    out, turned = x, None
    if dtype is FLOAT8:
        out = np.zeros((4, 2, 256, head), np.float16).transpose(2, 3, 1, 0)
        turned = np.zeros((4, 2, head, 256), dtype).transpose(2, 3, 1, 0)
        if config.in_blocks:
            blocks = -(-256 // config.tile[1]) * config.tile[1] // BLOCK
            turned = np.zeros((4, 2, blocks, BLOCK * head), dtype).transpose(3, 2, 1, 0)
    lse = np.zeros((4, 2, 256), np.float32).transpose(2, 1, 0)
    shares = (None, None)
    if getattr(config, "shares_last", False):
        shares = [np.zeros(x[::-1], np.float32).T for x, _ in part_views(config.tile[0], head, 132)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SpillWarning)  # counted below
        compiled = cute.compile(
            flash._launch,
            *(x, x, x, out, lse, *shares, turned),
            *((None,) * 4, (None, None, None), (), (None,) * 3),
            *(1.0, 1.0, 1, 256, 132, head, head, variant, config, False, 0),
            options=f"--gpu-arch {arch}",
        )
    (kernel,) = (x for name, x in compiled.resources.items() if kind in name)
    allowed = allowed if variant.right is None else 0
    if variant.mask is not None:
        allowed *= 2
    assert kernel.spill_stores <= allowed and kernel.spill_loads <= 3 * allowed
    assert kernel.registers * config.threads <= 65536
    return compiled


@pytest.mark.slow
@pytest.mark.parametrize(
    ("head", "config"),
    [
        (64, attention_backward.Config((128, 128), by_threads=True)),
        (128, attention_backward.Config()),
        (256, attention_backward.Config((64, 64), by_threads=True)),
    ],
)
@pytest.mark.parametrize("kind", ["none", "causal", "mask"])
def test_the_gradients_for_hopper_spill_nothing(head, config, kind):
    mask = Captured.of(near, "mask") if kind == "mask" else None
    variant = Variant(right=0 if kind == "causal" else None, mask=mask)
    rows = config.tile[0]
    stats = np.zeros((4, 2, 256 // rows, 2, rows), np.float32).transpose(4, 3, 2, 1, 0)
    sums = np.zeros((4, 2, 256 // rows, rows * head), np.float32).transpose(3, 2, 1, 0)
    check_gradients(head, config, variant, (stats, sums), "sm_90a")


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm_80", "sm_120"])
@pytest.mark.parametrize("head", [96, 128, 192, 256])
@pytest.mark.parametrize("kind", ["none", "mask", "score"])
def test_the_gradients_by_mma_sync_spill_nothing(arch, head, kind, monkeypatch):
    monkeypatch.setattr(gradients, "current_target", lambda: target_of(arch))
    mask = Captured.of(near, "mask") if kind != "none" else None
    score = Captured.of(capped, "score") if kind == "score" else None
    variant = Variant(mask=mask, score=score)
    extents = SimpleNamespace(head=head, head_v=head, queries=256, keys=256)
    config = gradients._chosen(extents, variant, suits=False)
    delta = np.zeros((4, 2, 256), np.float32).transpose(2, 1, 0)
    kernel = check_gradients(head, config, variant, (delta,), arch)["keys_kernel"]
    used = kernel.static_smem + kernel.dynamic_smem
    assert used == ampere_backward.shared_memory(config, head, head)


@pytest.mark.parametrize(("arch", "rows"), [("sm_80", 64), ("sm_86", 32), ("sm_120", 32)])
def test_gradients_of_wide_heads_take_tiles_for_which_there_is_room(arch, rows, monkeypatch):
    target = target_of(arch)
    monkeypatch.setattr(gradients, "current_target", lambda: target)
    extents = SimpleNamespace(head=256, head_v=256, queries=256, keys=256)
    config = gradients._chosen(extents, Variant(), suits=False)
    assert config.tile == (32, rows)
    assert ampere_backward.shared_memory(config, 256, 256) <= target.smem_per_block


def capped(s, batch, head, q, k):
    return 30.0 * cute.math.tanh(s / 30.0)


def check_gradients(head, config, variant, workspaces, arch):
    x = np.zeros((4, 2, 256, head), np.float16).transpose(2, 3, 1, 0)
    lse = np.zeros((4, 2, 256), np.float32).transpose(2, 1, 0)
    compiled = cute.compile(
        gradients._launch,
        *(x, x, x, x, x, lse, workspaces, x, x, x, None),
        *((None,) * 4, (None, None, None), (), 1.0, 4, 256, 256, head, head),
        *(variant, config, 0),
        options=f"--gpu-arch {arch}",
    )
    for kernel in compiled.resources.values():
        assert kernel.spill_stores == kernel.spill_loads == 0
    return compiled.resources
