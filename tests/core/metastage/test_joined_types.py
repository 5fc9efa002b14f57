"""Values of a plugin's class whose types differ on two paths, but have one in common."""

from __future__ import annotations

from basedsl.metastage.carried_types import CarriedObject, carried_type_of, joined_type


class Range:
    """Carried as an SSA value; known to lie below `limit`."""

    def __init__(self, limit, value="%v"):
        self.limit = limit
        self.value = value

    def ir_value(self):
        return self.value

    def with_ir_value(self, value):
        return Range(self.limit, value)

    def leaf_type(self):
        return f"below {self.limit}"

    def joined(self, other):
        return Range(max(self.limit, other.limit)) if isinstance(other, Range) else None

    def ir_value_as(self, leaf):
        return f"{leaf.ir_value()} as {self.leaf_type()}"


class Plain:
    def __init__(self, kind):
        self.kind = kind

    def ir_value(self):
        return "%p"

    def with_ir_value(self, value):
        return Plain(self.kind)

    def leaf_type(self):
        return self.kind


def test_what_both_paths_know():
    a, b = carried_type_of(Range(4), None), carried_type_of(Range(8), None)
    joined = joined_type(a, b)
    assert isinstance(joined, CarriedObject)
    assert str(joined) == "below 8" and joined == joined_type(b, a) == b
    assert joined.to_ir(Range(4, "%x")) == "%x as below 8"
    assert joined.from_ir("%y").limit == 8
    assert joined_type(a, a) is a


def test_nothing_in_common():
    assert joined_type(carried_type_of(Range(4), None), carried_type_of(Plain("p"), None)) is None
    assert joined_type(carried_type_of(Plain("p"), None), carried_type_of(Plain("q"), None)) is None
    assert carried_type_of(Plain("p"), None).to_ir(Plain("p")) == "%p"
