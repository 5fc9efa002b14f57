"""The object-stage of one call: the language's pipeline with what plugins and options change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from basedsl import objectstage
from basedsl.binding.results import Results
from basedsl.compilation.report import printing
from basedsl.errors import plugin_defect, plugin_of, with_article
from basedsl.language import Language
from basedsl.mlir import MLIRContext
from basedsl.objectstage.entry_thunk import AddEntry
from basedsl.plugin import plugin_manager
from basedsl.stages import BoundCall, Traced


def run_call_pipeline(
    language: Language, call: BoundCall, traced: Traced, mlir: MLIRContext
) -> objectstage.Stages:
    """Run the pipeline of a call on its traced module, in the context `mlir`."""
    symbol = call.function.symbol
    observe = plugin_manager().stage_observer(language.name, symbol)
    if call.settings.print_ir_after_all:
        observe = printing(observe, symbol)
    stages = objectstage.run_pipeline(
        pipeline_of(language, call, traced.results),
        traced.module,
        mlir,
        options=call.settings,
        observe=observe,
        label=symbol,
        dsl=language.name,
        plugin=plugin_of(language),
    )
    traced.results.forget()
    return stages


def pipeline_of(
    language: Language, call: BoundCall, results: Results | None = None
) -> objectstage.Pipeline:
    """Return the language's pipeline; one that makes native code also adds the entry function
    that Python calls. `results` are those of the traced function, if it is to be compiled.
    """
    pipeline = language.pipeline(call.settings)
    if not isinstance(pipeline, objectstage.Pipeline):
        raise plugin_defect(
            language,
            f"pipeline() returned {with_article(type(pipeline))}, not a Pipeline",
            hint="return a basedsl.Pipeline, such as native_pipeline()",
        )
    pipeline = plugin_manager().pipeline(language.name, pipeline, call.settings)
    named = {step.name for step in pipeline}
    if "llvmir" in named and any(getattr(step.passes, "of_host", False) for step in pipeline):
        names = [parameter.name for parameter in call.function.signature.parameters]
        taken = tuple(zip(names, call.arguments, strict=True))
        add = AddEntry(call.function.symbol, taken, results, language)
        entry = objectstage.Step("entry", add)
        pipeline = pipeline.after("llvmir", entry)
    if call.settings.dryrun:
        pipeline = _kept_part(pipeline, call.settings.keep)
    return pipeline.one_step_each_pass() if call.settings.pass_stages else pipeline


def _kept_part(pipeline: objectstage.Pipeline, keep: Sequence[str]) -> objectstage.Pipeline:
    """Return the steps of a pipeline that make what a dry run is to keep."""
    if "all" in keep:
        return pipeline
    names = [step.name for step in pipeline]
    last = max((at for at, name in enumerate(names) if name in keep), default=-1)
    return replace(pipeline, steps=pipeline.steps[: last + 1])
