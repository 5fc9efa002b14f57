"""State carried through a staged loop: a fixpoint of which leaves are carried, and of which types.

The body is traced with a first assumption. If it leaves a variable with another type, or changes
something assumed constant, the attempt is discarded, the assumption improved (`LoopTypes`), and the
body traced again (`Retrace`) until nothing changes. Loop types are remembered by the loop's place
in the trace, so that a loop inside a loop that is traced again starts from what it found before,
and the cost stays linear in the nesting.

Places (objects, lists, dicts, cells) keep their identity through the loop. A variable that the body
binds to a new object each time gets a *placeholder* at the head of the loop: the object of the last
iteration, or on entry a copy of the object from before, which the body must then leave alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NoReturn

from basedsl.errors import CompilerBug, DSLError, DSLTypeError
from basedsl.location import user_span
from basedsl.metastage.aliases import check_later, shared_places
from basedsl.metastage.carried_types import (
    CarriedNumber,
    CarriedType,
    carried_type_of,
    joined_type,
    same_leaf,
)
from basedsl.metastage.chosen_member import is_carried
from basedsl.metastage.conditional_path import ConditionalPath
from basedsl.metastage.state import (
    MaybeUnbound,
    PlaceContents,
    State,
    StateSnapshot,
    binding_span,
    change_span,
    describe_leaf,
    same_contents,
)
from basedsl.numeric import Numeric, is_dynamic
from basedsl.pytree import copy_place, fill_place, leaf_paths, open_value, same_shape, unflatten
from basedsl.tracing import Trace
from basedsl.tracing.contract import carried

MAX_ATTEMPTS = 100


class Retrace(BaseException):
    """Ends an attempt: the loop types were wrong and are improved now, so trace the body again."""


class LoopTypes:
    """The types that earlier attempts found for the loop at one place in the trace."""

    def __init__(self) -> None:
        self.carried: dict[str, CarriedType] = {}  # by the path of the leaf, as a user writes it
        self.placeholders: set[str] = set()  # paths of variables bound to new objects
        #: variable -> the object that the body binds
        self.first_bound: dict[str, tuple[Any, StateSnapshot]] = {}
        #: Leaves that are carried because they probably change, and those that turned out not to.
        self.guessed: set[str] = set()
        self.constant: set[str] = set()
        self.counted = True  # a counted loop, until an exit turns out to be dynamic
        self.staged_after: int | None = None  # a `while`: iterations that Python could decide


class _CarriedLeaf:
    """One leaf of the state at the loop's head that is a carried value."""

    __slots__ = ("contents", "first", "index", "type")

    def __init__(
        self, contents: PlaceContents, index: int, carried_type: CarriedType, first: Any
    ) -> None:
        self.contents = contents
        self.index = index
        self.type = carried_type
        self.first = first  # the leaf on entry; UNDEFINED if the variable had no value


_UNDEFINED = object()


