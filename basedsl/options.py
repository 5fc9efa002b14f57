"""Options: every option and environment variable, once, with its type, default and effect.

Options are a frozen dataclass. A DSL derives its own record, adds fields, and names the prefix of
its environment variables; core options are then read under the DSL's prefix first:

    @dataclass(frozen=True, kw_only=True)
    class ShapesOptions(Options, prefix="SHAPES_"):
        arch: str = option("", "target architecture, such as sm_90a", affects_output=True)

    ShapesOptions.from_environment()      # SHAPES_ARCH, SHAPES_PRINT_IR, else BASEDSL_PRINT_IR
    ShapesOptions().replace(opt_level=3)
    ShapesOptions().parse("--opt-level 3 --keep ptx,cubin")
"""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from basedsl.errors import read_traceback_variables_of, with_article
from basedsl.option_fields import (
    OptionError,
    OptionInfo,
    is_set,
    kept,
    kinds_of,
    line_of_caller,
    negated,
    option,
)
from basedsl.slips import closest_name

CORE_PREFIX = "BASEDSL_"
NO_PLUGINS = "BASEDSL_NO_PLUGINS"
"""The variable with the names of plugins that are switched off, separated by commas."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options that every DSL has. `describe` says more about each.

    What is printed: `print_after_preprocess` the rewritten Python, `print_ir` the traced module,
    `print_ir_after_all` the module after each step. What is saved: the stages in `keep`, to files
    in `dump_dir`; `pass_stages` makes each MLIR pass a stage. How code is made: `opt_level`, 0 to
    3, of the back end; `dryrun` builds the IR alone; `warnings_as_errors` raises errors for
    warnings; `mlir` is the package of MLIR bindings; `libs` are shared libraries for host code.

    The disk cache: `cache` switches it on, `cache_dir` is its folder, `cache_size` the most that it
    holds, in MiB. Times and logs: `time_stages` reports seconds, `nvtx` marks ranges for Nsight
    Systems; `log_to_console` and `log_to_file` log compilations from `log_level` on.
    `full_traceback` keeps the library's frames in tracebacks, and `debug` turns on what helps when
    lost.

    Raises OptionError for a value of another type, one that is not among its choices, and options
    that contradict each other.
    """

    PREFIX: ClassVar[str] = CORE_PREFIX
    #: Other spellings: a flag -> the option, and its value if the flag has none of its own. A DSL's
    #: record adds its own to these, as to `VARIABLES`.
    SPELLINGS: ClassVar[Mapping[str, tuple[str, str | None]]] = {
        "keep-ir": ("keep", "ir"),
        "print-after-preprocessor": ("print_after_preprocess", None),
        "jit-time-profiling": ("time_stages", None),
    }
    #: Other variables: a variable without prefix -> the option, and how its text is read as one.
    VARIABLES: ClassVar[Mapping[str, tuple[str, Callable[[str], str]]]] = {
        "KEEP_IR": ("keep", kept("ir")),
        "PRINT_AFTER_PREPROCESSOR": ("print_after_preprocess", str),
        "JIT_TIME_PROFILING": ("time_stages", str),
        "FILTER_STACKTRACE": ("full_traceback", negated),
        "DISABLE_FILE_CACHING": ("cache", negated),
    }
    #: Variables that have no prefix, as other compilers built on MLIR read them, in the same form.
    SHARED_VARIABLES: ClassVar[Mapping[str, tuple[str, Callable[[str], str]]]] = {
        "MLIR_ENABLE_DUMP": ("print_ir_after_all", is_set),
    }
    #: The variable, without prefix, whose text has options as a command line does; "" for none.
    TEXT_VARIABLE: ClassVar[str] = ""
    #: Prefixes of variables that are read after those of PREFIX, where other programs set them.
    OTHER_PREFIXES: ClassVar[tuple[str, ...]] = ()

    print_after_preprocess: bool = option(
        False, "print the rewritten Python of each function", affects_output=False
    )
    print_ir: bool = option(
        False, "print the module that tracing built, before any pass", affects_output=False
    )
    print_ir_after_all: bool = option(
        False, "print the module after each step to stderr, as it is made", affects_output=False
    )
    keep: tuple[str, ...] = option(
        (),
        "stages whose output is saved to dump_dir; 'ir' is the traced module, 'all' every stage",
        affects_output=False,
        debug=("all",),
    )
    dump_dir: Path | None = option(  # noqa: RUF009
        None,
        "folder for saved stages; the current one if not set",
        affects_output=False,
        debug=Path("basedsl-debug"),
    )
    dryrun: bool = option(
        False,
        "only build the IR, and what keep names: load no code, and let calls do nothing",
        affects_output=True,
    )
    debug: bool = option(
        False,
        "turn on what helps when lost: every option below or above that has a value for it",
        affects_output=False,
    )
    warnings_as_errors: bool = option(
        False, "raise an error for what would be a warning", affects_output=True
    )
    nvtx: bool = option(
        False, "mark compilations and runs as NVTX ranges, for Nsight Systems", affects_output=False
    )
    libs: tuple[str, ...] = option(
        (), "shared libraries whose functions host code may call", affects_output=False
    )
    pass_stages: bool = option(
        False, "make every pass of MLIR's a stage of its own", affects_output=False
    )
    full_traceback: bool = option(
        False, "keep the library's own frames in tracebacks", affects_output=False, debug=True
    )
    opt_level: int = option(
        2, "how much the back end optimises", affects_output=True, choices=(0, 1, 2, 3)
    )
    cache: bool = option(True, "keep compiled code on disk", affects_output=False)
    cache_dir: Path | None = option(  # noqa: RUF009
        None, "folder of that cache; the user's cache folder if not set", affects_output=False
    )
    cache_size: int = option(
        512, "the most that this cache holds, in MiB", affects_output=False, least=0
    )
    time_stages: bool = option(
        False,
        "report how long each stage of each compilation and each run took",
        affects_output=False,
        debug=True,
    )
    log_to_console: bool = option(
        False, "log compilations to stderr", affects_output=False, debug=True
    )
    log_to_file: bool = option(
        False, "log compilations to basedsl.log in dump_dir", affects_output=False
    )
    log_level: str = option(
        "info",
        "how much is logged",
        affects_output=False,
        debug="debug",
        choices=("debug", "info", "warning", "error", "10", "20", "30", "40"),
    )
    mlir: str = option(
        "", "package of MLIR Python bindings, for DSLs that name none", affects_output=True
    )

    def __init_subclass__(cls, *, prefix: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if prefix is not None:
            cls.PREFIX = prefix
            read_traceback_variables_of(prefix)

    def __post_init__(self) -> None:
        for name, kind in kinds_of(type(self)).items():
            object.__setattr__(self, name, kind.check(name, getattr(self, name)))
        problem = self.contradiction()
        if problem is not None:
            raise OptionError(problem[0], line_of_caller(), hint=problem[1])

    def contradiction(self) -> tuple[str, str | None] | None:
        """Return which options contradict each other, and what to do about it; None if none do."""
        return None

    @property
    def shows_stages(self) -> bool:
        """True if the options print, save or time stages: then nothing is read from the disk cache,
        because only a compilation runs the stages.
        """
        shown = self.print_ir or self.print_ir_after_all or self.print_after_preprocess
        shown = shown or bool(self.keep)
        return shown or self.time_stages or self.pass_stages or self.dryrun

    # Making records ----------------------------------------------------------------------------

    @classmethod
    def make(cls, **values: Any) -> Self:
        """Return a record of these values; an unknown name raises OptionError with a suggestion."""
        _refuse_unknown(cls, values)
        return cls(**values)

    def replace(self, **changes: Any) -> Self:
        """Return this record with the values of `changes`; an unknown name raises OptionError."""
        _refuse_unknown(type(self), changes)
        return self._changed(changes)

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str] | None = None, **overrides: Any
    ) -> Self:
        """Return the record that the environment describes, with `overrides` on top. Variables with
        this prefix that belong to no option are ignored; `unknown_variables` finds them. What the
        variable TEXT_VARIABLE says comes before the variables of single options.
        """
        env = os.environ if environment is None else environment
        _refuse_unknown(cls, overrides)
        values = dict(overrides)
        for info in cls.describe():
            if info.name in values:
                continue
            for variable in info.variables:
                text = env.get(variable)
                if text is not None:
                    kind = kinds_of(cls)[info.name]
                    values[info.name] = kind.read(text, f"{variable}={text!r}")
                    break
        for variable, (name, reading) in cls.SHARED_VARIABLES.items():
            if variable in env and name not in values:
                values[name] = kinds_of(cls)[name].read(reading(env[variable]), variable)
        _read_other_variables(cls, env, values, overrides)
        if values.get("debug"):
            values = _debug_values(cls) | values
        record = cls(**values)
        variable = cls.PREFIX + cls.TEXT_VARIABLE
        if not cls.TEXT_VARIABLE or not env.get(variable):
            return record
        try:
            return record.parse(env[variable])._changed(overrides)
        except OptionError as error:
            problem, hint = error.message, error.hint
        except ValueError as error:  # of shlex: a quotation that is not closed
            problem, hint = str(error), None
        raise OptionError(f"{variable}={env[variable]!r}: {problem}", hint=hint)

    def parse(self, text: str) -> Self:
        """This record with changes written in `text` as on a command line: `--opt-level 3`."""
        kinds = kinds_of(type(self))
        changes: dict[str, Any] = {}
        if not isinstance(text, str):
            raise OptionError(
                f"options are text or a record of options, not {with_article(type(text))}",
                hint='options="--opt-level 3", or compile[OptLevel(3)](f, ...)',
            )
        words = shlex.split(text)
        while words:
            word = words.pop(0)
            if not word.startswith("--"):
                level = re.fullmatch(r"-O([0-3])", word)
                meant = f"write --opt-level {level[1]}" if level else "options begin with --"
                raise OptionError(f"expected an option, not {word!r}", hint=meant)
            flag, equals, value = word[2:].partition("=")
            name, fixed = _spellings(type(self)).get(flag, (flag.replace("-", "_"), None))
            _refuse_unknown(type(self), {name: None}, shown=f"--{flag}")
            kind = kinds[name]
            if fixed is not None:
                value = fixed
            elif not equals:
                if kind.is_flag and (not words or words[0].startswith("--")):
                    value = "1"
                elif words:
                    value = words.pop(0)
                else:
                    raise OptionError(f"--{flag} needs a value ({kind.type_name})")
            read = kind.read(value, f"--{flag} {value}")
            if fixed is not None and kind.type_name == "names":  # one more of them
                read = (*changes.get(name, getattr(self, name)), *read)
            elif changes.get(name, read) != read:
                raise OptionError(
                    f"--{flag} {value} contradicts the {name} before it, {changes[name]}",
                    hint="give one of them",
                )
            changes[name] = read
        if changes.get("debug"):
            unchanged = {i.name for i in self.describe() if getattr(self, i.name) == i.default}
            given = {k: v for k, v in _debug_values(type(self)).items() if k in unchanged}
            changes = given | changes
        return self._changed(changes)

    def _changed(self, changes: Mapping[str, Any]) -> Self:
        # dataclasses.replace() would be a frame between the user's line and the library's.
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return type(self)(**values | dict(changes))

    # Asking about options ------------------------------------------------------------------------

    @classmethod
    def describe(cls) -> tuple[OptionInfo, ...]:
        """Return a description of every option, the core's first."""
        return _describe(cls)

    def output_key(self) -> tuple[tuple[str, Any], ...]:
        """Return the options that the generated code depends on, for cache keys."""
        return tuple(
            (info.name, getattr(self, info.name)) for info in self.describe() if info.affects_output
        )

    @classmethod
    def environment_variables(cls) -> tuple[str, ...]:
        """Return all variables that `from_environment` reads."""
        known = tuple(variable for info in cls.describe() for variable in info.variables)
        further = (p + suffix for suffix in _variables(cls) for p in _prefixes(cls))
        text = (cls.PREFIX + cls.TEXT_VARIABLE,) if cls.TEXT_VARIABLE else ()
        return (*known, NO_PLUGINS, *further, *text)

    @classmethod
    def spellings(cls) -> list[tuple[str, str]]:
        """Return the other flags and variables of options, each with the option that it sets."""
        flags = [
            (f"--{flag}", f"{name}={fixed}" if fixed is not None else name)
            for flag, (name, fixed) in _spellings(cls).items()
        ]
        return flags + [
            (cls.PREFIX + suffix, name) for suffix, (name, _) in _variables(cls).items()
        ]

    @classmethod
    def unknown_variables(cls, environment: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the variables of `environment`, by default the process's, with this record's
        prefix or the core's, that no option has, with the nearest that exists; "" if none is near.
        """
        env = os.environ if environment is None else environment
        known = {v for record in _records() for v in record.environment_variables()}
        return {
            name: _nearest_variable(cls, name)
            for name in sorted(env)
            if name.startswith(_prefixes(cls)) and name not in known
        }


def _records(cls: type[Options] = Options) -> list[type[Options]]:
    """Return the records of options that this process has, without those that cannot be used."""
    try:
        cls.describe()
    except TypeError:
        return []
    return [cls, *(one for sub in cls.__subclasses__() for one in _records(sub))]


def _prefixes(cls: type[Options]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((cls.PREFIX, CORE_PREFIX)))


def _variables(cls: type[Options]) -> dict[str, tuple[str, Callable[[str], str]]]:
    """Return the other variables of a record, those of its bases included."""
    found: dict[str, tuple[str, Callable[[str], str]]] = {}
    for base in reversed(cls.__mro__):
        found |= vars(base).get("VARIABLES", {})
    return found


def _spellings(cls: type[Options]) -> dict[str, tuple[str, str | None]]:
    found: dict[str, tuple[str, str | None]] = {}
    for base in reversed(cls.__mro__):
        found |= vars(base).get("SPELLINGS", {})
    return found


def _read_other_variables(
    cls: type[Options],
    env: Mapping[str, str],
    values: dict[str, Any],
    overrides: Mapping[str, Any],
) -> None:
    """Add to `values` what other variables say. Of `keep`, each adds a name; another option that is
    set twice, to different values, raises OptionError.
    """
    said: dict[str, str] = {}
    for suffix, (name, reading) in _variables(cls).items():
        variable = next((p + suffix for p in _prefixes(cls) if p + suffix in env), None)
        if variable is None or name in overrides:
            continue
        shown = f"{variable}={env[variable]!r}"
        kind = kinds_of(cls)[name]
        value = kind.read(reading(env[variable]), shown)
        if kind.type_name == "names":
            value = tuple(dict.fromkeys((*values.get(name, ()), *value)))
        elif values.get(name, value) != value:
            other = said.get(name) or next(
                f"{v}={env[v]!r}" for i in cls.describe() if i.name == name
                for v in i.variables if v in env
            )  # fmt: skip
            raise OptionError(
                f"the variables {other} and {shown} contradict each other",
                hint=f"both set the option {name}: unset one",
            )
        values[name] = value
        said[name] = shown
    for prefix in cls.OTHER_PREFIXES:
        for info in cls.describe():
            suffix = info.variables[0].removeprefix(cls.PREFIX)
            text = env.get(prefix + suffix)
            if text is not None and info.name not in values:
                values[info.name] = kinds_of(cls)[info.name].read(
                    text, f"{prefix}{suffix}={text!r}"
                )
        for suffix, (name, reading) in _variables(cls).items():
            text = env.get(prefix + suffix)
            kind = kinds_of(cls)[name]
            if text is not None and kind.type_name == "names" and name not in overrides:
                more = kind.read(reading(text), f"{prefix}{suffix}={text!r}")
                values[name] = tuple(dict.fromkeys((*values.get(name, ()), *more)))


def _debug_values(cls: type[Options]) -> dict[str, Any]:
    fields = dataclasses.fields(cls)
    return {f.name: f.metadata["debug"] for f in fields if f.metadata["debug"] is not None}


def _nearest_variable(cls: type[Options], name: str) -> str:
    """Return the variable whose name after the prefix is most alike; "" if none is near."""
    known: dict[str, str] = {}
    for variable in (v for record in (cls, *_records()) for v in record.environment_variables()):
        prefix = next(
            p for record in _records() for p in _prefixes(record) if variable.startswith(p)
        )
        known.setdefault(variable.removeprefix(prefix), variable)
    prefix = next(p for p in _prefixes(cls) if name.startswith(p))
    near = closest_name(name.removeprefix(prefix), known)
    return "" if near is None else known[near]


_infos_of: dict[type, tuple[OptionInfo, ...]] = {}


def _describe(cls: type[Options]) -> tuple[OptionInfo, ...]:
    known = _infos_of.get(cls)
    if known is not None:
        return known
    core = {field.name for field in dataclasses.fields(Options)}
    kinds = kinds_of(cls)
    infos = []
    for field in dataclasses.fields(cls):
        suffix = field.metadata["env"] or field.name.upper()
        prefixes = [cls.PREFIX]
        if field.name in core and cls.PREFIX != CORE_PREFIX:
            prefixes.append(CORE_PREFIX)
        infos.append(
            OptionInfo(
                field.name,
                kinds[field.name].type_name,
                field.default,
                field.metadata["doc"],
                field.metadata["affects_output"],
                tuple(prefix + suffix for prefix in prefixes),
                field.metadata["choices"],
            )
        )
    return _infos_of.setdefault(cls, tuple(infos))


def _refuse_unknown(cls: type[Options], values: Mapping[str, Any], shown: str = "") -> None:
    known = kinds_of(cls)
    for name in values:
        if name not in known:
            near = closest_name(name, known)
            if near and shown:
                near = "--" + near.replace("_", "-")
            hint = f"did you mean {near}?" if near else f"the options are {', '.join(known)}"
            raise OptionError(f"there is no option {shown or name}", hint=hint)
