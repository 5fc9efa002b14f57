"""Options, artifacts and introspection that every DSL has, on toy."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import traceback
import warnings

import numpy as np
import pytest

import basedsl
import basedsl_toy as toy
from basedsl import DSLError, OptionError, OptionWarning


@toy.jit
def scale(a: toy.Buffer, by, times: toy.Constexpr):
    for i in range(len(a)):
        a[i] = a[i] * by * times
    return by


@pytest.fixture
def a():
    return np.ones(4)


def test_kept_stages_are_files_named_by_function_and_machine(monkeypatch, tmp_path, a):
    monkeypatch.setenv("BASEDSL_DUMP_DIR", str(tmp_path))
    machine = platform.machine()
    toy.compile[toy.KeepIR](scale, a, 2.0, 3)
    (file,) = tmp_path.iterdir()
    assert file.name == f"scale.{machine}.mlir" and "arith.mulf" in file.read_text()
    toy.compile(scale, a, 2.0, 3, options="--keep llvmir")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names[0].startswith(f"scale.{machine}.") and names[0].endswith(".llvmir.ll")


def test_a_stage_that_nothing_has_is_an_error_by_name(a):
    with pytest.raises(
        OptionError, match="keep names 'lvmir', and toy has no such stage"
    ) as caught:
        toy.compile(scale, a, 2.0, 3, options="--keep lvmir")
    assert caught.value.hint == "did you mean llvmir?"


def test_a_folder_that_cannot_be_written_is_an_error_by_name(tmp_path, a):
    (tmp_path / "file").write_text("")
    with pytest.raises(OptionError, match=r"dump_dir names .*file, which cannot be written"):
        toy.compile(scale, a, 2.0, 3, options=f"--keep-ir --dump-dir {tmp_path / 'file'}")
    options = f"--log-to-file --dump-dir {tmp_path / 'file'}"
    with pytest.raises(OptionError, match=r"the log .*basedsl.log cannot be written"):
        toy.compile(scale, a, 2.0, 3, options=options)


def test_a_dry_run_builds_ir_and_does_nothing(a):
    compiled = toy.compile[toy.DryRun](scale, a, 2.0, 3)
    assert compiled.stages.names == ("input",) and "arith.mulf" in compiled.__mlir__
    assert compiled(a, 2.0) is None and (a == 1).all()
    assert toy.compile(scale, a, 2.0, 3)(a, 2.0) == 2.0 and (a == 6).all()


def test_a_dry_run_makes_what_it_is_to_keep(monkeypatch, tmp_path, a):
    monkeypatch.setenv("BASEDSL_DUMP_DIR", str(tmp_path))
    compiled = toy.compile(scale, a, 2.0, 3, options="--dryrun --keep llvmir")
    assert compiled.stages.names[-1] == "llvmir"
    assert [path.suffix for path in tmp_path.iterdir()] == [".ll"]
    assert compiled(a, 2.0) is None and (a == 1).all()


def test_modules_are_printed_after_each_step(capfd, a):
    toy.compile(scale, a, 2.0, 3, options="--print-ir-after-all")
    said = capfd.readouterr().err
    assert said.startswith("// -----// IR Dump After input ('toy_scale') //----- //\nmodule")
    assert "IR Dump After llvm ('toy_scale')" in said and "llvm.func" in said


def test_the_environment_can_ask_for_a_dry_run(monkeypatch, a):
    monkeypatch.setenv("BASEDSL_DRYRUN", "1")
    assert scale(a, 2.0, 3) is None and (a == 1).all()
    monkeypatch.setenv("BASEDSL_DRYRUN", "0")
    assert scale(a, 2.0, 3) == 2.0 and (a == 6).all()


def test_times_of_stages_and_of_runs(monkeypatch, a, capfd):
    monkeypatch.setenv("BASEDSL_JIT_TIME_PROFILING", "1")
    for _ in range(3):
        scale(a, 2.0, 1)
    lines = capfd.readouterr().err.splitlines()
    assert "pre-stage" in lines[0] and "trace" in lines[0] and "llvmir" in lines[0]
    assert [line.split(" run ")[0] for line in lines[1:]] == ["toy_scale:"] * 3
    compiled = toy.compile(scale, a, 2.0, 1)
    capfd.readouterr()
    compiled(a, 2.0)
    assert capfd.readouterr().err.startswith("toy_scale: run ")


def test_a_misspelt_variable_warns_once(monkeypatch, a):
    monkeypatch.setenv("BASEDSL_OPTLEVEL", "3")
    with pytest.warns(OptionWarning, match="BASEDSL_OPTLEVEL; did you mean BASEDSL_OPT_LEVEL?"):
        assert toy.TOY.options.opt_level == 2
    monkeypatch.setenv("BASEDSL_CACHE", "0")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert toy.TOY.options.opt_level == 2


def test_warnings_can_be_errors(monkeypatch):
    monkeypatch.setenv("BASEDSL_OPTLEVLE", "3")
    monkeypatch.setenv("BASEDSL_WARNINGS_AS_ERRORS", "1")
    with pytest.raises(DSLError, match="nothing reads the environment variable BASEDSL_OPTLEVLE"):
        _ = toy.TOY.options


def test_every_pass_is_a_stage_on_request(a):
    compiled = toy.compile(scale, a, 2.0, 3, options="--pass-stages")
    names = compiled.stages.names
    assert "llvm.2.convert-scf-to-cf" in names
    plain = toy.compile(scale, a, 2.0, 3)
    texts = [re.sub(r"assert_msg_\d+", "msg", one.stages.text("llvm")) for one in (plain, compiled)]
    assert texts[0] == texts[1]
    assert compiled(a, 2.0) == 2.0


def test_options_are_extended_by_subclasses(a):
    class Cache(basedsl.BooleanCompileOption):
        option = "cache"

    class Keep(basedsl.BooleanBasedFileDumpOption):
        option = "llvmir"

    settings = toy.compile[toy.OptLevel(0), Cache(False), Keep].settings("--print-ir")
    assert (settings.opt_level, settings.cache, settings.keep) == (0, False, ("llvmir",))
    assert settings.print_ir
    with pytest.raises(OptionError, match="OptLevel takes a value of type int, not '3'"):
        toy.OptLevel("3")
    with pytest.raises(DSLError, match=r"compile\[...\] takes compile options, not 3"):
        toy.compile[3]


def test_the_module_is_walked(a):
    compiled = toy.compile(scale, a, 2.0, 3)
    module, names = compiled.ir_module, []

    def visit(op):
        names.append(op.name)
        return toy.TOY.mlir.bindings.ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    assert "arith.mulf" in names and "func.func" in names
    module.body.operations[0].erase()  # a module of one's own
    assert "func.func" in compiled.__mlir__


def test_constexpr_arguments(a):
    assert toy.compile(scale, a, 2.0, times=3).get_constexpr_args() == [
        {"argument_index": 2, "argument_name": "times", "value": 3}
    ]


def test_compilations_of_a_function(a):
    scale.forget()
    scale(a, 2.0, 1)
    scale(a, 2, 1)
    assert [str(one.arguments[1]) for one in scale.compilations] == ["Float64", "Int64"]


def test_compilations_on_disk(monkeypatch, tmp_path, a):
    monkeypatch.setenv("BASEDSL_CACHE", "1")
    monkeypatch.setenv("BASEDSL_CACHE_DIR", str(tmp_path))
    scale.forget()
    scale(a, 2.0, 7)
    ((key, found),) = basedsl.cached_compilations(tmp_path).items()
    assert found.dsl == "toy" and found.function.endswith("scale") and len(key) == 64
    module, same = found
    assert same is found and "arith.mulf" in str(module)
    assert basedsl.cached_compilations(tmp_path, capacity=0) == {}


def test_hooks_around_compilations(a):
    modules, compiled = [], []
    with (
        basedsl.PostCompileHookContext(toy.TOY, lambda module: modules.append(str(module))),
        basedsl.observing(compiled.append, "toy"),
        basedsl.observing(compiled.append, "another"),
    ):
        toy.compile(scale, a, 2.0, 3)
    toy.compile(scale, a, 2.0, 3)
    assert len(modules) == len(compiled) == 1
    assert "llvm.func" in modules[0] and "arith." not in modules[0]


def test_ir_types_of_python_objects(a):
    assert [str(one) for one in toy.TOY.ir_types(1.5)] == ["f64"]
    assert [str(one) for one in toy.TOY.ir_types((1, 2.5))] == ["i64", "f64"]
    assert str(toy.TOY.ir_types(a)[0]) == "!llvm.ptr"
    assert toy.TOY.ir_types(None) == []


def test_libraries_are_loaded_by_name(tmp_path, a):
    with pytest.raises(OptionError, match=r"libs names '.*nope.so', which cannot be loaded"):
        toy.compile(scale, a, 2.0, 3, options=f"--libs {tmp_path / 'nope.so'}")


DEBUGGED = """
import basedsl_toy as toy
@toy.jit
def double(n):
    return 2 * n