class Loop:
    """The part that `for` and `while` share: carrying state through a body."""

    def __init__(
        self,
        trace: Trace,
        types: LoopTypes,
        bodies: tuple[Callable[..., Any], ...],
        names: Iterable[str],
        undef_ok: Iterable[str],
        exits: tuple[str, ...],
        runs: bool,
    ) -> None:
        self.trace = trace
        self.types = types
        self.body = bodies[-1]
        self.state = State(bodies, names)
        self.undef_ok = frozenset(undef_ok)
        self.exits = exits
        self.runs = runs  # known to run at least once, so that what it binds is bound after it
        self.span = user_span()
        # A body that runs at least once raises in Python what it raises here.
        self.conditional_path = (
            contextlib.nullcontext() if runs else ConditionalPath("loop", self.span)
        )
        self.before = self.state.capture()
        self.state.watch(self.before)
        self.shared = set() if runs else shared_places(self.before)
        self.places = place_count(trace)

    def stage(self, emit: Callable[[], Any]) -> None:
        """Call `emit` until the loop types are a fixpoint, then bind the loop's results to the
        variables.
        """
        trace = self.trace
        refused = trace.refused
        for _ in range(MAX_ATTEMPTS):
            self._prepare()
            with trace.held_prints() as prints:
                try:
                    results = emit()
                except Retrace:
                    self.state.restore(self.before)
                    reset_places(trace, self.places)
                    prints.clear()
                    continue
                except BaseException as error:
                    self.state.restore(self.before)
                    if not self.types.guessed or not isinstance(error, Exception):
                        raise
                    # Perhaps a number that is carried by a guess has to be static.
                    self._drop_guesses()
                    trace.refused = refused
                    reset_places(trace, self.places)
                    prints.clear()
                    continue
            self._finish(results)
            return
        raise CompilerBug("the types of this loop's variables do not settle", self.span)

    # The head of the loop ----------------------------------------------------------------------

    def _prepare(self) -> None:
        self.placeholders: dict[int, Any] = {}  # by id; kept alive here
        self.origins: dict[int, Any] = {}  # the object that a placeholder is a copy of
        self.maybe_unbound: set[str] = set()
        for name, (value, snapshot) in self.types.first_bound.items():
            copy = _PlaceCopier(snapshot, self.before, self.placeholders)
            self.state.cells[name].cell_contents = copy.value(value)
        undefined = set(self.placeholders)
        self.head = self.state.capture(self.before)
        for path in sorted(self.types.placeholders, key=len):
            self._put_placeholder(path)
        self.carried: list[_CarriedLeaf] = []
        for key, contents in self.head.items():
            cell = contents.is_variable
            if cell and contents.name in self.types.first_bound:
                new = True
            else:
                new = key in undefined
                if cell and contents.name in self.state.names:
                    self._expect_change(contents)
                elif key not in self.placeholders:
                    self._expect_counting(contents)
            for index, leaf in enumerate(contents.leaves):
                if id(leaf) in self.head:
                    continue
                carried_type = self.types.carried.get(contents.path(index))
                if carried_type is not None:
                    first = _UNDEFINED if new else leaf
                    self.carried.append(_CarriedLeaf(contents, index, carried_type, first))

    def _expect_change(self, contents: PlaceContents) -> None:
        """Assume that a number bound to a variable of the loop changes in it."""
        if contents.node.children[0] is not None:
            for index, leaf in enumerate(contents.leaves):
                if isinstance(leaf, Numeric) and leaf.is_dynamic:
                    self._guess(contents.path(index), carried_type_of(leaf, self.trace))
        elif contents.name not in self.exits:
            leaf = contents.leaves[0]
            stays = type(leaf) is bool or is_carried(leaf)
            carried_type = None if stays else carried_type_of(leaf, self.trace)
            if isinstance(carried_type, CarriedNumber):
                # A counter of a literal 0 is no reason to try again.
                carried_type = replace(carried_type, divby=1)
            if carried_type is not None:
                self.types.carried.setdefault(contents.name, carried_type)

    def _expect_counting(self, contents: PlaceContents) -> None:
        """Assume that the numbers that a class names in `__dsl_counters__` change in the loop."""
        counters = getattr(type(contents.place), "__dsl_counters__", ())
        if not counters:
            return
        index = 0
        for name, child in zip(contents.node.keys, contents.node.children, strict=True):
            if child is not None:
                index += len(leaf_paths(child, ""))
                continue
            if name in counters:
                leaf = contents.leaves[index]
                if isinstance(leaf, Numeric) and leaf.is_dynamic:
                    self._guess(contents.path(index), carried_type_of(leaf, self.trace))
                elif type(leaf) is int:
                    self._guess(contents.path(index), CarriedNumber(self.trace.default_int, False))
            index += 1

    def _guess(self, path: str, carried_type: CarriedType | None) -> None:
        types = self.types
        if carried_type is not None and path not in types.carried and path not in types.constant:
            types.carried[path] = carried_type
            types.guessed.add(path)

    def _drop_guesses(self) -> None:
        for path in self.types.guessed:
            self.types.carried.pop(path, None)
        self.types.constant |= self.types.guessed
        self.types.guessed = set()

    def _put_placeholder(self, path: str) -> None:
        """Let the variable or attribute `path` hold a copy of the place it refers to."""
        for contents in self.head.values():
            for index, leaf in enumerate(contents.leaves):
                if id(leaf) in self.before and contents.path(index) == path:
                    old = self.head[id(leaf)]
                    twin = copy_place(old.node, old.leaves)
                    self.placeholders[id(twin)] = twin
                    self.origins[id(twin)] = leaf
                    contents.leaves[index] = twin
                    contents.write()
                    self.head = self.state.capture(self.before)
                    return

    def initial(self) -> list[Any]:
        """Return the carried SSA values on entry."""
        return [
            c.type.undefined() if c.first is _UNDEFINED else c.type.to_ir(c.first)
            for c in self.carried
        ]

    def enter(self, values: Iterable[Any]) -> None:
        """Bind the carried `values` to the variables, at the head of an iteration."""
        values = carried(self.trace, "for_ or while_", values, len(self.carried), given=True)
        for c, value in zip(self.carried, values, strict=True):
            c.contents.leaves[c.index] = c.type.from_ir(value)
        self.state.restore(self.head)

    # The end of an iteration -------------------------------------------------------------------

    def leave(self, is_end: bool = True) -> list[Any]:
        """Return the carried SSA values at the end of an iteration, or of the test before it;
        raise Retrace if their types changed.
        """
        after = self.state.capture(self.head)
        self.state.check_globals(self.head, after, same_contents)
        self.state.check_outside(self.before)
        self.after = after
        self.pairs: dict[int, PlaceContents] = {}  # the new contents of each place at the head
        self.taken: dict[int, int] = {}
        self.todo: list[PlaceContents] = []
        self.dead: set[int] = set()
        wrong = False
        for key, contents in self.head.items():
            if key not in self.placeholders:
                self.pairs[key] = after[key]
                wrong |= self._check_place(contents, after[key])
        while self.todo:
            contents = self.todo.pop(0)
            wrong |= self._check_contents(contents, self.pairs[id(contents.place)])
        self._check_guesses()
        if is_end and self.types.guessed:
            self._drop_guesses()
            wrong = True
        if wrong:
            raise Retrace
        for key in self.placeholders:
            if key in self.head and self.head[key].name not in self.types.first_bound:
                self._check_untouched(self.head[key])
        for origin in self.origins.values():
            self._check_origin(self.head[id(origin)])
        return [self._carried_now(c) for c in self.carried]

    def _check_guesses(self) -> None:
        """Confirm the guesses about leaves that the iteration has changed."""
        for c in self.carried if self.types.guessed else ():
            now = self.pairs.get(id(c.contents.place))
            if now is not None and not same_leaf(c.contents.leaves[c.index], now.leaves[c.index]):
                self.types.guessed.discard(c.contents.path(c.index))

    def _carried_now(self, c: _CarriedLeaf) -> Any:
        key = id(c.contents.place)
        if key in self.dead or key not in self.pairs:
            return c.type.undefined()
        return c.type.to_ir(self.pairs[key].leaves[c.index])

    def _check_place(self, head: PlaceContents, after: PlaceContents) -> bool:
        name = head.name
        if head.is_variable:
            if name not in self.state.names:
                if not same_contents(head, after):
                    self.dead.add(id(head.place))  # used within one iteration only
                    return False
            elif name in self.types.first_bound:
                return self._bound_again(head, after)
            elif head.is_unbound:
                return self._bound_first(name, after)
            elif after.is_unbound:
                if name in self.undef_ok:
                    self.dead.add(id(head.place))
                    return False
                raise DSLError(
                    f"'{name}' is bound before this loop, but not after an iteration of it",
                    binding_span(self.body, name) or self.span,
                    hint=f"do not delete '{name}' in the loop",
                )
        elif head.is_unbound and after.is_unbound:
            return False
        return self._check_contents(head, after)

    def _bound_first(self, name: str, after: PlaceContents) -> bool:
        if after.is_unbound:
            return False
        if name not in self.undef_ok and not self.runs:
            self.maybe_unbound.add(name)
            return False
        self._learn(name, after)
        return True

    def _bound_again(self, head: PlaceContents, after: PlaceContents) -> bool:
        """Compare a variable that the loop binds first with what earlier attempts made of it."""
        if after.is_unbound:
            self.dead.add(id(head.place))
            return False
        if self._same_structure(head, after):
            return self._check_contents(head, after)
        self._learn(head.name, after)
        return True

    def _same_structure(self, head: PlaceContents, after: PlaceContents) -> bool:
        return same_shape(head.node, after.node) and all(
            same_leaf(x, y)
            or (
                carried_type_of(x, self.trace) is not None
                and carried_type_of(y, self.trace) is not None
            )
            or (
                id(x) in self.placeholders
                and id(y) in self.after
                and (id(y) not in self.head or x is y)
                and self._same_structure(self.head[id(x)], self.after[id(y)])
            )
            for x, y in zip(head.leaves, after.leaves, strict=True)
        )

    def _learn(self, name: str, after: PlaceContents) -> None:
        """Remember the value that the body binds to `name`, and carry all its numbers."""
        value = after.place.cell_contents
        for path in [p for p in self.types.carried if _is_part(p, name)]:
            del self.types.carried[path]
        self.types.first_bound[name] = value, self.after
        todo, seen = [(after, name)], set()
        while todo:
            contents, prefix = todo.pop()
            paths = leaf_paths(contents.node, prefix)
            for index, leaf in enumerate(contents.leaves):
                path = paths[index]
                if id(leaf) in self.after:
                    if id(leaf) not in seen and id(leaf) not in self.before:
                        seen.add(id(leaf))
                        todo.append((self.after[id(leaf)], path))
                elif not is_carried(leaf):
                    carried_type = carried_type_of(leaf, self.trace)
                    if carried_type is not None:
                        self.types.carried[path] = carried_type

    def _check_contents(self, head: PlaceContents, after: PlaceContents) -> bool:
        if not same_shape(head.node, after.node):
            self._changed_shape(head, after)
        wrong = False
        for index, (old, new) in enumerate(zip(head.leaves, after.leaves, strict=True)):
            if id(old) in self.head or id(new) in self.after:
                wrong |= self._check_object(head, index, old, new)
            else:
                wrong |= self._check_leaf(head, index, old, new)
        return wrong

    def _check_object(self, head: PlaceContents, index: int, old: Any, new: Any) -> bool:
        if id(old) not in self.head or id(new) not in self.after:
            self._changed_type(head, index, describe_leaf(old), describe_leaf(new))
        if id(old) not in self.placeholders:
            if old is new:
                return False
            if id(new) in self.head:
                self._different_objects(head, index)
            self.types.placeholders.add(head.path(index))
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

    def _check_untouched(self, head: PlaceContents) -> None:
        after = self.after[id(head.place)]
        if not same_contents(head, after):
            raise DSLError(
                f"'{head.prefix}' is both changed in place and bound to a new object in this loop",
                self.span,
                hint="change it in place, or bind it to a new object, but not both",
            )

    def _check_origin(self, head: PlaceContents) -> None:
        """Check the copied object: in the first iteration it is the placeholder, under any name."""
        if not same_contents(head, self.after[id(head.place)]):
            raise DSLError(
                f"'{head.prefix}' is changed in place, and another name of it is bound anew",
                self.span,
                hint="do one of the two in this loop, or copy the object before the loop",
            )

    def _check_leaf(self, head: PlaceContents, index: int, old: Any, new: Any) -> bool:
        path = head.path(index)
        carried_type = self.types.carried.get(path)
        if carried_type is None and same_leaf(old, new):
            return False
        known, found = (
            carried_type or carried_type_of(old, self.trace),
            carried_type_of(new, self.trace),
        )
        if known is None or found is None:
            self._changed_type(head, index, describe_leaf(old), describe_leaf(new))
        joined = joined_type(known, found)
        if joined is None:
            raise DSLTypeError(
                f"'{path}' is {known} before the loop and {found} after an iteration",
                binding_span(self.body, head.name) or self.span,
                notes=(("the loop", self.span),),
                hint=f"start '{path}' as {found}, or convert with .to({known})",
            )
        if joined == carried_type:
            return False
        self.types.carried[path] = joined
        return True

    # After the loop ----------------------------------------------------------------------------

    def _finish(self, results: Iterable[Any]) -> None:
        results = carried(self.trace, "for_ or while_", results, len(self.carried))
        for c, value in zip(self.carried, results, strict=True):
            c.contents.leaves[c.index] = c.type.from_ir(value)
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

    def _changed_type(self, head: PlaceContents, index: int, old: str, new: str) -> NoReturn:
        raise DSLTypeError(
            f"'{head.path(index)}' changes in this loop from {old} to {new}",
            binding_span(self.body, head.name) or self.span,
            notes=(("only DSL values can change in a loop at run time", self.span),),
            hint="use range_constexpr to unroll the loop while compiling",
        )

    def _changed_shape(self, head: PlaceContents, after: PlaceContents) -> NoReturn:
        raise DSLError(
            f"'{head.prefix}' changes its structure in this loop, from {head.describe()} to "
            f"{after.describe()}",
            change_span(self.body, head) or self.span,
            notes=(("the loop", self.span),),
            hint="use range_constexpr to unroll the loop while compiling, or keep the structure "
            "fixed and change its items",
        )

    def _different_objects(self, head: PlaceContents, index: int) -> NoReturn:
        raise DSLError(
            f"'{head.path(index)}' refers to different objects in different iterations",
            binding_span(self.body, head.name) or self.span,
            notes=(("the loop; these objects have another name too", self.span),),
            hint="build a new object in each iteration, or change one object in place",
        )

    # Exits -------------------------------------------------------------------------------------

    def exit_flag(self) -> Any:
        """Return whether a break or return has happened: a bool, or a dynamic Boolean."""
        return exit_flag(self.state, self.exits)


