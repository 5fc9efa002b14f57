"""Options: one record, environment, command-line text, suggestions, cache keys."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import pytest

from basedsl.option_fields import OptionError, option
from basedsl.options import Options


@dataclass(frozen=True, kw_only=True)
class MyOptions(Options, prefix="MY_DSL_"):
    arch: str = option("", "target architecture", affects_output=True)
    keep_ptx: bool = option(False, "save the PTX", affects_output=False, env="PTX_FILES")
    limit: int | None = option(None, "registers a thread", affects_output=True)


def test_defaults_and_reading_nothing():
    assert Options.from_environment({}) == Options()
    assert Options().opt_level == 2
    assert Options().cache is True


def test_reading_the_environment():
    env = {
        "BASEDSL_OPT_LEVEL": "3",
        "BASEDSL_KEEP": "ptx, cubin,",
        "BASEDSL_DUMP_DIR": "/some/where",
        "BASEDSL_CACHE": "off",
        "BASEDSL_PRINT_IR": "1",
        "UNRELATED": "x",
    }
    assert Options.from_environment(env) == Options(
        opt_level=3, keep=("ptx", "cubin"), dump_dir=Path("/some/where"), cache=False, print_ir=True
    )


def test_a_prefix_of_ones_own_comes_first_and_the_core_second():
    env = {"MY_DSL_PRINT_IR": "0", "BASEDSL_PRINT_IR": "1", "BASEDSL_OPT_LEVEL": "1"}
    options = MyOptions.from_environment(env)
    assert (options.print_ir, options.opt_level) == (False, 1)
    assert MyOptions.from_environment({"MY_DSL_ARCH": "sm_90a"}).arch == "sm_90a"
    assert MyOptions.from_environment({"BASEDSL_ARCH": "sm_90a"}).arch == ""
    assert MyOptions.from_environment({"MY_DSL_PTX_FILES": "yes"}).keep_ptx is True
    assert Options.PREFIX == "BASEDSL_"


def test_overrides_beat_the_environment():
    options = MyOptions.from_environment({"MY_DSL_ARCH": "sm_80"}, arch="sm_90")
    assert options.arch == "sm_90"


def test_optional_values():
    assert MyOptions.from_environment({"MY_DSL_LIMIT": "64"}).limit == 64
    assert MyOptions.from_environment({"MY_DSL_LIMIT": ""}).limit is None


@pytest.mark.parametrize(
    ("variable", "text", "wanted"),
    [
        ("BASEDSL_CACHE", "maybe", "true or false"),
        ("BASEDSL_OPT_LEVEL", "fast", "one of 0, 1, 2, 3"),
        ("BASEDSL_OPT_LEVEL", "7", "one of 0, 1, 2, 3"),
        ("BASEDSL_CACHE_SIZE", "-1", "an integer of at least 0"),
        ("BASEDSL_LOG_LEVEL", "loud", "one of debug, info, warning, error"),
    ],
)
def test_bad_values_name_the_variable(variable, text, wanted):
    with pytest.raises(OptionError, match=f"{variable}='{text}': the value is {wanted}"):
        Options.from_environment({variable: text})


def test_unknown_options_are_suggested():
    for make in (
        lambda: Options.make(opt_levl=3),
        lambda: Options().replace(opt_levl=3),
        lambda: Options.from_environment({}, opt_levl=3),
    ):
        with pytest.raises(OptionError, match="there is no option opt_levl") as caught:
            make()
        assert caught.value.hint == "did you mean opt_level?"
        assert caught.value.span.filename == __file__ and "called from" not in str(caught.value)
    with pytest.raises(OptionError, match="no option qqq") as caught:
        Options.make(qqq=1)
    assert "opt_level" in caught.value.hint


@pytest.mark.parametrize(
    "values",
    [
        {"opt_level": 9},
        {"opt_level": True},
        {"cache": 1},
        {"keep": "ptx"},
        {"mlir": 3},
        {"cache_size": -1},
    ],
)
def test_values_of_the_wrong_kind_are_refused(values):
    with pytest.raises(OptionError, match=f"option {next(iter(values))} is") as caught:
        Options(**values)
    assert caught.value.span.filename == __file__


def test_convenient_values_are_taken():
    assert Options(dump_dir="x").dump_dir == Path("x")
    assert Options(keep=["a"]).keep == ("a",)


def test_options_written_as_on_a_command_line():
    options = MyOptions().parse("--opt-level 3 --print-ir --keep=ptx,cubin --arch 'sm_90a'")
    assert options == MyOptions(opt_level=3, print_ir=True, keep=("ptx", "cubin"), arch="sm_90a")
    assert MyOptions().parse("--print-ir --keep-ptx") == MyOptions(print_ir=True, keep_ptx=True)
    assert MyOptions().parse("--cache 0").cache is False
    assert MyOptions().parse("") == MyOptions()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("--opt-levl 3", "there is no option --opt-levl"),
        ("opt-level 3", "expected an option, not 'opt-level'"),
        ("--opt-level", "--opt-level needs a value"),
        ("--opt-level x", "--opt-level x: the value is one of"),
    ],
)
def test_bad_command_lines(text, message):
    with pytest.raises(OptionError, match=message):
        Options().parse(text)


def test_records_are_frozen_and_hashable():
    options = MyOptions(arch="sm_90")
    with pytest.raises(dataclasses.FrozenInstanceError):
        options.arch = "sm_80"
    assert hash(options) == hash(MyOptions(arch="sm_90"))


def test_the_key_has_what_changes_the_code_and_nothing_else():
    base = MyOptions()
    for info in MyOptions.describe():
        other = {
            "bool": lambda v: not v,
            "int": lambda v: 3,
            "str": lambda v: "error" if "debug" in info.choices else "x",  # noqa: B023
            "path": lambda v: Path("x"),
            "names": lambda v: ("x",),
        }[info.type_name](info.default)
        changed = base.replace(**{info.name: other})
        assert (changed.output_key() != base.output_key()) == info.affects_output, info.name


def test_every_option_is_described():
    infos = MyOptions.describe()
    assert [info.name for info in infos][-3:] == ["arch", "keep_ptx", "limit"]
    assert all(info.doc and not info.doc.endswith(".") for info in infos)
    assert infos[0].variables == (
        "MY_DSL_PRINT_AFTER_PREPROCESS",
        "BASEDSL_PRINT_AFTER_PREPROCESS",
    )
    variables = MyOptions.environment_variables()
    assert len(variables) == len(set(variables))


def test_variables_that_nothing_reads_are_found():
    env = {"MY_DSL_ARHC": "x", "MY_DSL_ARCH": "y", "BASEDSL_NONSENSE": ""}
    assert MyOptions.unknown_variables(env) == {
        "BASEDSL_NONSENSE": "",
        "MY_DSL_ARHC": "MY_DSL_ARCH",
    }
    assert Options.unknown_variables({"BASEDSL_PTX_FILE": "1"}) == {
        "BASEDSL_PTX_FILE": "MY_DSL_PTX_FILES"
    }


def test_fields_are_declared_with_option():
    @dataclass(frozen=True, kw_only=True)
    class Bad(Options, prefix="BAD_"):
        thing: complex = option(1j, "unheard of", affects_output=False)

    with pytest.raises(TypeError, match=r"Bad.thing: declare it with option\(\)"):
        Bad()


# Names that several programs use, and options that contradict each other -----------------------


@pytest.mark.parametrize(
    ("variable", "text", "name", "value"),
    [
        ("KEEP_IR", "1", "keep", ("ir",)),
        ("KEEP_IR", "0", "keep", ()),
        ("PRINT_AFTER_PREPROCESSOR", "1", "print_after_preprocess", True),
        ("JIT_TIME_PROFILING", "1", "time_stages", True),
        ("FILTER_STACKTRACE", "0", "full_traceback", True),
        ("DISABLE_FILE_CACHING", "1", "cache", False),
        ("DRYRUN", "1", "dryrun", True),
        ("WARNINGS_AS_ERRORS", "1", "warnings_as_errors", True),
        ("LIBS", "a.so,b.so", "libs", ("a.so", "b.so")),
    ],
)
def test_variables_of_every_dsl(variable, text, name, value):
    for prefix in ("MY_DSL_", "BASEDSL_"):
        assert getattr(MyOptions.from_environment({prefix + variable: text}), name) == value
    assert getattr(Options.from_environment({f"BASEDSL_{variable}": text}), name) == value


def test_each_variable_that_keeps_adds_a_stage():
    env = {"BASEDSL_KEEP": "llvm", "BASEDSL_KEEP_IR": "1"}
    assert Options.from_environment(env).keep == ("llvm", "ir")


def test_variables_that_contradict_each_other_are_named():
    env = {"BASEDSL_CACHE": "1", "BASEDSL_DISABLE_FILE_CACHING": "1"}
    with pytest.raises(
        OptionError,
        match="BASEDSL_CACHE='1' and BASEDSL_DISABLE_FILE_CACHING='1' contradict each other",
    ):
        Options.from_environment(env)
    assert Options.from_environment({**env, "BASEDSL_CACHE": "0"}).cache is False


def test_a_wrong_value_is_an_error_at_the_users_line():
    for make in (lambda: Options(opt_level=5), lambda: Options().replace(opt_level=5)):
        with pytest.raises(OptionError, match="opt_level is one of 0, 1, 2, 3, not 5") as caught:
            make()
        assert caught.value.span.filename == __file__


@pytest.mark.parametrize(("text", "on"), [("1", True), ("my_kernel", True), ("0", False)])
def test_a_variable_that_other_compilers_read(text, on):
    assert Options.from_environment({"MLIR_ENABLE_DUMP": text}).print_ir_after_all is on
    env = {"MLIR_ENABLE_DUMP": text, "BASEDSL_PRINT_IR_AFTER_ALL": "0"}
    assert not Options.from_environment(env).print_ir_after_all


def test_debug_raises_what_helps_and_nothing_that_was_said():
    options = Options.from_environment({"BASEDSL_DEBUG": "1", "BASEDSL_TIME_STAGES": "0"})
    assert options.full_traceback and options.log_to_console and options.keep == ("all",)
    assert options.log_level == "debug" and options.dump_dir == Path("basedsl-debug")
    assert not options.time_stages
    assert Options(log_level="error").parse("--debug").log_level == "error"
    assert Options().parse("--debug").log_level == "debug"


def test_a_prefix_of_other_programs_is_read_last():
    @dataclass(frozen=True, kw_only=True)
    class Theirs(Options, prefix="OURS_"):
        OTHER_PREFIXES = ("THEIRS_",)
        arch: str = option("", "target architecture", affects_output=True)

    assert Theirs.from_environment({"THEIRS_ARCH": "a", "THEIRS_KEEP_IR": "1"}) == Theirs(
        arch="a", keep=("ir",)
    )
    assert Theirs.from_environment({"THEIRS_ARCH": "a", "OURS_ARCH": "b"}).arch == "b"
    assert not Theirs.unknown_variables({"THEIRS_ELSE": "1"})


def test_a_variable_with_options_as_on_a_command_line():
    @dataclass(frozen=True, kw_only=True)
    class Told(Options, prefix="TOLD_"):
        TEXT_VARIABLE = "OPTIONS"

    read = Told.from_environment
    assert read({"TOLD_OPTIONS": "--opt-level 1 --keep-ir"}) == Told(opt_level=1, keep=("ir",))
    assert read({"TOLD_OPTIONS": "--opt-level 1", "TOLD_OPT_LEVEL": "3"}).opt_level == 1
    assert read({"TOLD_OPTIONS": "--opt-level 1"}, opt_level=0).opt_level == 0
    assert read({"TOLD_OPTIONS": ""}) == Told()
    assert not Told.unknown_variables({"TOLD_OPTIONS": "--keep-ir"})
    for text, message in (
        ("--optlevel 1", "there is no option --optlevel"),
        ("--dump-dir 'a", "No closing quotation"),
    ):
        with pytest.raises(OptionError, match=f"TOLD_OPTIONS=.*: {message}"):
            read({"TOLD_OPTIONS": text})
