"""Pictures of the state: places with contents, identity, what is put back, what is noticed."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import pytest

from basedsl.errors import DSLError
from basedsl.metastage.branches import same_contents
from basedsl.metastage.state import State
from basedsl.pytree import UNBOUND


class Box:
    def __init__(self, value: Any) -> None:
        self.value = value


def state_of(function: Any, names: tuple[str, ...] = ()) -> State:
    return State((function,), names)


def test_captures_cells_and_what_they_reach() -> None:
    box = Box([1, 2])
    pair = (box, 3)

    def body() -> Any:
        return pair

    snapshot = state_of(body).capture()
    places = [contents.place for contents in snapshot.values()]
    assert any(p is box for p in places) and any(p is box.value for p in places)
    paths = {c.path(i) for c in snapshot.values() for i in range(len(c.leaves))}
    assert paths == {"pair[0]", "pair[1]", "pair[0].value", "pair[0].value[0]", "pair[0].value[1]"}


def test_restore_puts_contents_back_into_the_same_objects() -> None:
    box, table, queue, seen = Box(1), {"a": 1}, deque([1]), {1}
    number = 5

    def body() -> Any:
        return box, table, queue, seen, number

    state = state_of(body)
    before = state.capture()
    box.value, table["b"], number = 2, 3, 6
    queue.append(4)
    seen.add(5)
    del table["a"]
    state.restore(before)
    assert (box.value, table, list(queue), seen, number) == (1, {"a": 1}, [1], {1}, 5)


def test_objects_that_are_no_longer_reached_are_put_back_too() -> None:
    old = box = Box(1)

    def body() -> Any:
        return box

    state = state_of(body)
    before = state.capture()
    old.value = 2
    box = Box(3)
    after = state.capture(before)
    assert any(contents.place is old for contents in after.values())
    state.restore(before)
    assert box is old and old.value == 1


def test_aliases_are_one_place() -> None:
    a = b = Box(1)

    def body() -> Any:
        return a, b

    snapshot = state_of(body).capture()
    assert sum(contents.place is a for contents in snapshot.values()) == 1
    assert b is a


def test_cycles_are_followed_once() -> None:
    box = Box(None)
    box.value = box

    def body() -> Any:
        return box

    state = state_of(body)
    state.restore(state.capture())
    assert box.value is box


def test_an_empty_cell_is_unbound_and_can_be_emptied_again() -> None:
    def body() -> Any:
        return later

    state = state_of(body, ("later",))
    before = state.capture()
    assert state.value("later") is UNBOUND
    later = 3
    assert state.value("later") == 3
    state.restore(before)
    assert state.value("later") is UNBOUND
    later = 4
    assert later == 4


GLOBAL = [1, 2]
LIBRARY = Path("x")


def test_a_changed_global_is_an_error() -> None:
    def body() -> Any:
        return GLOBAL, LIBRARY

    state = state_of(body)
    assert list(state.globals) == ["GLOBAL"]
    before = state.capture()
    GLOBAL.append(3)
    try:
        with pytest.raises(DSLError, match="the global object 'GLOBAL' is changed"):
            state.check_globals(before, state.capture(before), same_contents)
    finally:
        state.restore(before)
    assert GLOBAL == [1, 2]
