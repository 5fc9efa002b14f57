"""The hooks: functions that a plugin may define, with when basedsl calls them and why.

A distribution names its DSLs and their conformance declarations as entry points, which are imported
only when somebody asks for them:

    [project.entry-points."basedsl.dsls"]
    toy = "basedsl_toy.dsl:TOY"

    [project.entry-points."basedsl.conformance"]
    toy = "basedsl_toy.conformance:CONFORMANCE"

Everything else is a hook. A plugin is a module named by an entry point in the group `basedsl`; it
answers with functions of these names, marked with `hookimpl`, taking any of the parameters below by
name:

    from basedsl import hookimpl

    @hookimpl(dsls=["toy"])
    def basedsl_see_stage(function, stage, output):
        print(function, stage)

`dsls` are the DSLs that it answers for, all if it is left out. Other options are pluggy's. Plugins
are asked in order of their names, those with `tryfirst=True` before all others and those with
`trylast=True` after them; a `wrapper=True` is a generator around all of them, which yields once,
gets the result and returns it or another one.

A plugin may have hooks of its own: a module of functions marked with `hookspec`, named by an entry
point in the group `basedsl.hookspecs`. It asks them by `ask_plugins`.

Keep such modules light: they are imported when the first question is asked, by any DSL's first
compilation. A program registers a plugin of its own with `register_plugin`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import pluggy

if TYPE_CHECKING:
    import argparse

GROUP = "basedsl"
"""Name of the entry-point group of plugins with hooks, and of the pluggy project."""

DSL_GROUP = "basedsl.dsls"
"""Name of the entry-point group of DSLs: each entry is a DSL object, by its name."""

CONFORMANCE_GROUP = "basedsl.conformance"
"""Name of the entry-point group of conformance declarations."""

HOOKSPEC_GROUP = "basedsl.hookspecs"
"""Name of the entry-point group of modules with hooks that plugins ask."""

DSLS = f"{GROUP}_dsls"
"""The attribute of an answer with the names of the DSLs that it is for."""

F = TypeVar("F", bound=Callable[..., Any])

hookspec: Callable[..., Callable[[F], F]] = pluggy.HookspecMarker(GROUP)
_spec = hookspec
_mark: Any = pluggy.HookimplMarker(GROUP)


def hookimpl(function: Any = None, *, dsls: Iterable[str] | None = None, **options: bool) -> Any:
    """Mark a function of a plugin as the answer to the hook of its name.

    `dsls` are the names of the DSLs that it answers for, None for all. `options` are pluggy's
    `tryfirst`, `trylast` and `wrapper`.
    """

    def mark(function: Any) -> Any:
        setattr(function, DSLS, None if dsls is None else frozenset(dsls))
        return _mark(function, **options)

    return mark if function is None else mark(function)


@dataclass(frozen=True)
class DSLEntry:
    """A DSL by name. `load` imports and returns it when somebody asks for it; the object's `name`
    must be the same. `summary` is one line for `basedsl list`.
    """

    name: str
    load: Callable[[], Any]
    summary: str = ""


@dataclass(frozen=True)
class Command:
    """A subcommand of `basedsl`, called `name`. `configure` adds its arguments to the parser; `run`
    gets the parsed ones and returns the exit status. `help` is one line for `basedsl --help`.
    """

    name: str
    help: str
    configure: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


@dataclass(frozen=True)
class ConformanceEntry:
    """A conformance declaration by name: `load` imports and returns a `basedsl.Conformance`."""

    name: str
    load: Callable[[], Any]


@_spec
def basedsl_register_dsls() -> list[DSLEntry]:  # type: ignore[empty-body]
    """DSLs that no entry point names. Asked once, when the plugin is registered."""


@_spec
def basedsl_see_stage(dsl: str, function: str, stage: str, output: Any) -> None:
    """See the output of a stage: for dumps and profiles.

    `output` is a `basedsl.Snapshot`; `stage` is the name of a step of the DSL's pipeline, or of its
    input. Code that is loaded from the disk cache has been through its stages in another process:
    then there is nothing to see.
    """


@_spec
def basedsl_stage_output(dsl: str, function: str, stage: str, output: Any) -> Any:
    """See, and possibly replace, the output of a stage: for post-compilers.

    `output` is a `basedsl.Snapshot`; `stage` is the name of a step of the DSL's pipeline, or of its
    input. Return another snapshot to put in its place, for the following steps as well, or None.
    Each plugin sees the snapshot that the one before it returned. The disk cache is off for the
    DSLs that this is answered for: `basedsl_see_stage` and `basedsl_pipeline` leave it on.
    """


@_spec
def basedsl_pipeline(dsl: str, pipeline: Any, options: Any) -> Any:
    """Return another `basedsl.Pipeline` in place of `pipeline`, with steps inserted, replaced or
    left out, or None. `options` is the call's record of options.

    Asked for each compilation, each plugin with what the one before it returned. The answer must
    depend on the parameters and the plugin's own files alone: these are in the disk cache's key.
    """


@_spec
def basedsl_compiled(dsl: str, function: str, compiled: Any) -> None:
    """See each `basedsl.Compiled`, compiled or loaded from the disk cache, before its first run."""


@_spec
def basedsl_error(dsl: str, function: str, error: Exception) -> None:
    """See an exception that leaves a compilation, or a function's first run with its types."""


@_spec
def basedsl_adapt_argument(dsl: str, kind: type, declared: Any) -> Any:
    """Return how to pass arguments of a foreign type: a function from such a value to one that the
    DSL knows (an object with DLPack, a leaf of the DSL); None if this plugin does not know the
    type.

    Asked before the DSL, and once for each type `kind` with `declared`, the parameter's annotation
    or None, so the answer must depend on nothing else. Two plugins that both answer are an error
    that names them.
    """


@_spec
def basedsl_result_type(dsl: str, value: Any) -> Any:
    """Return the `basedsl.ResultType` of a value of a plugin's own class, which a traced function
    returned and the DSL does not know; else None. The first answer counts.
    """


@_spec
def basedsl_options(dsl: str) -> dict[str, Any]:  # type: ignore[empty-body]
    """Return further options of an existing DSL by name, each made by `basedsl.option`. They have
    the DSL's environment variables and flags. Two of one name are an error.
    """


@_spec
def basedsl_load_dialects(dsl: str, bindings: Any) -> None:
    """Load further dialects for an existing DSL into the current MLIR context, once for each
    context.
    """


@_spec
def basedsl_cache_store(dsl: str, options: Any) -> Any:
    """Return where compiled code is stored in place of the folder on disk, or None. The first
    answer counts.

    It has `read(key) -> bytes | None`, `write(key, content: bytes)` and `is_empty() -> bool`; keys
    are hexadecimal digests. What `read` returns is run: trust it as you trust the program.
    """


@_spec
def basedsl_cli_commands() -> list[Command]:  # type: ignore[empty-body]
    """Return subcommands for the `basedsl` command line."""


@_spec
def basedsl_conformances() -> list[ConformanceEntry]:  # type: ignore[empty-body]
    """Conformance declarations that no entry point names."""
