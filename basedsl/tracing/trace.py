"""The compilation that is running: where ops go, from which line they come, which regions are open.

One `Trace` lives for one call of the meta-stage. Proxies and emitters ask
`current_trace` for it. What values mean, and how control flow is captured, lives elsewhere.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
import threading
from collections.abc import Callable, Container, Iterator, Sequence
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Protocol

from basedsl.errors import DSLError, DSLSyntaxError
from basedsl.location import (
    Span,
    internal_files,
    is_internal_frame,
    span_of_frame,
    start_of_code,
    utf8_name,
)
from basedsl.logs import logger
from basedsl.mlir import Bindings
from basedsl.tracing.contract import complete

if TYPE_CHECKING:
    from basedsl.tracing.emitter import Emitter

_state = threading.local()

# How many traces run in all threads: native calls look at it, and leave calls that may belong to a
# trace to Python.
RUNNING = ctypes.c_int64(0)
_running_lock = threading.Lock()
# Calls of a chain that a location keeps: the work for it grows with the square of a recursion.
_MOST_CALLERS = 32
_MOST_PASSED = 512
# Code whose frame may have another caller each time that it goes on.
_RESUMED = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR


class Region:
    """A stretch of IR being filled. Values made in it must not be used once it is closed."""

    __slots__ = ("checks", "closed", "kind", "parent", "span")

    def __init__(self, kind: str, span: Span | None, parent: Region | None) -> None:
        self.kind = kind
        self.span = span
        self.parent = parent
        self.closed = False
        self.checks: list[Callable[[], None]] = []  # for when the region is traced

    def check(self) -> None:
        """Run the checks: errors about what the program did in the region."""
        for check in self.checks:
            check()


Pick = Callable[[Sequence[Callable[[], Any]], Any], Any]


class Named(Protocol):
    """The part of a `basedsl.Language` by which a trace tells whose it is."""

    @property
    def name(self) -> str: ...


class Outside(Protocol):
    """The state that outlives a call, as static code can reach it; `volatile` are the functions in
    it that answer otherwise at each call, as users write them, `questions` what its helpers ask.
    """

    volatile: set[str]
    questions: dict[CodeType, Any]

    def meets(self, function: Any) -> None: ...

    def reaches(self, value: Any) -> bool: ...

    def mark(self, apart: Container[int]) -> Any: ...

    def changed_since(self, marks: Any) -> str | None: ...


class Trace:
    """One run of the meta-stage of one language, which fills `module`.

    `emitter(trace)` makes what builds control flow; `bindings` is how MLIR is reached.
    `default_int` and `default_float` are the DSL's numeric types for a Python int and float.
    `options` is the record of options of this compilation, None in a trace without one.
    `function_kind` is "jit" or "kernel", whichever function's body is being traced now.
    `extension` is a record of the DSL's own. `outside` knows the state that outlives
    the call, and gets each decorated function before its body is traced for the first time.
    `pick(thunks, place)` calls one of several functions, by a number of run time, in branches.
    `is_rebuilt(cls)` is True of classes whose objects a branch may replace by merged ones.
    """

    def __init__(
        self,
        language: Named,
        bindings: Bindings,
        module: Any,
        emitter: Callable[[Trace], Emitter],
        *,
        default_int: Any,
        default_float: Any,
        options: Any = None,
        extension: Any = None,
        outside: Outside | None = None,
        pick: Pick,
        is_rebuilt: Callable[[type], bool] = lambda cls: False,
    ) -> None:
        self.language = language
        self.bindings = bindings
        self.ir = bindings.ir
        self.module = module
        self.extension = extension
        self.default_int = default_int
        self.default_float = default_float
        self.options = options
        self.function_kind = "jit"
        self.function_name = ""
        self.region = Region("function", None, None)
        #: The decorated functions traced so far, and the rewritten form of each.
        self.functions: list[Any] = []
        self.outside = outside
        self.pick = pick
        self.is_rebuilt = is_rebuilt
        self.on_meeting: Callable[[], None] = lambda: None  # called after `meets`
        #: Called with each enumeration of which a member is chosen at run time.
        self.on_choice: Callable[[Any], None] = lambda cls: None
        self.staged: dict[Any, Callable[..., Any]] = {}
        #: Symbols of the kernels that were traced into the module.
        self.kernel_symbols: set[str] = set()
        #: Names of functions that the module declares and other code defines.
        self.declared: set[str] = set()
        #: Makers of arithmetic (`numeric.kit`): the one in use, and those for vectors by length.
        self.kit: Any = None
        self.lane_kits: dict[int, Any] = {}
        #: Loops (`metastage.loop_carried`): the path to each open one with the number of loops seen
        #: in it, and what earlier attempts found out about a loop, by its place.
        self.loop_places: list[tuple[tuple[int, ...], int]] = [((), 0)]
        self.loop_guesses: dict[Any, Any] = {}
        # Meta-stage prints held back while a loop body may be traced again.
        self.printed: list[tuple[str, Callable[[str], Any]]] | None = None
        #: How many texts have shown a dynamic value.
        self.texts = 0
        self._remarked: set[tuple[str, int]] = set()
        self._points: list[Any] = []
        self.forbidden: tuple[str, Span | None] | None = None
        self.refused: DSLError | None = None  # what `refuse` was given first
        # By the ids of code objects, which `_codes` keeps alive, and instructions, of each call in
        # the chain. Hashing a code object reads all of it.
        self._locations: dict[tuple[int, ...], Any] = {}
        self._codes: dict[int, CodeType] = {}
        self._bodies: dict[int, frozenset[int]] = {}  # of each of them, the ids of its constants
        self._body: frozenset[int] = frozenset()
        self._entry: CodeType | None = None  # the library's code that called the traced function
        # The user's frame that called the traced function, and where it did.
        self._caller: FrameType | None = None
        self._caller_loc: Any = None
        # Frames of the library that it called, with no user's between: some of the stack as it is.
        self._passed: dict[FrameType, None] = {}
        self.emitter = complete(language, emitter(self))

    def meets(self, function: Any) -> None:
        """Note that a decorated function is about to be traced, or launched, as a part of this."""
        if self.outside is not None and function not in self.functions:
            self.outside.meets(function)
            self.on_meeting()
        self.functions.append(function)

    # Locations -------------------------------------------------------------------------------

    def loc(self, above: int = 1) -> Any:
        """The `ir.Location` of the innermost user frame; in a function called from the one that is
        traced, with the calls that led there. The first `above - 1` callers are the library's.
        """
        internal, passed, new = internal_files, self._passed, []
        frame: FrameType | None = sys._getframe(above)
        while frame is not None and internal[frame.f_code.co_filename]:
            if frame in passed:
                frame = self._caller
                break
            new.append(frame)
            frame = frame.f_back
        if frame is None:
            return self.ir.Location.unknown()
        if frame is self._caller:
            # Code of the library that is traced has no other location.
            if len(passed) > _MOST_PASSED:
                passed.clear()
            passed.update([(one, None) for one in new if not one.f_code.co_flags & _RESUMED])
            return self._loc_of_caller(frame)
        key: tuple[int, ...] = (id(frame.f_code), frame.f_lasti)
        if key[0] not in self._body:
            key += self._callers(frame)
        found = self._locations.get(key)
        if found is None:
            self._codes[key[0]] = frame.f_code
            found = self._loc_in(frame.f_code, key[1])
            if len(key) > 2:
                pairs = range(2, len(key), 2)
                callers = [self._loc_in(self._codes[key[i]], key[i + 1]) for i in pairs]
                found = self.ir.Location.callsite(found, callers)
            self._locations[key] = found
        return found

    def _loc_of_caller(self, caller: FrameType) -> Any:
        """The location of the user's call of the traced function, the same for all of a trace."""
        if self._caller_loc is None:
            self._caller_loc = self._loc_in(caller.f_code, caller.f_lasti)
        return self._caller_loc

    def _callers(self, frame: FrameType) -> tuple[int, ...]:
        """Code and instruction of each call between the traced function and `frame`, the innermost
        ones of many; () if it was not called from there.
        """
        found: list[int] = []
        internal, entry = internal_files, self._entry
        inner, outer = frame.f_code, frame.f_back
        while outer is not None:
            code = outer.f_code
            if code is entry:
                break
            if not internal[code.co_filename]:
                key = id(code)
                bodies = self._bodies.get(key)
                if bodies is None:
                    self._codes[key] = code
                    bodies = self._bodies[key] = frozenset(map(id, code.co_consts))
                # The bodies of rewritten loops and branches are functions to Python only.
                if id(inner) not in bodies:
                    found += (key, outer.f_lasti)
                if key in self._body or len(found) >= 2 * _MOST_CALLERS:
                    return tuple(found)
                inner = code
            outer = outer.f_back
        return ()

    @contextlib.contextmanager
    def body_of(self, function: Callable[..., Any]) -> Iterator[None]:
        """`function` is traced meanwhile: its lines are called from nowhere."""
        codes = list(_codes(function.__code__))
        self._codes |= {id(code): code for code in codes}
        outer, self._body = self._body, frozenset(map(id, codes))
        is_first = self._entry is None
        if is_first:
            entry = sys._getframe(2)  # below this one, contextlib's
            self._entry, self._caller = entry.f_code, entry.f_back
            while self._caller is not None and internal_files[self._caller.f_code.co_filename]:
                self._caller = self._caller.f_back
        try:
            yield
        finally:
            self._body = outer
            if is_first:
                self._caller = None
                self._passed.clear()

    def is_body(self, code: CodeType) -> bool:
        """Return True for code of the function that `body_of` was told of."""
        return id(code) in self._body

    def _loc_in(self, code: CodeType, instruction: int) -> Any:
        line, col = start_of_code(code, instruction)
        return self._loc_at(code.co_filename, line, col + 1)

    def loc_of_code(self, code: CodeType) -> Any:
        """The first line of the function that `code` is, as an `ir.Location`."""
        return self._loc_at(code.co_filename, code.co_firstlineno, 1)

    def _loc_at(self, filename: str, line: int, col: int) -> Any:
        try:
            return self.ir.Location.file(filename, line, col)
        except TypeError:  # bytes of a name that are no UTF-8
            return self.ir.Location.file(utf8_name(filename), line, col)

    # Prints ------------------------------------------------------------------------------------

    def say(self, text: str, write: Callable[[str], Any]) -> None:
        """Print `text` at the meta-stage, by calling `write` with it; held back while a loop's body
        may be traced again.
        """
        if self.printed is None:
            write(text)
        else:
            self.printed.append((text, write))

    def remark_on_text(self, frame: FrameType | None) -> None:
        """Tell the user, once a line, that text made at `frame` while compiling shows a value of
        run time as `?`. Nothing is said for frames of the library.
        """
        if frame is None or is_internal_frame(frame):
            return
        place = (frame.f_code.co_filename, frame.f_lineno)
        if place in self._remarked:
            return
        self._remarked.add(place)
        instead = getattr(self.language, "run_time_print", "")
        logger("remarks").warning(
            "remark: this text is made while compiling, and shows a value of run time as ?%s\n%s",
            f"; {instead} prints it at run time" if instead else "",
            span_of_frame(frame).excerpt(),
        )

    @contextlib.contextmanager
    def held_prints(self) -> Iterator[list[tuple[str, Callable[[str], Any]]]]:
        """Hold back what the body prints until it ends; who clears the list takes it back."""
        outer, self.printed = self.printed, []
        try:
            yield self.printed
        finally:
            held, self.printed = self.printed, outer
            if outer is not None:
                outer += held
            else:
                for text, write in held:
                    write(text)

    # Emission --------------------------------------------------------------------------------

    def emit(self, build: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call `build`, an op builder of the bindings, with these arguments, at the current
        insertion point and user location; one that takes no `loc` is called within `with
        trace.loc():` instead. Returns what it returns. Raises DSLSyntaxError in a block where
        emitting is forbidden.
        """
        if self.forbidden is not None:
            kind, span = self.forbidden
            raise self.refuse(
                DSLSyntaxError(
                    f"a dynamic value is computed inside `{kind}`",
                    notes=((f"the `{kind}` block", span),),
                    hint=f"`{kind}` runs while compiling: move dynamic computation out of it",
                )
            )
        return build(*args, loc=self.loc(), **kwargs)

    def emit_op(self, name: str, type: Any, *operands: Any, **attributes: Any) -> Any:
        """The only result, an SSA value of `type`, of a new op; None if `type` is None, for an op
        without results. By its name: it is made in a third of the time that its class in the
        bindings takes, and no classes are made for its dialect.
        """
        create = self.ir.Operation.create
        if type is None:
            self.emit(create, name, results=[], operands=operands, attributes=attributes or None)
            return None
        made = self.emit(
            create, name, results=[type], operands=operands, attributes=attributes or None
        )
        return made.result

    def refuse(self, error: DSLError) -> DSLError:
        """`error`, to be raised: about a value that Python would know here and compilation does
        not. It is kept, so that an `except` of the program cannot make another program of this.
        """
        if self.refused is None:
            self.refused = error
        return error

    def check_refused(self) -> None:
        """Raise what was refused, if the program has caught it."""
        if self.refused is not None:
            raise self.refused.with_traceback(None)

    @contextlib.contextmanager
    def forbidding(self, kind: str, span: Span | None) -> Iterator[None]:
        """While in a block of `kind`, at the line `span`, emitting anything is an error."""
        outer, self.forbidden = self.forbidden, (kind, span)
        try:
            yield
        finally:
            self.forbidden = outer

    @contextlib.contextmanager
    def allowing(self) -> Iterator[None]:
        """While in the block, emit even inside a construct that forbids it."""
        outer, self.forbidden = self.forbidden, None
        try:
            yield
        finally:
            self.forbidden = outer

    def checkpoint(self) -> Callable[[], None]:
        """A function that takes away everything emitted from now on in the current block, and in
        the blocks made behind it.
        """
        block = self.ir.InsertionPoint.current.block
        operations, blocks = len(block.operations), len(block.region.blocks)

        def undo() -> None:
            doomed = list(block.operations)[operations:]
            made = list(block.region.blocks)[blocks:]
            if made:
                doomed.pop().operation.erase()  # the branch into them
                with self.ir.Location.unknown():
                    bin_ = self.ir.Operation.create("builtin.module", regions=1, ip=False)
                for one in made:
                    one.append_to(bin_.regions[0])
                bin_.erase()
                self.move_to(block)
            for operation in reversed(doomed):
                operation.operation.erase()

        return undo

    @contextlib.contextmanager
    def insertion(self, block: Any) -> Iterator[None]:
        """Emit at the end of `block`, or wherever `move_to` goes from there."""
        point = self.ir.InsertionPoint(block)
        point.__enter__()
        self._points.append(point)
        try:
            yield
        finally:
            self._points.pop().__exit__(None, None, None)

    def move_to(self, block: Any) -> None:
        """Go on emitting at the end of `block`, for emitters that make blocks."""
        self._points[-1].__exit__(None, None, None)
        self._points[-1] = self.ir.InsertionPoint(block)
        self._points[-1].__enter__()

    @contextlib.contextmanager
    def apart(self) -> Iterator[None]:
        """While something is traced that cannot use the values made so far."""
        waiting = self.open_regions()
        for region in waiting:
            region.closed = True
        try:
            yield
        finally:
            for region in waiting:
                region.closed = False

    def open_regions(self) -> list[Region]:
        """The region being filled and those around it."""
        found, region = [], self.region
        while region is not None:
            if not region.closed:
                found.append(region)
            region = region.parent  # type: ignore[assignment]
        return found

    @contextlib.contextmanager
    def inside(self, kind: str, span: Span | None = None) -> Iterator[Region]:
        """While the body of a staged construct is traced: values made inside stay inside. `kind` is
        the construct for messages ("loop", "kernel"), `span` its line. Yields the region.
        """
        region = Region(kind, span, self.region)
        self.region = region
        try:
            yield region
            region.check()
        finally:
            region.closed = True
            self.region = region.parent  # type: ignore[assignment]


def current_trace_or_none() -> Trace | None:
    """The trace running in this thread, or None in plain Python."""
    return getattr(_state, "trace", None)


def escaped(what: str, region: Region) -> DSLError:
    """The error for a value of the closed `region` that is used; `what` calls the value, as in "a
    number".
    """
    trace = current_trace_or_none()
    here = None if trace is None else trace.region
    while here is not None and here is not region:
        here = here.parent
    if here is not None:
        return DSLError(
            f"{what} of host code is used in a kernel", hint="pass it to the kernel as an argument"
        )
    if region.kind == "function":
        return DSLError(
            f"{what} made while another function was compiled is used here",
            hint="pass it as an argument, or return it: values live while their function is "
            "compiled",
        )
    where = f" at {region.span}" if region.span is not None else ""
    notes = (("the value is computed in here", region.span),) if region.span is not None else ()
    return DSLError(
        f"{what} computed inside the {region.kind}{where} is used outside of it",
        hint="assign it to a variable that is read after the construct, so that it is carried out",
        notes=notes,
    )


def current_trace(what: str) -> Trace:
    """The running trace; an error that says `what` needs one in plain Python."""
    trace = current_trace_or_none()
    if trace is None:
        raise DSLError(
            f"{what} works only inside a function that is being compiled",
            hint="call it from a function decorated with @jit or @kernel",
        )
    return trace


@contextlib.contextmanager
def activate(trace: Trace) -> Iterator[Trace]:
    """Make `trace` the running one in this thread; compilations nest. Its values end with it, and
    those of the outer one are not to be used meanwhile: each has an MLIR context of its own.
    """
    outer = current_trace_or_none()
    with contextlib.nullcontext() if outer is None else outer.apart():
        with _running_lock:
            RUNNING.value += 1
        _state.trace = trace
        try:
            yield trace
        finally:
            _state.trace = outer
            for region in trace.open_regions():
                region.closed = True
            with _running_lock:
                RUNNING.value -= 1


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
