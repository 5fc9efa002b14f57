"""Helpers of tests fail when they should."""

from __future__ import annotations

import pytest

from basedsl.testing import Golden, filecheck, why_no_gpu

TEXT = "alpha\n  %0 = add %a, %b\n  %1 = mul %0, %0\nend\n"


def test_filecheck_passes_and_captures():
    filecheck(
        TEXT,
        """
        CHECK:      %[[X:.*]] = add
        CHECK-NEXT: mul %[[X]], %[[X]]
        CHECK-NOT:  div
        """,
    )


@pytest.mark.parametrize(
    "checks",
    ["CHECK: sub", "CHECK: add\nCHECK-NEXT: end", "CHECK: alpha\nCHECK-NOT: mul", "no directives"],
)
def test_filecheck_fails(checks):
    with pytest.raises(AssertionError):
        filecheck(TEXT, checks)


def test_a_failure_shows_the_check_and_the_text():
    with pytest.raises(AssertionError) as caught:
        filecheck(TEXT, "\n  CHECK: alpha\n  CHECK: %1 = moul\n")
    said = str(caught.value)
    assert 'Couldn\'t match "%1 = moul"' in said
    assert "the check that failed:\n  CHECK: %1 = moul" in said
    assert "3 |   %1 = mul %0, %0" in said
    assert "\x1b" not in said


def test_another_prefix():
    filecheck(TEXT, "PTX: alpha\nCHECK: nothing", prefix="PTX")


def test_golden_files(tmp_path):
    golden = Golden(tmp_path / "test_x" / "case")
    with pytest.raises(AssertionError, match=r"no golden file .*case.ptx; pytest --update-golden"):
        golden.check("one\n", ".ptx")
    Golden(golden.stem, update=True).check("one", ".ptx")
    golden.check("one\n", ".ptx")
    with pytest.raises(AssertionError, match=r"case.ptx differs(.|\n)*-one\n\+two"):
        golden.check("two\n", ".ptx")


def test_the_golden_fixture_finds_its_file(golden, request):
    name = "golden/test_testing/test_the_golden_fixture_finds_its_file.txt"
    assert golden.path() == request.path.parent / name
    golden.check("This file is what its test says it is.")


def test_the_reason_for_no_gpu_is_a_sentence_or_nothing():
    assert isinstance(why_no_gpu(), str)
    assert why_no_gpu() is why_no_gpu()


@pytest.mark.gpu
def test_a_gpu_test_runs_only_with_a_gpu():
    assert why_no_gpu() == ""
