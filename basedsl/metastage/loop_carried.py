"""Carrying state through a staged loop: which leaves, of which types, found by tracing the body.

The body is traced with a first guess of what is carried. If it leaves a variable with another type,
or changes something thought constant, the attempt is thrown away and the body traced again with the
better guess. Guesses are remembered by the loop's place in the trace, so that a loop inside a loop
that is traced again starts from what it found before, and cost stays linear in the nesting.

Places (objects, lists, dicts, cells) keep their identity through the loop. A variable that the body
binds to a new object each time gets a *stand-in* at the head of the loop: what the last iteration
made, or on entry a copy of the object from before, which the body must then leave alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NoReturn

from basedsl.errors import CompilerBug, DSLError, DSLTypeError
from basedsl.location import user_span
from basedsl.metastage.aliases import check_later, shared_places
from basedsl.metastage.conditional_path import Eager
from basedsl.metastage.slots import NumericSlot, Slot, join, same_leaf, slot_of
from basedsl.metastage.state import (
    Content,
    MaybeUnbound,
    Picture,
    State,
    binding_span,
    describe_leaf,
    same_content,
)
from basedsl.numeric import is_dynamic
from basedsl.pytree import copy_place, fill_place, leaf_paths, open_value, same_shape, unflatten
from basedsl.tracing import Trace

MAX_ATTEMPTS = 100


class Again(BaseException):
    """The guess was wrong and has been improved: trace the body once more."""


class Guess:
    """What is known of the loop at one place in the trace from earlier attempts."""

    def __init__(self) -> None:
        self.slots: dict[str, Slot] = {}  # by the path of the leaf: what is carried
        self.stand_ins: set[str] = set()  # paths of variables bound to new objects
        self.first_bound: dict[str, tuple[Any, Picture]] = {}  # variable -> what the body binds
        self.counted = True  # a counted loop, until an exit turns out to be dynamic
        self.staged_after: int | None = None  # a `while`: iterations that Python could decide


class _Carried:
    """One leaf of the state at the loop's head that is a carried value."""

    __slots__ = ("content", "first", "index", "slot")

    def __init__(self, content: Content, index: int, slot: Slot, first: Any) -> None:
        self.content = content
        self.index = index
        self.slot = slot
        self.first = first  # the leaf on entry; UNDEFINED if the variable had no value


_UNDEFINED = object()