print(double(21))
"""


def test_debug_tells_everything(tmp_path):
    (tmp_path / "prog.py").write_text(DEBUGGED)
    done = subprocess.run(
        [sys.executable, "prog.py"],
        cwd=tmp_path,
        env={**os.environ, "BASEDSL_DEBUG": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "42\n"
    assert "DEBUG basedsl.compile" in done.stderr and "toy_double: run" in done.stderr
    saved = [path.name for path in (tmp_path / "basedsl-debug").iterdir()]
    assert f"double.{platform.machine()}.mlir" in saved and len(saved) > 8


@pytest.mark.parametrize(
    ("variable", "value", "shown"),
    [("BASEDSL_DEBUG", "0", False), ("BASEDSL_FILTER_STACKTRACE", "0", True),
     ("BASEDSL_FULL_TRACEBACK", "1", True), ("CUTE_DSL_FILTER_STACKTRACE", "1", False)],
)  # fmt: skip
def test_frames_of_the_library_are_shown_on_request(monkeypatch, variable, value, shown):
    monkeypatch.setenv(variable, value)

    @toy.jit
    def wrong(n):
        return n + "text"

    with pytest.raises(TypeError) as caught:
        wrong(1)
    names = [entry.filename for entry in traceback.extract_tb(caught.value.__traceback__)]
    assert any("basedsl/driver.py" in name for name in names) == shown


def test_what_host_code_takes(a):
    compiled = toy.compile(scale, a, 2.0, 3)
    size = compiled.resources["scale"].code
    assert size > 20 and str(compiled).endswith(f"scale: {size} bytes of code")
    assert "<summary>llvmir</summary>" in compiled._repr_html_()
    counts = compiled.instruction_histogram()
    assert counts.total() > 5 and counts.most_common() == list(counts.items())
    assert toy.compile[toy.DryRun](scale, a, 2.0, 3).resources == {}


# Functions that others have compiled -----------------------------------------------------------

hypot = toy.external("hypot", (toy.Float64, toy.Float64), toy.Float64)


@toy.jit
def length(x, y):
    return hypot(x, y)


def test_a_function_of_the_process():
    assert length(3.0, 4) == 5.0


def test_a_function_of_a_shared_library(tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    name = f"see_{os.urandom(4).hex()}"
    source, target = tmp_path / "lib.c", tmp_path / "lib.so"
    source.write_text(f"long {name}(long a, double b) {{ return a + (long)b; }}\n")
    subprocess.run([compiler, "-shared", "-fPIC", source, "-o", target], check=True)
    function = toy.external(name, (toy.Int64, toy.Float64), toy.Int64)

    @toy.jit
    def use(n):
        return function(n, 2.5) * 2

    with pytest.raises(DSLError, match=f"native code needs {name}"):
        toy.compile(use, 40)
    assert toy.compile(use, 40, options=f"--libs {target}")(40) == 84
