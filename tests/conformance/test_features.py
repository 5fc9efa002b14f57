"""Features of programs, what a DSL leaves out, and the limits of time."""

import time

import pytest

from basedsl import DSL, Conformance, Language
from basedsl.conformance.cases import Case
from basedsl.conformance.features import features_of, features_of_case, skipped, why_skipped
from basedsl.conformance.fuzz import generate
from basedsl.conformance.programs import all_cases
from basedsl.conformance.shrink import shrink
from basedsl.conformance.test_programs import test_enough_programs_run as enough
from basedsl.conformance.time_limit import TookTooLong, limited


class Plain(Language):
    name = "plain"


PLAIN = DSL(Plain())


@pytest.mark.parametrize(
    "text, features",
    [
        ("x = 1.5", {"floats"}),
        ("y = x / 2", {"floats"}),
        ("y //= x", {"integer-errors"}),
        ("for i in range(n): pass", {"loops"}),
        ("for i in range_constexpr(3): pass", set()),
        ("y = [k for k in range(n)]", {"loops"}),
        ("while n: pass", {"while"}),
        ("y = a and b", {"branches"}),
        ("y = 0 < n < 3", {"branches"}),
        ("y = n < 3", set()),
        ("assert n", {"raise"}),
        ("def f(n):\n    f(n)", {"recursion"}),
        ("def f(n):\n    return n", {"results"}),
    ],
)
def test_features_of_text(text, features):
    assert features_of(text) == features


def test_features_of_arguments():
    cases = dict(all_cases())
    assert "buffers" in features_of_case(cases["values-negative_buffer_index"])
    assert "negative-index" in features_of_case(cases["values-negative_buffer_index"])


def test_a_dsl_of_defaults_leaves_out_arrays_alone():
    run, left = skipped(Conformance("plain", PLAIN), all_cases())
    assert list(left) == ["buffers: plain passes no arrays"]
    assert run > 20 * sum(left.values())


def test_what_is_not_named_is_tested():
    declared = Conformance("plain", PLAIN, without={"while": "it has none", "loops-gauss": "slow"})
    case = Case("gauss", lambda jit: None, ("int",), frozenset(), source=features_of)
    assert why_skipped(declared, "loops-gauss", case) == "loops-gauss: slow"
    for name, case in all_cases():
        if "while" in features_of_case(case):
            assert why_skipped(declared, name, case) is not None
    run, left = skipped(declared, all_cases())
    assert left["while: it has none"] > 20 and run > 300


def test_a_dsl_that_skips_nearly_all_does_not_pass():
    lacks = dict.fromkeys(("results", "floats", "loops", "branches"), "hardware")
    with pytest.raises(AssertionError, match=r"plain runs \d+ of \d+ programs, and must run 50%"):
        enough(Conformance("plain", PLAIN, without=lacks))
    enough(Conformance("plain", PLAIN, without=lacks, least_share=0.0))
    with pytest.raises(AssertionError, match=r"no program needs .lops.; the features are"):
        enough(Conformance("plain", PLAIN, without={"lops": "?"}))


@pytest.mark.parametrize("feature", ["floats", "buffers", "while", "loops", "integer-errors"])
def test_random_programs_have_no_feature_that_is_named(feature):
    declared = Conformance("plain", PLAIN, without={feature: "not here"})
    texts = [generate(declared, seed) for seed in range(12)]
    for text in texts:
        body = text.partition("def program")[2]
        assert feature not in features_of("def program" + body)
        signature = body.partition(")")[0]
        assert ("x" in signature) == (feature != "floats")
        assert "a" not in signature.split(", ")
    assert len("".join(texts)) > 2000


def test_a_program_that_takes_too_long():
    with (
        pytest.raises(TookTooLong, match="the loop takes longer"),
        limited("the loop", 0.05),
    ):
        while True:
            pass
    with limited("nothing", 0):
        time.sleep(0)


def test_a_small_program_is_sought_for_a_limited_time():
    text = "\n".join(f"x{i} = {i}" for i in range(300))

    def fails(candidate):
        time.sleep(0.01)
        return "x299" in candidate

    start = time.monotonic()
    small = shrink(text, fails, seconds=0.3)
    assert time.monotonic() - start < 3
    assert "x299" in small and len(small) < len(text)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_dsl_of_defaults_passes_what_defaults_promise(monkeypatch):
    from basedsl.conformance.compare import check
    from basedsl.conformance.fuzz import check_seed

    monkeypatch.setenv("BASEDSL_CACHE", "0")
    declared = Conformance("plain", PLAIN)
    for name, case in all_cases():
        if why_skipped(declared, name, case) is None:
            check(declared, case)
    assert [seed for seed in range(25) if check_seed(declared, seed)] == []
