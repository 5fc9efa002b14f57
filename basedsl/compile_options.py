"""`compile`, and its options as types: `toy.compile[KeepIR, OptLevel(2)](f, x)`.

Each type stands for an option that is also text: `toy.compile(f, x, options="--keep-ir")`. A plugin
adds its own as subclasses:

    class GPUArch(StringCompileOption):
        option = "arch"
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar

from basedsl.compiled import Compiled
from basedsl.dsl import DSL
from basedsl.errors import DSLTypeError, users_frames
from basedsl.option_fields import OptionError

C = TypeVar("C", bound=Compiled)


class CompileOption:
    """The base of compile options. `kind` is the type of the value, `option` the field of the DSL's
    `Options` that it sets. Raises OptionError for a value of another type.
    """

    kind: ClassVar[type] = bool
    option: ClassVar[str]

    def __init__(self, value: Any = None) -> None:
        if value is None and self.kind is bool:
            value = True
        if type(value) is not self.kind:
            raise OptionError(
                f"{type(self).__name__} takes a value of type {self.kind.__name__}, not {value!r}"
            )
        self.value = value

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value!r})"

    def apply(self, settings: Any) -> Any:
        """Return the record of options `settings` with this option set."""
        return settings.replace(**{self.option: self.value})


class BooleanCompileOption(CompileOption):
    """The base of options that are set or not: `EnableAssertions`, `EnableAssertions(False)`."""


class IntegerCompileOption(CompileOption):
    """The base of options with a number: `OptLevel(2)`."""

    kind = int


class StringCompileOption(CompileOption):
    """The base of options with text: `GPUArch("sm_90a")`."""

    kind = str


class BooleanBasedFileDumpOption(CompileOption):
    """The base of options that save the output of the stage `option` to a file in `dump_dir`; False
    saves none.
    """

    def apply(self, settings: Any) -> Any:
        names = tuple(name for name in settings.keep if name != self.option)
        return settings.replace(keep=(*names, self.option) if self.value else names)


class OptLevel(IntegerCompileOption):
    """The optimisation level of the back end: 0 to 3."""

    option = "opt_level"


class KeepIR(BooleanBasedFileDumpOption):
    """Save the module that tracing built to a file in `dump_dir`."""

    option = "ir"


class DryRun(BooleanCompileOption):
    """Build the IR alone: no code is compiled, and calls do nothing."""

    option = "dryrun"


class WarningsAsErrors(BooleanCompileOption):
    """Raise an error for what would be a warning."""

    option = "warnings_as_errors"


class Compile(Generic[C]):
    """`compile(f, *args, options="...")` and `compile[option, ...](f, *args)` of one DSL.

    `compile(function, ...)` compiles a @jit function for the types of the arguments behind it.
    `dsl` is the DSL that it belongs to; `options` are those in brackets: a later bracket wins, and
    options that contradict each other in one raise OptionError.
    """

    def __init__(self, dsl: DSL[Any], options: tuple[CompileOption, ...] = ()) -> None:
        self._dsl = dsl
        self._options = options

    def __getitem__(self, options: Any) -> Compile[C]:
        given = options if isinstance(options, tuple) else (options,)
        added = tuple(map(_as_option, given))
        _check_agreement(added)
        return type(self)(self._dsl, (*self._options, *added))

    def __call__(self, function: Any, *args: Any, options: Any = None, **kwargs: Any) -> C:
        """Compile a @jit function for arguments of the types of `args` and `kwargs`, without a
        cache.

        `function` is a @jit function, a bound method of one, or an object whose class has a @jit
        `__call__`. `options` is text as on a command line ("--opt-level 2 --keep-ir"), or a record
        of options. Returns the compiled function. Raises DSLCallError for anything else than a @jit
        function, OptionError for a wrong option, and the errors of a first call.
        """
        with users_frames():
            function, args, kwargs = self.prepare(function, args, kwargs)
            compiled: Any = self._dsl.compile(
                function, *args, options=self.settings(options), **kwargs
            )
            made: C = compiled
            return made

    def settings(self, given: Any) -> Any:
        """Return the record of options: the environment's, then `given`, then those in brackets."""
        settings = self._dsl.settings(given)
        for option in self._options:
            settings = option.apply(settings)
        return settings

    def prepare(
        self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        """Return the @jit function behind `function`, and its arguments: `args` by position and
        `kwargs` by name. By default all three as they are.
        """
        return function, args, kwargs


def _as_option(given: Any) -> CompileOption:
    if isinstance(given, CompileOption):
        return given
    if isinstance(given, type) and issubclass(given, CompileOption):
        return given()
    known = ", ".join(sorted(cls.__name__ for cls in _all(CompileOption)))
    raise DSLTypeError(f"compile[...] takes compile options, not {given!r}", hint=f"these: {known}")


def _check_agreement(options: Sequence[CompileOption]) -> None:
    """Raise OptionError for two of `options` that set one field to different values."""
    seen: dict[str, CompileOption] = {}
    for option in options:
        if type(option).apply is not CompileOption.apply:  # it adds to what is set
            continue
        before = seen.setdefault(option.option, option)
        if before.value != option.value:
            raise OptionError(
                f"{before!r} and {option!r} contradict each other",
                hint="give one of them; of two brackets, compile[a][b], the later wins",
            )


def _all(cls: type[CompileOption]) -> list[type[CompileOption]]:
    """Return the options themselves, without their bases."""
    found = []
    for one in cls.__subclasses__():
        found += _all(one)
        if hasattr(one, "option"):
            found.append(one)
    return found
