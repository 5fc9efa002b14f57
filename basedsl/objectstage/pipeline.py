"""A pipeline is a value: named, ordered steps that take a module to what runs.

Only the description lives here; `objectstage.runner` runs it. A step is either MLIR's own textual
pass pipeline or a Python function; what comes out of a step carries the step's name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from basedsl.mlir import Bindings, MLIRContext
from basedsl.objectstage.bytecode import operation_names
from basedsl.objectstage.snapshot import Snapshot


@dataclass
class PipelineContext:
    """What a Python pass may ask for.

    `artifact` is the last text or bytes that a step produced; `artifacts` has all of them by step
    name; `options` is whatever the caller of `run` handed in; `extension` is a record of the DSL's
    own, in which steps of one run leave notes for later ones.
    """

    mlir: MLIRContext
    options: Any = None
    artifact: Any = None
    artifacts: dict[str, Any] = field(default_factory=dict)
    extension: Any = None
    input: Snapshot | None = None
    _read_from: Snapshot | None = None
    _names: frozenset[str] | None = None

    @property
    def bindings(self) -> Bindings:
        return self.mlir.bindings

    @property
    def operations(self) -> frozenset[str] | None:
        """Names of the operations in the step's input, without a walk; None if not known."""
        if self.input is None or not isinstance(self.input.data, bytes):
            return None
        if self._read_from is not self.input:
            self._read_from, self._names = self.input, operation_names(self.input.data)
        return self._names

    def may_use(self, *dialects: str) -> bool:
        """False only if the step's input has no operation of these dialects."""
        known = self.operations
        return known is None or any(name.partition(".")[0] in dialects for name in known)

    def may_contain(self, *names: str) -> bool:
        """False only if the step's input has no operation of these names."""
        known = self.operations
        return known is None or not known.isdisjoint(names)


Artifact = bytes | str
PythonPass = Callable[[Any, PipelineContext], "Artifact | Snapshot | None"]


@dataclass(frozen=True)
class Step:
    """One step. `passes` is one of

    - MLIR's text, `"canonicalize,cse"` or `"builtin.module(func.func(cse))"`, or a tuple of such
      texts, run as one pass pipeline (a failure is narrowed to one pass afterwards);
    - a function `(op, context) -> None | str | bytes | Snapshot`. None means that it changed the
      module in place; anything else is an artifact, which becomes the step's output, and the
      module goes on unchanged (a pass with nothing to do returns `context.input`, which saves
      looking at the module again). It may raise a `DSLError`, which passes through untouched, or
      `objectstage.reject` an operation.

    `verify` checks the module after the step. `only_for` names dialects: where the module has no
    operation of them, the step is passed over and its output is its input. The name of the step
    names its output.
    """

    name: str
    passes: str | tuple[str, ...] | PythonPass
    verify: bool = True
    suffix: str = ""
    only_for: tuple[str, ...] = ()

    @property
    def is_textual(self) -> bool:
        return not callable(self.passes)

    def pass_list(self) -> tuple[str, ...]:
        """The passes of a textual step, one text each; `a,b` and `builtin.module(a,b)` split."""
        if callable(self.passes):
            return ()
        texts = (self.passes,) if isinstance(self.passes, str) else self.passes
        return tuple(p for text in texts for p in split_passes(_inside_module(text)))

    def pipeline_text(self) -> str:
        """What `PassManager.parse` takes."""
        return f"builtin.module({','.join(self.pass_list())})"

    def describe(self) -> str:
        """One line for listings and cache keys."""
        if callable(self.passes):
            inner = self.passes
            named = getattr(inner, "__qualname__", None)
            what = f"{inner.__module__}.{named}" if named else repr(inner)
        else:
            what = ",".join(self.pass_list())
        when = f" where there is {', '.join(self.only_for)}" if self.only_for else ""
        return f"{self.name}: {what}{when}"


@dataclass(frozen=True)
class Pipeline:
    """Steps in order. `input` names the module that goes in; all names are distinct."""

    name: str
    steps: tuple[Step, ...] = ()
    input: str = "input"

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", tuple(self.steps))
        names = [self.input, *(step.name for step in self.steps)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"pipeline {self.name!r} names {', '.join(twice)} more than once")
        unfit = [name for name in names if not re.fullmatch(r"[\w.+-]+", name)]
        if unfit:
            raise ValueError(f"{unfit[0]!r} cannot name a step: letters, digits and . + - _ only")

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    @property
    def output_names(self) -> tuple[str, ...]:
        """The input's name, then each step's."""
        return (self.input, *(step.name for step in self.steps))

    def then(self, *steps: Step) -> Pipeline:
        """This pipeline with steps added at the end."""
        return replace(self, steps=self.steps + steps)

    def before(self, name: str, *steps: Step) -> Pipeline:
        """This pipeline with steps added before the step called `name`."""
        at = self._index(name)
        return replace(self, steps=self.steps[:at] + steps + self.steps[at:])

    def after(self, name: str, *steps: Step) -> Pipeline:
        """This pipeline with steps added behind the step called `name`."""
        at = self._index(name) + 1
        return replace(self, steps=self.steps[:at] + steps + self.steps[at:])

    def until(self, name: str) -> Pipeline:
        """This pipeline up to and including the step called `name`."""
        return replace(self, steps=self.steps[: self._index(name) + 1])

    def with_step(self, step: Step) -> Pipeline:
        """This pipeline with the step of the same name replaced."""
        at = self._index(step.name)
        return replace(self, steps=(*self.steps[:at], step, *self.steps[at + 1 :]))

    def describe(self) -> str:
        """The whole pipeline, a line for each step."""
        return "\n".join([f"{self.name} ({self.input})", *(s.describe() for s in self.steps)])

    @property
    def fingerprint(self) -> str:
        """Changes when the steps or their parameters do; not when a Python pass is edited."""
        return hashlib.sha256(self.describe().encode()).hexdigest()[:16]

    def _index(self, name: str) -> int:
        for at, step in enumerate(self.steps):
            if step.name == name:
                return at
        known = ", ".join(step.name for step in self.steps)
        raise KeyError(f"pipeline {self.name!r} has no step {name!r}; it has {known}")


def split_passes(text: str) -> list[str]:
    """`"a,b{x=1 y=2},c(d,e)"` -> `["a", "b{x=1 y=2}", "c(d,e)"]`."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        if char in "({[<":
            depth += 1
        elif char in ")}]>":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def _inside_module(text: str) -> str:
    text = text.strip()
    outer = "builtin.module("
    return text[len(outer) : -1] if text.startswith(outer) and text.endswith(")") else text
