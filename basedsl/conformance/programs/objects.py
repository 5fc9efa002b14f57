"""Values with parts through branches and loops: tuples to nested objects, and their aliases."""

# mypy: ignore-errors
# ruff: noqa: B007, SIM

from collections import defaultdict, deque
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from basedsl.conformance.cases import program, refused
from basedsl.conformance.objects import Counter, Frozen, Pair, Point


@program("count")
def tuple_in_a_loop(n):
    pair = (0, 1)
    for i in range(n):
        pair = (pair[1], pair[0] + pair[1])
    return pair


@program("int")
def tuple_in_a_branch(n):
    pair = (n, 2)
    if n > 0:
        pair = (5, pair[0])
    return pair


@program("count")
def named_tuple(n):
    pair = Pair(n, 1)
    for i in range(n):
        pair = pair._replace(first=pair.first + pair.second)
        if pair.first % 2:
            pair = Pair(pair.second, pair.first)
    return pair.first, pair.second


@program("count")
def list_items_in_a_loop(n):
    values = [0, 1, 2]
    for i in range(n):
        values[0] += values[1]
        values[-1] = i
        values[i % 3] += 1
    return values[0], values[1], values[2]


@program("int")
def list_items_in_a_branch(n):
    values = [1, 2]
    if n > 0:
        values[0] = n
    else:
        values[1] = n
    return values[0] * 100 + values[1]


@program("count")
def dict_values_in_a_loop(n):
    table = {"a": 0, "b": 1}
    for i in range(n):
        table["a"] += table["b"]
        if i % 2 == 0:
            table["b"] = i
    return table["a"], table["b"]


@program("count int")
def frozen_dataclass(n, m):
    interval = Frozen(m, m)
    for i in range(n):
        interval = interval.moved(i) if i % 2 else replace(interval, low=i)
    return interval.low, interval.high


@dataclass
class Stats:
    total: Any = 0
    largest: Any = -1000
    seen: list[Any] = field(default_factory=lambda: [0, 0])

    def add(self, x: Any) -> None:
        self.total += x
        if x > self.largest:
            self.largest = x
            self.seen[1] += 1
        self.seen[0] += 1


@program("ints count")
def dataclass_changed_by_its_methods(a, n):
    stats = Stats()
    for i in range(n):
        stats.total += a[i % 6]
        stats.seen[0] += 1
        stats.largest = max(stats.largest, a[i % 6])
    return stats.total, stats.largest, stats.seen[0]


@program("count")
def ordinary_class_in_a_loop(n):
    p = Point(1, 2)
    for i in range(n):
        p.move(i)
        if i % 2:
            p.flip()
    return p.x, p.y


@program("count")
def nested_objects(n):
    c = Counter(3)
    for i in range(n):
        c.tick(i)
        if c.count % 2 == 0:
            c.point.move(2)
    return c.count, c.point.x, c.point.y, c.recent[0], c.recent[1]


@program("count")
def list_of_objects(n):
    points = [Point(0, 1), Point(5, 6)]
    for i in range(n):
        for p in points:
            p.move(1)
        points[0].x += points[1].y
    return points[0].x, points[1].y


@program("count int")
def object_changed_in_while_with_break(n, m):
    p = Point(0, 0)
    while p.x < 20:
        p.move(m % 5 + 1)
        if p.x == n:
            break
    return p.x, p.y


@program("int")
def aliases_stay_aliases(n):
    p = Point(1, 2)
    q = p
    if n > 0:
        p.x = 10
    for i in range(3):
        q.y += n
    return p.x, q.x, p.y, q.y


@program("int")
def alias_survives_rebinding(n):
    p = Point(1, 2)
    q = p
    p.x = n
    p = Point(7, 8)
    if n > 0:
        p.y = 3
        q.y = 4
    return p.x, p.y, q.x, q.y


@program("int")
def shared_list(n):
    inner = [1, 2]
    outer = [inner, inner]
    if n > 2:
        outer[0][1] = n
    return outer[1][1], inner[1]


@program("count")
def new_object_each_iteration(n):
    p = Point(1, 2)
    for i in range(n):
        p = Point(p.y + 1, p.x)
    return p.x, p.y


@program("count")
def new_nested_objects_each_iteration(n):
    c = Counter(1)
    for i in range(n):
        d = Counter(c.count + i)
        d.point.move(c.point.x)
        c = d
    return c.count, c.point.x


@program("int")
def new_object_in_both_branches(n):
    if n > 0:
        p = Point(n, 1)
    else:
        p = Point(2, n)
        p.flip()
    p.x += 1
    return p.x, p.y


class ListNode(NamedTuple):
    value: Any
    next: Any


@program("count")
def linked_tuples(n):
    chain = ListNode(1, ListNode(2, ListNode(3, None)))
    for i in range(n):
        chain = ListNode(
            chain.next.value, ListNode(chain.next.next.value + i, ListNode(chain.value, None))
        )
    return chain.value, chain.next.value, chain.next.next.value


