"""`argument_type`: from a Python value and an annotation to the type of an argument.

The first that applies decides: `Constexpr`, a plugin's adapter or a program's, the language's own
kinds, numbers, values that are static without an annotation, trees (tuples, dataclasses, ...).
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any, NoReturn, Protocol

from basedsl.binding.arguments import (
    AdaptedArgument,
    ArgumentType,
    ReceiverArgument,
    StaticArgument,
    TreeArgument,
    describe,
    is_plainly_static,
    numeric_argument,
    static_key,
)
from basedsl.binding.constexpr import constexpr_type
from basedsl.binding.signature import Each
from basedsl.errors import DSLCallError, plugin_defect, with_article
from basedsl.plugin import plugin_manager
from basedsl.pytree import Node, flatten, leaf_paths

_TREES = ("tuple", "list", "dict", "object", "record", "protocol")


class DeclaresArguments(Protocol):
    """The part of a `basedsl.Language` that determines argument types."""

    @property
    def name(self) -> str: ...
    @property
    def default_int(self) -> Any: ...
    @property
    def default_float(self) -> Any: ...
    def adapter_of(self, kind: type) -> Callable[[Any], Any] | None: ...
    def argument_type(self, value: Any, annotation: Any, name: str) -> ArgumentType | None: ...


def argument_type(
    language: DeclaresArguments, value: Any, annotation: Any, name: str, is_receiver: bool = False
) -> ArgumentType:
    """Return the type of one argument: of `value`, passed for the parameter `name`, whose
    `annotation` is None without one. `language` is asked for its own kinds and its default numeric
    types; with `is_receiver`, the parameter is the one that a method is bound by.

    Raises DSLCallError for a value that neither the language, the core nor a plugin can pass to
    compiled code, or that the annotation excludes.
    """
    if isinstance(annotation, Each):
        return _tree(language, value, name, annotation.annotation)
    static = constexpr_type(annotation)
    if static is not None:
        if static is not object and isinstance(static, type) and not isinstance(value, static):
            raise DSLCallError(
                f"'{name}' is declared {annotation}, got {describe(value)} {value!r}",
                hint=f"pass a value of type {static.__name__}, or change the annotation",
            )
        return StaticArgument(static_key(value, name), value)
    adapter = plugin_manager().adapter_for(language.name, type(value), annotation)
    if adapter is None:
        adapter = language.adapter_of(type(value))
    if adapter is not None:
        made = adapter(value)
        if type(made) is type(value):
            raise DSLCallError(
                f"an adapter makes {describe(value)} ('{name}') another {describe(made)}"
            )
        return AdaptedArgument(argument_type(language, made, annotation, name), adapter)
    found = language.argument_type(value, annotation, name)
    if found is None:
        found = numeric_argument(
            value, annotation, name, language.default_int, language.default_float
        )
    if found is not None:
        if not isinstance(found, ArgumentType):
            raise plugin_defect(
                language,
                f"argument_type() returned {with_article(type(found))} for '{name}'",
                hint="return an object of a subclass of ArgumentType, or None",
            )
        return found
    if is_plainly_static(value):
        return StaticArgument(static_key(value, name), value)
    if is_receiver:
        return ReceiverArgument(value)
    return _tree(language, value, name)


def _tree(language: DeclaresArguments, value: Any, name: str, each: Any = None) -> ArgumentType:
    """Return the type of a tree; `each` is the annotation of the leaves directly in it."""
    try:
        node, leaves = flatten(value)
        contains_itself = node is not None and _contains_itself(node, frozenset())
    except RecursionError:
        raise DSLCallError(f"'{name}' is nested too deeply to be an argument") from None
    if node is None or node.kind not in _TREES:
        _unknown(language, value, name)
    if contains_itself:
        raise DSLCallError(
            f"'{name}' contains itself: an argument is made of finitely many numbers and arrays"
        )
    if node.kind == "object" and not hasattr(type(value), "__dataclass_fields__"):
        _unknown(language, value, name)
    annotations = _field_annotations(node, each)
    paths = leaf_paths(node, name)
    parts = [
        argument_type(language, leaf, annotation, path)
        for leaf, annotation, path in zip(leaves, annotations, paths, strict=True)
    ]
    return TreeArgument(node, parts)


def _unknown(language: DeclaresArguments, value: Any, name: str) -> NoReturn:
    raise DSLCallError(
        f"{language.name} cannot pass {with_article(describe(value))} ('{name}') to compiled code",
        hint=f"pass numbers, arrays, tuples or dataclasses of them, or annotate '{name}' as "
        "Constexpr if it is known while compiling",
    )


def _contains_itself(node: Node, above: frozenset[int]) -> bool:
    if node.kind == "again":
        return id(node.obj) in above
    above |= {id(node.obj)}
    return any(_contains_itself(child, above) for child in node.children if child is not None)


def _field_annotations(node: Node | None, each: Any) -> list[Any]:
    """Return the annotation of each leaf, None where its class (dataclass, NamedTuple) declares
    none; `each` is that of a leaf directly in the tree.
    """
    found: list[Any] = []

    def visit(node: Node | None, annotation: Any, each: Any = None) -> None:
        if node is None:
            found.append(annotation)
            return
        cls = type(node.obj)
        declared: dict[str, Any] = {}
        if hasattr(cls, "__dataclass_fields__") or hasattr(cls, "_fields"):
            declared = _declared_fields(cls)
        for key, child in zip(node.keys, node.children, strict=True):
            visit(child, declared.get(key, each) if isinstance(key, str) else each)

    visit(node, None, each)
    return found


def _declared_fields(cls: type) -> dict[str, Any]:
    """Return the annotations of a class, without those in strings that cannot be evaluated."""
    scope = vars(sys.modules[cls.__module__]) if cls.__module__ in sys.modules else {}
    found: dict[str, Any] = {}
    for name, annotation in inspect.get_annotations(cls).items():
        # NamedTuple keeps the text of an annotation as a ForwardRef.
        text = getattr(annotation, "__forward_arg__", annotation)
        if isinstance(text, str):
            try:
                annotation = eval(text, dict(scope))
            except Exception:  # any expression of the user's
                continue
        found[name] = annotation
    return found
