"""Plugins see and replace stages of real compilations, and adapt foreign arguments."""

import fractions

import pytest

from basedsl import DSL, DSLError, Language
from basedsl.plugin import hookimpl, plugin_manager


class Hooked(Language):
    name = "hooked"


HOOKED = DSL(Hooked())


@pytest.fixture
def plugin():
    """Registers a plugin object for the length of a test."""
    manager = plugin_manager()
    registered = []

    def register(plugin, name):
        manager.register(plugin, name)
        registered.append(name)

    yield register
    for name in registered:
        manager.unregister(name)


def test_a_plugin_sees_every_stage(plugin):
    seen = []

    class Observer:
        @hookimpl
        def basedsl_stage_output(self, dsl, function, stage, output):
            seen.append((dsl, function, stage))

    plugin(Observer(), "observer")

    @HOOKED.jit
    def double(n):
        return n * 2

    assert double(4) == 8
    assert {dsl for dsl, _, _ in seen} == {"hooked"}
    assert all(function.endswith("_double") for _, function, _ in seen)
    assert seen[0][2] == "input"
    assert "object" in [stage for _, _, stage in seen]


def test_a_plugin_replaces_a_stage(plugin):
    class Replacer:
        @hookimpl
        def basedsl_stage_output(self, dsl, function, stage, output):
            if stage == "llvmir":
                text = output.text().replace("mul i64", "add i64")
                return type(output)(text, output.kind, output.suffix)
            return None

    plugin(Replacer(), "replacer")

    @HOOKED.jit
    def times(a, b):
        return a * b

    assert times(3, 4) == 7


def test_a_plugin_adapts_an_argument(plugin):
    class Fractions:
        @hookimpl
        def basedsl_adapt_argument(self, dsl, kind, declared):
            return float if kind is fractions.Fraction else None

    @HOOKED.jit
    def half(x):
        return x / 2

    with pytest.raises(DSLError, match="Fraction"):
        half(fractions.Fraction(1, 2))
    plugin(Fractions(), "fractions")
    assert half(fractions.Fraction(1, 2)) == 0.25
    assert half(fractions.Fraction(3, 2)) == 0.75


def test_stages_are_printed_and_saved(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("BASEDSL_PRINT_IR", "1")
    monkeypatch.setenv("BASEDSL_PRINT_AFTER_PREPROCESS", "1")
    monkeypatch.setenv("BASEDSL_KEEP", "input,llvmir")
    monkeypatch.setenv("BASEDSL_DUMP_DIR", str(tmp_path))
    monkeypatch.setenv("BASEDSL_TIME_STAGES", "1")

    @HOOKED.jit
    def absolute(n):
        if n < 0:
            n = -n
        return n

    assert absolute(-4) == 4
    out, err = capsys.readouterr()
    assert "__dsl__.if_(n < 0" in out
    assert "scf.if" in out
    assert "_absolute: pre-stage" in err
    assert sorted(p.suffix for p in tmp_path.iterdir()) == [".ll", ".mlir"]
