"""The option `mlir` chooses the bindings of one call, for DSLs that name none."""

import sys

import pytest

from basedsl import DSL, DSLRuntimeError, Language


class Calc(Language):
    name = "calc"


class Fixed(Language):
    name = "fixed"
    bindings_package = "numba_cuda_mlir._mlir"


def add(a, b):
    return a + b


def test_a_call_chooses_its_bindings():
    calc = DSL(Calc())
    f = calc.jit(add)
    assert f(1, 2) == 3
    chosen = calc.compile(f, 1, 2, options="--mlir numba_cuda_mlir._mlir")
    assert chosen(1, 2) == 3
    assert len(calc.driver.contexts) == 2
    with pytest.raises(DSLRuntimeError, match="numpy: no MLIR bindings"):
        calc.compile(f, 1, 2, options="--mlir numpy")


def test_the_environment_chooses(monkeypatch):
    monkeypatch.setenv("BASEDSL_MLIR", "absent_bindings")
    with pytest.raises(DSLRuntimeError, match="absent_bindings: not installed"):
        DSL(Calc()).jit(add)(1, 2)
    assert DSL(Fixed()).jit(add)(1, 2) == 3
    assert "absent_bindings" not in sys.modules
