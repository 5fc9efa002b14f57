"""Tests of the process in which ptxas runs."""

import subprocess
from pathlib import Path

import pytest

from basedsl import DSLRuntimeError
from basedsl_cute.lowering.ptx import ptxas


class _Process:
    """Stands for ptxas at work."""

    def __init__(self, command, *, env, **_):
        self.environment = env

    def kill(self):
        pass

    def communicate(self):
        return "", None


@pytest.mark.parametrize("own", [None, "glibc.malloc.check=3"])
def test_memory_comes_in_large_pages_unless_the_user_says_otherwise(monkeypatch, own):
    monkeypatch.setattr(ptxas, "find_ptxas", lambda: Path("ptxas"))
    monkeypatch.setattr(subprocess, "Popen", _Process)
    monkeypatch.setenv("OF_THE_USER", "kept")
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    if own is not None:
        monkeypatch.setenv("GLIBC_TUNABLES", own)
    running = ptxas.start(".version 8.0", "sm_90a")
    environment = running._process.environment
    running.stop()
    assert environment["OF_THE_USER"] == "kept"
    assert environment["GLIBC_TUNABLES"] == (
        own or "glibc.malloc.hugetlb=1:glibc.malloc.top_pad=67108864"
    )


def test_a_ptxas_that_cannot_be_started(monkeypatch, tmp_path):
    monkeypatch.setattr(ptxas, "find_ptxas", lambda: tmp_path)  # a folder
    with pytest.raises(DSLRuntimeError, match="ptxas cannot be started"):
        ptxas.start(".version 8.0", "sm_90a")
