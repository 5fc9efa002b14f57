"""`cute.compile`: options as types and as text, artifacts of the result, the environment's."""

import os

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLError
from basedsl_cute.dsl.options import CuteOptions
from basedsl_cute.lowering.ptx import sass
from basedsl_cute.lowering.ptx.ptxas import find_nvdisasm


@cute.kernel
def twice_kernel(x: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    x[i] = x[i] * 2.0


@cute.jit
def twice(x: cute.Tensor):
    twice_kernel(x).launch(grid=(1, 1, 1), block=(cute.size(x), 1, 1))


@pytest.fixture
def x():
    return np.ones(32, np.float32)


def settings_of(typed):
    return typed(twice, np.ones(32, np.float32)).settings


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        (cute.compile[cute.OptLevel(1)], "--opt-level 1"),
        (cute.compile[cute.EnableAssertions], "--enable-assertions"),
        (cute.compile[cute.GenerateLineInfo(True)], "--generate-line-info"),
        (cute.compile[cute.PtxasOptions("-O1 -v")], "--ptxas-options '-O1 -v'"),
        (cute.compile[cute.NvdisasmOptions("-c")], "--nvdisasm-options=-c"),
        (cute.compile[cute.GPUArch("sim"), cute.EnableTVMFFI()], "--gpu-arch sim --enable-tvm-ffi"),
    ],
)
def test_an_option_as_a_type_is_the_option_as_text(sim, x, typed, text):
    assert typed(twice, x).settings == cute.compile(twice, x, options=text).settings
    assert typed(twice, x).settings != cute.compile(twice, x).settings


def test_options_that_keep_artifacts_add_up():
    base = CuteOptions()
    for option in (cute.KeepPTX(), cute.KeepCUBIN(True), cute.KeepSASS()):
        base = option.apply(base)
    assert base.keep == ("ptx", "cubin", "sass")
    assert CuteOptions().parse("--keep-ptx --keep-cubin --keep-sass").keep == base.keep
    assert cute.KeepPTX(False).apply(base).keep == ("cubin", "sass")


def test_what_is_no_option_is_an_error(x):
    with pytest.raises(DSLError, match=r"compile options, not 3"):
        cute.compile[3]
    with pytest.raises(DSLError, match=r"OptLevel takes a value of type int"):
        cute.OptLevel("3")
    with pytest.raises(DSLError, match=r"no option --keep-pxt"):
        cute.compile(twice, x, options="--keep-pxt")
    with pytest.raises(DSLError, match=r"one of 0, 1, 2, 3"):
        cute.compile[cute.OptLevel(7)](twice, x)
    for name in ("max-spins", "max-steps"):
        with pytest.raises(DSLError, match=r"the value is an integer of at least 1"):
            cute.compile(twice, x, options=f"--{name} 0")


def test_the_environment_has_the_names_that_programs_know(tmp_path):
    env = {
        "CUTE_DSL_KEEP": "ir,ptx",
        "CUTE_DSL_DUMP_DIR": str(tmp_path),
        "CUTE_DSL_LINEINFO": "1",
        "CUTE_DSL_DISABLE_FILE_CACHING": "1",
        "CUTE_DSL_CACHE_DIR": str(tmp_path),
    }
    options = CuteOptions.from_environment(env)
    assert options.keep == ("ir", "ptx")
    assert options.lineinfo and not options.cache
    assert options.cache_dir == options.dump_dir == tmp_path
    assert CuteOptions.from_environment({"CUTE_DSL_KEEP_PTX": "1"}).keep == ("ptx",)
    assert CuteOptions.from_environment({"CUTE_DSL_DISABLE_FILE_CACHING": "0"}).cache
    assert not CuteOptions.unknown_variables(env)


def test_kept_artifacts_are_files_and_attributes(monkeypatch, tmp_path, x):
    monkeypatch.setenv("CUTE_DSL_DUMP_DIR", str(tmp_path))
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")
    compiled = cute.compile[cute.KeepPTX, cute.KeepCUBIN](twice, x)
    (ptx,) = tmp_path.glob("*.ptx")
    assert ptx.read_text() == compiled.__ptx__
    assert ".entry twice_kernel" in compiled.__ptx__
    if compiled.__cubin__ is not None:  # there is ptxas
        assert compiled.__cubin__[:4] == b"\x7fELF"
    assert "gpu.func @twice_kernel" in compiled.__mlir__


