"""The meta-stage of one call: running the rewritten function on proxies of its arguments builds an
MLIR module.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from basedsl.binding import ArgumentType, TreeArgument
from basedsl.binding.results import Given, Results
from basedsl.binding.storage import settle_storage
from basedsl.errors import DSLError, endless_recursion, placed
from basedsl.function import bind_staged
from basedsl.language import Language
from basedsl.location import span_of_function
from basedsl.metastage.items import pick
from basedsl.metastage.plain_helpers import Watch
from basedsl.mlir import Bindings
from basedsl.numeric import TYPES
from basedsl.pytree import Node, flatten, nodes_of, same_shape
from basedsl.recursion_limit import deeper
from basedsl.slips import EXPLAINED, explain
from basedsl.stages import BoundCall, Rewritten, Traced
from basedsl.tracing import Outside, Trace, activate

_NUMBER = re.compile(rf"\b({'|'.join(TYPES)})\b")


def trace_call(
    language: Language,
    bindings: Bindings,
    call: BoundCall,
    rewritten: Rewritten,
    outside: Outside,
) -> Traced:
    """Trace a function for the types of a call's arguments, in the current MLIR context.
    `outside` is the state that outlives the call, as it was before.
    """
    function, ir = call.function, bindings.ir
    trace = _new_trace(language, bindings, call.settings, outside)
    module = trace.module
    trace.function_name = function.fn.__qualname__
    code = function.fn.__code__
    place = trace.loc_of_code(code)
    with activate(trace), place, deeper():
        names = [parameter.name for parameter in function.signature.parameters]
        settle_storage(language, names, call.arguments, ir)
        types = [argument.ir_types(ir) for argument in call.arguments]
        flat = [kind for kinds in types for kind in kinds]
        with ir.InsertionPoint(module.body):
            op = language.new_function(trace, function.symbol, flat)
        block = op.regions[0].blocks[0]
        with trace.insertion(block):
            parameters = iter(block.arguments)
            proxies = [
                argument.proxy([next(parameters) for _ in kinds])
                for argument, kinds in zip(call.arguments, types, strict=True)
            ]
            before = [flatten(proxy) for proxy in proxies]
            args, kwargs = function.signature.spread(proxies)
            staged = function.fn
            if rewritten.staged is not None:
                staged = trace.staged[function] = bind_staged(rewritten.staged, trace)
            with Watch(outside.questions) as watch:
                trace.on_meeting, trace.on_choice = watch.start, watch.on_choice
                returned = _run_body(language, trace, staged, args, kwargs)
            trace.check_refused()
            trace.region.check()
            given = {
                id(node.obj): Given(index, path)
                for index, (shape, _) in enumerate(before)
                for path, node in nodes_of(shape)
                if isinstance(call.arguments[index], TreeArgument)
            }
            results = Results(returned, function.fn, language, given, outside.reaches)
            _check_unchanged(call, proxies, before)
            language.end_function(trace, op, results.values)
        language.after_trace(trace)
    return Traced(module, results, tuple(trace.functions))


def ir_types(
    language: Language, bindings: Bindings, argument: ArgumentType, settings: Any
) -> list[Any]:
    """Return the MLIR types that an argument becomes, in the current MLIR context."""
    trace = _new_trace(language, bindings, settings, None)
    with activate(trace):
        return list(argument.ir_types(bindings.ir))


def _new_trace(
    language: Language, bindings: Bindings, settings: Any, outside: Outside | None
) -> Trace:
    return Trace(
        language,
        bindings,
        bindings.ir.Module.create(),
        language.emitter,
        default_int=language.default_int,
        default_float=language.default_float,
        options=settings,
        extension=language.new_extension(),
        outside=outside,
        pick=pick,
        is_rebuilt=language.is_rebuilt,
    )


def _run_body(
    language: Language,
    trace: Trace,
    staged: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
) -> Any:
    """Call the rewritten function; errors without a source location get the user's line."""
    try:
        with trace.body_of(staged):
            return staged(*args, **kwargs)
    except RecursionError as error:
        if isinstance(error, DSLError):
            raise
        raise endless_recursion(error) from None
    except language.plain_errors as error:
        if isinstance(error, DSLError):
            raise
        raise placed(error) from None
    except EXPLAINED as error:
        hint = explain(error, language.hint)
        # Code in C, which takes Python's numbers only, or an attribute that only they have.
        about_a_number = isinstance(error, TypeError | AttributeError) and _NUMBER.search(
            str(error)
        )
        if isinstance(error, DSLError) or not about_a_number:
            raise
        made = placed(error)
        made.hint = hint
        raise made from None


def _check_unchanged(
    call: BoundCall, proxies: Sequence[Any], before: Sequence[tuple[Node | None, list[Any]]]
) -> None:
    """Raise DSLError if the function changed an argument in place: compiled code would not change
    the caller's object.
    """
    function = call.function
    for parameter, argument, proxy, (node, leaves) in zip(
        function.signature.parameters, call.arguments, proxies, before, strict=True
    ):
        if not isinstance(argument, TreeArgument):
            continue
        now, new = flatten(proxy)
        if same_shape(node, now) and all(a is b for a, b in zip(leaves, new, strict=True)):
            continue
        raise DSLError(
            f"'{function.fn.__qualname__}' changes its argument '{parameter.name}' in place, which "
            "the caller in Python would not see",
            span_of_function(function.fn),
            hint="return the new value instead",
        )
