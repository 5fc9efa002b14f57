"""Hooks see, change and add parts of compilations; plugins are asked in an order."""

import types
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from basedsl import (
    DSL,
    DSLTypeError,
    Language,
    PluginError,
    ResultType,
    Step,
    ask_plugins,
    hookimpl,
    hookspec,
    option,
    register_plugin,
    unregister_plugin,
)
from basedsl.plugin import GROUP, HOOKSPEC_GROUP, PluginManager, plugin_manager


class Hooked(Language):
    name = "hooked"


@pytest.fixture
def plug():
    """Registers functions as a plugin for the length of a test."""
    names = []

    def register(name="p", **functions):
        register_plugin(SimpleNamespace(**functions), name)
        names.append(name)

    yield register
    for name in names:
        unregister_plugin(name)


def double(n):
    return n * 2


def test_seeing_stages_of_one_dsl(plug):
    seen = []

    @hookimpl(dsls=["hooked"])
    def basedsl_see_stage(dsl, stage, output):
        seen.append((dsl, stage, output.kind))

    plug(basedsl_see_stage=basedsl_see_stage)
    other = type("Other", (Language,), {"name": "other"})
    assert DSL(other()).jit(double)(2) == 4
    assert seen == []
    assert DSL(Hooked()).jit(double)(2) == 4
    assert seen[0] == ("hooked", "input", "mlir")
    assert "object" in [stage for _, stage, _ in seen]
    assert not plugin_manager().replaces_stages("hooked")


def test_an_observer_leaves_the_disk_cache_on(plug, tmp_path, monkeypatch):
    monkeypatch.setenv("BASEDSL_CACHE", "1")
    monkeypatch.setenv("BASEDSL_CACHE_DIR", str(tmp_path))
    plug(basedsl_see_stage=hookimpl(lambda stage: None))
    assert DSL(Hooked()).jit(double)(2) == 4
    again = DSL(Hooked())
    assert again.jit(double)(2) == 4
    assert again.counts["loaded"] == 1


def test_one_that_replaces_stages_turns_it_off_for_its_dsls_alone(plug, tmp_path, monkeypatch):
    monkeypatch.setenv("BASEDSL_CACHE", "1")
    monkeypatch.setenv("BASEDSL_CACHE_DIR", str(tmp_path))
    plug(basedsl_stage_output=hookimpl(dsls=["other"])(lambda stage: None))
    assert DSL(Hooked()).jit(double)(2) == 4
    plug("q", basedsl_stage_output=hookimpl(dsls=["hooked"])(lambda stage: None))
    again = DSL(Hooked())
    assert again.jit(double)(2) == 4
    assert again.counts["compiled"] == 1


def test_what_only_sees_returns_nothing(plug):
    plug(basedsl_see_stage=hookimpl(lambda stage: 1))
    with pytest.raises(PluginError, match="of the plugin 'p' returned an int; it only sees"):
        DSL(Hooked()).jit(double)(2)


def test_steps_of_a_pipeline_are_inserted_and_replaced(plug):
    def to_add(op, context):
        def visit(inner):
            return context.bindings.ir.WalkResult.ADVANCE

        op.walk(visit)
        return context.artifact.replace("mul i64", "add i64")

    @hookimpl
    def basedsl_pipeline(dsl, pipeline, options):
        assert dsl == "hooked" and options.opt_level == 2
        assert "llvmir" in [step.name for step in pipeline]
        return pipeline.after("llvmir", Step("to-add", to_add, suffix=".ll"))

    plug(basedsl_pipeline=basedsl_pipeline)
    dsl = DSL(Hooked())
    f = dsl.jit(lambda a, b: a * b)
    assert f(3, 4) == 7
    assert "to-add" in dsl.compile(f, 3, 4).stages


def test_a_pipeline_of_another_kind(plug):
    plug(basedsl_pipeline=hookimpl(lambda pipeline: "canonicalize"))
    with pytest.raises(PluginError, match="'p' put a str in place of the pipeline"):
        DSL(Hooked()).jit(double)(2)


