"""Guards of a compilation: a record of all that tracing read besides the arguments.

A compiled function depends on the globals, closure cells and defaults of every function traced
into it, and on what these lead to: helper functions and their code, modules' attributes that the
code names, classes, objects with all their attributes, the contents of lists, dicts, sets and
arrays. All of it is found from code objects and objects as they are, without running anything.

The walk follows the user's own things. It knows what belongs to the standard library or to an
installed package by name and identity only; it does not follow the attributes of such objects, but
for plain containers of attributes, dataclasses, arrays and the classes in `containers`. Arrays of
more than 64 KiB are compared by a digest, a millisecond for each megabyte. A read of `os.environ`
or `os.getenv` makes the code depend on the whole environment; `globals()`, `vars`, `eval` and
`exec` on all globals. A clock or another function of `metastage.volatile` never gives what was
recorded. Not seen: `getattr(module, text)` with a text made at run time.
"""

from __future__ import annotations

import builtins
import dataclasses
import enum
import functools
import hashlib
import os
import sys
import types
from collections.abc import Callable, Container, Iterable, Sequence
from operator import attrgetter
from typing import Any, TypeVar

from basedsl import digest
from basedsl.loaded_classes import loaded_classes
from basedsl.location import file_of_module, is_internal, is_rewritten
from basedsl.metastage.contents import (
    ALL,
    STORAGE,
    Contents,
    has_storage,
    is_opaque_class,
    may_change,
)
from basedsl.metastage.iterators import is_iterator
from basedsl.metastage.namespaces import globals_in, named_in
from basedsl.metastage.plain_helpers import Question, questions_in
from basedsl.metastage.volatile import outside_calls
from basedsl.native_call import object_layout
from basedsl.native_call.conditions import CALL, Row
from basedsl.staleness.containers import contents_reader
from basedsl.staleness.guard_kinds import (
    MISSING,
    PLAIN,
    AttributesGuard,
    BuiltinsGuard,
    ClassGuard,
    ClassOfGuard,
    DictGuard,
    FieldGuard,
    Guard,
    ItemGuard,
    ListGuard,
    PythonGuard,
    TextsGuard,
    unchanged,
)
from basedsl.staleness.parts import inner_parts, iterator_parts
from basedsl.staleness.readers import (
    TEXTS,
    cell_content,
    given_attributes,
    slot_content,
    texts_of,
)

G = TypeVar("G", bound=Guard)

_LARGEST_ARRAY = 65536
_NAMESPACES = ("types.SimpleNamespace", "argparse.Namespace")
_ENVIRONMENT = frozenset({"environ", "environb", "getenv", "getenvb"})
_VALUES = (*PLAIN, tuple, frozenset)
# With these, an attribute that a module does not have matters too.
_ASKING = frozenset({"hasattr", "getattr", "AttributeError"})
_ALL_GLOBALS = frozenset({"globals", "vars", "eval", "exec"})  # any global may be read
# Containers of libraries are followed up to this length: `sys.argv`, not `sys.modules`.
_LONGEST = 64