def exit_flag(state: State, exits: Iterable[str]) -> Any:
    """Return whether one of the flags is set: a bool, or a dynamic Boolean."""
    flag: Any = False
    for name in exits:
        value = state.value(name)
        if is_dynamic(value):
            flag = value if flag is False else flag | value
        elif value:
            return True
    return flag


class _PlaceCopier:
    """Copies a value with all places of `snapshot` in it, except those in `keep`."""

    def __init__(self, snapshot: StateSnapshot, keep: StateSnapshot, made: dict[int, Any]) -> None:
        self.snapshot = snapshot
        self.keep = keep
        self.made = made
        self.twins: dict[int, Any] = {}

    def value(self, value: Any) -> Any:
        """Return a copy of `value`, in which the places of the snapshot are new ones."""
        leaves: list[Any] = []
        node = open_value(value, leaves, [])
        return unflatten(node, [self._leaf(leaf) for leaf in leaves])

    def _leaf(self, leaf: Any) -> Any:
        contents = self.snapshot.get(id(leaf))
        if contents is None or id(leaf) in self.keep:
            return leaf
        twin = self.twins.get(id(leaf))
        if twin is None:
            twin = self.twins[id(leaf)] = copy_place(contents.node, None)
            self.made[id(twin)] = twin
            fill_place(twin, contents.node, [self._leaf(x) for x in contents.leaves])
        return twin


