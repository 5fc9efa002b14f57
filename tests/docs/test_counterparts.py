"""Each row of docs/counterparts.md: what documents of CuTe's DSL tell users, tried here."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.cli import main
from basedsl_cute.base_dsl.cache_helpers import load_cache_from_path
from basedsl_cute.base_dsl.compiler import (
    BooleanCompileOption,
    CompilationError,
    CudaDriverDependencyError,
    EnableAssertions,
    EnableTVMFFI,
    GenerateLineInfo,
    GPUArch,
    KeepCUBIN,
    KeepPTX,
    LinkLibraries,
    OptLevel,
    PostCompileHookContext,
    PtxasOptions,
)
from basedsl_cute.base_dsl.typing import get_c_pointers, get_mlir_types, is_dynamic_expression
from basedsl_cute.base_dsl.utils.logger import log
from basedsl_cute.device import driver
from basedsl_cute.dsl.options import CuteOptions
from basedsl_cute.hardware.targets import TARGETS
from basedsl_cute.lowering.ptx import ptxas

PAGE = Path(__file__).parents[2] / "docs" / "counterparts.md"
ROWS = re.findall(r"^\| (?:pipeline|architecture): .*\| `(\w+)` \|$", PAGE.read_text(), re.M)


@cute.kernel
def scale_kernel(a: cute.Tensor, by: cute.Constexpr):
    i = cute.arch.thread_idx()[0]
    assert a[i] < 1000
    a[i] = a[i] * by


@cute.jit
def scale(a: cute.Tensor, by: cute.Constexpr = 3):
    scale_kernel(a, by).launch(grid=1, block=32)


@pytest.fixture
def a():
    return np.ones(32, np.float32)


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("CUTE_DSL_DUMP_DIR", str(tmp_path))
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90")


def test_each_row_has_its_test():
    tests = [name.removeprefix("test_row_") for name in globals() if name.startswith("test_row_")]
    assert ROWS == tests


needs_ptxas = pytest.mark.skipif(ptxas.find_ptxas() is None, reason="no ptxas")
needs_nvdisasm = pytest.mark.skipif(ptxas.find_nvdisasm() is None, reason="no nvdisasm")


def test_row_preprocess(monkeypatch):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sim")

    @cute.jit(preprocess=False)
    def choose(n: cute.Int32):
        return 1 if n > 2 else 0

    @cute.jit(preprocess=True)
    def choose_staged(n: cute.Int32):
        return 1 if n > 2 else 0

    with pytest.raises(CompilationError):
        choose(3)
    assert choose_staged(3) == 1


@needs_ptxas
def test_row_stages(a):
    stages = cute.compile(scale, a).stages
    assert {"cute", "nvvm", "ptx", "cubin", "object"} <= set(stages.names)
    assert all(seconds >= 0 for seconds in stages.seconds.values())


@needs_ptxas
def test_row_opt_level(a):
    sizes = {n: len(cute.compile[OptLevel(n)](scale, a).__cubin__) for n in (0, 3)}
    assert sizes[0] > sizes[3]


def test_row_architecture(a, monkeypatch):
    assert ".target sm_80" in cute.compile[GPUArch("sm_80")](scale, a).__ptx__
    monkeypatch.delenv("CUTE_DSL_ARCH")
    monkeypatch.setenv("CUTLASS_ARCH", "sm_89")
    assert ".target sm_89" in cute.compile(scale, a).__ptx__


@needs_ptxas
def test_row_ptxas_options(a, capfd):
    cute.compile[PtxasOptions("-v --maxrregcount=128")](scale, a)
    said = capfd.readouterr().err
    assert "Compiling entry function 'scale_kernel' for 'sm_90'" in said and "registers" in said
    cute.compile(scale, a)
    assert capfd.readouterr().err == ""


def test_row_line_info(a):
    assert ".loc" in cute.compile[GenerateLineInfo](scale, a).__ptx__
    assert ".loc" not in cute.compile(scale, a).__ptx__


def test_row_assertions(a):
    assert "__assertfail" in cute.compile[EnableAssertions](scale, a).__ptx__
    assert "__assertfail" not in cute.compile(scale, a).__ptx__


@needs_ptxas
def test_row_dumping(a, tmp_path):
    cute.compile[KeepPTX, KeepCUBIN](scale, a)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "scale.sm_90.cubin",
        "scale.sm_90.ptx",
    ]


@needs_ptxas
def test_row_linking(a):
    if ptxas.find_toolkit_library("libcudadevrt.a") is None:
        pytest.skip("the CUDA toolkit has no libcudadevrt.a")
    code = cute.compile[LinkLibraries("libcudadevrt.a")](scale, a).__cubin__
    assert int.from_bytes(code[16:18], "little") == 2  # an executable, as nvlink makes it


def test_row_tvm_ffi(a):
    assert cute.compile[EnableTVMFFI](scale, a).settings.enable_tvm_ffi


def test_row_variables(a, tmp_path):
    names = ("KEEP_PTX", "KEEP_CUBIN", "LINEINFO", "ENABLE_ASSERTIONS", "ENABLE_TVM_FFI")
    for prefix in ("CUTLASS_", "CUTE_DSL_"):
        env = {prefix + name: "1" for name in names} | {prefix + "DUMP_DIR": str(tmp_path)}
        options = CuteOptions.from_environment(env)
        assert options.keep == ("ptx", "cubin") and options.dump_dir == tmp_path
        assert options.lineinfo and options.enable_assertions and options.enable_tvm_ffi


@needs_ptxas
def test_row_composition(a, tmp_path):
    class NoContraction(BooleanCompileOption):
        option = "contract"

    typed = OptLevel(3), GPUArch("sm_80"), KeepPTX, GenerateLineInfo, NoContraction(False)
    settings = cute.compile[typed](scale, a).settings
    assert settings.lineinfo and not settings.contract and settings.keep == ("ptx",)
    text = "--opt-level=3 --gpu-arch=sm_80 --keep-ptx --keep-cubin"
    assert cute.compile(scale, a, options=text).settings.keep == ("ptx", "cubin")
    assert {path.suffix for path in tmp_path.iterdir()} == {".ptx", ".cubin"}


def test_row_defaults():
    options = CuteOptions()
    assert options.opt_level == 3 and options.ptxas_options == "" and options.keep == ()
    assert not (options.enable_assertions or options.lineinfo)


def test_row_view_mlir(a, monkeypatch, capfd):
    compiled = cute.compile(scale, a)
    assert "gpu.launch_func" in str(compiled._module) and capfd.readouterr().err == ""
    monkeypatch.setenv("MLIR_ENABLE_DUMP", "1")
    cute.compile(scale, a)
    said = capfd.readouterr().err
    assert "IR Dump After lower-cute ('cute_scale')" in said and "llvm.func @scale_kernel" in said


@needs_ptxas
@needs_nvdisasm
def test_row_disassemble(a):
    assert "EXIT" in cute.compile(scale, a).__sass__


@needs_ptxas
def test_row_resources(a):
    compiled = cute.compile(scale, a)
    found = compiled.resources["scale_kernel"]
    assert found.registers > 0 and found.spills == 0 and found.threads == 32
    assert f"{found.registers} registers" in str(compiled)


@needs_ptxas
def test_row_occupancy(a):
    from basedsl_cute.hardware.occupancy import occupancy

    found = occupancy(TARGETS["sm_90"], 128, 32, 64 << 10)  # the document's example
    assert found.blocks == 3 and found.fraction == 0.1875 and found.limited_by == ("shared memory",)
    assert cute.compile(scale, a).resources["scale_kernel"].occupancy().blocks == 32


def test_row_nsight(a):
    assert ".loc" in cute.compile(scale, a, options="--lineinfo").__ptx__
    assert CuteOptions().parse("--nvtx").nvtx


@needs_ptxas
def test_row_compile_errors(a):
    @cute.kernel
    def greedy_kernel(a: cute.Tensor):
        cute.arch.inline_ptx("wrong.instruction;")

    @cute.jit
    def greedy(a: cute.Tensor):
        greedy_kernel(a).launch(grid=1, block=32)

    with pytest.raises(CompilationError, match="cannot compile for sm_90") as caught:
        cute.compile(greedy, a)
    assert caught.value.span.line == greedy_kernel.fn.__code__.co_firstlineno + 2
    with pytest.raises(CompilationError, match="'sm_12' is no target"):
        cute.compile[GPUArch("sm_12")](scale, a)


@pytest.mark.skipif(driver.is_available(), reason="there is a driver")
def test_row_driver_errors(a):
    with pytest.raises(CudaDriverDependencyError, match="needs a GPU driver"):
        scale(a)


def test_row_logging(a, caplog, monkeypatch):
    level = log().level
    log().setLevel(logging.DEBUG)
    monkeypatch.setattr(log(), "propagate", True)
    try:
        cute.compile(scale, a)
        assert any("cute_scale" in record.getMessage() for record in caplog.records)
    finally:
        log().setLevel(level)


def test_row_hook(a):
    seen = []
    with PostCompileHookContext(cute.CUTE, lambda module: seen.append(str(module))):
        cute.compile(scale, a)
    assert len(seen) == 1 and "llvm.func @scale_kernel" in seen[0]


@needs_ptxas
@needs_nvdisasm
def test_row_histogram(a):
    counts = cute.compile(scale, a).instruction_histogram()
    assert counts["LDG"] == counts["STG"] == 1


PROGRAM = """
import basedsl_cute as cute

