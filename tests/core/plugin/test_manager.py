"""Plugins: registering, clashing, breaking, being found through entry points."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import threading
import types
from types import SimpleNamespace

import pytest

from basedsl.errors import DSLTypeError
from basedsl.objectstage import Snapshot
from basedsl.plugin import (
    DSL_GROUP,
    GROUP,
    Command,
    DSLEntry,
    PluginError,
    PluginManager,
    hookimpl,
    hookspecs,
)


def plugin(**functions):
    """A module-like plugin with these functions as hook implementations."""
    return SimpleNamespace(**{name: hookimpl(f) for name, f in functions.items()})


def dsl_plugin(*names, loads=None):
    def entry(name):
        return DSLEntry(name, lambda: loads(name) if loads else SimpleNamespace(name=name))

    return plugin(basedsl_register_dsls=lambda: [entry(name) for name in names])


def point(name, module):
    """An entry point that loads `module`, or raises it."""

    def load():
        if isinstance(module, BaseException):
            raise module
        return module

    return SimpleNamespace(name=name, load=load, value=f"{name}_package.plugin", dist=None)


def of_plugins(points):
    """A manager that finds these plugins, and no other entry points."""
    return PluginManager(lambda group: points if group == GROUP else [])


@pytest.fixture
def manager():
    return PluginManager(lambda group: [])


def state(manager):
    return (
        manager.plugin_names(),
        manager.dsl_names(),
        dict(manager.broken),
        sorted(str(name) for name, _ in manager._pluggy.list_name_plugin()),
    )


def test_a_dsl_is_loaded_when_it_is_used_and_once(manager):
    loads = []

    def load(name):
        loads.append(name)
        return SimpleNamespace(name=name)

    manager.register(dsl_plugin("a", "b", loads=load), "p")
    assert manager.dsl_names() == ("a", "b")
    assert loads == []
    assert manager.get_dsl("b") is manager.get_dsl("b")
    assert loads == ["b"]


def test_removing_a_plugin_removes_its_dsls_only(manager):
    manager.register(dsl_plugin("a"), "p")
    manager.register(dsl_plugin("b"), "q")
    manager.get_dsl("a")
    manager.unregister("p")
    assert manager.dsl_names() == ("b",)
    with pytest.raises(PluginError, match=r"there is no DSL 'a' \(there is b\)"):
        manager.get_dsl("a")
    manager.register(dsl_plugin("a"), "p")
    assert manager.get_dsl("a").name == "a"


def test_an_unknown_dsl_gets_a_suggestion(manager):
    manager.register(dsl_plugin("cute"), "p")
    with pytest.raises(PluginError, match="there is no DSL 'cut'") as caught:
        manager.get_dsl("cut")
    assert caught.value.hint == "did you mean 'cute'?"


def test_with_nothing_installed(manager):
    assert manager.dsl_names() == ()
    with pytest.raises(PluginError, match="none installed"):
        manager.get_dsl("toy")


def spec_mismatch():
    return plugin(basedsl_stage_output=lambda dsl, no_such_parameter: None)


def unmarked():
    return SimpleNamespace(basedsl_register_dsls=list)


def wrapper():
    @hookimpl(hookwrapper=True)
    def basedsl_register_dsls():
        return (yield)

    return SimpleNamespace(basedsl_register_dsls=basedsl_register_dsls)


def nothing():
    return []


def failing():
    raise OSError("no disk")


BAD = {
    "misspelt": (
        lambda: plugin(basedsl_register_dsl=nothing),
        r"has basedsl_register_dsl \(.*test_manager.py:\d+\), a hook that nobody asks",
    ),
    "unmarked": (unmarked, r"basedsl_register_dsls of the plugin 'bad'.* is not marked"),
    "signature": (spec_mismatch, r"does not fit its hooks: .*no_such_parameter"),
    "wrapper": (wrapper, "is an old-style wrapper"),
    "not a list": (lambda: plugin(basedsl_register_dsls=lambda: "toy"), "returned str, not a list"),
    "not an entry": (
        lambda: plugin(basedsl_register_dsls=lambda: ["toy"]),
        "returned a str, not a DSLEntry",
    ),
    "twice": (lambda: dsl_plugin("x", "x"), "has 'x' twice"),
    "clash": (lambda: dsl_plugin("y", "taken"), "'good' and 'bad' both have a DSL"),
    "command clash": (
        lambda: plugin(basedsl_cli_commands=lambda: [Command("run", "", print, print)]),
        "plugins 'good' and 'bad' both have a command called 'run'",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_plugin_leaves_the_manager_as_it_was(manager, case):
    make, message = BAD[case]
    good = dsl_plugin("taken")
    good.basedsl_cli_commands = hookimpl(lambda: [Command("run", "runs", print, print)])
    manager.register(good, "good")
    manager.get_dsl("taken")
    before = state(manager)
    with pytest.raises(PluginError, match=message):
        manager.register(make(), "bad")
    assert state(manager) == before
    assert manager.get_dsl("taken").name == "taken"


def test_failed_registration_leaves_the_manager_unchanged(manager):
    before = state(manager)
    with pytest.raises(OSError, match="no disk"):
        manager.register(plugin(basedsl_register_dsls=failing), "bad")
    assert state(manager) == before


def test_two_plugins_of_one_name(manager):
    manager.register(dsl_plugin("a"), "p")
    with pytest.raises(PluginError, match="two plugins called 'p'"):
        manager.register(dsl_plugin("b"), "p")
    assert manager.dsl_names() == ("a",)


def test_one_plugin_under_two_names(manager):
    twin = plugin(basedsl_stage_output=lambda: None)
    manager.register(twin, "p")
    before = state(manager)
    with pytest.raises(PluginError, match="'q' is registered already"):
        manager.register(twin, "q")
    assert state(manager) == before


def test_misspelt_hooks_are_suggested(manager):
    with pytest.raises(PluginError) as caught:
        manager.register(plugin(basedsl_register_dsl=nothing), "bad")
    assert caught.value.hint == "did you mean basedsl_register_dsls?"


def test_a_dsl_that_cannot_be_loaded_names_its_plugin(manager):
    def load(name):
        raise ImportError("no module named that")

    manager.register(dsl_plugin("a", loads=load), "p")
    with pytest.raises(PluginError, match="'p' cannot load its DSL 'a': ImportError: no mo"):
        manager.get_dsl("a")


def test_a_dsl_must_call_itself_what_it_is_registered_as(manager):
    manager.register(dsl_plugin("a", loads=lambda name: SimpleNamespace(name="b")), "p")
    with pytest.raises(PluginError, match="registers a DSL as 'a' that calls itself 'b'"):
        manager.get_dsl("a")


# Discovery ---------------------------------------------------------------------------------------


def test_nothing_is_imported_until_asked():
    asked = []

    def points(group):
        asked.append(group)
        return []

    manager = PluginManager(points)
    assert asked == []
    manager.dsl_names()
    manager.dsl_names()
    assert sorted(asked) == [GROUP, DSL_GROUP]


def test_a_broken_plugin_is_reported_and_the_others_work():
    manager = of_plugins(
        [
            point("c", dsl_plugin("ccc")),
            point("a", ImportError("no such library")),
            point("b", plugin(basedsl_nonsense=nothing)),
            point("d", dsl_plugin("ccc")),
        ]
    )
    assert manager.dsl_names() == ("ccc",)
    assert sorted(manager.broken) == ["a", "b", "d"]
    reason = manager.broken["a"].reason
    assert re.fullmatch(
        r"ImportError: no such library \(.*test_manager.py:\d+\) in a_package.plugin", reason
    )
    assert "a hook that nobody asks" in manager.broken["b"].reason
    assert "'c' and 'd' both have a DSL called 'ccc'" in manager.broken["d"].reason
    with pytest.raises(PluginError, match="the plugin 'a' is broken: ImportError: no such library"):
        manager.get_dsl("a")
    with pytest.raises(PluginError, match="there is no DSL 'zzz'") as caught:
        manager.get_dsl("zzz")
    assert "the plugin 'b' is broken" in str(caught.value)


def test_discovery_waits_for_the_first_thread_that_discovers():
    gate, names = threading.Event(), []

    def slow():
        gate.wait(10)
        return dsl_plugin("slow")

    manager = of_plugins([SimpleNamespace(name="p", load=slow, value="", dist=None)])
    threads = [threading.Thread(target=lambda: names.append(manager.dsl_names())) for _ in range(3)]
    for thread in threads:
        thread.start()
    gate.set()
    for thread in threads:
        thread.join()
    assert names == [("slow",)] * 3


def test_a_distribution_on_the_path_is_found_and_gone_without_it(tmp_path):
    package = tmp_path / "spamdsl"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "plugin.py").write_text(
        textwrap.dedent(
            """
            import types
            from basedsl.plugin import DSLEntry, hookimpl

            def load():
                import spamdsl.dsl
                return spamdsl.dsl.DSL

            @hookimpl
            def basedsl_register_dsls():
                return [DSLEntry("spam", load, "a test")]
            """
        )
    )
    (package / "dsl.py").write_text("import types\nDSL = types.SimpleNamespace(name='spam')\n")
    info = tmp_path / "spamdsl-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: spamdsl\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(
        "[basedsl]\nspam = spamdsl.plugin\nbroken = spamdsl.nothere\n"
    )
    program = """
