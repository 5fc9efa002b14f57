"""Options that the environment sets after the first calls: plans were made with others."""

from __future__ import annotations

import numpy as np
import pytest

from basedsl_cute.ops import attention, matmul, rms_norm, rotary, sample, softmax, topk

X = np.ones((4, 8), np.float32)
HEADS = np.ones((1, 4, 2, 32), np.float16)
TABLE = np.ones((4, 4), np.float32)


@pytest.mark.parametrize(
    "call",
    [
        lambda: attention(HEADS, HEADS, HEADS),
        lambda: matmul(X, X.T),
        lambda: rms_norm(X),
        lambda: rotary(HEADS, TABLE, TABLE),
        lambda: sample(X, seed=1),
        lambda: softmax(X),
        lambda: topk(X, 2),
    ],
)
def test_a_call_after_a_change_of_options_has_them(call, monkeypatch, tmp_path):
    for _ in range(3):
        call()
    monkeypatch.setenv("CUTE_DSL_KEEP", "ir")
    monkeypatch.setenv("CUTE_DSL_DUMP_DIR", str(tmp_path))
    call()
    kept = list(tmp_path.iterdir())
    assert kept
    call()
    assert list(tmp_path.iterdir()) == kept
    monkeypatch.delenv("CUTE_DSL_KEEP")
    monkeypatch.setenv("CUTE_DSL_DUMP_DIR", str(tmp_path / "other"))
    call()
    assert not (tmp_path / "other").exists()
