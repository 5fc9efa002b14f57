"""Running a pipeline on a module: each step is timed, verified, and its output kept.

The module that goes in is left alone; steps work on a copy. A failing pass or verifier becomes a
`PassFailed` at the user's Python line (`objectstage.failure`).
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

from basedsl.errors import TOO_DEEP, CompilerBug, DSLError, with_article
from basedsl.mlir import MLIRContext, uninterrupted
from basedsl.objectstage import failure, snapshot
from basedsl.objectstage.failure import Diagnostic, PassFailed
from basedsl.objectstage.pipeline import Pipeline, PipelineContext, Step
from basedsl.objectstage.snapshot import Snapshot
from basedsl.recursion_limit import deeper
from basedsl.warning import DSLWarning

Observer = Callable[[str, Snapshot], "Snapshot | None"]

_MANAGERS_KEPT = 256
# Reuse saves building and initialising a dozen passes: 0.2 against 0.7 ms for a small function.
_managers: weakref.WeakKeyDictionary[MLIRContext, dict[str, Any]] = weakref.WeakKeyDictionary()


class Stages:
    """The outputs of one run of a pipeline.

    `outputs` maps the input's name and each step's name to a `Snapshot`; `seconds` maps step names
    to wall-clock time; `artifact` is the last text or bytes a step produced (None if none did);
    `diagnostics` are MLIR's warnings and remarks.
    """

    def __init__(self, pipeline: Pipeline | Callable[[], Pipeline]) -> None:
        self._pipeline = pipeline
        self.outputs: dict[str, Snapshot] = {}
        self.seconds: dict[str, float] = {}
        self.artifact: bytes | str | None = None
        self.artifacts: dict[str, bytes | str] = {}
        self.diagnostics: list[Diagnostic] = []

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline. Code from the disk cache has its own made when it is asked for: importing
        what lowers takes longer than loading the code.
        """
        if not isinstance(self._pipeline, Pipeline):
            self._pipeline = self._pipeline()
        return self._pipeline

    def __repr__(self) -> str:
        return f"Stages({self.pipeline.name!r}: {', '.join(self.outputs)})"

    def __contains__(self, name: str) -> bool:
        return name in self.outputs

    def __getitem__(self, name: str) -> Snapshot:
        try:
            return self.outputs[name]
        except KeyError:
            known = ", ".join(self.outputs)
            raise KeyError(f"no stage {name!r}; there is {known}") from None

    @property
    def names(self) -> tuple[str, ...]:
        """The stages that have an output, in the order of the pipeline."""
        return tuple(self.outputs)

    def text(self, name: str, *, locations: bool = False) -> str:
        """Return the output of `name` for people to read, with Python lines in MLIR if `locations`.
        Raises KeyError for a stage that has none.
        """
        return self[name].text(locations=locations)

    def data(self, name: str) -> bytes | str:
        """Return the output of `name` as it is kept: bytecode, text or bytes."""
        return self[name].data

    def binary(self, name: str) -> bytes:
        """Return the output of `name`, which is bytes; TypeError for text."""
        data = self[name].data
        if not isinstance(data, bytes):
            raise TypeError(f"the output of the stage '{name}' is text")
        return data

    def save(self, folder: Path, stem: str, names: tuple[str, ...] | None = None) -> list[Path]:
        """Write outputs to files in `folder`, which is made, and return the files: the outputs of
        the stages called `names`, by default all.

        The traced module becomes `stem.mlir`, an artifact whose step is called as its suffix
        `stem.ptx` and the like, others `stem.N.name.suffix`, N counting the stages. Names that this
        pipeline does not have are skipped; "ir" is the traced module.
        """
        folder.mkdir(parents=True, exist_ok=True)
        saved = []
        for number, (name, output) in enumerate(self.outputs.items()):
            if names is None or name in names or (number == 0 and "ir" in names):
                plain = number == 0 or output.suffix == f".{name}"
                file = stem if plain else f"{stem}.{number:02}.{name}"
                saved.append(output.save(folder / file))
        return saved

    def report(self) -> str:
        """Write a line for each step: name, milliseconds, size of the output."""
        width = max((len(name) for name in self.outputs), default=0)
        lines = []
        for name, output in self.outputs.items():
            took = self.seconds.get(name)
            ms = " " * 10 if took is None else f"{took * 1e3:7.2f} ms"
            lines.append(f"{name:<{width}}  {ms}  {len(output.data):>9} {output.kind}")
        return "\n".join(lines)


