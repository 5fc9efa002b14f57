"""The shrinker and the random programs: what fails becomes small, what a seed gives stays."""

from __future__ import annotations

import pytest

from basedsl.conformance.declaration import Conformance
from basedsl.conformance.fuzz import check_seed, generate, load_program
from basedsl.conformance.generate import Generator, inputs
from basedsl.conformance.shrink import shrink
from basedsl_toy.conformance import CONFORMANCE


def test_shrinks_to_the_statement_that_matters() -> None:
    text = Generator(7).program()
    *lines, last = text.rstrip().splitlines()
    text = "\n".join([*lines, "    needle = n * 3", last]) + "\n"

    small = shrink(text, lambda candidate: "needle" in candidate and "program" in candidate)
    assert len(small.splitlines()) <= 3, small
    assert "needle" in small


def test_a_text_that_does_not_fail_stays() -> None:
    text = "def program(n):\n    return n\n"
    assert shrink(text, lambda candidate: False) == text


class Wrong(Conformance):
    """A DSL that forgets the sign of its results."""

    def entry(self, fn):
        def call(*args):
            result = fn(*args)
            return abs(result) if isinstance(result, int) else result

        return call


def test_a_wrong_dsl_is_found_and_its_program_is_small() -> None:
    wrong = Wrong("wrong", CONFORMANCE.dsl)
    reports = [report for seed in range(10) if (report := check_seed(wrong, seed))]
    assert reports
    assert all("different" in report for report in reports)
    assert min(len(report.splitlines()) for report in reports) <= 12, reports[0]


@pytest.mark.parametrize("exact", [False, True])
def test_programs_depend_on_the_seed_alone(exact: bool) -> None:
    texts = [Generator(seed, exact=exact).program() for seed in range(40)]
    assert texts == [Generator(seed, exact=exact).program() for seed in range(40)]
    assert len(set(texts)) == 40
    assert inputs(3) == inputs(3)


def test_exact_programs_keep_ints_and_floats_small() -> None:
    seen = []
    for seed in range(60):
        program = load_program(Generator(seed, exact=True).program(), f"<exact {seed}>")
        for args in inputs(seed):
            try:
                result = program(*args[:4], list(args[4]))
            except ZeroDivisionError:
                continue
            seen += result if isinstance(result, tuple) else [result]
    assert max(map(abs, seen)) < 2**30
    assert all(float(x * 4).is_integer() for x in seen)


def test_programs_use_what_they_are_for() -> None:
    text = "".join(generate(CONFORMANCE, seed) for seed in range(200))
    for word in ("break", "continue", "return", "else:", "elif", "while True", "for", " and ",
                 " or ", " if ", ":=", "def f", ".move(", "._replace(", "enumerate", "zip(",
                 "reversed(", "range_constexpr(", "divmod(", "*r"):  # fmt: skip
        assert word in text, word
