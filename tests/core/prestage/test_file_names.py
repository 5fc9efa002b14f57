"""Programs in files whose names are odd: spaces, other scripts, bytes that are no UTF-8."""

import runpy

import pytest

PROGRAM = """
import basedsl_toy as toy

@toy.jit
def divided(a, b):
    return a // b

result = divided(7, 2)
try:
    divided(7, 0)
except ZeroDivisionError as error:
    place = error.span
"""


@pytest.mark.parametrize(
    "name", ["a b.py", "añ 層.py", b"n\xff.py".decode(errors="surrogateescape")]
)
def test_a_program_runs_and_its_errors_have_the_line(tmp_path, name):
    path = tmp_path / name
    path.write_text(PROGRAM, encoding="utf-8")
    found = runpy.run_path(str(path))
    assert found["result"] == 3
    assert found["place"].filename == str(path)
    assert found["place"].source_line == "    return a // b"
