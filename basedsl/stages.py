"""The records between the stages of a compilation, one for each arrow.

    bind -> BoundCall -> rewrite -> Rewritten -> trace -> Traced -> compile -> Built -> load

They are named tuples because each method that a dataclass generates costs 0.1 ms at import.
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
    """A call from Python: one value and one argument type for each parameter, the record of options
    (`settings`), and `Language.target_key`.
    """

    function: DSLFunction
    values: list[Any]
    arguments: tuple[ArgumentType, ...]
    settings: Any
    target_key: Any

    @property
    def key(self) -> Any:
        """The key of the variant: calls of one function with equal keys share code."""
        return self.arguments, self.settings, self.target_key

    @property
    def shown(self) -> str:
        """The argument types as text, for listings and logs."""
        return ", ".join(map(str, self.arguments))


class Rewritten(NamedTuple):
    """The called function after the pre-stage; `staged` is None with `preprocess=False`."""

    staged: StagedFunction | None

    @classmethod
    def of(cls, function: DSLFunction) -> Rewritten:
        """Run the pre-stage on a function in its current state."""
        return cls(function.stage() if function.preprocess else None)

    def source(self) -> str:
        """Return the rewritten Python text; "" with `preprocess=False`."""
        return "" if self.staged is None else self.staged.source


class Traced(NamedTuple):
    """The module that tracing built, the result's structure, and the functions called in it."""

    module: Any
    results: Results
    functions: tuple[DSLFunction, ...]


class Built(NamedTuple):
    """A compilation that is not loaded yet: each stage's output, the result's structure, the guards
    under which it is valid, a function that returns the rewritten Python text, the names of what
    outlives the call and was changed by tracing, and the functions called in it; none of those that
    a disk-cache entry was made from.
    """

    stages: Stages
    results: Results
    guards: Guards
    source: Callable[[], str]
    effects: tuple[str, ...] = ()
    functions: tuple[DSLFunction, ...] = ()
