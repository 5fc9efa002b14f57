"""The plugin manager: finds plugins, checks them, and asks them; all or nothing for each plugin.

A plugin is validated and its answers collected before the manager changes, so a bad one leaves the
manager unchanged. A plugin that cannot be imported or registered is remembered by name with the
reason (`broken`), and the others work.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import sys
import threading
import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from basedsl.errors import DSLError, with_article
from basedsl.options import NO_PLUGINS, Options
from basedsl.plugin import hookspecs
from basedsl.plugin.answers import Answer, PluginError, answers, ask, described
from basedsl.plugin.chain import chained, first, noted
from basedsl.plugin.checks import Plugin, answers_other_hooks, hook_names, inspected, new_pluggy
from basedsl.plugin.entry_points import installed
from basedsl.plugin.hookspecs import (
    CONFORMANCE_GROUP,
    DSL_GROUP,
    GROUP,
    HOOKSPEC_GROUP,
    Command,
    ConformanceEntry,
    DSLEntry,
)
from basedsl.slips import closest_name

P = TypeVar("P")


# Hooks whose answers change what functions become.
_IN_KEY = ("basedsl_pipeline", "basedsl_load_dialects", "basedsl_result_type")


@dataclass(frozen=True)
class Broken:
    """A plugin that could not be used, and the reason."""

    plugin: str
    reason: str


class PluginManager:
    """The plugins of one process, or of one test."""

    def __init__(self, entry_points: Callable[[str], Iterable[Any]] | None = None) -> None:
        self._entry_points = entry_points or installed
        self._lock = threading.RLock()
        self._discovered = self._discovering = False
        self._specs: list[Any] = [hookspecs]
        self._has_hookspecs = False
        self._pluggy = new_pluggy(self._specs)
        self._plugins: dict[str, Plugin] = {}
        self._owners: dict[str, str] = {}
        self._named: dict[str, tuple[str, DSLEntry]] | None = None
        self._loaded: dict[str, Any] = {}
        self._adapters: dict[tuple[str, type, Any], Callable[[Any], Any] | None] = {}
        self._options: dict[tuple[str, type[Options]], type[Options]] = {}
        self._known_answers: dict[tuple[str, str | None], list[Answer]] = {}
        self.broken: dict[str, Broken] = {}
        #: Names of plugins, distributions and DSLs that are not used; set it before anything else.
        self.switched_off = frozenset(filter(None, os.environ.get(NO_PLUGINS, "").split(",")))

    # Registering -------------------------------------------------------------------------------

    def register(self, module: Any, name: str) -> None:
        """Add a plugin. Raises PluginError, with nothing changed, if it breaks the contract."""
        with self._lock:
            if name in self._plugins:
                raise PluginError(f"there are two plugins called {name!r}")
            if answers_other_hooks(module, self._specs):
                self._load_hookspecs()
            plugin = inspected(module, name, self._specs)
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
            self._forget()

    def unregister(self, name: str) -> None:
        """Remove the plugin `name` and its DSLs."""
        with self._lock:
            plugin = self._plugins[name]
            self._pluggy.unregister(name=name)
            gone = {entry.name for entry in plugin.dsls}
            self._plugins = {k: v for k, v in self._plugins.items() if k != name}
            self._owners = {k: v for k, v in self._owners.items() if k not in gone}
            self._loaded = {k: v for k, v in self._loaded.items() if k not in gone}
            self._forget()

    def _forget(self) -> None:
        self._adapters, self._options, self._known_answers = {}, {}, {}

    def discover(self) -> None:
        """Import and register all installed plugins, once. A plugin that fails goes to `broken`."""
        if self._discovered:
            return
        with self._lock:
            if self._discovered or self._discovering:
                return
            self._discovering = True
            for point in self._points(GROUP):
                if point.name in self._plugins:
                    continue
                try:
                    self.register(point.load(), point.name)
                except Exception as error:  # a plugin's code
                    self._break(point, error)
            self._discovered = True

    def _load_hookspecs(self) -> None:
        """Import the modules in which plugins specify hooks, once somebody answers or asks one that
        is not known: a DSL's own hooks cost nothing where it is not used.
        """
        if self._has_hookspecs:
            return
        self._has_hookspecs = True
        for point in self._points(HOOKSPEC_GROUP):
            try:
                module = point.load()
                if module not in self._specs:
                    self._add_hookspecs(module)
            except Exception as error:  # a plugin's code
                self._break(point, error)

    def _add_hookspecs(self, module: Any) -> None:
        taken = set(hook_names([module])) & set(hook_names(self._specs))
        if taken:
            raise PluginError(f"the hook {min(taken)} is another plugin's already")
        self._pluggy.add_hookspecs(module)
        self._specs.append(module)

    def _points(self, group: str) -> list[Any]:
        """Return the entry points of a group by name, without those that are switched off; names
        that two distributions have are broken, and neither of them is used.
        """
        by_name: dict[str, list[Any]] = {}
        for point in sorted(self._entry_points(group), key=lambda point: str(point.name)):
            by_name.setdefault(str(point.name), []).append(point)
        found = []
        for name, points in by_name.items():
            if self._is_off(points[0]):
                continue
            if len(points) > 1 and group != DSL_GROUP:
                owners = " and ".join(repr(_by_distribution(point)) for point in points)
                what = "declare the conformance" if group == CONFORMANCE_GROUP else "have a plugin"
                self.broken[name] = Broken(name, f"{owners} both {what} {name!r}")
                continue
            found += points
        return found

    def _is_off(self, point: Any) -> bool:
        return bool(self.switched_off & {str(point.name), _by_distribution(point)})

    def _break(self, point: Any, error: Exception) -> None:
        name = str(point.name)
        self.broken[name] = Broken(name, f"{described(error)} in {_source(point)}")

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
        except Exception as error:  # a plugin's code
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
        """Return the `observe` argument of `objectstage.run_pipeline`; None while no plugin wants
        to see stages.
        """
        see = self._answers("basedsl_see_stage", dsl)
        replace = self._answers("basedsl_stage_output", dsl)
        if not see and not replace:
            return None

        def observe(stage: str, output: Any) -> Any:
            values = {"dsl": dsl, "function": function, "stage": stage, "output": output}
            made = chained(replace, values, "output", f"stage {stage!r}")
            noted(see, {**values, "output": made})
            return None if made is output else made

        return observe

    def replaces_stages(self, dsl: str) -> bool:
        """Return True if a plugin may replace outputs of stages: then no code of another process
        is the same.
        """
        return bool(self._answers("basedsl_stage_output", dsl))

    def pipeline(self, dsl: str, pipeline: P, options: Any) -> P:
        """Return the pipeline of a compilation, as plugins change it."""
        found = self._answers("basedsl_pipeline", dsl)
        values = {"dsl": dsl, "pipeline": pipeline, "options": options}
        made: P = chained(found, values, "pipeline", "the pipeline") if found else pipeline
        return made

    def modules_in_key(self, dsl: str) -> tuple[str | None, ...]:
        """Return the modules of the plugins that change what code a DSL's functions become, for the
        cache key; None for one that is no module.
        """
        found = [
            self._plugins[one.plugin].module
            for hook in (*_IN_KEY, *hook_names(self._specs[1:]))
            for one in self._answers(hook, dsl)
        ]
        return tuple(m.__name__ if isinstance(m, types.ModuleType) else None for m in found)

    def compiled(self, dsl: str, function: str, compiled: Any) -> None:
        """Tell plugins of a function that is compiled or loaded."""
        found = self._answers("basedsl_compiled", dsl)
        noted(found, {"dsl": dsl, "function": function, "compiled": compiled})

    def raised(self, dsl: str, function: str, error: Exception) -> None:
        """Tell plugins of an exception that leaves a compilation."""
        found = self._answers("basedsl_error", dsl)
        noted(found, {"dsl": dsl, "function": function, "error": error})

    def result_type(self, dsl: str, value: Any) -> Any:
        """Return a plugin's result type of a value that the DSL does not know, or None."""
        found = self._answers("basedsl_result_type", dsl)
        return first(found, {"dsl": dsl, "value": value})

    def cache_store(self, dsl: str, options: Any) -> Any:
        """Return a plugin's storage of compiled code, or None."""
        found = self._answers("basedsl_cache_store", dsl)
        return first(found, {"dsl": dsl, "options": options})

    def load_dialects(self, dsl: str, bindings: Any) -> None:
        """Load the dialects of plugins into the current MLIR context."""
        found = self._answers("basedsl_load_dialects", dsl)
        noted(found, {"dsl": dsl, "bindings": bindings})

    def options_class(self, dsl: str, record: type[Options]) -> type[Options]:
        """Return a DSL's record of options with those that plugins add."""
        known = self._options.get((dsl, record))
        if known is None:
            known = self._with_options(dsl, record)
            if self._discovered:
                self._options[dsl, record] = known
        return known

    def _with_options(self, dsl: str, record: type[Options]) -> type[Options]:
        found = self._answers("basedsl_options", dsl)
        owners = dict.fromkeys((info.name for info in record.describe()), f"the DSL {dsl!r}")
        fields: list[tuple[str, Any, Any]] = []
        for one in found:
            for name, field in (one({"dsl": dsl}) or {}).items():
                if name in owners:
                    raise PluginError(
                        f"the plugin {one.plugin!r} and {owners[name]} both have an option {name!r}"
                    )
                if not isinstance(field, dataclasses.Field):
                    raise PluginError(
                        f"the option {name!r} of the plugin {one.plugin!r} is "
                        f"{with_article(type(field))}",
                        hint="make it with basedsl.option(default, text, affects_output=...)",
                    )
                owners[name] = f"the plugin {one.plugin!r}"
                kind = tuple[str, ...] if field.default == () else type(field.default)
                fields.append((name, kind, field))
        if not fields:
            return record
        made: Any = dataclasses.make_dataclass(
            record.__name__, fields, bases=(record,), frozen=True, kw_only=True
        )
        return made  # type: ignore[no-any-return]

    def ask(self, hook: str | Callable[..., Any], **values: Any) -> list[Any]:
        """Return the answers of all plugins to a hook that a plugin specifies, but None, in order.
        Raises PluginError for a hook that no plugin specifies.
        """
        self.discover()
        if not isinstance(hook, str):
            if hook.__name__ not in hook_names(self._specs):
                self._add_hookspecs(sys.modules[hook.__module__])
            hook = hook.__name__
        elif hook not in hook_names(self._specs):
            self._load_hookspecs()
        if hook not in hook_names(self._specs):
            raise PluginError(f"no plugin specifies the hook {hook!r}")
        found = self._answers(hook, values.get("dsl"))
        made: list[Any] = ask(
            found,
            values,
            lambda plain: [answer for one in plain if (answer := one(values)) is not None],
        )
        return made

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
        answer = self._ask_adapter(dsl, kind, declared)
        if self._discovered:
            self._adapters[key] = answer
        return answer

    def commands(self) -> tuple[tuple[str, Command], ...]:
        """Owner and subcommand, of all plugins."""
        self.discover()
        return tuple((n, c) for n in sorted(self._plugins) for c in self._plugins[n].commands)

    def conformances(self) -> dict[str, ConformanceEntry]:
        """Return the conformance declarations of all plugins, by name. One that two plugins have
        raises PluginError where it is loaded.
        """
        self.discover()
        owners: dict[str, list[tuple[str, ConformanceEntry]]] = {}
        for one in self._answers("basedsl_conformances"):
            for entry in one({}):
                owners.setdefault(entry.name, []).append((one.plugin, entry))
        for point in sorted(self._entry_points(CONFORMANCE_GROUP), key=_by_distribution):
            if not self._is_off(point):
                entry = ConformanceEntry(str(point.name), point.load)
                owners.setdefault(entry.name, []).append((_by_distribution(point), entry))
        return {
            name: found[0][1] if len(found) == 1 else _clash(name, [owner for owner, _ in found])
            for name, found in sorted(owners.items())
        }

    def described(self) -> list[dict[str, Any]]:
        """Return name, source, hooks, DSLs and state of each plugin, for listings."""
        self.discover()
        sources = {str(p.name): _source(p) for p in self._entry_points(GROUP)}
        rows = [
            {
                "name": plugin.name,
                "source": sources.get(plugin.name, "registered by the program"),
                "hooks": plugin.hooks,
                "state": "in use",
            }
            for plugin in self._plugins.values()
        ]
        for name, (owner, _) in self._named_dsls().items():
            rows.append({"name": name, "source": owner, "hooks": ("DSL",), "state": "in use"})
        for broken in self.broken.values():
            state = f"broken: {broken.reason}"
            rows.append({"name": broken.plugin, "source": "", "hooks": (), "state": state})
        groups = (GROUP, DSL_GROUP, CONFORMANCE_GROUP, HOOKSPEC_GROUP)
        points = [point for group in groups for point in self._entry_points(group)]
        known = {name for p in points for name in (str(p.name), _by_distribution(p))}
        for name in sorted(self.switched_off):
            state = "switched off" if name in known else "switched off: nothing has this name"
            rows.append({"name": name, "source": "", "hooks": (), "state": state})
        return sorted(rows, key=lambda row: str(row["name"]))

    # Inside ------------------------------------------------------------------------------------

    def _named_dsls(self) -> dict[str, tuple[str, DSLEntry]]:
        """Owner and entry of each DSL that an entry point names; nothing of it is imported."""
        with self._lock:
            if self._named is None:
                self._named = {}
                for point in sorted(self._points(DSL_GROUP), key=_by_distribution):
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
        values = {"dsl": dsl, "kind": kind, "declared": declared}
        for one in self._answers("basedsl_adapt_argument", dsl):
            adapt = one(values)
            if adapt is not None:
                answers.append((one.plugin, adapt))
        if len(answers) > 1:
            raise PluginError(
                f"the plugins {answers[0][0]!r} and {answers[1][0]!r} both adapt "
                f"{kind.__module__}.{kind.__qualname__} for {dsl!r}"
            )
        return answers[0][1] if answers else None

    def _answers(self, hook: str, dsl: str | None = None) -> list[Answer]:
        self.discover()
        key = (hook, dsl)
        known = self._known_answers.get(key)
        if known is None:
            known = answers(getattr(self._pluggy.hook, hook), dsl)
            if self._discovered:  # else a plugin is imported right now, and more may follow
                self._known_answers[key] = known
        return known

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


def _clash(name: str, owners: list[str]) -> ConformanceEntry:
    def load() -> Any:
        who = " and ".join(map(repr, owners))
        raise PluginError(f"{who} both declare the conformance {name!r}")

    return ConformanceEntry(name, load)


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


def register_plugin(plugin: Any, name: str) -> None:
    """Register `plugin`, a module or an object with hooks, as `name` in this process, before the
    first compilation that it is to see. Raises PluginError if it breaks the contract.
    """
    plugin_manager().register(plugin, name)


def unregister_plugin(name: str) -> None:
    """Remove the plugin that `register_plugin` added as `name`."""
    plugin_manager().unregister(name)


def ask_plugins(hook: str | Callable[..., Any], **values: Any) -> list[Any]:
    """Return the answers of all plugins to a hook that a plugin specifies, but None, in order.

    `hook` is the function marked with `hookspec`, or its name. A value called `dsl` leaves out the
    answers for other DSLs.
    """
    return plugin_manager().ask(hook, **values)
