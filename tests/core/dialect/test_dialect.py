"""A dialect that is declared in Python: its operations and types are built, verified and viewed."""

from __future__ import annotations

from typing import Any

import pytest

from basedsl import (
    Dialect,
    DSLTypeError,
    InvalidOp,
    OpView,
    i64_array_attr,
    i64_attr,
    operand,
    result,
    str_attr,
    unit_attr,
)
from basedsl.mlir import MLIRContext, load_bindings


class BoxOp(OpView, dialect="box"):
    """The operations of `box`."""


class Pack(BoxOp, name="pack"):
    """Pack one or two numbers.

    %0 = "box.pack"(%a) {count = 1 : i64} : (i32) -> !box.box<i32, 1 : i64>
    """

    first: Any = operand()
    second: Any = operand(default=None)
    packed: Any = result(alias="type")
    count: int = i64_attr()
    label: str = str_attr(default="plain")
    sealed: bool = unit_attr()
    sizes: list[int] | None = i64_array_attr(default=None)

    def verify(self):
        if self.count < 1:
            return f"it packs {self.count}"
        if self.second is not None and self.second.type != self.first.type:
            raise InvalidOp("the numbers differ in type")
        return None


class Same(BoxOp, name="same"):
    """The operand."""

    value: Any = operand()
    same: Any = result(factory=lambda dialect, operands: operands["value"].type)


class Box(Dialect):
    ops = BoxOp
    types = {"box": {"element": "type", "size": "integer"}, "unit": {}}  # noqa: RUF012


@pytest.fixture(scope="module")
def context():
    return MLIRContext(load_bindings(needs=("irdl", "func")), Box.load)


@pytest.fixture
def built(context):
    """The dialect, a module, and its function's arguments: i32, i32, i64."""
    with context.entered():
        ir = context.bindings.ir
        module = ir.Module.parse("func.func @f(%a: i32, %b: i32, %c: i64) {\n return\n}")
        block = module.body.operations[0].regions[0].blocks[0]
        with ir.InsertionPoint.at_block_begin(block), ir.Location.unknown():
            yield Box.of(context.bindings), module, block.arguments


def test_an_operation_is_built_printed_and_viewed(built):
    box, module, (a, b, _) = built
    kind = box.type("box", a.type, 2)
    made = Pack(box, first=a, second=b, type=kind, count=2, sealed=True, sizes=[3, 4])
    assert module.operation.verify()
    assert "!box.box<i32, 2>" in str(module) or "!box.box<i32, 2 : i64>" in str(module)
    view = box.view(made.op)
    assert type(view) is Pack
    assert (view.count, view.label, view.sealed, view.sizes) == (2, "plain", True, [3, 4])
    assert (view.first, view.second, view.packed.type) == (a, b, kind)
    assert "label" not in made.op.attributes  # the default is not written
    read_again = box.ir.Module.parse(str(module))
    assert read_again.operation.verify()


def test_what_is_optional_may_be_absent(built):
    box, module, (a, _, _) = built
    made = Pack(box, first=a, type=box.type("unit"), count=1, label="heavy")
    assert (made.second, made.label, made.sealed, made.sizes) == (None, "heavy", False, None)
    assert module.operation.verify()


def test_a_result_follows_from_the_operands(built):
    box, module, (_, _, c) = built
    assert Same(box, value=c).same.type == c.type
    assert module.operation.verify()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"count": 0}, "'box.pack': it packs 0"),
        ({"count": 1, "second": "c"}, "'box.pack': the numbers differ in type"),
    ],
)
def test_verify_says_what_is_wrong(built, fields, words):
    box, module, (a, _, c) = built
    given = fields | ({"second": c} if "second" in fields else {})
    Pack(box, first=a, type=box.type("unit"), **given)
    with pytest.raises(box.ir.MLIRError, match=words):
        module.operation.verify()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('"box.same"() : () -> i32', "expects 1 operands|0 operands"),
        ('%0 = "box.pack"(%a) {count = 1 : i32} : (i32) -> i32', "not an integer of 64 bits"),
        ('%0 = "box.pack"(%a) : (i32) -> i32', "count"),
        ('"box.nothing"() : () -> ()', "unregistered|unknown|not registered"),
    ],
)
def test_ir_that_does_not_fit_its_declaration_is_refused(built, text, words):
    box, _, _ = built
    with pytest.raises(box.ir.MLIRError, match=words):
        box.ir.Module.parse(f"func.func @f(%a: i32) {{\n {text}\n return\n}}")


def test_a_type_that_is_not_declared(built):
    box, _, (a, _, _) = built
    with pytest.raises(DSLTypeError, match="box has no type 'crate' of 1 parameters") as caught:
        box.type("crate", a.type)
    assert "box(element, size), unit()" in caught.value.hint
    with pytest.raises(DSLTypeError, match="no type 'box' of 1 parameters"):
        box.type("box", a.type)


def test_declarations_that_cannot_be():
    with pytest.raises(ValueError, match=r"box\.pack is declared by Pack and Other"):

        class Other(BoxOp, name="pack"):
            """..."""

    with pytest.raises(ValueError, match="Lost is of no dialect"):

        class Lost(OpView, name="lost"):
            """..."""

    for taken in ("op", "verify", "dialect", "class"):
        with pytest.raises(ValueError, match=f"a field cannot be called '{taken}'"):
            type("Odd", (BoxOp,), {taken: operand()})
    with pytest.raises(ValueError, match="'size' of the kind 'float'"):
        type("Odd", (Dialect,), {"ops": BoxOp, "types": {"box": {"size": "float"}}})
    assert set(BoxOp.declared) == {"pack", "same"}


def test_dialects_do_not_share_their_operations():
    class OtherOp(OpView, dialect="other"):
        """..."""

    class Pack(OtherOp, name="pack"):
        """..."""

    assert Pack.op_name == "other.pack"
    assert OtherOp.declared == {"pack": Pack}


def test_a_dialect_is_defined_again_in_another_context(context):
    other = MLIRContext(context.bindings, Box.load)
    with other.entered():
        assert str(Box.of(context.bindings).type("unit")) == "!box.unit"
    with context.entered():
        assert str(Box.of(context.bindings).type("unit")) == "!box.unit"
