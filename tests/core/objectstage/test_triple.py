"""Native code for another machine than this one."""

import struct

import pytest

from basedsl import DSL, DSLRuntimeError, Language, NativeTarget, compile_llvmir, native_pipeline

IR = "define i64 @inc(i64 %n) {\n  %r = add i64 %n, 1\n  ret i64 %r\n}\n"
MACHINES = {"aarch64-unknown-linux-gnu": 183, "x86_64-unknown-linux-gnu": 62, "riscv64-linux": 243}


@pytest.mark.parametrize("triple", MACHINES)
def test_object_code_is_of_the_triples_machine(triple):
    try:
        made = compile_llvmir(IR, NativeTarget(triple=triple))
    except DSLRuntimeError as error:
        pytest.skip(str(error.message))
    assert made[:4] == b"\x7fELF"
    assert struct.unpack_from("<H", made, 18) == (MACHINES[triple],)


def test_an_unknown_machine():
    with pytest.raises(DSLRuntimeError, match="LLVM makes no code for 'pdp11-unknown-unix'"):
        compile_llvmir(IR, NativeTarget(triple="pdp11-unknown-unix"))


def test_a_pipeline_for_another_machine():
    class Cross(Language):
        name = "cross"

        def pipeline(self, settings):
            return native_pipeline(target=NativeTarget(triple="aarch64-unknown-linux-gnu"))

        def executor(self, stages, symbol, arguments, results, settings):
            return lambda packed: len(stages.artifact)

    dsl = DSL(Cross())
    compiled = dsl.compile(dsl.jit(lambda n: n + 1), 1)
    assert "aarch64" in compiled.stages.text("optimised")
    assert struct.unpack_from("<H", compiled.stages.binary("object"), 18) == (183,)


def test_keys_of_other_machines_differ():
    here, there = NativeTarget().describe(), NativeTarget(triple="riscv64-linux").describe()
    assert here != there and there.startswith("riscv64-linux")
