"""A pipeline is a value: named, ordered steps that take a module to what runs.

Only the description lives here; `objectstage.runner` runs it. A step is either MLIR's own textual
pass pipeline or a Python function; what comes out of a step carries the step's name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from basedsl.mlir import Bindings, MLIRContext
from basedsl.objectstage.bytecode import operation_names
from basedsl.objectstage.snapshot import Snapshot


@dataclass
class PipelineContext:
    """The context of a Python pass: the run that it belongs to.

    `mlir` is the MLIR context with its bindings. `input` is the output of the step before, the
    module that the pass gets. `artifact` is the last text or bytes that a step produced;
    `artifacts` has all of them by step name; `options` is whatever the caller of `run` handed in;
    `extension` is a record of the DSL's own, in which steps of one run leave notes for later ones.
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
        """Names of the operations in the step's input, read from bytecode; None if not known."""
        if self.input is None or not isinstance(self.input.data, bytes):
            return None
        if self._read_from is not self.input:
            self._read_from, self._names = self.input, operation_names(self.input.data)
        return self._names

    def emit_op(self, name: str, type: Any, *operands: Any, **attributes: Any) -> Any:
        """Make the operation called `name` at the insertion point; returns its only result, of
        `type`.
        """
        create = self.bindings.ir.Operation.create
        made = create(name, results=[type], operands=operands, attributes=attributes or None)
        return made.result

    def may_use(self, *dialects: str) -> bool:
        """Return False only if the step's input has no operation of these dialects."""
        known = self.operations
        return known is None or any(name.partition(".")[0] in dialects for name in known)

    def may_contain(self, *names: str) -> bool:
        """Return False only if the step's input has no operation of these names."""
        known = self.operations
        return known is None or not known.isdisjoint(names)


Artifact = bytes | str
PythonPass = Callable[[Any, PipelineContext], "Artifact | Snapshot | None"]


@dataclass(frozen=True)
class Step:
    """A step of a pipeline. `passes` is one of

    - MLIR's text, `"canonicalize,cse"` or `"builtin.module(func.func(cse))"`, or a tuple of such
      texts, run as one pass pipeline (a failure is narrowed to one pass afterwards);
    - a function `(op, context) -> None | str | bytes | Snapshot`. None means that it changed the
      module in place; anything else is an artifact, which becomes the step's output, and the
      module stays (a pass with nothing to do returns `context.input`, which saves writing the
      module again). It may raise a `DSLError`, which passes through untouched, or
      `objectstage.reject` an operation.

    `verify` checks the module after the step. `only_for` names dialects: where the module has no
    operation of them, the step is passed over and its output is its input. The name of the step
    names its output; `suffix` is that of a file with the text or bytes that it returns.
    """

    name: str
    passes: str | tuple[str, ...] | PythonPass
    verify: bool = True
    suffix: str = ""
    only_for: tuple[str, ...] = ()

    def pass_list(self) -> tuple[str, ...]:
        """Split the passes of a textual step, `a,b` or `builtin.module(a,b)`, into single ones."""
        if callable(self.passes):
            return ()
        texts = (self.passes,) if isinstance(self.passes, str) else self.passes
        return tuple(p for text in texts for p in split_passes(_inside_module(text)))

    def pipeline_text(self) -> str:
        """Return the text that `PassManager.parse` takes."""
        return f"builtin.module({','.join(self.pass_list())})"


@dataclass(frozen=True)
class Pipeline:
    """Named steps in order. `input` names the module that goes in. Raises ValueError for a name
    that is there twice or cannot name a file.
    """

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

    def then(self, *steps: Step) -> Pipeline:
        """Return this pipeline with steps added at the end."""
        return replace(self, steps=self.steps + steps)

    def before(self, name: str, *steps: Step) -> Pipeline:
        """Return this pipeline with steps added before the step called `name`."""
        at = self._index(name)
        return replace(self, steps=self.steps[:at] + steps + self.steps[at:])

    def after(self, name: str, *steps: Step) -> Pipeline:
        """Return this pipeline with steps added behind the step called `name`."""
        at = self._index(name) + 1
        return replace(self, steps=self.steps[:at] + steps + self.steps[at:])

    def until(self, name: str) -> Pipeline:
        """Return this pipeline up to and including the step called `name`."""
        return replace(self, steps=self.steps[: self._index(name) + 1])

    def one_step_each_pass(self) -> Pipeline:
        """Return this pipeline with a step for each pass of textual steps: of "nvvm" these are
        "nvvm.1.convert-scf-to-cf" and so on, and the last keeps the step's name.
        """
        steps: list[Step] = []
        for step in self.steps:
            passes = [one for text in step.pass_list() for one in flat_passes(text)]
            for number, one in enumerate(passes[:-1], 1):
                name = re.findall(r"[\w+-]+", one.partition("{")[0])[-1]
                steps.append(
                    replace(step, name=f"{step.name}.{number}.{name}", passes=one, suffix="")
                )
            steps.append(replace(step, passes=passes[-1]) if passes else step)
        return replace(self, steps=tuple(steps))

    def _index(self, name: str) -> int:
        for at, step in enumerate(self.steps):
            if step.name == name:
                return at
        known = ", ".join(step.name for step in self.steps)
        raise KeyError(f"pipeline {self.name!r} has no step {name!r}; it has {known}")


def split_passes(text: str) -> list[str]:
    """Split at commas that are in no brackets: "a,b{x=1},c(d,e)" -> ["a", "b{x=1}", "c(d,e)"]."""
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


def flat_passes(text: str) -> list[str]:
    """Split a nested pipeline into one for each pass: "gpu.module(a,b)" -> ["gpu.module(a)",
    "gpu.module(b)"].
    """
    nested = re.fullmatch(r"([\w.]+)\((.*)\)", text.strip(), re.DOTALL)
    if nested is None:
        return [text.strip()]
    inner = [one for part in split_passes(nested[2]) for one in flat_passes(part)]
    return [f"{nested[1]}({one})" for one in inner]


def _inside_module(text: str) -> str:
    text = text.strip()
    outer = "builtin.module("
    return text[len(outer) : -1] if text.startswith(outer) and text.endswith(")") else text
