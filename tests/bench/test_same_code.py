"""Comparing two checkouts: what counts as changed, and what a program prints is found again."""

import importlib.util
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"


@pytest.fixture
def load(monkeypatch):
    """Imports a module of `bench` as one that runs there does."""
    monkeypatch.syspath_prepend(BENCH)

    def imported(name):
        spec = importlib.util.spec_from_file_location(name, BENCH / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    return imported


@pytest.fixture
def same_code(load):
    return load("same_code")


def made(same_code, texts, commit="", **others):
    """A record of texts by (symbol, role)."""
    record = same_code.Record(commit, **others)
    for (symbol, role), found in texts.items():
        for text in found:
            record.texts[text] = text
            record.digests["toy", symbol, role].add(text)
    return record


BASE = {("f", "traced"): ["one"], ("f", "ptx"): ["p", "q"], ("f", "messages"): ["overflow"]}


@pytest.mark.parametrize(
    "change, same, said",
    [
        ({}, True, "the code"),
        ({("f", "traced"): ["two"]}, False, "+two"),
        ({("f", "ptx"): ["p"]}, False, "missing, of 1 functions:\n  toy f"),
        ({("f", "ptx"): ["p", "q", "r"]}, True, "new, of 1 functions:\n  toy f"),
        ({("g", "traced"): ["one"]}, True, "toy g"),
        ({("f", "messages"): ["too large"]}, True, "+too large"),
    ],
)
def test_what_counts_as_changed(same_code, capsys, change, same, said):
    base, new = made(same_code, BASE), made(same_code, BASE | change)
    assert same_code.report(base, new) == same
    assert not change or said in capsys.readouterr().out


def test_what_is_renamed_on_purpose_is_the_same(same_code, capsys):
    base, new = (made(same_code, {("f", "lowered"): [text]}) for text in ('"wgmma" 1', '"mma" 1'))
    assert not same_code.report(base, new)
    assert same_code.report(base, new, renames=[('"wgmma"', '"mma"')])
    assert not same_code.report(base, new, renames=[('"wgmma"', '"ptx_mma"')])


def test_texts_of_one_function_are_paired_by_their_lines(same_code):
    base = made(same_code, {("f", "ptx"): ["a\nb\nc", "x\ny\nz"]})
    new = made(same_code, {("f", "ptx"): ["x\ny\nw", "a\nb\nd"]})
    (pairs,) = same_code.compare(base, new).changed.values()
    assert sorted(pairs) == [("a\nb\nc", "a\nb\nd"), ("x\ny\nz", "x\ny\nw")]


def test_a_failure_in_the_new_checkout_alone_counts(same_code, capsys):
    failing = made(same_code, BASE, failed=["FAILED test_x.py::test"])
    assert not same_code.report(made(same_code, BASE), failing)
    assert same_code.report(failing, failing)


def test_messages_of_errors_are_told(same_code, capsys):
    base, new = (made(same_code, BASE, messages={"wrong": text}) for text in ("a\nb", "a\nc"))
    assert same_code.report(base, new)
    out = capsys.readouterr().out
    assert "0 same, 1 changed" in out
    assert "-b" in out


def test_a_record_is_kept_for_its_commit(same_code, monkeypatch, tmp_path):
    commit, runs = ["1"], []

    def record(*given):
        runs.append(given)
        return made(same_code, BASE, commit=commit[0])

    monkeypatch.setattr(same_code, "commit_of", lambda checkout: commit[0])
    monkeypatch.setattr(same_code, "record", record)
    first = same_code.record_of(tmp_path, tmp_path / "kept", 1, False)
    again = same_code.record_of(tmp_path, tmp_path / "kept", 1, False)
    assert (len(runs), again) == (1, first)
    commit[0] = "2"
    assert same_code.record_of(tmp_path, tmp_path / "kept", 1, False).commit == "2"
    assert len(runs) == 2


def test_lines_of_python_and_messages_of_assertions_are_left_out(load):
    normal = load("stage_record").normal
    one = 'cf.assert %1, "it \\"broke\\" at x", then cf.assert %2, "b"'
    assert normal(one) == 'cf.assert %1, "...", then cf.assert %2, "..."'
    assert normal('names = "memory at /a/b.py:12:0"') == 'names = "memory at FILE.py:0:0"'
    constant = '@basedsl_assertion_3 = private constant [9 x i8] c"b.py\\1F1\\1Fx\\00"'
    assert normal(f"{constant}\nret void") == "@basedsl_assertion_3 = ...\nret void"
    address = "%1 = llvm.mlir.addressof @assert_msg{} : !llvm.ptr"
    assert normal(address.format("_12")) == normal(address.format("")) == address.format("")
    element = "%2 = llvm.getelementptr %1[0] : (!llvm.ptr) -> !llvm.ptr, !llvm.array<{} x i8>"
    assert normal(element.format(14)) == normal(element.format(20)) != element.format(14)


def test_a_programs_code_is_recorded_for_both_targets(same_code, tmp_path):
    checkout = BENCH.parent
    environment = same_code.recording(checkout, tmp_path)
    hello = checkout / "examples" / "cute" / "hello.py"
    assert same_code.run_program(checkout, hello, environment) == ""
    found = same_code.Record("")
    found.add_processes(tmp_path / "made")
    assert {role for _, _, role in found.digests} >= {"traced", "lowered", "ptx", "llvmir"}
    (ptx,) = found.digests["cute", "cute_host", "ptx"]
    assert ".target sm_90a" in found.texts[ptx]


def test_figures_are_found_by_the_words_around_them(load):
    figures = load("two_checkouts").figures
    out = "toy  12.5 ms  3 x\nhopper_gemm of 4096^3: 7 ms\ntoy  1 ms  2 x\nsm_90a 4"
    assert figures(out) == {
        ("toy # ms # x", 0, 0): 12.5,
        ("toy # ms # x", 0, 1): 3,
        ("hopper_gemm of 4096^3: # ms", 0, 0): 7,
        ("toy # ms # x", 1, 0): 1,
        ("toy # ms # x", 1, 1): 2,
        ("sm_90a #", 0, 0): 4,
    }
