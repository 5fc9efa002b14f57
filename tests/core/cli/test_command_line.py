"""The command line: list, options, opt, and what plugins add."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from basedsl.cli import main
from basedsl.plugin import GROUP, Command, DSLEntry, PluginManager, hookimpl


def make_manager(*points):
    return PluginManager(lambda group: list(points) if group == GROUP else [])


def point(name, load):
    return SimpleNamespace(name=name, load=load, value=f"{name}.plugin", dist=None)


@pytest.fixture
def manager():
    def configure(parser):
        parser.add_argument("--times", type=int, default=1)

    def run(parsed):
        print("hello " * parsed.times)
        return 3

    plugin = SimpleNamespace(
        basedsl_register_dsls=hookimpl(lambda: [DSLEntry("spam", lambda: None, "a test DSL")]),
        basedsl_cli_commands=hookimpl(lambda: [Command("greet", "says hello", configure, run)]),
    )

    def broken():
        raise ImportError("not today")

    return make_manager(point("good", lambda: plugin), point("bad", broken))


def test_list(manager, capsys):
    assert main(["list"], manager) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].split(None, 1) == ["spam", "a test DSL  (plugin good)"]
    name, reason = out[1].split(None, 1)
    assert name == "bad" and reason.startswith("broken: ImportError: not today (")
    assert reason.endswith(") in bad.plugin") and ".py:" in reason


def test_list_with_nothing_installed(capsys):
    assert main(["list"], make_manager()) == 0
    assert "no DSL is installed" in capsys.readouterr().out


def test_options(capsys, monkeypatch):
    monkeypatch.setenv("BASEDSL_OPT_LEVLE", "1")
    assert main(["options"], make_manager()) == 0
    captured = capsys.readouterr()
    assert "opt_level (int, default 2; changes the code)" in captured.out
    assert "BASEDSL_OPT_LEVEL" in captured.out
    assert "BASEDSL_OPT_LEVLE, did you mean BASEDSL_OPT_LEVEL?" in captured.err


def test_a_plugin_adds_a_command(manager, capsys):
    assert main(["greet", "--times", "2"], manager) == 3
    assert capsys.readouterr().out == "hello hello \n"


def test_errors_are_told_without_a_traceback(manager, capsys):
    assert main(["options", "--dsl", "nope"], manager) == 1
    assert capsys.readouterr().err.startswith("error: there is no DSL 'nope'")


def test_opt_runs_passes(tmp_path, capsys):
    path = tmp_path / "m.mlir"
    path.write_text(
        "func.func @f() -> i32 {\n %0 = arith.constant 2 : i32\n"
        " %1 = arith.addi %0, %0 : i32\n return %1 : i32\n}\n"
    )
    assert main(["opt", str(path), "--passes", "canonicalize"], make_manager()) == 0
    assert "arith.constant 4 : i32" in capsys.readouterr().out
    assert main(["opt", str(path)], make_manager()) == 0
    assert "arith.addi" in capsys.readouterr().out


def test_opt_on_what_does_not_parse(tmp_path, capsys):
    path = tmp_path / "m.mlir"
    path.write_text("nonsense")
    assert main(["opt", str(path)], make_manager()) == 1
    assert "does not parse" in capsys.readouterr().err


def test_a_command_is_required(capsys):
    with pytest.raises(SystemExit) as caught:
        main([], make_manager())
    assert caught.value.code == 2
    assert "COMMAND" in capsys.readouterr().err
