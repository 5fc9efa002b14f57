"""Everything that tracing can have read: a change of it compiles again, the old code never runs.

Each case is a program: a function `f` of one int, `change()`, and what `f(10)` is before and after.
It is changed after one call (found by Python), and after four (when native code makes the calls).
"""

from __future__ import annotations

import array
import builtins
import dataclasses
import functools
import os
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

SCALE = 2
FACTOR = 0.5
PAIR = (1, (2, 3))
NAMED = {"a": 1, "b": 2}
CONFIG = types.SimpleNamespace(n=1)
MODULE = types.ModuleType("user_settings")
MODULE.N = 1  # type: ignore[attr-defined]


def helper(x: Any) -> Any:
    return x + 1


def outer_helper(x: Any) -> Any:
    return helper(x)


class Base:
    step = 1

    def move(self, x: Any) -> Any:
        return x + self.step


class Model(Base):
    def __init__(self) -> None:
        self.inner = types.SimpleNamespace(weights=[1, 2])
        self.scale = 3

    @property
    def doubled(self) -> int:
        return self.scale * 2


class Slotted:
    __slots__ = ("n",)


@dataclasses.dataclass
class Settings:
    n: int = 1


MODEL = Model()
SLOTTED = Slotted()
SETTINGS = Settings()

Case = tuple[Callable[..., Any], Callable[[], Any], Any, Any]
CASES: dict[str, Callable[[pytest.MonkeyPatch], Case]] = {}


def case(make: Callable[[pytest.MonkeyPatch], Case]) -> Callable[[pytest.MonkeyPatch], Case]:
    CASES[make.__name__] = make
    return make


def set_global(patch: pytest.MonkeyPatch, name: str, value: Any) -> Callable[[], None]:
    return lambda: patch.setitem(globals(), name, value)


@case
def a_global(patch: pytest.MonkeyPatch) -> Case:
    return lambda x: x * SCALE, set_global(patch, "SCALE", 3), 20, 30


@case
def a_global_of_another_type(patch: pytest.MonkeyPatch) -> Case:
    return lambda x: x * SCALE, set_global(patch, "SCALE", 2.0), 20, 20.0


@case
def a_zero_of_another_sign(patch: pytest.MonkeyPatch) -> Case:
    def f(x: Any) -> Any:
        return x * FACTOR

    patch.setitem(globals(), "FACTOR", 0.0)
    return f, set_global(patch, "FACTOR", -0.0), "0.0", "-0.0"


@case
def a_nested_tuple(patch: pytest.MonkeyPatch) -> Case:
    return lambda x: x + PAIR[1][1], set_global(patch, "PAIR", (1, (2, 4))), 13, 14


@case
def a_global_of_a_nested_function(patch: pytest.MonkeyPatch) -> Case:
    def f(x: Any) -> Any:
        def inner(y: Any) -> Any:
            return y * SCALE

        return inner(x)

    return f, set_global(patch, "SCALE", 4), 20, 40


@case
def a_builtin_hidden_by_a_global(patch: pytest.MonkeyPatch) -> Case:
    return lambda x: x + ord("a"), set_global(patch, "ord", lambda c: 1), 107, 11


@case
def a_builtin_replaced(patch: pytest.MonkeyPatch) -> Case:
    change = lambda: patch.setattr(builtins, "ord", lambda c: 1)  # noqa: E731
    return lambda x: x + ord("a"), change, 107, 11


@case
def a_closure_cell(patch: pytest.MonkeyPatch) -> Case:
    n = 1

    def change() -> None:
        nonlocal n
        n = 2

    return lambda x: x + n, change, 11, 12


@case
def a_closure_cell_of_a_helper(patch: pytest.MonkeyPatch) -> Case:
    n = 1

    def inner(x: Any) -> Any:
        return x + n

    def change() -> None:
        nonlocal n
        n = 2

    return lambda x: inner(x), change, 11, 12


@case
def a_default(patch: pytest.MonkeyPatch) -> Case:
    def f(x: Any, n: Any = 1) -> Any:
        return x + n

    return f, lambda: setattr(f, "__defaults__", (2.5,)), 11, 12.5


@case
def a_keyword_default(patch: pytest.MonkeyPatch) -> Case:
    def f(x: Any, *, n: Any = 1) -> Any:
        return x + n

    return f, lambda: setattr(f, "__kwdefaults__", {"n": 2.5}), 11, 12.5


@case
def a_keyword_default_in_place(patch: pytest.MonkeyPatch) -> Case:
    def f(x: Any, *, n: Any = "a") -> Any:
        return x + len(n)

    def change() -> None:
        assert f.__kwdefaults__ is not None
        f.__kwdefaults__["n"] = "abc"

    return f, change, 11, 13


