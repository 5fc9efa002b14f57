"""Pipelines as values, and what running one leaves behind."""

from __future__ import annotations

import gc
import re

import pytest

from basedsl import DSL, Language
from basedsl.errors import CompilerBug, DSLTypeError
from basedsl.objectstage import Pipeline, Snapshot, Step, run_pipeline
from basedsl.objectstage.pipeline import split_passes

SOURCE = """
func.func @f(%x: i32) -> i32 {
  %0 = arith.constant 2 : i32
  %1 = arith.constant 3 : i32
  %2 = arith.addi %0, %1 : i32
  %3 = arith.muli %2, %x : i32
  return %3 : i32
}
"""


@pytest.fixture
def parse(mlir_context):
    def parse(text=SOURCE):
        with mlir_context.entered():
            return mlir_context.bindings.ir.Module.parse(text)

    return parse


def go(mlir_context, module, *steps, **kwargs):
    with mlir_context.entered():
        return run_pipeline(Pipeline("test", steps), module, mlir_context, **kwargs)


def rename(op, context):
    """A Python pass: the first function is called g."""
    function = op.regions[0].blocks[0].operations[0]
    function.attributes["sym_name"] = context.bindings.ir.StringAttr.get("g")


def test_a_step_may_be_called_llvmir():
    """Only code that the core's steps compile for the host gets an entry."""

    class Texts(Language):
        name = "texts"
        kept_on_disk = False

        def pipeline(self, settings):
            return Pipeline("texts", (Step("llvmir", lambda op, context: "; nothing"),))

        def executor(self, stages, symbol, arguments, results, settings):
            return lambda packed: stages.artifact

    assert DSL(Texts()).jit(lambda x: x + 1)(1) == "; nothing"


def test_every_output_is_kept_in_order(mlir_context, parse):
    stages = go(mlir_context, parse(), Step("fold", "canonicalize"), Step("rename", rename))
    assert stages.names == ("input", "fold", "rename")
    assert list(stages.seconds) == ["fold", "rename"]
    assert all(seconds > 0 for seconds in stages.seconds.values())
    assert "arith.addi" in stages.text("input")
    assert "arith.addi" not in stages.text("fold")
    assert "@f" in stages.text("fold")
    assert "@g" in stages.text("rename")
    assert stages.artifact is None


def test_the_input_module_is_left_alone(mlir_context, parse):
    module = parse()
    before = str(module)
    go(mlir_context, module, Step("fold", "canonicalize"), Step("rename", rename))
    assert str(module) == before


def test_a_run_inside_an_open_insertion_point_adds_nothing_there(mlir_context, parse):
    module, outer = parse(), parse("module {}")
    with mlir_context.entered(), mlir_context.bindings.ir.InsertionPoint(outer.body):
        run_pipeline(Pipeline("p", [Step("fold", "canonicalize")]), module, mlir_context)
    assert len(outer.body.operations) == 0


def test_outputs_outlive_the_module(mlir_context, parse):
    stages = go(mlir_context, parse(), Step("fold", "canonicalize"))
    gc.collect()
    assert "func.func @f" in stages.text("fold")
    assert isinstance(stages.data("fold"), bytes)


def test_text_has_locations_only_if_asked(mlir_context, parse):
    stages = go(mlir_context, parse(SOURCE.replace("i32\n}", 'i32 loc("user.py":7:3)\n}')))
    assert "user.py" not in stages.text("input")
    assert '"user.py":7:3' in stages.text("input", locations=True)


def test_artifacts_become_outputs_and_reach_later_steps(mlir_context, parse):
    seen = []

    def emit(op, context):
        return "text of the module"

    def assemble(op, context):
        seen.append((context.artifact, dict(context.artifacts), context.options))
        return context.artifact.encode()

    stages = go(mlir_context, parse(), Step("asm", emit), Step("obj", assemble), options="how")
    assert seen == [("text of the module", {"asm": "text of the module"}, "how")]
    assert stages.artifact == b"text of the module"
    assert stages.text("asm") == "text of the module"
    assert stages.text("obj") == "<18 bytes of binary>\n"


def test_passes_written_in_several_ways_are_the_same():
    ways = [
        "canonicalize,cse,test{a=1 b=2,3},func.func(cse)",
        "builtin.module( canonicalize, cse ,test{a=1 b=2,3}, func.func(cse))",
        ("canonicalize,cse", "test{a=1 b=2,3}", "func.func(cse)"),
    ]
    lists = {Step("s", way).pass_list() for way in ways}
    assert len(lists) == 1
    assert lists.pop() == ("canonicalize", "cse", "test{a=1 b=2,3}", "func.func(cse)")


def test_split_passes_respects_nesting():
    assert split_passes("a{x=1,2},b(c,d(e,f)), g") == ["a{x=1,2}", "b(c,d(e,f))", "g"]
    assert split_passes("") == []