class Loop:
    """What `for` and `while` share: carrying state through a body."""

    def __init__(
        self,
        trace: Trace,
        guess: Guess,
        bodies: tuple[Callable[..., Any], ...],
        names: Iterable[str],
        undef_ok: Iterable[str],
        exits: tuple[str, ...],
        runs: bool,
    ) -> None:
        self.trace = trace
        self.guess = guess
        self.body = bodies[-1]
        self.state = State(bodies, names)
        self.undef_ok = frozenset(undef_ok)
        self.exits = exits
        self.runs = runs  # known to run at least once, so that what it binds is bound after it
        self.span = user_span()
        # A body that runs at least once raises in Python what it raises here.
        self.eager = contextlib.nullcontext() if runs else Eager("loop", self.span)
        self.before = self.state.capture()
        self.state.watch()
        self.shared = set() if runs else shared_places(self.before)
        self.places = place_count(trace)

    def stage(self, emit: Callable[[], Any]) -> None:
        """Call `emit` until the guess holds, then leave the loop's results in the variables."""
        trace = self.trace
        for _ in range(MAX_ATTEMPTS):
            self._prepare()
            with trace.held_prints() as prints:
                try:
                    results = emit()
                except Again:
                    self.state.restore(self.before)
                    reset_places(trace, self.places)
                    prints.clear()
                    continue
                except BaseException:
                    self.state.restore(self.before)
                    raise
            self._finish(results)
            return
        raise CompilerBug("the types of this loop's variables do not settle", self.span)

    # The head of the loop ----------------------------------------------------------------------

    def _prepare(self) -> None:
        self.stand_ins: dict[int, Any] = {}  # by id; kept alive here
        self.origins: dict[int, Any] = {}  # what a stand-in is a copy of
        self.maybe_unbound: set[str] = set()
        for name, (value, picture) in self.guess.first_bound.items():
            copy = _Copier(picture, self.before, self.stand_ins)
            self.state.cells[name].cell_contents = copy.value(value)
        undefined = set(self.stand_ins)
        self.head = self.state.capture(self.before)
        for path in sorted(self.guess.stand_ins, key=len):
            self._put_stand_in(path)
        self.carried: list[_Carried] = []
        for key, content in self.head.items():
            cell = content.is_variable
            if cell and content.name in self.guess.first_bound:
                new = True
            else:
                new = key in undefined
                if cell and content.name in self.state.names:
                    self._expect_change(content)
            for index, leaf in enumerate(content.leaves):
                if id(leaf) in self.head:
                    continue
                slot = self.guess.slots.get(content.path(index))
                if slot is not None:
                    first = _UNDEFINED if new else leaf
                    self.carried.append(_Carried(content, index, slot, first))

    def _expect_change(self, content: Content) -> None:
        """A number bound to a variable of the loop will hardly stay what it is."""
        if content.node.children[0] is None and content.name not in self.exits:
            leaf = content.leaves[0]
            slot = None if type(leaf) is bool else slot_of(leaf, self.trace)
            if isinstance(slot, NumericSlot):
                slot = replace(slot, divby=1)  # a counter of a literal 0 is no reason to try again
            if slot is not None:
                self.guess.slots.setdefault(content.name, slot)

    def _put_stand_in(self, path: str) -> None:
        """Let the variable or attribute `path` hold a copy of the place it refers to."""
        for content in self.head.values():
            for index, leaf in enumerate(content.leaves):
                if id(leaf) in self.before and content.path(index) == path:
                    old = self.head[id(leaf)]
                    twin = copy_place(old.node, old.leaves)
                    self.stand_ins[id(twin)] = twin
                    self.origins[id(twin)] = leaf
                    content.leaves[index] = twin
                    content.write()
                    self.head = self.state.capture(self.before)
                    return

    def initial(self) -> list[Any]:
        """The carried values on entry."""
        return [
            c.slot.undefined() if c.first is _UNDEFINED else c.slot.to_ir(c.first)
            for c in self.carried
        ]

    def enter(self, values: Iterable[Any]) -> None:
        """Give the variables the carried `values`, at the head of an iteration."""
        for c, value in zip(self.carried, values, strict=True):
            c.content.leaves[c.index] = c.slot.from_ir(value)
        self.state.restore(self.head)

    # The end of an iteration -------------------------------------------------------------------

    def leave(self) -> list[Any]:
        """The carried values now; improves the guess and starts over if it does not fit."""
        after = self.state.capture(self.head)
        self.state.check_globals(self.head, after, same_content)
        self.state.check_outside(self.before)
        self.after = after
        self.pairs: dict[int, Content] = {}  # the new contents of each place at the head
        self.taken: dict[int, int] = {}
        self.todo: list[Content] = []
        self.dead: set[int] = set()
        wrong = False
        for key, content in self.head.items():
            if key not in self.stand_ins:
                self.pairs[key] = after[key]
                wrong |= self._check_place(content, after[key])
        while self.todo:
            content = self.todo.pop(0)
            wrong |= self._check_content(content, self.pairs[id(content.place)])
        if wrong:
            raise Again
        for key in self.stand_ins:
            if key in self.head and self.head[key].name not in self.guess.first_bound:
                self._check_untouched(self.head[key])
        for origin in self.origins.values():
            self._check_origin(self.head[id(origin)])
        return [self._carried_now(c) for c in self.carried]

    def _carried_now(self, c: _Carried) -> Any:
        key = id(c.content.place)
        if key in self.dead or key not in self.pairs:
            return c.slot.undefined()
        return c.slot.to_ir(self.pairs[key].leaves[c.index])

    def _check_place(self, head: Content, after: Content) -> bool:
        name = head.name
        if head.is_variable:
            if name not in self.state.names:
                if not same_content(head, after):
                    self.dead.add(id(head.place))  # a variable of one iteration
                    return False
            elif name in self.guess.first_bound:
                return self._bound_again(head, after)
            elif head.is_unbound:
                return self._bound_first(name, after)
            elif after.is_unbound:
                if name in self.undef_ok:
                    self.dead.add(id(head.place))
                    return False
                raise DSLError(
                    f"'{name}' is bound before this loop and not after an iteration of it",
                    binding_span(self.body, name) or self.span,
                    hint=f"do not delete '{name}' in the loop",
                )
        elif head.is_unbound and after.is_unbound:
            return False
        return self._check_content(head, after)

    def _bound_first(self, name: str, after: Content) -> bool:
        if after.is_unbound:
            return False
        if name not in self.undef_ok and not self.runs:
            self.maybe_unbound.add(name)
            return False
        self._learn(name, after)
        return True

    def _bound_again(self, head: Content, after: Content) -> bool:
        """A variable that the loop binds first: is it what earlier attempts made of it?"""
        if after.is_unbound:
            self.dead.add(id(head.place))
            return False
        if self._same_structure(head, after):
            return self._check_content(head, after)
        self._learn(head.name, after)
        return True

    def _same_structure(self, head: Content, after: Content) -> bool:
        return same_shape(head.node, after.node) and all(
            same_leaf(x, y)
            or (slot_of(x, self.trace) is not None and slot_of(y, self.trace) is not None)
            or (
                id(x) in self.stand_ins
                and id(y) in self.after
                and (id(y) not in self.head or x is y)
                and self._same_structure(self.head[id(x)], self.after[id(y)])
            )
            for x, y in zip(head.leaves, after.leaves, strict=True)
        )

    def _learn(self, name: str, after: Content) -> None:
        """Remember what the body binds `name` to, and carry all its numbers."""
        value = after.place.cell_contents
        for path in [p for p in self.guess.slots if _is_part(p, name)]:
            del self.guess.slots[path]
        self.guess.first_bound[name] = value, self.after
        todo, seen = [(after, name)], set()
        while todo:
            content, prefix = todo.pop()
            paths = leaf_paths(content.node, prefix)
            for index, leaf in enumerate(content.leaves):
                path = paths[index]
                if id(leaf) in self.after:
                    if id(leaf) not in seen and id(leaf) not in self.before:
                        seen.add(id(leaf))
                        todo.append((self.after[id(leaf)], path))
                else:
                    slot = slot_of(leaf, self.trace)
                    if slot is not None:
                        self.guess.slots[path] = slot

    def _check_content(self, head: Content, after: Content) -> bool:
        if not same_shape(head.node, after.node):
            self._changed_shape(head, after)
        wrong = False
        for index, (old, new) in enumerate(zip(head.leaves, after.leaves, strict=True)):
            if id(old) in self.head or id(new) in self.after:
                wrong |= self._check_object(head, index, old, new)
            else:
                wrong |= self._check_leaf(head, index, old, new)
        return wrong

    def _check_object(self, head: Content, index: int, old: Any, new: Any) -> bool:
        if id(old) not in self.head or id(new) not in self.after:
            self._changed_type(head, index, describe_leaf(old), describe_leaf(new))
        if id(old) not in self.stand_ins:
            if old is new:
                return False
            if id(new) in self.head:
                self._different_objects(head, index)
            self.guess.stand_ins.add(head.path(index))
            return True
        if id(old) in self.pairs or id(new) in self.taken:
            if self.taken.get(id(new)) != id(old):
                self._different_objects(head, index)
            return False
        if old is not new and id(new) in self.head:
            self._different_objects(head, index)
        self.pairs[id(old)] = self.after[id(new)]
        self.taken[id(new)] = id(old)
        self.todo.append(self.head[id(old)])
        return False

    def _check_untouched(self, head: Content) -> None:
        after = self.after[id(head.place)]
        if not same_content(head, after):
            raise DSLError(
                f"'{head.prefix}' is both changed in place and bound to a new object in this loop",
                self.span,
                hint="do one of the two",
            )

    def _check_origin(self, head: Content) -> None:
        """In the first iteration the stand-in is this object, under whatever name it changes."""
        if not same_content(head, self.after[id(head.place)]):
            raise DSLError(
                f"the object '{head.prefix}' is changed in place in this loop, which another name "
                "for it is bound anew in",
                self.span,
                hint="do one of the two, or copy the object before the loop",
            )

    def _check_leaf(self, head: Content, index: int, old: Any, new: Any) -> bool:
        path = head.path(index)
        slot = self.guess.slots.get(path)
        if slot is None and same_leaf(old, new):
            return False
        known, found = slot or slot_of(old, self.trace), slot_of(new, self.trace)
        if known is None or found is None:
            self._changed_type(head, index, describe_leaf(old), describe_leaf(new))
        joined = join(known, found)
        if joined is None:
            raise DSLTypeError(
                f"'{path}' is {known} before the loop and {found} after an iteration",
                binding_span(self.body, head.name) or self.span,
                notes=(("the loop", self.span),),
                hint=f"start '{path}' as {found}, or convert with .to({known})",
            )
        if joined == slot:
            return False
        self.guess.slots[path] = joined
        return True

    # After the loop ----------------------------------------------------------------------------

    def _finish(self, results: Iterable[Any]) -> None:
        for c, value in zip(self.carried, results, strict=True):
            c.content.leaves[c.index] = c.slot.from_ir(value)
        for name in self.maybe_unbound:
            key = id(self.state.cells[name])
            leaf = MaybeUnbound(name, "when the loop does not run once", self.span)
            self.head[key] = self.head[key].unbound(leaf)
        self.state.restore(self.head)
        for key, origin in self.origins.items():
            if id(origin) in self.shared:
                old, new = self.head[id(origin)], self.head[key]
                check_later(self.trace, new.name, old, new, self.span)

    # Errors ------------------------------------------------------------------------------------

    def _changed_type(self, head: Content, index: int, old: str, new: str) -> NoReturn:
        raise DSLTypeError(
            f"'{head.path(index)}' changes in this loop from {old} to {new}, which only DSL values "
            "can",
            binding_span(self.body, head.name) or self.span,
            notes=(("the loop", self.span),),
            hint="use range_constexpr to unroll the loop while compiling",
        )

    def _changed_shape(self, head: Content, after: Content) -> NoReturn:
        raise DSLError(
            f"'{head.prefix}' changes its structure in a loop that runs at run time "
            f"(from {head.describe()} to {after.describe()})",
            binding_span(self.body, head.name) or self.span,
            hint="use range_constexpr to unroll the loop while compiling, or keep the structure "
            "fixed and change its items",
        )

    def _different_objects(self, head: Content, index: int) -> NoReturn:
        raise DSLError(
            f"'{head.path(index)}' refers to different objects in different iterations of this "
            "loop, which are also known by another name",
            binding_span(self.body, head.name) or self.span,
            hint="build a new object in each iteration, or change one object in place",
        )

    # Exits -------------------------------------------------------------------------------------

    def exit_flag(self) -> Any:
        """Whether a break or return has happened: a bool, or a dynamic Boolean."""
        return exit_flag(self.state, self.exits)