@case
def a_default_of_a_helper(patch: pytest.MonkeyPatch) -> Case:
    def inner(x: Any, n: Any = 1) -> Any:
        return x + n

    return lambda x: inner(x), lambda: setattr(inner, "__defaults__", (2,)), 11, 12


@case
def its_own_code(patch: pytest.MonkeyPatch) -> Case:
    def f(x: Any) -> Any:
        return x + 1

    def g(x: Any) -> Any:
        return x + 2

    return f, lambda: setattr(f, "__code__", g.__code__), 11, 12


@case
def a_helper_redefined(patch: pytest.MonkeyPatch) -> Case:
    return lambda x: outer_helper(x), set_global(patch, "helper", lambda x: x - 1), 11, 9


@case
def the_code_of_a_helper(patch: pytest.MonkeyPatch) -> Case:
    new = lambda x: x - 1  # noqa: E731
    change = lambda: patch.setattr(helper, "__code__", new.__code__)  # noqa: E731
    return lambda x: outer_helper(x), change, 11, 9


@case
def a_partial(patch: pytest.MonkeyPatch) -> Case:
    def inner(n: Any, x: Any) -> Any:
        return x + n + SCALE

    bound = functools.partial(inner, 1)
    return lambda x: bound(x), set_global(patch, "SCALE", 5), 13, 16


@case
def a_list_item(patch: pytest.MonkeyPatch) -> Case:
    table = [1, 2]
    return lambda x: x + table[0], lambda: table.__setitem__(0, 5), 11, 15


@case
def a_longer_list(patch: pytest.MonkeyPatch) -> Case:
    table = [1]
    return lambda x: x + len(table), lambda: table.append(1), 11, 12


@case
def a_list_in_a_list(patch: pytest.MonkeyPatch) -> Case:
    table = [[1], [2]]
    return lambda x: x + table[0][0], lambda: table[0].__setitem__(0, 4), 11, 14


@case
def a_dict_value(patch: pytest.MonkeyPatch) -> Case:
    return lambda x: x + NAMED["a"], lambda: patch.setitem(NAMED, "a", 5), 11, 15


@case
def the_order_of_a_dict(patch: pytest.MonkeyPatch) -> Case:
    table = {"a": 1, "b": 2}
    change = lambda: table.__setitem__("a", table.pop("a"))  # noqa: E731
    return lambda x: x + next(iter(table.values())), change, 11, 12


@case
def a_set(patch: pytest.MonkeyPatch) -> Case:
    chosen = {1, 2}
    return lambda x: x + len(chosen), lambda: chosen.add(3), 12, 13


@case
def a_numpy_array(patch: pytest.MonkeyPatch) -> Case:
    table = np.array([1, 2])
    return lambda x: x + int(table[0]), lambda: table.__setitem__(0, 7), 11, 17


@case
def a_bytearray(patch: pytest.MonkeyPatch) -> Case:
    data = bytearray(b"\x01")
    return lambda x: x + data[0], lambda: data.__setitem__(0, 3), 11, 13


@case
def a_buffer(patch: pytest.MonkeyPatch) -> Case:
    data = array.array("l", [1])
    return lambda x: x + data[0], lambda: data.__setitem__(0, 3), 11, 13


@case
def an_attribute_of_a_namespace(patch: pytest.MonkeyPatch) -> Case:
    return lambda x: x + CONFIG.n, lambda: patch.setattr(CONFIG, "n", 5), 11, 15


@case
def an_attribute_of_a_module(patch: pytest.MonkeyPatch) -> Case:
    return lambda x: x + MODULE.N, lambda: patch.setattr(MODULE, "N", 5), 11, 15


@case
def an_attribute_that_a_module_gets(patch: pytest.MonkeyPatch) -> Case:
    def f(x: Any) -> Any:
        return x + (MODULE.EXTRA if hasattr(MODULE, "EXTRA") else 0)

    return f, lambda: patch.setattr(MODULE, "EXTRA", 5, raising=False), 10, 15


@case
def a_module_imported_inside(patch: pytest.MonkeyPatch) -> Case:
    patch.setitem(sys.modules, "user_settings", MODULE)

    def inner() -> Any:
        import user_settings  # type: ignore[import-not-found]

        return user_settings.N

    return lambda x: x + inner(), lambda: patch.setattr(MODULE, "N", 5), 11, 15