class Guards:
    """The recorded values of everything that some functions and objects lead to."""

    def __init__(self) -> None:
        self._guards: dict[Any, Guard] = {}
        self._lines: list[str] | None = []
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []
        self._names: set[str] = set()
        self._marked = 0  # so many guards had
        self._readers: list[tuple[Any, Callable[[], Any], Any]] = []
        self._modules: dict[int, tuple[types.ModuleType, set[str]]] = {}
        self._builtins = BuiltinsGuard()
        self._environment = False
        self._own: set[str] = set()
        self._paths: dict[Any, str] = {}
        self._bare: list[tuple[str, Any]] = []
        self._path = ""
        #: The functions that answer otherwise at each call, as users write them.
        self.volatile: set[str] = set()
        self.arrays: list[tuple[str, Guard, Any]] = []  # path, guard of the contents, array
        #: Code of the program's functions, and what undecorated helpers ask about numbers.
        self.codes: list[types.CodeType] = []
        self.questions: dict[types.CodeType, list[Question]] = {}
        self._slow: tuple[Guard, ...] = ()
        # One for the life of the guards: native code has its address.
        self._slow_holds: Callable[[], bool] = lambda: all(one.holds() for one in self._slow)

    @classmethod
    def collect(
        cls, functions: Iterable[Any], objects: Iterable[Any] = (), names: Iterable[str] = ()
    ) -> Guards:
        """Guards for all that these functions read, and for objects known while compiling, of which
        `names` are the names in messages.
        """
        made = cls()
        functions = tuple(functions)
        made._own = {(one.__module__ or "").partition(".")[0] for one in functions}
        for one in functions:
            if id(one) not in made._numbers:
                made._value(one)
        known = iter(names)
        for one in objects:
            made._path = next(known, "an argument")
            made._value(one)  # one met before, too: that it is this argument makes a difference
        made._path = ""
        made._follow_modules()
        made._follow_texts()
        return made

    def _follow_texts(self) -> None:
        """Guard what functions and classes say of themselves, if some code asks for it."""
        if self._names.isdisjoint(TEXTS):
            return
        for key, guard in list(self._guards.items()):
            owner = guard.owner if isinstance(guard, FieldGuard) else getattr(guard, "cls", None)
            known = ("texts", id(owner)) in self._guards or key[0] not in ("field", "class")
            if not known and isinstance(owner, types.FunctionType | type):
                self._path = self._paths[key]
                self._add(TextsGuard(functools.partial(texts_of, owner)), "texts", id(owner))

    @property
    def portable_text(self) -> tuple[str, ...] | None:
        """The guarded values as text that is identical in every process, for the disk-cache key;
        None if some value has no such text.
        """
        return None if self._lines is None else tuple(self._lines)

    def __len__(self) -> int:
        return len(self._guards)

    def holds(self) -> bool:
        """Return True if every guarded value is still the recorded one."""
        return all(guard.holds() for guard in self._guards.values())

    def items(self) -> Iterable[tuple[Any, Guard]]:
        """Each guard, with a key that another collection has for the same thing."""
        return self._guards.items()

    def get(self, key: Any) -> Guard | None:
        """The guard of this key."""
        return self._guards.get(key)

    def mark(self, apart: Container[int]) -> list[tuple[Any, Callable[[], Any], Any]]:
        """Return the guarded values as they are now, but for objects with the ids in `apart`."""
        if self._marked != len(self._guards):
            self._marked = len(self._guards)
            self._readers = [
                (key, guard.now, key[1])
                for key, guard in self._guards.items()
                if key[-1] != "__code__" and key[0] not in ("builtins", "volatile") and key[1:2]
            ]
        return [(key, now, now()) for key, now, held in self._readers if held not in apart]

    def changed_since(self, marks: list[tuple[Any, Callable[[], Any], Any]]) -> str | None:
        """The path of something that is not as it was when it was marked."""
        for key, read, then in marks:
            now = read()
            if now is not then and not unchanged(then, now):
                return self._paths[key]
        return None

    def reaches(self, value: Any) -> bool:
        """Return True for an object that was found, and so was there before."""
        return id(value) in self._numbers

    def path(self, key: Any) -> str:
        """Return the name of a guarded thing as a user writes it."""
        return self._paths[key]

    def covers(self, functions: Iterable[Any]) -> bool:
        """Return True if what these were collected for leads to `functions`, none of a library."""
        return all(id(f) in self._numbers and not self._foreign(f.__module__) for f in functions)

    def meets(self, function: Any) -> None:
        """Guard a decorated function that tracing enters, and all that it leads to."""
        fn = function.fn
        known = is_rewritten(fn.__code__) or is_internal(fn.__code__.co_filename)
        if not known and id(fn) not in self._numbers:
            self._own.add((fn.__module__ or "").partition(".")[0])
            self._value(fn)
            self._follow_modules()
            self._follow_texts()

    def native_conditions(self) -> tuple[list[Row], list[Any]]:
        """Sufficient conditions for native code, `(rows, keep)`: `keep` keeps what they compare."""
        rows, slow = list[Row](), list[Guard]()
        for guard in self._guards.values():
            found = guard.native_conditions()
            if found is None:
                slow.append(guard)
            else:
                rows += found
        self._slow = tuple(slow)
        if slow:
            rows.append((CALL, id(self._slow_holds), 0, 0))
        return rows, [guard.recorded for guard in self._guards.values()]

    # Walking -----------------------------------------------------------------------------------

    def _first(self, obj: Any) -> bool:
        if id(obj) in self._numbers:
            return False
        self._numbers[id(obj)] = len(self._numbers)
        self._kept.append(obj)
        return True

    def _add(self, guard: G, *key: Any) -> G:
        self._guards[key] = guard
        self._paths[key] = self._path
        return guard

    def _say(self, text: str | None) -> None:
        if text is None:
            self._lines = None
        elif self._lines is not None:
            self._lines.append(text)

    def _named(self, name: str, value: Any, path: str | None = None) -> None:
        """Say what a name holds, and follow it. Without a `path` it is an attribute of this."""
        if value is MISSING:
            self._say(f"{name} is missing")
            return
        outer = self._path
        self._path = (f"{outer}.{name}" if outer else name) if path is None else path
        self._named_value(name, value)
        self._path = outer

    def _named_value(self, name: str, value: Any) -> None:
        number = self._numbers.get(id(value))
        self._say(f"{name} =" if number is None else f"{name} = #{number}")
        if number is None:
            self._value(value)

    def _value(self, value: Any) -> None:
        """Follow a value: functions, classes, modules, containers, objects."""
        if isinstance(value, _VALUES) and self._has_attributes(value) and self._first(value):
            self._instance(value)
        if isinstance(value, PLAIN):
            self._say(digest.of_value(value))
        elif isinstance(value, tuple | frozenset):
            items = value if isinstance(value, tuple) else sorted(value, key=repr)
            self._say(f"{digest.of_class(type(value))} of {len(value)}")
            for item in items:
                self._value(item)
        elif not self._first(value):
            self._say(f"#{self._numbers[id(value)]}")
        else:
            self._object(value)

    def _object(self, value: Any) -> None:
        for kinds, follow in _FOLLOW:
            if isinstance(value, kinds):
                follow(self, value)
                return
        inner = inner_parts(value)
        if inner:
            self._say(digest.of_value(value) or digest.of_class(type(value)))
            for name, part in inner:
                self._named(name, part, self._path)
            own = getattr(value, "__dsl_own__", None)
            if isinstance(own, frozenset) or isinstance(value, functools.partial):
                self._attributes_of(value)
        if "cache_info" in self._names and isinstance(value, functools._lru_cache_wrapper):
            self._add(PythonGuard(lambda: tuple(value.cache_info())), "cache", id(value))
        contents = None if inner else contents_reader(value)
        if contents is not None:
            self._iterator(value)
            guard = self._add(PythonGuard(contents), "contents", id(value))
            if hasattr(type(value), "__dlpack__"):
                self.arrays.append((self._path, guard, value))
            self._value(guard.recorded)
        if value is os.environ or value is getattr(os, "environb", None):
            self._whole_environment()
        elif not inner or not self._foreign(digest.module_of(type(value))):
            self._instance(value)

    def _function(self, fn: types.FunctionType) -> None:
        outer, self._path = self._path, fn.__name__
        self._user_function(fn)
        self._path = outer

    def _user_function(self, fn: types.FunctionType) -> None:
        self._say(digest.of_value(fn))
        if fn is os.getenv or fn is getattr(os, "getenvb", None):
            self._whole_environment()
        # Functions made by `exec` without a module's name say that they are of `builtins`.
        module = None if fn.__module__ == "builtins" else fn.__module__
        if is_internal(fn.__code__.co_filename) or (module and self._foreign(module)):
            self._wrapped(fn)
            return
        offsets = object_layout.function_offsets()
        for name in ("__code__", "__defaults__", "__kwdefaults__"):
            self._add(FieldGuard(fn, attrgetter(name), offsets.get(name)), "field", id(fn), name)
        self._say(digest.of_code(fn.__code__))
        if not getattr(fn, "__knows_numbers__", False):
            self.questions.update(questions_in(fn.__code__))
        self.codes.append(fn.__code__)
        for call in outside_calls(fn):
            self._volatile(call.path)
        self._named("defaults", fn.__defaults__, f"{fn.__name__}.__defaults__")
        self._named("keyword defaults", fn.__kwdefaults__, f"{fn.__name__}.__kwdefaults__")
        names = sorted(named_in(fn.__code__))
        self._names.update(names)
        for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
            if self._first(cell):
                guard = FieldGuard(cell, cell_content, object_layout.cell_offset())
                self._add(guard, "cell", id(cell))
                self._paths["cell", id(cell)] = name
                self._named(name, guard.recorded, name)
        self._globals(fn.__globals__, sorted(globals_in(fn.__code__)))
        if not _ALL_GLOBALS.isdisjoint(names):
            scope = fn.__globals__
            self._say(None)
            self._add(PythonGuard(lambda: tuple(scope.items())), "all globals", id(scope))
        if "__wrapped__" in vars(fn):
            self._named("__wrapped__", vars(fn)["__wrapped__"])
        self._attributes_of(fn)

    def _wrapped(self, fn: types.FunctionType) -> None:
        """The user's functions that a library's function wraps: what its decorators make."""
        own = vars(fn)
        held = [own.get("__wrapped__"), *map(cell_content, fn.__closure__ or ())]
        for one in held:
            if type(one) is types.FunctionType and not is_internal(one.__code__.co_filename):
                self._value(one)
        if isinstance(own.get("registry"), types.MappingProxyType):  # `functools.singledispatch`
            self._value(own["registry"])

    def _iterator(self, value: Any) -> None:
        """Watch what an iterator leads to; the code of a generator may read anything."""
        if not is_iterator(value):
            return
        if isinstance(value, types.GeneratorType) and value.gi_frame is not None:
            names = sorted(named_in(value.gi_code))
            self._names.update(names)
            self._globals(value.gi_frame.f_globals, sorted(globals_in(value.gi_code)))
        for part in iterator_parts(value):
            self._value(part)

    def _attributes_of(self, fn: Any) -> None:
        """The attributes that a program gave a function; that it has none is only noted."""
        if given_attributes(fn):
            read = functools.partial(given_attributes, fn)
            self._value(self._add(PythonGuard(read), "given", id(fn)).recorded)
        else:
            self._bare.append((self._path, fn))

    def given_since(self) -> list[str]:
        """Functions that have attributes now."""
        return [path for path, fn in self._bare if given_attributes(fn)]

    def _globals(self, scope: dict[str, Any], names: Sequence[str]) -> None:
        of_python = vars(builtins)
        for name in names:
            if name in scope or name in of_python:
                self._item(scope, name, name)
                if name not in scope:
                    self._builtins.recorded[name] = of_python[name]
                    self._add(self._builtins, "builtins")

    def _item(self, table: dict[str, Any], name: str, path: str) -> None:
        key = ("item", id(table), name)
        if key not in self._guards:
            self._kept.append(table)
            value = self._add(ItemGuard(table, name), *key).recorded
            self._paths[key] = path
            self._named(name, value, path)

    def _module(self, module: types.ModuleType) -> None:
        self._say(digest.of_value(module))
        if not is_internal(file_of_module(module)):
            self._modules[id(module)] = module, set()
            if not self._foreign_module(module):
                self._add(ClassOfGuard(module), "class of", id(module))
            if "__getattr__" in vars(module) and not self._foreign_module(module):
                self._item(vars(module), "__getattr__", f"{module.__name__}.__getattr__")

    def _follow_modules(self) -> None:
        """The attributes of modules that some code names, until nothing new is found."""
        found = True
        while found:
            found, known = False, len(self._modules)
            for module, done in list(self._modules.values()):
                for name in sorted(self._names - done):
                    done.add(name)
                    if module is os and name in _ENVIRONMENT:
                        self._whole_environment()
                    elif self._foreign_module(module):
                        self._of_library(module, name)
                    elif name in vars(module) or self._names & _ASKING:
                        self._item(vars(module), name, f"{module.__name__}.{name}")
                        found = True
            for name in sorted(self._names):
                module_ = sys.modules.get(name)  # imported inside a function
                if isinstance(module_, types.ModuleType) and id(module_) not in self._numbers:
                    if not self._foreign_module(module_):
                        self._value(module_)
            found = found or len(self._modules) > known

    def _of_library(self, module: types.ModuleType, name: str) -> None:
        """An attribute of a library's module, which a program may have put there."""
        table = vars(module)
        if name not in table or ("item", id(table), name) in self._guards:
            return
        value = self._add(ItemGuard(table, name), "item", id(table), name).recorded
        if isinstance(value, PLAIN):
            self._say(f"{module.__name__}.{name} = {digest.of_value(value)}")
        elif contents_reader(getattr(value, "__self__", None)) is not None:
            self._named(name, value.__self__, f"{module.__name__}.{name}")  # `random.random`
        elif isinstance(value, types.ModuleType):
            self._value(value)  # `np.random`
        elif isinstance(value, list | dict | set) and len(value) <= _LONGEST:
            full = f"{module.__name__}.{name}"
            self._named(full, value, full)

    def _volatile(self, path: str) -> None:
        self.volatile.add(path)
        self._say(None)
        self._add(PythonGuard(lambda: (object(),)), "volatile", path)
        self._paths["volatile", path] = path

    def _whole_environment(self) -> None:
        self._say(None)
        if not self._environment:
            self._environment = True
            table = object_layout.environment_table()
            if table is None:
                self._add(PythonGuard(lambda: tuple(sorted(os.environ.items()))), "environment")
            else:
                self._add(DictGuard(table, object_layout.dict_version_offset()), "environment")

    def _list(self, value: list[Any]) -> None:
        self._say(f"{digest.of_class(type(value))} of {len(value)}")
        self._add(ListGuard(value), "list", id(value))
        for item in list.copy(value):
            self._value(item)
        self._subclass(value, list)

    def _dict(self, value: dict[Any, Any]) -> None:
        self._say(f"{digest.of_class(type(value))} of {len(value)}")
        self._add(DictGuard(value, object_layout.dict_version_offset()), "dict", id(value))
        for key, item in list(dict.items(value)):
            self._value(key)
            self._value(item)
        self._subclass(value, dict)

    def _set(self, value: set[Any]) -> None:
        self._add(PythonGuard(lambda: frozenset(value)), "set", id(value))
        self._value(frozenset(value))
        self._subclass(value, set)

    def _has_attributes(self, value: Any) -> bool:
        """Return True if an object of a subclass of tuple, int, str, ... has own attributes."""
        return bool(
            type(value) not in _VALUES
            and getattr(value, "__dict__", None)
            and not isinstance(value, enum.Enum)
            and not self._foreign(digest.module_of(type(value)))
        )

    def _subclass(self, value: Any, base: type) -> None:
        if type(value) is not base and not self._foreign(digest.module_of(type(value))):
            self._instance(value)

    def _property(self, value: property) -> None:
        self._say("property")
        for part in (value.fget, value.fset, value.fdel):
            self._value(part)

    def _class(self, cls: type) -> None:
        self._say(digest.of_class(cls))
        if self._foreign(digest.module_of(cls)):
            return
        if type(cls) is not type:
            self._value(type(cls))
        self._named_items(self._add(ClassGuard(cls), "class", id(cls)).recorded)

    def _named_items(self, held: dict[str, Any]) -> None:
        for name, value in sorted(held.items()):
            self._named(name, value)

    def _instance(self, obj: Any) -> None:
        """An object of an ordinary class: its attributes, and its class."""
        cls = type(obj)
        library = self._foreign(digest.module_of(cls))
        if (
            library
            and not isinstance(obj, loaded_classes(*_NAMESPACES))
            and not dataclasses.is_dataclass(cls)
        ):
            if not self._content(obj):
                self._say(digest.of_value(obj))
                if type(obj) is not object and contents_reader(obj) is None:
                    self._library_object(obj)
            return
        self._value(cls)
        table = getattr(obj, "__dict__", None)
        if type(table) is dict:
            self._named_items(self._add(AttributesGuard(obj), "attributes", id(obj)).recorded)
        slots = list(self._slots(cls))
        if slots and type(table) is not dict:
            self._add(ClassOfGuard(obj), "class of", id(obj))
        for name, slot in slots:
            slotted = self._add(
                PythonGuard(functools.partial(slot_content, slot, obj)), "slot", id(obj), name
            )
            self._named(name, slotted.recorded)
        if not self._content(obj) and has_storage(cls) and contents_reader(obj) is None:
            self._state(obj, STORAGE)

    def _library_object(self, obj: Any) -> None:
        """The state of an object of the standard library or NumPy, or that nobody can tell it."""
        module = (digest.module_of(type(obj)) or "").partition(".")[0]
        if (module in sys.stdlib_module_names or module == "numpy") and may_change(obj):
            if not self._state(obj, ALL) and not is_opaque_class(type(obj)):
                self._volatile(self._path)

    def _state(self, obj: Any, part: str) -> bool:
        """Guard what pickling would take of an object; False if it cannot be read."""
        if Contents(obj, part).is_opaque:
            return False
        self._add(PythonGuard(lambda: Contents(obj, part).found), "state", id(obj))
        return True

    def _content(self, obj: Any) -> bool:
        """The bytes of an array or buffer; of a large one their digest."""
        try:
            view = memoryview(obj)
        except (TypeError, ValueError, BufferError):
            return False
        with view:
            large, text = view.nbytes > _LARGEST_ARRAY, f"{view.format} {view.shape} {view.strides}"

        def read() -> Any:
            with memoryview(obj) as now:
                content = now if large and now.c_contiguous else now.tobytes()
                if large:
                    content = hashlib.sha256(content).digest()
                return now.format, now.shape, content

        guard = self._add(PythonGuard(read), "content", id(obj))
        recorded = guard.recorded
        self.arrays.append((self._path, guard, obj))
        self._say(f"{digest.of_class(type(obj))} {text} {recorded[2].hex()}")
        return True

    def _slots(self, cls: type) -> Iterable[tuple[str, Any]]:
        for base in cls.__mro__:
            if self._foreign(digest.module_of(base)):
                continue
            for name, slot in sorted(vars(base).items()):
                if isinstance(slot, types.MemberDescriptorType):
                    yield name, slot

    def _foreign(self, module: str | None) -> bool:
        """Return True if a module is a library's, other than the one that defines the functions."""
        if module and module.partition(".")[0] in self._own:
            return is_internal(file_of_module(sys.modules.get(module)))
        return digest.is_library(module)

    def _foreign_module(self, module: types.ModuleType) -> bool:
        return is_internal(file_of_module(module)) or self._foreign(module.__name__)


_FOLLOW: tuple[tuple[Any, Callable[[Guards, Any], None]], ...] = (
    (types.FunctionType, Guards._function),
    (types.ModuleType, Guards._module),
    (type, Guards._class),
    (list, Guards._list),
    (dict, Guards._dict),
    (set, Guards._set),
    (property, Guards._property),
)