def test_a_plugin_that_changes_code_is_in_the_key_of_the_disk_cache(plug, tmp_path, monkeypatch):
    monkeypatch.setenv("BASEDSL_CACHE", "1")
    monkeypatch.setenv("BASEDSL_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "more_steps.py").write_text(
        "from basedsl import hookimpl\n@hookimpl\ndef basedsl_pipeline(pipeline): return None\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import more_steps

    def counts():
        dsl = DSL(Hooked())
        assert dsl.jit(double)(2) == 4
        return dict(dsl.counts)

    assert counts() == {"compiled": 1}
    assert counts() == {"loaded": 1}
    register_plugin(more_steps, "more-steps")
    try:
        assert counts() == {"compiled": 1}
        assert counts() == {"loaded": 1}
    finally:
        unregister_plugin("more-steps")
    plug(basedsl_pipeline=hookimpl(lambda pipeline: None))  # no module: no key
    assert counts() == {"compiled": 1}


def test_compiled_functions_and_errors_are_seen(plug):
    seen = []
    plug(
        basedsl_compiled=hookimpl(lambda function, compiled: seen.append(compiled.stages.names[0])),
        basedsl_error=hookimpl(lambda function, error: seen.append(type(error).__name__)),
    )
    f = DSL(Hooked()).jit(lambda n: n & 1.5 if n > 2 else n)
    with pytest.raises(DSLTypeError):
        f(4)
    assert seen == ["DSLTypeError"]
    assert DSL(Hooked()).jit(double)(2) == 4
    assert seen == ["DSLTypeError", "input"]


def test_results_of_a_foreign_type(plug):
    class Celsius:
        __dsl_leaf__ = True

        def __init__(self, degrees):
            self.degrees = degrees

    @dataclass(frozen=True)
    class CelsiusResult(ResultType):
        def ir_values(self, value):
            return [value.degrees.ir_value()]

        def unpack(self, storage):
            return f"{storage[0]} °C"

    f = DSL(Hooked()).jit(lambda x: Celsius(x + 1.0))
    with pytest.raises(DSLTypeError, match="is a Celsius, which cannot be returned"):
        f(20.0)
    plug(
        basedsl_result_type=hookimpl(
            lambda value: CelsiusResult() if isinstance(value, Celsius) else None
        )
    )
    assert f(20.0) == "21.0 °C"


def test_a_declared_parameter_given_a_foreign_class(plug):
    class Declared:
        """A class that the DSL knows by annotation, and refuses other values for."""

    class Picky(Hooked):
        name = "picky"

        def argument_type(self, value, annotation, name):
            if annotation is Declared and not isinstance(value, float):
                raise DSLTypeError(f"'{name}' is declared a Declared")
            return None

    class Foreign:
        number = 2.5

    dsl = DSL(Picky())

    @dsl.jit
    def f(x: Declared):
        return x * 2

    with pytest.raises(DSLTypeError, match="is declared a Declared"):
        f(Foreign())
    asked = []

    @hookimpl
    def basedsl_adapt_argument(dsl, kind, declared):
        asked.append((dsl, kind, declared))
        return (lambda value: value.number) if kind is Foreign else None

    plug(basedsl_adapt_argument=basedsl_adapt_argument)
    for _ in range(3):
        assert f(Foreign()) == 5.0
    assert asked[0] == ("picky", Foreign, Declared)


def test_options_of_an_existing_dsl(plug, monkeypatch):
    plug(
        basedsl_options=hookimpl(dsls=["hooked"])(
            lambda: {
                "fast": option(False, "round less", affects_output=True),
                "tiles": option(4, "how many", affects_output=False),
            }
        )
    )
    monkeypatch.setenv("BASEDSL_TILES", "8")
    dsl = DSL(Hooked())
    assert (dsl.options.fast, dsl.options.tiles) == (False, 8)
    assert dsl.settings("--fast").fast
    assert ("fast", True) in dsl.settings("--fast").output_key()
    assert not hasattr(DSL(type("Other", (Language,), {"name": "other"})()).options, "fast")
    cache = {"cache": option(1, "", affects_output=True)}
    plug("q", basedsl_options=hookimpl(lambda: cache))
    with pytest.raises(PluginError, match="'q' and the DSL 'hooked' both have an option 'cache'"):
        _ = DSL(Hooked()).options


def test_dialects_of_an_existing_dsl(plug):
    loaded = []
    plug(basedsl_load_dialects=hookimpl(lambda dsl, bindings: loaded.append(bindings.package)))
    assert DSL(Hooked()).jit(double)(2) == 4
    assert loaded == ["numba_cuda_mlir._mlir"]


def test_storage_of_compiled_code(plug, monkeypatch):
    monkeypatch.setenv("BASEDSL_CACHE", "1")

    class Store(dict):
        def read(self, key):
            return self.get(key)

        def write(self, key, content):
            self[key] = content
            return True

        def is_empty(self):
            return not self

    store = Store()
    plug(basedsl_cache_store=hookimpl(lambda dsl: store if dsl == "hooked" else None))
    assert DSL(Hooked()).jit(double)(2) == 4
    assert len(store) == 1
    again = DSL(Hooked())
    assert again.jit(double)(2) == 4
    assert again.counts["loaded"] == 1


# Order and wrappers ------------------------------------------------------------------------------


def test_the_order_is_that_of_names_and_of_pluggy():
    manager = PluginManager(lambda group: [])
    asked = []

    def see(name, **marks):
        def basedsl_see_stage(stage):
            asked.append(name)

        hook = hookimpl(**marks)(basedsl_see_stage)
        manager.register(SimpleNamespace(basedsl_see_stage=hook), name)

    see("b")
    see("a", trylast=True)
    see("c")
    see("d", tryfirst=True)
    manager.stage_observer("toy", "f")("s", "output")
    assert asked == ["d", "b", "c", "a"]


def test_wrappers_are_around_all_answers():
    manager = PluginManager(lambda group: [])
    said = []

    @hookimpl(wrapper=True)
    def basedsl_stage_output(output):
        said.append(f"before {output}")
        made = yield
        said.append(f"after {made}")
        return made + "!"

    manager.register(SimpleNamespace(basedsl_stage_output=basedsl_stage_output), "around")
    loud = hookimpl(lambda output: output.upper())
    manager.register(SimpleNamespace(basedsl_stage_output=loud), "loud")
    assert manager.stage_observer("toy", "f")("s", "text") == "TEXT!"
    assert said == ["before text", "after TEXT"]


def test_a_wrapper_sees_an_error_and_may_replace_it():
    manager = PluginManager(lambda group: [])

    @hookimpl(wrapper=True)
    def basedsl_stage_output(output):
        try:
            return (yield)
        except PluginError:
            return "saved"

    manager.register(SimpleNamespace(basedsl_stage_output=basedsl_stage_output), "around")
    broken = hookimpl(lambda output: 1 / 0)
    manager.register(SimpleNamespace(basedsl_stage_output=broken), "broken")
    assert manager.stage_observer("toy", "f")("s", "text") == "saved"


# Hooks of a plugin's own -------------------------------------------------------------------------


def point(name, module, owner=None):
    dist = None if owner is None else SimpleNamespace(name=owner, version="1.0", metadata={})
    return SimpleNamespace(name=name, load=lambda: module, value=f"{name}.plugin", dist=dist)


@hookspec
def tiles_shapes(dsl: str) -> list[int]:
    """Shapes of tiles."""


def test_a_plugin_specifies_hooks():
    specs = types.ModuleType("tiles_specs")
    specs.tiles_shapes = tiles_shapes
    answers = SimpleNamespace(tiles_shapes=hookimpl(dsls=["toy"])(lambda: [16, 32]))
    points = {HOOKSPEC_GROUP: [point("tiles", specs)], GROUP: [point("shapes", answers)]}
    manager = PluginManager(lambda group: points.get(group, []))
    assert manager.broken == {}
    assert manager.ask("tiles_shapes", dsl="toy") == [[16, 32]]
    assert manager.ask("tiles_shapes", dsl="cute") == []
    with pytest.raises(PluginError, match="no plugin specifies the hook 'tiles_shape'"):
        manager.ask("tiles_shape")
    with pytest.raises(PluginError, match="no plugin specifies"):
        ask_plugins("tiles_shapes")


def test_a_marked_function_of_no_hook_is_an_error():
    manager = PluginManager(lambda group: [])
    with pytest.raises(PluginError, match=r"has tiles_shape \(.*\), a hook that nobody asks"):
        manager.register(SimpleNamespace(tiles_shape=hookimpl(lambda: 1)), "p")


# Clashes, breakage, switching off ----------------------------------------------------------------


def test_two_distributions_with_one_plugin_name():
    empty = types.ModuleType("empty")
    points = {GROUP: [point("p", empty, "first"), point("p", empty, "second"), point("q", empty)]}
    manager = PluginManager(lambda group: points.get(group, []))
    assert manager.plugin_names() == ("q",)
    assert manager.broken["p"].reason == "'first' and 'second' both have a plugin 'p'"


def test_two_declarations_of_one_conformance():
    points = [point("toy", object(), "first"), point("toy", object(), "second")]
    manager = PluginManager(lambda group: points if group == "basedsl.conformance" else [])
    with pytest.raises(
        PluginError, match="'first' and 'second' both declare the conformance 'toy'"
    ):
        manager.conformances()["toy"].load()


def test_a_plugin_is_switched_off(monkeypatch):
    monkeypatch.setenv("BASEDSL_NO_PLUGINS", "p,dist-of-r,nobody")
    empty = types.ModuleType("empty")
    points = [point("p", empty), point("q", empty), point("r", empty, "dist-of-r")]
    manager = PluginManager(lambda group: points if group == GROUP else [])
    assert manager.plugin_names() == ("q",)
    rows = {row["name"]: row["state"] for row in manager.described()}
    nobody = "switched off: nothing has this name"
    off = {"p": "switched off", "dist-of-r": "switched off", "nobody": nobody}
    assert rows == {"q": "in use", **off}


def test_the_command_line_switches_off(capsys, monkeypatch):
    from basedsl.cli import main

    def command(name):
        from basedsl.plugin import Command

        return Command(name, "says hello", lambda parser: None, lambda parsed: print(name) or 0)

    commands = [command("hello"), command("list")]
    hooks = SimpleNamespace(basedsl_cli_commands=hookimpl(lambda: commands))

    def broken():
        raise ImportError("no such library")

    bad = SimpleNamespace(name="bad", load=broken, value="bad.plugin", dist=None)
    points = [point("greeter", hooks, "greeter-dist"), bad]

    def manager():
        return PluginManager(lambda group: points if group == GROUP else [])

    assert main(["hello"], manager()) == 0
    out, err = capsys.readouterr()
    assert out == "hello\n"
    assert "the plugin 'greeter' has a command 'list', which basedsl has itself" in err
    assert main(["plugins"], manager()) == 0
    out, _ = capsys.readouterr()
    assert "greeter          in use  (greeter.plugin of greeter-dist 1.0)" in out
    assert "    basedsl_cli_commands" in out
    assert "bad              broken: ImportError: no such library (" in out
    assert "test_hooks.py:" in out
    assert main(["-p", "no:greeter", "plugins"], manager()) == 0
    out, _ = capsys.readouterr()
    assert "greeter          switched off" in out
    with pytest.raises(SystemExit):
        main(["-p", "no:greeter-dist", "hello"], manager())