@case
def an_attribute_of_an_object(patch: pytest.MonkeyPatch) -> Case:
    return lambda x: x * MODEL.scale, lambda: patch.setattr(MODEL, "scale", 4), 30, 40


@case
def a_property(patch: pytest.MonkeyPatch) -> Case:
    return lambda x: x * MODEL.doubled, lambda: patch.setattr(MODEL, "scale", 4), 60, 80


@case
def a_nested_object(patch: pytest.MonkeyPatch) -> Case:
    model = Model()
    change = lambda: model.inner.weights.__setitem__(1, 5)  # noqa: E731
    return lambda x: x + model.inner.weights[1], change, 12, 15


@case
def a_class_attribute(patch: pytest.MonkeyPatch) -> Case:
    return lambda x: MODEL.move(x), lambda: patch.setattr(Base, "step", 4), 11, 14


@case
def a_class_attribute_overridden(patch: pytest.MonkeyPatch) -> Case:
    change = lambda: patch.setattr(Model, "step", 4, raising=False)  # noqa: E731
    return lambda x: MODEL.move(x), change, 11, 14


@case
def a_class_attribute_shadowed(patch: pytest.MonkeyPatch) -> Case:
    model = Model()  # of its own: not every pytest takes an attribute away again
    return lambda x: model.move(x), lambda: setattr(model, "step", 4), 11, 14


@case
def a_method_replaced(patch: pytest.MonkeyPatch) -> Case:
    change = lambda: patch.setattr(Base, "move", lambda self, x: x - 1)  # noqa: E731
    return lambda x: MODEL.move(x), change, 11, 9


@case
def the_class_of_an_object(patch: pytest.MonkeyPatch) -> Case:
    class Other(Base):
        step = 9

    model = Model()
    return lambda x: model.move(x), lambda: setattr(model, "__class__", Other), 11, 19


@case
def the_dict_of_an_object(patch: pytest.MonkeyPatch) -> Case:
    model = Model()
    return lambda x: x * model.scale, lambda: setattr(model, "__dict__", {"scale": 7}), 30, 70


@case
def a_slot(patch: pytest.MonkeyPatch) -> Case:
    SLOTTED.n = 1
    return lambda x: x + SLOTTED.n, lambda: setattr(SLOTTED, "n", 4), 11, 14


@case
def a_dataclass_field(patch: pytest.MonkeyPatch) -> Case:
    return lambda x: x + SETTINGS.n, lambda: patch.setattr(SETTINGS, "n", 4), 11, 14


@case
def a_bound_method(patch: pytest.MonkeyPatch) -> Case:
    move = MODEL.move
    return lambda x: move(x), lambda: patch.setattr(Base, "step", 4), 11, 14


@case
def an_environment_variable_read_in_the_code(patch: pytest.MonkeyPatch) -> Case:
    patch.setenv("SOME_NUMBER", "3")
    change = lambda: patch.setenv("SOME_NUMBER", "4")  # noqa: E731
    return lambda x: x + int(os.environ["SOME_NUMBER"]), change, 13, 14


@case
def an_environment_variable_read_by_getenv(patch: pytest.MonkeyPatch) -> Case:
    patch.delenv("SOME_NUMBER", raising=False)
    getenv = os.getenv
    change = lambda: patch.setenv("SOME_NUMBER", "4")  # noqa: E731
    return lambda x: x + int(getenv("SOME_NUMBER", "3")), change, 13, 14


@pytest.fixture
def patch() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as made:
        yield made


def shown(value: Any) -> Any:
    return value if not isinstance(value, float) else str(value)


@pytest.mark.parametrize("calls", [1, 4], ids=["python", "native"])
@pytest.mark.parametrize("name", CASES)
def test_a_change_compiles_again(
    dsl: Any, name: str, calls: int, patch: pytest.MonkeyPatch
) -> None:
    fn, change, before, after = CASES[name](patch)
    f = dsl.jit(fn, preprocess=False)
    for _ in range(calls):
        assert shown(f(10)) == shown(before)
    assert dsl.counts["compiled"] == 1
    change()
    for _ in range(calls):
        assert shown(f(10)) == shown(after)
    assert dsl.counts["compiled"] == 2


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("a_global")])
def test_a_change_back_finds_the_code_of_before(
    dsl: Any, name: str, patch: pytest.MonkeyPatch
) -> None:
    fn, change, before, _ = CASES[name](patch)
    f = dsl.jit(fn, preprocess=False)
    f(10)
    change()
    f(10)
    patch.undo()
    assert [shown(f(10)) for _ in range(3)] == [shown(before)] * 3
    assert dsl.counts["compiled"] == 2
