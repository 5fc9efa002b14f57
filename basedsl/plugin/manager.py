"""The plugin manager: finds plugins, checks them, and asks them; all or nothing for each plugin.

A plugin is validated and its answers collected before the manager changes, so a bad one leaves the
manager unchanged. A plugin that cannot be imported or registered is remembered by name with the
reason (`broken`), and the others work.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pluggy

from basedsl.errors import DSLError, with_article
from basedsl.plugin import hookspecs
from basedsl.plugin.entry_points import installed
from basedsl.plugin.hookspecs import (
    CONFORMANCE_GROUP,
    DSL_GROUP,
    GROUP,
    Command,
    ConformanceEntry,
    DSLEntry,
)
from basedsl.slips import closest_name

_PREFIX = "basedsl_"
_SPECS = {
    name: tuple(inspect.signature(spec).parameters)
    for name, spec in vars(hookspecs).items()
    if name.startswith(_PREFIX)
}


class PluginError(DSLError):
    """A plugin that breaks the contract of `basedsl.plugin.hookspecs`, or a name that no plugin
    has.
    """


@dataclass(frozen=True)
class Broken:
    """A plugin that could not be used, and the reason."""

    plugin: str
    reason: str


@dataclass(frozen=True)
class _Plugin:
    """The facts about a registered plugin."""

    name: str
    module: Any
    dsls: tuple[DSLEntry, ...]
    commands: tuple[Command, ...]


class PluginManager:
    """The plugins of one process, or of one test."""

    def __init__(self, entry_points: Callable[[str], Iterable[Any]] | None = None) -> None:
        self._entry_points = entry_points or installed
        self._lock = threading.RLock()
        self._discovered = self._discovering = False
        self._pluggy = _new_pluggy()
        self._plugins: dict[str, _Plugin] = {}
        self._owners: dict[str, str] = {}
        self._named: dict[str, tuple[str, DSLEntry]] | None = None
        self._loaded: dict[str, Any] = {}
        self._adapters: dict[tuple[str, type, Any], Callable[[Any], Any] | None] = {}
        self.broken: dict[str, Broken] = {}

    # Registering -------------------------------------------------------------------------------

    def register(self, module: Any, name: str) -> None:
        """Add a plugin. Raises PluginError, with nothing changed, if it breaks the contract."""
        with self._lock:
            if name in self._plugins:
                raise PluginError(f"there are two plugins called {name!r}")
            plugin = _inspect(module, name)
            for entry in plugin.dsls:
                named = self._named_dsls().get(entry.name)
                owner = named[0] if named else self._owners.get(entry.name)
                if owner is not None:
                    raise PluginError(
                        f"{owner!r} and {name!r} both have a DSL called {entry.name!r}",
                        hint="uninstall one of them",
                    )
            for command in plugin.commands:
                for other in self._plugins.values():
                    if any(command.name == one.name for one in other.commands):
                        raise PluginError(
                            f"the plugins {other.name!r} and {name!r} both have a command "
                            f"called {command.name!r}"
                        )
            try:
                self._pluggy.register(module, name)
            except ValueError as error:
                raise PluginError(f"the plugin {name!r} is registered already: {error}") from None
            self._plugins = {**self._plugins, name: plugin}
            self._owners = {**self._owners, **{entry.name: name for entry in plugin.dsls}}
            self._adapters = {}

    def unregister(self, name: str) -> None:
        """Remove the plugin `name` and its DSLs."""
        with self._lock:
            plugin = self._plugins[name]
            self._pluggy.unregister(name=name)
            gone = {entry.name for entry in plugin.dsls}
            self._plugins = {k: v for k, v in self._plugins.items() if k != name}
            self._owners = {k: v for k, v in self._owners.items() if k not in gone}
            self._loaded = {k: v for k, v in self._loaded.items() if k not in gone}
            self._adapters = {}

    def discover(self) -> None:
        """Import and register all installed plugins, once. A plugin that fails goes to `broken`."""
        if self._discovered:
            return
        with self._lock:
            if self._discovered or self._discovering:
                return
            self._discovering = True
            for point in sorted(self._entry_points(GROUP), key=lambda point: str(point.name)):
                if point.name in self._plugins:
                    continue
                try:
                    self.register(point.load(), point.name)
                except Exception as error:
                    reason = error.message if isinstance(error, DSLError) else str(error)
                    self.broken[point.name] = Broken(
                        point.name, f"{type(error).__name__}: {reason} ({_source(point)})"
                    )
            self._discovered = True

    # Asking ------------------------------------------------------------------------------------

    def plugin_names(self) -> tuple[str, ...]:
        """Return the names of registered plugins in order."""
        self.discover()
        return tuple(sorted(self._plugins))

    def dsl_names(self) -> tuple[str, ...]:
        """The DSLs that can be asked for."""
        return tuple(name for name, _, _ in self._all_dsls())

    def dsl_entries(self) -> tuple[tuple[str, DSLEntry], ...]:
        """Owner (a distribution or a plugin) and entry of each DSL, without loading any."""
        return tuple((owner, entry) for _, owner, entry in self._all_dsls())

    def get_dsl(self, name: str) -> Any:
        """The DSL called `name`, imported now if it was not yet.

        Raises PluginError: unknown (with what there is, and the plugins that are broken), or its
        owner fails to load it.
        """
        found = self._loaded.get(name)
        if found is not None:
            return found
        named = self._named_dsls().get(name)
        if named is None:
            self.discover()
            owner = self._owners.get(name)
            if owner is None:
                raise self._unknown(name)
            (entry,) = (one for one in self._plugins[owner].dsls if one.name == name)
        else:
            owner, entry = named
        # Without the lock: loading imports, and imports take locks of their own.
        try:
            dsl = entry.load()
        except DSLError:
            raise
        except Exception as error:
            raise PluginError(
                f"{owner!r} cannot load its DSL {name!r}: {type(error).__name__}: {error}"
            ) from error
        if getattr(dsl, "name", None) != name:
            raise PluginError(
                f"{owner!r} registers a DSL as {name!r} that calls itself "
                f"{getattr(dsl, 'name', None)!r}"
            )
        return self._loaded.setdefault(name, dsl)

    def stage_observer(self, dsl: str, function: str) -> Callable[[str, Any], Any] | None:
        """Return the `observe` argument of `objectstage.run`; None while no plugin wants to see
        stages.
        """
        self.discover()
        implementations = self._implementations("basedsl_stage_output")
        if not implementations:
            return None

        def observe(stage: str, output: Any) -> Any:
            now = output
            for plugin, ask in implementations:
                try:
                    other = ask(dsl=dsl, function=function, stage=stage, output=now)
                except DSLError:
                    raise
                except Exception as error:
                    raise PluginError(
                        f"the plugin {plugin!r} failed on stage {stage!r}: "
                        f"{type(error).__name__}: {error}"
                    ) from error
                if other is not None:
                    if not isinstance(other, type(output)):
                        raise PluginError(
                            f"the plugin {plugin!r} put {with_article(type(other))} in place of "
                            f"stage {stage!r}, which is {with_article(type(output))}"
                        )
                    now = other
            return None if now is output else now

        return observe

    def adapter_for(
        self, dsl: str, kind: type, declared: Any = None
    ) -> Callable[[Any], Any] | None:
        """Return the function that makes values of the foreign type `kind` known to `dsl`, or None.

        Raises PluginError if two plugins have one.
        """
        try:
            key = (dsl, kind, declared)
            if key in self._adapters:
                return self._adapters[key]
        except TypeError:  # an annotation that cannot be hashed
            return self._ask_adapter(dsl, kind, declared)
        self.discover()
        answer = self._adapters[key] = self._ask_adapter(dsl, kind, declared)
        return answer

    def cli_commands(self) -> tuple[Command, ...]:
        """Return the subcommands of all plugins."""
        self.discover()
        return tuple(c for name in sorted(self._plugins) for c in self._plugins[name].commands)

    def conformances(self) -> dict[str, ConformanceEntry]:
        """Return the conformance declarations of all plugins, by name."""
        self.discover()
        hook = "basedsl_conformances"
        found = {entry.name: entry for _, ask in self._implementations(hook) for entry in ask()}
        for point in self._entry_points(CONFORMANCE_GROUP):
            found.setdefault(point.name, ConformanceEntry(point.name, point.load))
        return found

    # Inside ------------------------------------------------------------------------------------

    def _named_dsls(self) -> dict[str, tuple[str, DSLEntry]]:
        """Owner and entry of each DSL that an entry point names; nothing of it is imported."""
        with self._lock:
            if self._named is None:
                self._named = {}
                for point in sorted(self._entry_points(DSL_GROUP), key=_by_distribution):
                    owner = _by_distribution(point)
                    other = self._named.get(point.name)
                    if other is not None:
                        reason = f"{other[0]!r} has a DSL called {point.name!r} too"
                        self.broken[owner] = Broken(owner, reason)
                        continue
                    self._named[point.name] = (
                        owner,
                        DSLEntry(point.name, point.load, _summary(point)),
                    )
            return self._named

    def _all_dsls(self) -> list[tuple[str, str, DSLEntry]]:
        """Name, owner and entry of each DSL, by name."""
        self.discover()
        found = {name: (name, owner, entry) for name, (owner, entry) in self._named_dsls().items()}
        for plugin in self._plugins.values():
            for entry in plugin.dsls:
                found.setdefault(entry.name, (entry.name, plugin.name, entry))
        return [found[name] for name in sorted(found)]

    def _ask_adapter(self, dsl: str, kind: type, declared: Any) -> Callable[[Any], Any] | None:
        self.discover()
        answers: list[tuple[str, Callable[[Any], Any]]] = []
        for plugin, ask in self._implementations("basedsl_adapt_argument"):
            adapt = ask(dsl=dsl, kind=kind, declared=declared)
            if adapt is not None:
                answers.append((plugin, adapt))
        if len(answers) > 1:
            raise PluginError(
                f"the plugins {answers[0][0]!r} and {answers[1][0]!r} both adapt "
                f"{kind.__module__}.{kind.__qualname__} for {dsl!r}"
            )
        return answers[0][1] if answers else None

    def _implementations(self, hook: str) -> list[tuple[str, Callable[..., Any]]]:
        caller: pluggy.HookCaller = getattr(self._pluggy.hook, hook)
        return [
            (impl.plugin_name, _by_name(impl.function, tuple(impl.argnames)))
            for impl in sorted(caller.get_hookimpls(), key=lambda impl: impl.plugin_name)
        ]

    def _unknown(self, name: str) -> PluginError:
        broken = self.broken.get(name)
        if broken is not None:
            return PluginError(f"the plugin {name!r} is broken: {broken.reason}")
        known = self.dsl_names()
        near = closest_name(name, known)
        hint = f"did you mean {near!r}?" if near else None
        notes = tuple(
            (f"the plugin {one.plugin!r} is broken: {one.reason}", None)
            for one in self.broken.values()
        )
        there = ", ".join(known) if known else "none installed"
        return PluginError(f"there is no DSL {name!r} (there is {there})", hint=hint, notes=notes)


def _by_name(answer: Callable[..., Any], names: tuple[str, ...]) -> Callable[..., Any]:
    # An implementation takes those parameters of its spec that it wants.
    return lambda **values: answer(*(values[name] for name in names))


def _new_pluggy() -> pluggy.PluginManager:
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(hookspecs)
    return manager


def _inspect(module: Any, name: str) -> _Plugin:
    """Check a plugin on a manager of its own, and collect its answers."""
    for attribute in dir(module):
        if not attribute.startswith(_PREFIX):
            continue
        function = getattr(module, attribute)
        if not callable(function):
            continue
        if attribute not in _SPECS:
            near = closest_name(attribute, _SPECS)
            raise PluginError(
                f"the plugin {name!r} has {attribute}, which basedsl does not ask for",
                hint=f"did you mean {near}?" if near else f"there is {', '.join(_SPECS)}",
            )
        marks = getattr(function, f"{GROUP}_impl", None)
        if marks is None:
            raise PluginError(
                f"{attribute} of the plugin {name!r} is not marked",
                hint="put @basedsl.plugin.hookimpl before it",
            )
        if marks.get("wrapper") or marks.get("hookwrapper"):
            raise PluginError(f"{attribute} of the plugin {name!r} is a wrapper: not supported")
    trial = _new_pluggy()
    try:
        trial.register(module, name)
    except pluggy.PluginValidationError as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        raise PluginError(f"the plugin {name!r} does not fit its hooks: {lines[-1]}") from None
    dsls = _listed(trial.hook.basedsl_register_dsls(), DSLEntry, name, "basedsl_register_dsls")
    commands = _listed(trial.hook.basedsl_cli_commands(), Command, name, "basedsl_cli_commands")
    for listed in (dsls, commands):
        names = [one.name for one in listed]
        twice = sorted({one for one in names if names.count(one) > 1})
        if twice:
            raise PluginError(f"the plugin {name!r} has {twice[0]!r} twice")
    return _Plugin(name, module, dsls, commands)


def _listed(answers: list[Any], kind: type, plugin: str, hook: str) -> tuple[Any, ...]:
    listed: list[Any] = []
    for answer in answers:
        if not isinstance(answer, (list, tuple)):
            raise PluginError(
                f"{hook} of the plugin {plugin!r} returned {type(answer).__name__}, not a list"
            )
        listed += answer
    for one in listed:
        if not isinstance(one, kind):
            raise PluginError(
                f"{hook} of the plugin {plugin!r} returned {with_article(type(one))}, not "
                + with_article(kind)
            )
    return tuple(listed)


def _by_distribution(point: Any) -> str:
    dist = getattr(point, "dist", None)
    return str(point.name if dist is None else dist.name)


def _summary(point: Any) -> str:
    dist = getattr(point, "dist", None)
    return "" if dist is None else str(dist.metadata["Summary"] or "")


def _source(point: Any) -> str:
    dist = getattr(point, "dist", None)
    where = getattr(point, "value", "?")
    return f"{where} of {dist.name} {dist.version}" if dist is not None else str(where)


@functools.cache
def plugin_manager() -> PluginManager:
    """Return the manager of this process. Nothing is imported until it is asked something."""
    return PluginManager()


def get_dsl(name: str) -> Any:
    """Return the installed DSL called `name`; PluginError with the names there are if there is
    none.
    """
    return plugin_manager().get_dsl(name)


def dsl_names() -> tuple[str, ...]:
    """Return the names of the installed DSLs."""
    return plugin_manager().dsl_names()
