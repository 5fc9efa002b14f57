"""Options, artifacts and introspection of cute: files, targets, hooks, names of programs."""

from __future__ import annotations

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import OptionError
from basedsl_cute.base_dsl.cache_helpers import load_cache_from_path
from basedsl_cute.base_dsl.compiler import PostCompileHookContext
from basedsl_cute.base_dsl.dsl import CuTeDSL
from basedsl_cute.base_dsl.typing import get_mlir_types
from basedsl_cute.base_dsl.utils.logger import log
from basedsl_cute.dsl.options import CuteOptions
from basedsl_cute.lowering.ptx import ptxas


@cute.kernel
def twice_kernel(x: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    x[i] = x[i] * 2


@cute.jit
def twice(x: cute.Tensor, threads: cute.Constexpr = 32):
    twice_kernel(x).launch(grid=(1, 1, 1), block=(threads, 1, 1))


@pytest.fixture
def x():
    return np.ones(32, np.float32)


def test_files_are_named_by_function_and_architecture(monkeypatch, tmp_path, x):
    monkeypatch.setenv("CUTE_DSL_DUMP_DIR", str(tmp_path))
    options = cute.KeepPTX, cute.KeepIR, cute.GPUArch("sm_90")
    cute.compile[options](twice, x)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["twice.sm_90.mlir", "twice.sm_90.ptx"]
    if ptxas.find_ptxas() is not None:
        cute.compile[cute.KeepCUBIN, cute.GPUArch("sm_80")](twice, x)
        assert (tmp_path / "twice.sm_80.cubin").read_bytes()[:4] == b"\x7fELF"


def test_a_program_may_keep_ptx_on_the_simulator(monkeypatch, tmp_path, x):
    monkeypatch.setenv("CUTE_DSL_DUMP_DIR", str(tmp_path))
    cute.compile[cute.KeepPTX, cute.GPUArch("sim")](twice, x)(x)
    assert list(tmp_path.iterdir()) == [] and (x == 2).all()
    with pytest.raises(OptionError, match="keep names 'resorces', and cute has no such") as caught:
        cute.compile(twice, x, options="--keep resorces")
    assert caught.value.hint == "did you mean resources?"


def test_the_architecture_changes_at_run_time_with_no_cache_to_clear(monkeypatch, x):
    monkeypatch.setenv("CUTE_DSL_DRYRUN", "1")
    dsl = CuTeDSL._get_dsl()
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")
    twice.forget()
    twice(x)
    dsl.envar.arch = "sm_100a"
    assert dsl.envar.arch == "sm_100a"
    twice(x)
    assert [one.settings.arch for one in twice.compilations] == ["sm_90a", "sm_100a"]
    twice.forget()


def test_another_architecture_is_compiled_for_by_the_environment(monkeypatch, x):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_100")
    assert ".target sm_100" in cute.compile(twice, x).__ptx__
    monkeypatch.delenv("CUTE_DSL_ARCH")
    monkeypatch.setenv("CUTLASS_ARCH", "sm_80")
    assert ".target sm_80" in cute.compile(twice, x).__ptx__


def test_ptxas_options_contradict_no_other_option(x):
    with pytest.raises(OptionError, match="ptxas_options has -arch=sm_80, which contradicts"):
        cute.compile[cute.PtxasOptions("-arch=sm_80")](twice, x)


def test_variables_of_programs_for_cute():
    env = {
        "CUTLASS_DUMP_DIR": "/a",
        "CUTLASS_KEEP_PTX": "1",
        "CUTLASS_KEEP_CUBIN": "1",
        "CUTLASS_LINEINFO": "1",
        "CUTLASS_ENABLE_ASSERTIONS": "1",
        "CUTLASS_ARCH": "sm_90",
        "CUTLASS_ENABLE_TVM_FFI": "1",
    }
    options = CuteOptions.from_environment(env)
    assert str(options.dump_dir) == "/a" and options.keep == ("ptx", "cubin")
    assert options.lineinfo and options.enable_assertions and options.enable_tvm_ffi
    assert options.arch == "sm_90"
    assert CuteOptions.from_environment({**env, "CUTE_DSL_ARCH": "sm_80"}).arch == "sm_80"


def test_modules_constexpr_arguments_and_types(x):
    compiled = cute.compile(twice, x, 64, options="--gpu-arch sm_90a")
    assert "gpu.launch_func" in str(compiled.ir_module)
    assert compiled.get_constexpr_args() == [
        {"argument_index": 1, "argument_name": "threads", "value": 64}
    ]
    types = [str(one) for one in get_mlir_types(x)]
    assert types == ['!cute.memref<f32, "gmem align<16>", "(?):(1)">', "i32"]
    assert [str(one) for one in get_mlir_types((cute.Int32(1), 2.0))] == ["i32", "f32"]


def test_a_hook_gets_the_module_after_the_passes(x):
    found = []
    with PostCompileHookContext(cute.CUTE, lambda module: found.append(str(module))):
        cute.compile(twice, x, options="--gpu-arch sm_90a")
    assert len(found) == 1 and "llvm." in found[0] and "cute." not in found[0]


def test_compilations_on_disk(monkeypatch, tmp_path, x):
    monkeypatch.setenv("CUTE_DSL_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("CUTE_DSL_CACHE", "1")
    monkeypatch.setenv("CUTE_DSL_ARCH", "sim")
    twice.forget()
    twice(x)
    cache = load_cache_from_path("CuTeDSL", capacity=1000)
    assert any("twice" in executor.function for _, (_, executor) in cache.items())
    assert any("gpu.launch_func" in str(module) for module, _ in cache.values())
    twice.forget()


def test_the_logger_is_pythons():
    assert log().name == "basedsl"


def test_the_toolkit_that_is_named_comes_first(monkeypatch, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "nvdisasm").write_text("")
    monkeypatch.setenv("CUDA_TOOLKIT_PATH", str(tmp_path))
    assert ptxas.find_nvdisasm() == tmp_path / "bin" / "nvdisasm"
    monkeypatch.delenv("CUDA_TOOLKIT_PATH")
    assert ptxas.find_nvdisasm() != tmp_path / "bin" / "nvdisasm"