def test_sass_is_what_nvdisasm_says(monkeypatch, tmp_path, x):
    tool = tmp_path / "nvdisasm"
    tool.write_text('#!/bin/sh\necho "$1 $2" && head -c 4 "$3" | tail -c 3\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("CUTE_DSL_DUMP_DIR", str(tmp_path))
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")
    options = cute.KeepSASS, cute.NvdisasmOptions("-g -hex")
    compiled = cute.compile[options](twice, x)
    if compiled.__cubin__ is None:
        pytest.skip("no ptxas")
    (saved,) = tmp_path.glob("*.sass")
    if find_nvdisasm() == tool:
        assert compiled.__sass__ == saved.read_text() == "-g -hex\nELF"
        assert cute.compile(twice, x).__sass__ == "-g -c\nELF"
    monkeypatch.setattr(sass, "find_nvdisasm", lambda: None)
    with pytest.raises(DSLError, match="there is no nvdisasm"):
        cute.compile(twice, x, options="--keep-sass")


def test_the_simulator_has_no_machine_code(sim, x):
    compiled = cute.compile[cute.KeepPTX](twice, x)
    assert compiled.__ptx__ is compiled.__cubin__ is compiled.__sass__ is None
    compiled(x)
    assert (x == 2).all()


def test_versions_are_compared_as_numbers():
    assert cute.CUDA_VERSION.major >= 12
    assert cute.target_version(min_version="12.0")
    assert not cute.target_version(min_version="99.10", max_version="99.9")
    assert not cute.target_version(max_version="9.9")
    with pytest.raises(DSLError, match="is not a CUDA version"):
        cute.target_version(min_version="new")


def test_compilations_are_logged_where_the_environment_says(sim, monkeypatch, tmp_path, x, capfd):
    monkeypatch.setenv("CUTE_DSL_DUMP_DIR", str(tmp_path))
    monkeypatch.setenv("CUTE_DSL_LOG_TO_FILE", "1")
    monkeypatch.setenv("CUTE_DSL_LOG_TO_CONSOLE", "1")
    monkeypatch.setenv("CUTE_DSL_LOG_LEVEL", "20")
    cute.compile(twice, x)
    monkeypatch.setenv("CUTE_DSL_LOG_TO_FILE", "0")
    monkeypatch.setenv("CUTE_DSL_LOG_TO_CONSOLE", "0")
    cute.compile(twice, x)
    (line,) = (tmp_path / "basedsl.log").read_text().splitlines()
    assert "INFO basedsl.compile: cute_twice(Tensor[Float32, 1]" in line
    assert line in capfd.readouterr().err


def test_what_tuning_measures_can_be_shown(sim, monkeypatch, capfd):
    monkeypatch.setenv("CUTE_DSL_LOG_AUTOTUNE", "1")
    best = cute.testing.tune(
        lambda n: lambda: None, params_dict={"n": [4]}, warmup_iterations=0, iterations=1
    )
    assert best == {"n": 4}
    lines = capfd.readouterr().out.splitlines()
    assert lines[0].startswith("autotune: {'n': 4}: ") and lines[1] == "autotune: best: {'n': 4}"


def test_options_that_contradict_each_other_are_named(x):
    with pytest.raises(DSLError, match=r"OptLevel\(3\) and OptLevel\(2\) contradict each other"):
        cute.compile[cute.OptLevel(3), cute.OptLevel(2)]
    with pytest.raises(DSLError, match="--arch sm_80 contradicts the arch before it, sm_90a"):
        cute.compile(twice, x, options="--gpu-arch sm_90a --arch sm_80")
    again = cute.compile[cute.OptLevel(3), cute.OptLevel(3)][cute.OptLevel(2)]
    assert again.settings("--opt-level 1 --opt-level 1").opt_level == 2