class Accumulator:
    """A callable with its own state."""

    def __init__(self) -> None:
        self.total = 0

    def __call__(self, x: Any) -> Any:
        self.total = self.total + x
        return self.total


@program("count")
def callable_object(n):
    add = Accumulator()
    last = 0
    for i in range(n):
        last = add(i)
    return add.total, last


@program("count")
def bound_method_in_a_variable(n):
    p = Point(0, 0)
    move = p.move
    for i in range(n):
        move(i)
    return p.x, p.y


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a: Any, b: Any) -> None:
        self.a = a
        self.b = b


@program("count")
def class_with_slots(n):
    s = Slotted(1, 0)
    for i in range(n):
        s.a, s.b = s.b, s.a + s.b
    return s.a, s.b


class Vector:
    """Operators and the part protocol of the core."""

    def __init__(self, x: Any, y: Any) -> None:
        self.parts = (x, y)

    def __dsl_leaves__(self) -> tuple[Any, ...]:
        return self.parts

    def __dsl_rebuild__(self, parts: tuple[Any, ...]) -> "Vector":
        return Vector(*parts)

    def __add__(self, other: "Vector") -> "Vector":
        return Vector(self.parts[0] + other.parts[0], self.parts[1] + other.parts[1])


@program("count int")
def class_with_the_protocol(n, m):
    v = Vector(0, 0)
    for i in range(n):
        v = v + Vector(i, m)
        if i == 3:
            v = v + Vector(100, 0)
    return v.parts[0], v.parts[1]


@program("count")
def objects_of_first_binding_in_loops(n):
    for i in range(3):
        p = Point(i, n)
        p.move(1)
    return p.x, p.y


@refused("refers to different Point objects", "int")
def choosing_between_objects(n):
    p, q = Point(1, 2), Point(3, 4)
    if n > 0:
        p = q  # error
    return p.x


@refused("refers to different", "count")
def swapping_objects_in_a_loop(n):
    p, q = Point(1, 2), Point(3, 4)
    for i in range(n):
        p, q = q, p
    return p.x


@refused("is a tuple of 2 items on one path and a tuple of 3 items", "int")
def structures_differ(n):
    if n > 0:
        t = (1, 2)
    else:
        t = (1, 2, 3)
    return t[0]


@refused("is set only when the condition is true", "int")
def attribute_on_one_path(n):
    p = Point(1, 2)
    if n > 0:  # error
        p.z = 3
    return p.x


@program("int")
def sets_and_deques_while_static(n):
    seen = {1, 2}
    seen.add(3)
    queue = deque([n, 1])
    queue.append(n + 1)
    return n + len(seen), queue[2], queue.popleft()


@program("count")
def deque_items_in_a_loop(n):
    last = deque([0, 1])
    for i in range(n):
        last[0], last[1] = last[1], i
    return last[0], last[1]


@refused("'seen'", "count")
def set_grows_in_a_loop(n):
    seen = {0}
    for i in range(n):
        seen.add(1)
    return len(seen)


@refused("'queue'", "int")
def deque_grows_in_a_branch(n):
    queue = deque([n])
    if n > 0:
        queue.append(1)
    return len(queue)


@refused("'values'", "int")
def list_grows_in_a_branch(n):
    values = [n]
    if n > 0:
        values.append(1)
    return len(values)


@refused("'table'", "int")
def default_dict_grows_in_a_branch(n):
    table = defaultdict(int)
    if n > 0:
        table["a"] += n
    return n


@program("count int")
def aliases_through_containers(n, m):
    p = Point(1, 2)
    held = {"p": p, "all": [p, p]}
    for i in range(n):
        held["all"][0].move(m)
        if i % 2:
            p.flip()
    return p.x, held["p"].y, held["all"][1].x


@program("count")
def closures_over_objects(n):
    p = Point(0, 1)

    def bump(by):
        p.x = p.x + by
        return p.x

    last = 0
    for i in range(n):
        if i % 2 == 0:
            last = bump(i)
    return last, p.x


@program("int int")
def objects_in_conditional_expressions(n, m):
    t = (n, 1) if n > m else (m, 2)
    f = Frozen(n, 0) if n < 3 else Frozen(0, m)
    return t[0], t[1], f.low, f.high


@program("count")
def inherited_state(n):
    class Child(Point):
        def __init__(self, x, y):
            super().__init__(x, y)
            self.steps = 0

        def move(self, by):
            super().move(by)
            self.steps += 1

    c = Child(1, 2)
    for i in range(n):
        c.move(i)
    return c.x, c.steps


@program("count")
def properties(n):
    class Box:
        def __init__(self):
            self._value = 0

        @property
        def value(self):
            return self._value

        @value.setter
        def value(self, x):
            self._value = x % 50

    box = Box()
    for i in range(n):
        box.value = box.value * 3 + i
    return box.value
