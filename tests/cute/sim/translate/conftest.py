"""Records of kernels for the tests of the translator: MLIR text in, nothing is run."""

from __future__ import annotations

import pytest

from basedsl_cute.sim.translate.records import KernelRecord, Op, read_kernel


@pytest.fixture(scope="session")
def record(ir):
    """`record(params, body, outside="")`: the kernel `k`."""

    def make(params: str, body: str, outside: str = "") -> KernelRecord:
        text = (
            f"gpu.module @m {{ {outside} gpu.func @k({params}) kernel {{\n{body}\ngpu.return }} }}"
        )
        with ir.Context():
            return read_kernel(ir.Module.parse(text), "k")

    return make


@pytest.fixture(scope="session")
def ops():
    """`ops(record, name)`: the operations of that name, in order."""

    def find(record: KernelRecord, name: str) -> list[Op]:
        return [op for op in record.walk() if op.name == name]

    return find