def test_editing_makes_new_pipelines():
    pipeline = Pipeline("p", [Step("a", "cse"), Step("c", "cse")])
    longer = pipeline.before("c", Step("b", "cse")).then(Step("e", "cse")).after("c", Step("d", ""))
    assert [step.name for step in longer] == ["a", "b", "c", "d", "e"]
    assert [step.name for step in longer.until("b")] == ["a", "b"]
    assert [step.name for step in pipeline] == ["a", "c"]
    with pytest.raises(KeyError, match="no step 'x'; it has a, c"):
        pipeline.until("x")


def test_names_are_checked():
    with pytest.raises(ValueError, match="names a more than once"):
        Pipeline("p", [Step("a", ""), Step("a", "")])
    with pytest.raises(ValueError, match="names input more than once"):
        Pipeline("p", [Step("input", "")])
    with pytest.raises(ValueError, match=r"'\.\./a' cannot name a step"):
        Pipeline("p", [Step("../a", "")])


def test_may_contain_is_never_wrongly_false(mlir_context, parse):
    seen = {}

    def ask(op, context):
        for name in ("arith.muli", "cf.assert", "func.return"):
            seen[name] = context.may_contain(name)

    go(mlir_context, parse(), Step("ask", ask))
    assert seen == {"arith.muli": True, "cf.assert": False, "func.return": True}


def test_a_step_is_passed_over_where_its_dialects_are_not_used(mlir_context, parse):
    called = []

    def look(op, context):
        called.append(context.may_use("memref"))

    stages = go(
        mlir_context,
        parse(),
        Step("vectors", look, only_for=("vector", "memref")),
        Step("numbers", look, only_for=("vector", "arith")),
    )
    assert called == [False]
    assert stages["vectors"] is stages["input"]
    assert stages.names == ("input", "vectors", "numbers")


def test_an_observer_sees_and_replaces(mlir_context, parse):
    seen = []

    def observe(name, output):
        seen.append((name, output.kind))
        if name == "fold":
            return Snapshot(output.text().replace("@f", "@other"), "text")
        if name == "emit":
            return Snapshot("replaced", "text")
        return None

    stages = go(
        mlir_context,
        parse(),
        Step("fold", "canonicalize"),
        Step("cse", "cse"),
        Step("emit", lambda op, context: "emitted"),
        observe=observe,
    )
    assert seen == [("input", "mlir"), ("fold", "mlir"), ("cse", "mlir"), ("emit", "text")]
    assert "@other" in stages.text("fold")
    assert "@other" in stages.text("cse")
    assert stages.artifact == "replaced"


def test_an_observer_that_hands_back_nonsense_is_told(mlir_context, parse):
    with pytest.raises(CompilerBug, match="put in place of a module is not MLIR"):
        go(mlir_context, parse(), observe=lambda name, output: Snapshot("nonsense", "text"))


def test_errors_of_the_family_pass_through_python_passes(mlir_context, parse):
    def refuse(op, context):
        raise DSLTypeError("no")

    with pytest.raises(DSLTypeError, match="no"):
        go(mlir_context, parse(), Step("s", refuse))


def test_a_python_pass_that_breaks_is_a_compiler_bug(mlir_context, parse):
    def broken(op, context):
        raise LookupError("gone")

    with pytest.raises(CompilerBug, match="step 's' of pipeline 'test' broke: LookupError: gone"):
        go(mlir_context, parse(), Step("s", broken))


def test_a_misspelt_pass_is_named(mlir_context, parse):
    with pytest.raises(CompilerBug, match=r"step 's' .* is not a pass pipeline .* 'nope'"):
        go(mlir_context, parse(), Step("s", "cse,nope"))


def test_saving_writes_readable_files(mlir_context, parse, tmp_path):
    stages = go(
        mlir_context,
        parse(),
        Step("fold", "canonicalize"),
        Step("text", lambda op, context: "hello", suffix=".s"),
        Step("code", lambda op, context: b"\x00\x01", suffix=".o"),
    )
    paths = stages.save(tmp_path / "out", "fn")
    names = ["fn.mlir", "fn.01.fold.mlir", "fn.02.text.s", "fn.03.code.o"]
    assert [path.name for path in paths] == names
    assert "func.func" in paths[0].read_text()
    assert paths[2].read_text() == "hello"
    assert paths[3].read_bytes() == b"\x00\x01"
    some = stages.save(tmp_path / "some", "fn", ("code", "unknown"))
    assert [path.name for path in some] == ["fn.03.code.o"]
    ptx = go(mlir_context, parse(), Step("ptx", lambda op, context: "ptx", suffix=".ptx"))
    assert [path.name for path in ptx.save(tmp_path, "fn.sm_90a", ("ir", "ptx"))] == [
        "fn.sm_90a.mlir",
        "fn.sm_90a.ptx",
    ]


def test_report_has_a_line_for_each_stage(mlir_context, parse):
    lines = go(mlir_context, parse(), Step("fold", "canonicalize")).report().splitlines()
    assert re.match(r"input +\d+ mlir$", lines[0])
    assert re.match(r"fold +[\d.]+ ms +\d+ mlir$", lines[1])


def test_an_unknown_stage_is_told_with_the_known_ones(mlir_context, parse):
    with pytest.raises(KeyError, match="no stage 'x'; there is input"):
        go(mlir_context, parse())["x"]
