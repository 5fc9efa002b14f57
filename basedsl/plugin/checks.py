"""Checks of a plugin before it is registered, on a manager of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pluggy

from basedsl.errors import with_article
from basedsl.plugin.answers import PluginError
from basedsl.plugin.hookspecs import GROUP, Command, DSLEntry
from basedsl.slips import closest_name

_PREFIX = "basedsl_"


@dataclass(frozen=True)
class Plugin:
    """The facts about a registered plugin."""

    name: str
    module: Any
    dsls: tuple[DSLEntry, ...]
    commands: tuple[Command, ...]

    @property
    def hooks(self) -> tuple[str, ...]:
        """The names of the hooks that it answers."""
        return tuple(
            name
            for name in dir(self.module)
            if hasattr(getattr(self.module, name), f"{GROUP}_impl")
        )


def new_pluggy(specs: Sequence[Any]) -> pluggy.PluginManager:
    """Return pluggy's manager of the hooks in these modules."""
    manager = pluggy.PluginManager(GROUP)
    for module in specs:
        manager.add_hookspecs(module)
    return manager


def hook_names(specs: Sequence[Any]) -> tuple[str, ...]:
    """Return the names of the hooks in these modules."""
    return tuple(
        name for module in specs for name in dir(module) if _is_spec(getattr(module, name))
    )


def _is_spec(value: Any) -> bool:
    return callable(value) and hasattr(value, f"{GROUP}_spec")


def answers_other_hooks(module: Any, specs: Sequence[Any]) -> bool:
    """True if a plugin answers a hook that `specs` do not have."""
    known = hook_names(specs)
    return any(
        name not in known and hasattr(getattr(module, name, None), f"{GROUP}_impl")
        for name in dir(module)
    )


def inspected(module: Any, name: str, specs: Sequence[Any]) -> Plugin:
    """Check a plugin on a manager of its own, and collect its answers."""
    known = hook_names(specs)
    for attribute in dir(module):
        function = getattr(module, attribute, None)
        if not callable(function) or _is_spec(function):
            continue
        marks = getattr(function, f"{GROUP}_impl", None)
        if marks is None and not attribute.startswith(_PREFIX):
            continue
        if attribute not in known:
            near = closest_name(attribute, known)
            raise PluginError(
                f"the plugin {name!r} has {attribute}{_place(function)}, a hook that nobody asks",
                hint=f"did you mean {near}?" if near else f"there is {', '.join(known)}",
            )
        if marks is None:
            raise PluginError(
                f"{attribute} of the plugin {name!r}{_place(function)} is not marked",
                hint="put @basedsl.hookimpl before it",
            )
        if marks.get("hookwrapper"):
            raise PluginError(
                f"{attribute} of the plugin {name!r}{_place(function)} is an old-style wrapper",
                hint="write @hookimpl(wrapper=True), and return the result",
            )
    trial = new_pluggy(specs)
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
    return Plugin(name, module, dsls, commands)


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


def _place(function: Any) -> str:
    code = getattr(function, "__code__", None)
    return "" if code is None else f" ({code.co_filename}:{code.co_firstlineno})"
