"""`basedsl doctor`: what is there, what is missing, and what to do."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from basedsl.cli import main
from basedsl.findings import Finding
from basedsl.options import Options
from basedsl.plugin import GROUP, DSLEntry, PluginManager, hookimpl


def manager_of(findings):
    language = SimpleNamespace(options_class=Options, findings=lambda settings: findings)
    dsl = SimpleNamespace(name="spam", language=language)
    plugin = SimpleNamespace(
        basedsl_register_dsls=hookimpl(lambda: [DSLEntry("spam", lambda: dsl, "a test DSL")])
    )
    point = SimpleNamespace(name="good", load=lambda: plugin, value="good.plugin", dist=None)
    return PluginManager(lambda group: [point] if group == GROUP else [])


def test_all_is_well(capsys):
    assert main(["doctor"], manager_of([Finding("a tool", "ok", "1.2")])) == 0
    out = capsys.readouterr().out
    assert "DSL spam" in out and "a tool" in out and "MISSING" not in out


def test_what_is_missing_is_named_with_what_to_do(capsys):
    found = [
        Finding("a tool", "optional", "not found", "pip install tool"),
        Finding("a library", "missing", "not found", "pip install library"),
    ]
    assert main(["doctor"], manager_of(found)) == 1
    out = capsys.readouterr().out
    assert "-> pip install tool" in out and "MISSING a library" in out


def test_json(capsys):
    assert main(["doctor", "--json"], manager_of([Finding("a tool", "ok", "1.2")])) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["DSL spam"][-1] == {"name": "a tool", "state": "ok", "detail": "1.2", "todo": ""}


def test_a_misspelt_variable_is_found(capsys, monkeypatch):
    monkeypatch.setenv("BASEDSL_OPT_LEVLE", "1")
    assert main(["doctor"], manager_of([])) == 0
    assert "did you mean BASEDSL_OPT_LEVEL?" in capsys.readouterr().out


@pytest.mark.parametrize("variable", ["BASEDSL_CACHE_DIR", "BASEDSL_DUMP_DIR"])
def test_a_folder_that_cannot_be_written_is_found(capsys, monkeypatch, variable, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("BASEDSL_CACHE", "1")
    monkeypatch.setenv(variable, str(tmp_path / "file" / "folder"))
    assert main(["doctor"], manager_of([])) == 0
    assert f"{tmp_path / 'file' / 'folder'} cannot be written" in capsys.readouterr().out


def test_a_wrong_value_is_named(capsys, monkeypatch):
    monkeypatch.setenv("BASEDSL_OPT_LEVEL", "fast")
    assert main(["doctor"], manager_of([])) == 1
    assert "BASEDSL_OPT_LEVEL='fast': the value is one of 0, 1, 2, 3" in capsys.readouterr().out