def exit_flag(state: State, exits: Iterable[str]) -> Any:
    """Whether one of the flags is set: a bool, or a dynamic Boolean."""
    flag: Any = False
    for name in exits:
        value = state.value(name)
        if is_dynamic(value):
            flag = value if flag is False else flag | value
        elif value:
            return True
    return flag


class _Copier:
    """Copies of a value with all places of `picture` in it, but for those in `keep`."""

    def __init__(self, picture: Picture, keep: Picture, made: dict[int, Any]) -> None:
        self.picture = picture
        self.keep = keep
        self.made = made
        self.twins: dict[int, Any] = {}

    def value(self, value: Any) -> Any:
        leaves: list[Any] = []
        node = open_value(value, leaves, [])
        return unflatten(node, [self._leaf(leaf) for leaf in leaves])

    def _leaf(self, leaf: Any) -> Any:
        content = self.picture.get(id(leaf))
        if content is None or id(leaf) in self.keep:
            return leaf
        twin = self.twins.get(id(leaf))
        if twin is None:
            twin = self.twins[id(leaf)] = copy_place(content.node, None)
            self.made[id(twin)] = twin
            fill_place(twin, content.node, [self._leaf(x) for x in content.leaves])
        return twin


def _is_part(path: str, name: str) -> bool:
    return path.startswith(name) and path[len(name) : len(name) + 1] in ("", ".", "[")


# Guesses by place in the trace ------------------------------------------------------------------


@contextlib.contextmanager
def remembered(trace: Trace, body: Any) -> Iterator[Guess]:
    """The guess for the loop that starts here; loops inside count from this place.

    A place alone is not enough: a test that was static in one attempt may be dynamic in the next,
    and then other loops come first. So the loop's own code is part of what is looked up.
    """
    places = trace.loop_places
    path, count = places[-1]
    places[-1] = (path, count + 1)
    here = (*path, count)
    places.append((here, 0))
    guesses = trace.loop_guesses
    depth = len(places)
    try:
        code = getattr(body, "__code__", None)  # kept alive by the guess, so that its id stays its
        yield guesses.setdefault((here, id(code)), (Guess(), code))[0]
    finally:
        del places[depth - 1 :]


def place_count(trace: Trace) -> int:
    """How many loops the current one has seen inside it, for `reset_places`."""
    return trace.loop_places[-1][1]


def reset_places(trace: Trace, count: int = 0) -> None:
    """The body of the current loop is traced again: loops in it are counted from `count`."""
    places = trace.loop_places
    places[-1] = (places[-1][0], count)
