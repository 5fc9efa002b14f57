"""Differences of stages: numbers of values do not count."""

from basedsl.inspection.difference import difference

OLD = "func @f\n  %0 = constant 1\n  %1 = constant 2\n  %2 = add %0, %1\n  return %2\n"


def test_equal_texts_have_no_difference():
    assert difference(OLD, OLD, "a", "b") == []


def test_renumbered_values_are_equal():
    new = "func @f\n  %1 = constant 2\n  %2 = add %0, %1\n  return %2\n".replace("%2", "%9")
    assert difference(OLD, new, "a", "b") == [
        "--- a",
        "+++ b",
        "@@ -1,5 +1,4 @@",
        " func @f",
        "-  %0 = constant 1",
        "   %1 = constant 2",
        "   %9 = add %0, %1",
        "   return %9",
    ]


def test_other_numbers_count():
    assert difference("x = 1", "x = 2", "a", "b")[2:] == ["@@ -1,1 +1,1 @@", "-x = 1", "+x = 2"]
