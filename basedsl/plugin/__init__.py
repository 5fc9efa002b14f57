"""Plugins: the hooks that they answer, and the manager that finds and asks them."""

from basedsl.plugin.answers import PluginError
from basedsl.plugin.hookspecs import (
    CONFORMANCE_GROUP,
    DSL_GROUP,
    GROUP,
    HOOKSPEC_GROUP,
    Command,
    ConformanceEntry,
    DSLEntry,
    hookimpl,
    hookspec,
)
from basedsl.plugin.manager import (
    Broken,
    PluginManager,
    ask_plugins,
    dsl_names,
    get_dsl,
    plugin_manager,
    register_plugin,
    unregister_plugin,
)

__all__ = [
    "CONFORMANCE_GROUP",
    "DSL_GROUP",
    "GROUP",
    "HOOKSPEC_GROUP",
    "Broken",
    "Command",
    "ConformanceEntry",
    "DSLEntry",
    "PluginError",
    "PluginManager",
    "ask_plugins",
    "dsl_names",
    "get_dsl",
    "hookimpl",
    "hookspec",
    "plugin_manager",
    "register_plugin",
    "unregister_plugin",
]