@cute.kernel
def kernel(x: cute.Tensor):
    x[cute.arch.thread_idx()[0]] = 1

@cute.jit
def f(x: cute.Tensor):
    kernel(x).launch(grid=1, block=32)
"""


@needs_ptxas
@needs_nvdisasm
def test_row_two_levels(tmp_path, capsys):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    arguments = ["show", f"{program}::f", "--arg", "float32[32]", "--stage", "sass"]
    assert main([*arguments, "--diff=--opt-level 0"]) == 1
    assert "@@" in capsys.readouterr().out


@cute.jit
def count(n: cute.Int32):
    total = 0
    for i in range(n):
        total += i
    return total


def test_row_printing(monkeypatch, capfd, tmp_path):
    for name in ("PRINT_IR", "KEEP_IR", "LOG_TO_CONSOLE", "PRINT_AFTER_PREPROCESSOR"):
        monkeypatch.setenv(f"CUTE_DSL_{name}", "1")
    monkeypatch.setenv("CUTE_DSL_LOG_LEVEL", "10")
    cute.compile(count, 3)
    said = capfd.readouterr()
    assert "scf.for" in said.out and "def count" in said.out and "compiled in" in said.err
    assert [path.name for path in tmp_path.iterdir()] == ["count.sm_90.mlir"]


def test_row_control(a, monkeypatch):
    monkeypatch.setenv("CUTE_DSL_DRYRUN", "1")
    monkeypatch.setenv("CUTE_DSL_DISABLE_FILE_CACHING", "1")
    scale.forget()
    scale(a)
    assert (a == 1).all()
    (compiled,) = scale.compilations
    assert compiled.stages.names == ("cute",) and not compiled.settings.cache
    scale.forget()


def test_row_error_handling(monkeypatch):
    monkeypatch.setenv("CUTE_DSL_FILTER_STACKTRACE", "0")
    assert cute.CUTE.options.full_traceback
    monkeypatch.setenv("CUTE_DSL_WARNINGS_AS_ERRORS", "1")
    monkeypatch.setenv("CUTE_DSL_KEPT", "1")
    with pytest.raises(CompilationError, match="CUTE_DSL_KEPT"):
        _ = cute.CUTE.options


def test_row_toolkit(a, monkeypatch, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "ptxas").write_text("")
    monkeypatch.setenv("CUDA_TOOLKIT_PATH", str(tmp_path))
    assert ptxas.find_ptxas() == tmp_path / "bin" / "ptxas"
    monkeypatch.delenv("CUDA_TOOLKIT_PATH")
    with pytest.raises(CompilationError, match=r"the option libs names 'nope\.so'"):
        cute.compile(scale, a, options="--libs nope.so")


def test_row_walk(a):
    from basedsl_cute._mlir import ir

    names = []

    def visit(op):
        names.append((op.name, str(op.location)))
        return ir.WalkResult.ADVANCE

    cute.compile(scale, a).ir_module.operation.walk(visit)
    assert any(name == "gpu.launch_func" and __file__ in place for name, place in names)


def test_row_cache(a, monkeypatch, tmp_path):
    monkeypatch.setenv("CUTE_DSL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("CUTE_DSL_CACHE", "1")
    monkeypatch.setenv("CUTE_DSL_ARCH", "sim")
    scale.forget()
    scale(a)
    scale.forget()
    ((_, (module, executor)),) = load_cache_from_path("CuTeDSL", capacity=1000).items()
    assert "gpu.launch_func" in str(module) and "scale" in executor.function


def test_row_types(a):
    assert [str(one) for one in get_mlir_types(cute.Int64(1))] == ["i64"]
    assert str(get_mlir_types(a)[0]).startswith("!cute.memref<f32")
    assert get_c_pointers(a) == [] and not is_dynamic_expression((1, cute.Int32(2)))

    @cute.jit
    def asks(n: cute.Int32):
        assert cute.const_expr(is_dynamic_expression((1, n)))

    cute.compile(asks, 3)


def test_row_constexpr(a):
    (argument,) = cute.compile(scale, a, 5).get_constexpr_args()
    assert argument == {"argument_index": 1, "argument_name": "by", "value": 5}


def test_row_time_profiling(a, monkeypatch, capfd):
    monkeypatch.setenv("CUTE_DSL_JIT_TIME_PROFILING", "1")
    monkeypatch.setenv("CUTE_DSL_ARCH", "sim")
    cute.compile(scale, a)(a)
    said = capfd.readouterr().err
    assert "pre-stage" in said and "trace" in said and "cute_scale: run " in said


def test_row_cross_compile(a, monkeypatch):
    assert ".target sm_90" in cute.compile(scale, a).__ptx__
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_100")
    assert ".target sm_100" in cute.compile(scale, a).__ptx__


def test_row_at_run_time(a):
    dsl = cute._dsl.CuTeDSL._get_dsl()
    dsl.envar.arch = "sm_100a"  # `_own_folder` restores it
    assert dsl.envar.arch == "sm_100a" and ".target sm_100a" in cute.compile(scale, a).__ptx__


@needs_ptxas
def test_row_script(a, monkeypatch, tmp_path):
    for name, value in {"ARCH": "sm_100", "DRYRUN": "1", "KEEP_IR": "1"}.items():
        monkeypatch.setenv(f"CUTE_DSL_{name}", value)
    scale(a)
    assert [path.name for path in tmp_path.iterdir()] == ["scale.sm_100.mlir"]
    for name in ("PTX", "CUBIN"):
        monkeypatch.setenv(f"CUTE_DSL_KEEP_{name}", "1")
        scale(a)
        assert (tmp_path / f"scale.sm_100.{name.lower()}").exists()
    assert (a == 1).all()
    scale.forget()


def test_row_helpers():
    assert cute.utils.hopper_helpers is cute.utils.sm90
    assert callable(cute.utils.blackwell_helpers.make_trivial_tiled_mma)


@needs_ptxas
def test_row_verify_target(a, tmp_path):
    compiled = cute.compile(scale, a, options="--gpu-arch sm_100 --keep-ir")
    assert (tmp_path / "scale.sm_100.mlir").exists() and ".target sm_100" in compiled.__ptx__
    flags = int.from_bytes(compiled.__cubin__[48:52], "little")
    assert 100 in (flags & 0xFF, flags >> 8 & 0xFF)