def run_pipeline(
    pipeline: Pipeline,
    module: Any,
    context: MLIRContext,
    *,
    options: Any = None,
    observe: Observer | None = None,
    verify_input: bool = True,
    label: str = "",
    dsl: str = "",
    plugin: str = "the DSL",
) -> Stages:
    """Run `pipeline` on a copy of `module` and return what every step left behind.

    `observe(name, output)` sees each output, the input's included, and may return another snapshot
    that takes its place, for the steps that follow as well. `label` (a function's name) and `dsl`
    only go into the repro file; errors about a broken step name `plugin`. Raises `PassFailed` (a
    `CompilerBug`), or a `DSLError` that a Python pass raised.
    """
    stages = Stages(pipeline)
    with context.entered() as live, _collecting(live, stages):
        work = _Run(
            pipeline, module.operation, context, options, observe, stages, label, dsl, plugin
        )
        if verify_input:
            work.verify(pipeline.input, "the module that tracing built is not valid")
        work.publish(pipeline.input, snapshot.of_operation(work.op, context))
        for step in pipeline.steps:
            with uninterrupted():  # MLIR and LLVM do not survive one in their midst
                work.step(step)
    return stages


class _Run:
    """The state of one run: the module as it is now and the context for Python passes."""

    def __init__(
        self,
        pipeline: Pipeline,
        op: Any,
        context: MLIRContext,
        options: Any,
        observe: Observer | None,
        stages: Stages,
        label: str,
        dsl: str,
        plugin: str,
    ) -> None:
        self.pipeline = pipeline
        self.op = op.clone(ip=False).operation
        self.context = context
        self.observe = observe
        self.stages = stages
        self.label = label
        self.dsl = dsl
        self.plugin = plugin
        self.passes = PipelineContext(context, options, artifacts=stages.artifacts)
        self.module_now: Snapshot | None = None

    def step(self, step: Step) -> None:
        self.passes.input = self.module_now
        start = perf_counter()
        made = None
        if step.only_for and not self.passes.may_use(*step.only_for):
            made = self.module_now
        elif callable(step.passes):
            made = self.python(step)
            if made is None and step.verify:
                self.verify(step.name, "the module that this step left is not valid")
        else:
            self.textual(step)
        if made is None:
            output = snapshot.of_operation(self.op, self.context)
        elif isinstance(made, Snapshot):
            output = made
        elif not isinstance(made, bytes | str):
            raise CompilerBug(
                f"step '{step.name}' of pipeline '{self.pipeline.name}' returned "
                + with_article(type(made)),
                notes=(("a pass returns None, text, bytes or a Snapshot", None),),
                hint=self._report(),
            )
        else:
            output = snapshot.of_artifact(made, step.suffix)
        self.stages.seconds[step.name] = perf_counter() - start
        self.publish(step.name, output)

    def _report(self) -> str:
        return (
            f"this is a defect of {self.plugin}, not of your program; please report it to its "
            "authors"
        )

    def publish(self, name: str, output: Snapshot) -> None:
        """Keep `output`, after the observer has seen or replaced it."""
        if self.observe is not None:
            other = self.observe(name, output)
            if other is not None and other is not output:
                output = self.replaced(name, other, was_module=output.kind == snapshot.MLIR)
        self.stages.outputs[name] = output
        if output.kind == snapshot.MLIR:
            self.module_now = output
        else:
            self.stages.artifacts[name] = output.data
            self.stages.artifact = self.passes.artifact = output.data

    def replaced(self, name: str, other: Snapshot, *, was_module: bool) -> Snapshot:
        if not was_module:
            return other
        ir = self.context.bindings.ir
        try:
            self.op = ir.Module.parse(other.data).operation
        except ir.MLIRError as error:
            raise self.failed(
                name, "what was put in place of a module is not MLIR", error, repro=False
            ) from None
        return snapshot.of_operation(self.op, self.context)

    def textual(self, step: Step) -> None:
        ir = self.context.bindings.ir
        manager = self.manager(step)
        # Once behind the step: behind each pass takes a third of the time of `nvvm`.
        manager.enable_verifier(False)
        try:
            manager.run(self.op)
            if step.verify:
                self.op.verify()
        except ir.MLIRError as error:
            name, source = self.culprit(step)
            raise self.failed(
                step.name, "lowering failed", error, passes=name, source=source
            ) from None

    def python(self, step: Step) -> Any:
        ir = self.context.bindings.ir
        assert callable(step.passes)
        try:
            with deeper():
                return step.passes(self.op, self.passes)
        except (DSLError, DSLWarning):  # a warning that Python's filters made an error
            raise
        except RecursionError:
            raise DSLError(
                "the branches and loops of this function are nested too deeply to be compiled",
                hint=TOO_DEEP,
            ) from None
        except (ir.MLIRError, failure.Rejected) as error:
            raise self.failed(step.name, "lowering failed", error) from error
        except Exception as error:  # any step's code
            raised = failure.of_callback(error)
            if isinstance(raised, failure.Rejected):
                raise self.failed(step.name, "lowering failed", raised) from None
            what = raised or f"{type(error).__name__}: {error}"
            bug = CompilerBug(
                f"step '{step.name}' of pipeline '{self.pipeline.name}' broke: {what}",
                hint=self._report(),
            )
            raise bug from error

    def verify(self, name: str, what: str) -> None:
        ir = self.context.bindings.ir
        try:
            self.op.verify()
        except ir.MLIRError as error:
            raise self.failed(name, what, error, source=self.dump_op()) from None

    def manager(self, step: Step) -> Any:
        cache = _managers.setdefault(self.context, {})
        text = step.pipeline_text()
        found = cache.get(text)
        if found is None:
            try:
                found = self.context.bindings.passmanager.PassManager.parse(text)
            except ValueError as error:
                reason = str(error).strip().splitlines()[0].rpartition("error: ")[2]
                raise CompilerBug(
                    f"step '{step.name}' of pipeline '{self.pipeline.name}' is not a pass "
                    f"pipeline of {self.context.bindings.package}: {reason}",
                    hint=f"the step of {self.plugin} says {text}",
                ) from None
            if len(cache) >= _MANAGERS_KEPT:
                cache.clear()
            cache[text] = found
        return found

    def culprit(self, step: Step) -> tuple[str, str | None]:
        """Find the pass of a failed step that fails, and the module before it, by running one at a
        time.
        """
        ir = self.context.bindings.ir
        if self.module_now is None:
            return "", None
        try:
            op = ir.Module.parse(self.module_now.data).operation
        except ir.MLIRError:
            return "", None
        for one in step.pass_list():
            before = op.get_asm(enable_debug_info=True)
            manager = self.context.bindings.passmanager.PassManager.parse(f"builtin.module({one})")
            try:
                manager.run(op)
            except ir.MLIRError:
                return one, before
        return "", None

    def dump_op(self) -> str:
        # Invalid IR prints in generic form by itself.
        text: str = self.op.get_asm(enable_debug_info=True)
        return text

    def failed(
        self,
        step: str,
        what: str,
        error: Any,
        *,
        passes: str = "",
        source: str | None = None,
        repro: bool = True,
    ) -> PassFailed:
        found = list(getattr(error, "diagnostics", ()))
        found += [failure.read_diagnostic(d) for d in getattr(error, "error_diagnostics", ())]
        dump = None
        if repro:
            if source is None and self.module_now is not None:
                source = self.module_now.text(locations=True)
            name = "-".join(filter(None, (self.label, step)))
            dump = failure.save_repro(name, source or "", passes, self.dsl)
        raised = failure.failure(
            self.pipeline.name, step, what, tuple(found), passes, dump, detail=str(error)
        )
        raised.stages = self.stages
        return raised


@contextlib.contextmanager
def _collecting(live: Any, stages: Stages) -> Iterator[None]:
    """Collect MLIR's warnings and remarks, which would otherwise go to standard error."""

    def keep(info: Any) -> bool:
        stages.diagnostics.append(failure.read_diagnostic(info))
        return True

    handler = live.attach_diagnostic_handler(keep)
    try:
        yield
    finally:
        handler.detach()
