"""The records between the stages of a compilation, one for each arrow.

    bind -> BoundCall -> rewrite -> Rewritten -> trace -> Traced -> compile -> Built -> load

Named tuples: each method that a dataclass writes takes 0.1 ms of an import.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from basedsl.binding.arguments import ArgumentType
from basedsl.binding.results import Results
from basedsl.function import DSLFunction
from basedsl.objectstage import Stages
from basedsl.staleness.guards import Guards

if TYPE_CHECKING:  # a process that finds its code on the disk never imports the pre-stage
    from basedsl.prestage import StagedFunction


class BoundCall(NamedTuple):
    """A call from Python: one value for each parameter, and what code for it depends on besides
    what the function reads: the types of the arguments, options, and the target's key.
    """

    function: DSLFunction
    values: list[Any]
    arguments: tuple[ArgumentType, ...]
    settings: Any
    target_key: Any

    @property
    def key(self) -> Any:
        """Calls of the function with an equal key share code."""
        return self.arguments, self.settings, self.target_key

    @property
    def shown(self) -> str:
        """The types of the arguments, for listings and logs."""
        return ", ".join(map(str, self.arguments))


class Rewritten(NamedTuple):
    """The called function after the pre-stage; `staged` is None with `preprocess=False`."""

    staged: StagedFunction | None

    @classmethod
    def of(cls, function: DSLFunction) -> Rewritten:
        """Run the pre-stage on a function as it is now."""
        return cls(function.stage() if function.preprocess else None)

    def source(self) -> str:
        """The rewritten Python; "" with `preprocess=False`."""
        return "" if self.staged is None else self.staged.source


class Traced(NamedTuple):
    """The module that tracing built, the result's structure, and the functions called in it."""

    module: Any
    results: Results
    functions: tuple[DSLFunction, ...]


class Built(NamedTuple):
    """All of a compilation but the loaded code: each stage's output, the result's structure, the
    guards under which it is valid, the rewritten Python, and the names of what outlives the call
    and was changed by tracing.
    """

    stages: Stages
    results: Results
    guards: Guards
    source: Callable[[], str]
    effects: tuple[str, ...] = ()
