"""Fixtures that compile MLIR to native code: `object_of` to bytes, `compiled` to a function."""

from __future__ import annotations

import pytest

from basedsl.objectstage import native, run_pipeline
from basedsl.objectstage.lowering import native_pipeline


@pytest.fixture
def object_of(mlir_context):
    def object_of(text, pipeline=None):
        with mlir_context.entered():
            module = mlir_context.bindings.ir.Module.parse(text)
            return run_pipeline(pipeline or native_pipeline(), module, mlir_context).artifact

    return object_of


@pytest.fixture
def compiled(object_of):
    def compiled(text, result, *arguments, pipeline=None, symbols=None, name="f"):
        code = native.load_object(object_of(text, pipeline), symbols)
        return code.function(name, result, *arguments)

    return compiled
