"""Compiled functions keep no array of a call alive."""

import weakref

import numpy as np

import basedsl_cute as cute


def first(x: cute.Tensor):
    return x[0]


def test_code_from_the_disk_cache_keeps_no_array(monkeypatch, tmp_path):
    monkeypatch.setenv("BASEDSL_CACHE", "1")
    monkeypatch.setenv("BASEDSL_CACHE_DIR", str(tmp_path))
    cute.jit(first)(np.array([5, 6], np.int32))
    function, array = cute.jit(first), np.array([7, 8], np.int32)
    assert function(array) == 7
    kept = weakref.ref(array)
    del array
    assert kept() is None
    assert len(list(tmp_path.rglob("*.code"))) == 1
