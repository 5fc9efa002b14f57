"""Rule tables: one rule per operation, explicit answers, errors that name both sides."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from basedsl.errors import CompilerBug
from basedsl.objectstage import Erase, Keep, Replace, Rule, RuleTable, apply_result

SOURCE = """
func.func @f(%x: i32) -> i32 {
  %0 = arith.addi %x, %x : i32 loc("user.py":7:3)
  return %0 : i32
}
"""


@pytest.fixture
def table():
    return RuleTable("lower-test", Rule)


@pytest.fixture
def body(mlir_context):
    """The function's argument and its two operations."""
    with mlir_context.entered():
        module = mlir_context.bindings.ir.Module.parse(SOURCE)
        block = module.body.operations[0].regions[0].blocks[0]
        add, end = (op.operation for op in block.operations)
        yield block.arguments[0], add, end


def test_a_rule_is_entered_for_each_of_its_operations(table):
    @table.register("a.one", "a.two")
    def both(op):
        """Do it."""

    assert list(table) == ["a.one", "a.two"]
    assert table["a.two"] == Rule("a.two", both)
    assert table["a.one"].doc == "Do it."
    assert table.get("a.three") is None
    assert "a.three" not in table and len(table) == 2


def test_a_second_rule_names_both_functions(table):
    @table.register("a.one")
    def first(op): ...

    with pytest.raises(ValueError) as twice:

        @table.register("a.two", "a.one")
        def second(op): ...

    message = str(twice.value)
    assert message.startswith("two rules for a.one in lower-test: ")
    assert "first and " in message and message.endswith("second")


def test_rows_take_facts_and_refuse_unknown_ones():
    @dataclass(frozen=True)
    class Row(Rule):
        reads: bool = False

    table = RuleTable("t", Row)
    table.register("a.one", reads=True)(print)
    assert table["a.one"].reads
    with pytest.raises(TypeError, match="writes"):
        table.register("a.two", writes=True)(print)


def test_a_missing_rule_names_operation_target_and_line(table, body):
    _, add, _ = body
    with pytest.raises(CompilerBug) as missing:
        table.for_op(add, "sm_42")
    assert missing.value.message == "the target 'sm_42' has no rule for arith.addi"
    assert str(missing.value.span) == "user.py:7"


def test_a_table_may_have_an_error_of_its_own_for_missing_rules(body):
    table = RuleTable("t", Rule, lambda op, target: LookupError(f"{op.name} on {target}"))
    with pytest.raises(LookupError, match=r"arith.addi on sim"):
        table.for_op(body[1], "sim")


def test_replaced_kept_erased(table, body):
    x, add, end = body
    rule = Rule("arith.addi", print)
    assert not apply_result(rule, add, Keep())
    assert end.operands[0] == add.results[0]
    assert apply_result(rule, add, Replace(x))
    assert end.operands[0] == x
    assert apply_result(rule, end, Erase())
    assert len(x.owner.operations) == 0


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (Replace(), "gives 0 values for 1 results"),
        (Erase(), "erases it, but its result is used"),
        (None, r"returns None, which is no Replace\(...\), Erase\(\) or Keep\(\)"),
    ],
)
def test_an_answer_that_does_not_fit_is_a_bug_of_the_rule(body, result, message):
    _, add, _ = body
    with pytest.raises(CompilerBug, match=f"test_rules.broken for arith.addi {message}") as bug:
        apply_result(Rule("arith.addi", broken), add, result)
    assert str(bug.value.span) == "user.py:7"


def broken(op):
    """A rule."""


def test_a_table_extends_another():
    base = RuleTable("base", Rule)
    more = RuleTable("more", Rule, extends=base)
    base.register("a.one", "a.two")(first := lambda op: None)
    more.register("a.two", "a.three")(second := lambda op: None)
    assert {op: rule.apply for op, rule in more.items()} == {
        "a.one": first, "a.two": second, "a.three": second
    }  # fmt: skip
    assert len(more) == 3 and "a.one" in more and "a.four" not in more
    assert base["a.two"].apply is first and "a.three" not in base
    base.register("a.four")(first)  # entered later
    assert more["a.four"].apply is first
    with pytest.raises(KeyError, match=r"a\.five"):
        more["a.five"]