import sys
sys.path[:0] = sys.argv[1:]
from basedsl.plugin import dsl_names, get_dsl, plugin_manager
assert "spamdsl" not in sys.modules
names = dsl_names()
print("spam" in names, "spamdsl.dsl" in sys.modules)
if "spam" in names:
    print(get_dsl("spam").name, "spamdsl.dsl" in sys.modules)
print(plugin_manager().broken.get("broken"))
"""

    def go(*paths):
        return subprocess.run(
            [sys.executable, "-c", program, *paths],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout.splitlines()

    there = go(str(tmp_path))
    assert there[:2] == ["True False", "spam True"]
    assert "ModuleNotFoundError" in there[2]
    assert "spamdsl.nothere of spamdsl 1.2" in there[2]
    assert go() == ["False False", "None"]


# Asking ------------------------------------------------------------------------------------------


def test_no_observer_costs_nothing(manager):
    manager.register(dsl_plugin("a"), "p")
    assert manager.stage_observer("a", "f") is None


def test_observers_see_what_the_one_before_them_returned(manager):
    seen = []

    def look(dsl, function, stage, output):
        seen.append((dsl, function, stage, output.data))

    def shout(stage, output):
        return Snapshot(output.data.upper(), "text") if stage == "s" else None

    def listen(dsl, function, stage, output):
        look(dsl, function, stage, output)

    manager.register(plugin(basedsl_stage_output=look), "c")
    manager.register(plugin(basedsl_stage_output=shout), "b")
    manager.register(plugin(basedsl_stage_output=listen), "a")
    observe = manager.stage_observer("toy", "f")
    assert observe("s", Snapshot("text", "text")) == Snapshot("TEXT", "text")
    assert observe("other", Snapshot("text", "text")) is None
    assert seen == [
        ("toy", "f", "s", "text"),
        ("toy", "f", "s", "TEXT"),
        ("toy", "f", "other", "text"),
        ("toy", "f", "other", "text"),
    ]


def test_an_observer_that_fails_is_named(manager):
    manager.register(plugin(basedsl_stage_output=lambda output: 1 / 0), "p")
    with pytest.raises(
        PluginError,
        match=r"plugin 'p' failed in basedsl_stage_output: ZeroDivisionError.*test_manager.py:",
    ):
        manager.stage_observer("toy", "f")("s", Snapshot("", "text"))


def test_an_observer_may_raise_errors_of_the_family(manager):
    def refuse(stage):
        raise DSLTypeError("not allowed")

    manager.register(plugin(basedsl_stage_output=refuse), "p")
    with pytest.raises(DSLTypeError, match="not allowed"):
        manager.stage_observer("toy", "f")("s", Snapshot("", "text"))


def test_an_observer_that_returns_something_else_is_named(manager):
    manager.register(plugin(basedsl_stage_output=lambda output: "text"), "p")
    with pytest.raises(PluginError, match="put a str in place of stage 's', which is a Snapshot"):
        manager.stage_observer("toy", "f")("s", Snapshot("", "text"))


def test_adapters_are_asked_once_for_each_type(manager):
    asked = []

    def adapt(dsl, kind):
        asked.append((dsl, kind))
        return (lambda value: value[0]) if kind is list else None

    manager.register(plugin(basedsl_adapt_argument=adapt), "p")
    assert manager.adapter_for("toy", list)([7]) == 7
    assert manager.adapter_for("toy", list)([8]) == 8
    assert manager.adapter_for("toy", dict) is None
    assert manager.adapter_for("toy", dict) is None
    assert asked == [("toy", list), ("toy", dict)]
    assert manager.adapter_for("toy", list, declared=["not hashable"])([9]) == 9


def test_a_new_plugin_is_asked_about_known_types(manager):
    assert manager.adapter_for("toy", list) is None
    manager.register(plugin(basedsl_adapt_argument=lambda kind: len), "p")
    assert manager.adapter_for("toy", list) is len


def test_two_adapters_for_one_type_are_an_error(manager):
    for name in "pq":
        manager.register(plugin(basedsl_adapt_argument=lambda kind: len), name)
    with pytest.raises(PluginError, match=r"plugins 'p' and 'q' both adapt builtins.list for 'toy"):
        manager.adapter_for("toy", list)


def test_every_hook_is_documented_and_typed():
    hooks = {k: v for k, v in vars(hookspecs).items() if k.startswith("basedsl_")}
    assert {"basedsl_stage_output", "basedsl_adapt_argument"} <= hooks.keys()
    for name, spec in hooks.items():
        assert isinstance(spec, types.FunctionType)
        assert len(spec.__doc__) > 40, name
        assert "return" in spec.__annotations__, name
