"""Plugins: the hooks that they answer, and the manager that finds and asks them."""

from basedsl.plugin.hookspecs import (
    CONFORMANCE_GROUP,
    DSL_GROUP,
    GROUP,
    Command,
    ConformanceEntry,
    DSLEntry,
    hookimpl,
)
from basedsl.plugin.manager import (
    Broken,
    PluginError,
    PluginManager,
    dsl_names,
    get_dsl,
    plugin_manager,
)

__all__ = [
    "CONFORMANCE_GROUP",
    "DSL_GROUP",
    "GROUP",
    "Broken",
    "Command",
    "ConformanceEntry",
    "DSLEntry",
    "PluginError",
    "PluginManager",
    "dsl_names",
    "get_dsl",
    "hookimpl",
    "plugin_manager",
]