def _is_part(path: str, name: str) -> bool:
    return path.startswith(name) and path[len(name) : len(name) + 1] in ("", ".", "[")


# Guesses by place in the trace ------------------------------------------------------------------


@contextlib.contextmanager
def types_of_loop(trace: Trace, body: Any) -> Iterator[LoopTypes]:
    """Enter the loop that starts here: its loop types, under which loops inside are counted.

    A place alone is not enough: a test that was static in one attempt may be dynamic in the next,
    and then other loops come first. So the loop's own code is part of the key.
    """
    places = trace.loop_places
    path, count = places[-1]
    places[-1] = (path, count + 1)
    here = (*path, count)
    places.append((here, 0))
    guesses = trace.loop_guesses
    depth = len(places)
    try:
        # Kept alive by the entry, so that its id stays unique.
        code = getattr(body, "__code__", None)
        yield guesses.setdefault((here, id(code)), (LoopTypes(), code))[0]
    finally:
        del places[depth - 1 :]


def place_count(trace: Trace) -> int:
    """Return how many loops the current one has met inside it, for `reset_places`."""
    return trace.loop_places[-1][1]


def reset_places(trace: Trace, count: int = 0) -> None:
    """Count the loops inside the current one from `count` again: its body is traced once more."""
    places = trace.loop_places
    places[-1] = (places[-1][0], count)
