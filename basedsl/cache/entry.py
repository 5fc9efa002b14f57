"""Disk-cache entries: the cache key of a compilation, and (de)serialising its results and stages.

The key is a digest of everything that the code depends on, found without tracing: argument types,
options, target, versions, and the text that the guards give of all that the function leads to. A
program whose objects have no such text is compiled in each process.

An entry is a line of JSON (results, and a table of stages), then the stages' bytes.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from basedsl import digest, numeric
from basedsl.binding.arguments import ArgumentType
from basedsl.binding.result_types import ResultType
from basedsl.binding.results import Results, Shape
from basedsl.binding.storage import derived_storage, restore_storage
from basedsl.language import Language
from basedsl.mlir import MLIRContext
from basedsl.mlir.bindings import installed_stamp
from basedsl.numeric import own_classes_only
from basedsl.objectstage import Pipeline, Snapshot, Stages, native
from basedsl.plugin import plugin_manager
from basedsl.stages import BoundCall

_CLASSES: dict[str, type] = {"tuple": tuple, "list": list, "dict": dict, "object": object}


def cache_key(
    language: Language, call: BoundCall, portable_text: Sequence[str] | None
) -> str | None:
    """Return the cache key of a call's compilation, a SHA-256 in hexadecimal; None if something
    that the code depends on has no text that is the same in other processes. `portable_text` is
    `Guards.portable_text`.
    """
    code = call.function.fn.__code__
    if portable_text is None or code.co_name == "<lambda>" or not os.path.isfile(code.co_filename):
        return None
    texts = [argument.digest() for argument in call.arguments]
    texts += [digest.of_value(call.settings.output_key()), digest.of_value(call.target_key)]
    plugins = plugin_manager().modules_in_key(language.name)
    if None in texts or None in plugins:
        return None
    texts += [f"{name} {digest.module_stamp(name)}" for name in plugins if name is not None]
    parts = (
        _versions(language, call.settings),
        language.name,
        call.function.__dsl_digest__(),
        texts,
        list(portable_text),
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _versions(language: Language, settings: Any) -> tuple[str, ...]:
    classes = [cls for cls in type(language).__mro__ if cls is not object]
    return (
        sys.version,
        f"{sys.platform} {os.name}",
        f"own classes only: {own_classes_only()}",
        np.__version__,
        digest.package_stamp("basedsl"),
        installed_stamp(language.bindings_package or settings.mlir, language.dialects),
        native.NativeTarget(settings.opt_level).describe(),
        *(digest.package_stamp(cls.__module__) for cls in classes),
        *(digest.module_stamp(cls.__module__) for cls in classes),
    )


# The bytes of an entry ---------------------------------------------------------------------------


def serialize(language: Language, call: BoundCall, results: Results, stages: Stages) -> bytes:
    """Return the bytes of an entry. Raises TypeError if the result contains other classes than
    tuples, lists, dicts, numbers, strings and None.
    """
    table, blobs = [], []
    for name, output in stages.outputs.items():
        text = isinstance(output.data, str)
        blob = output.data.encode() if isinstance(output.data, str) else output.data
        table.append([name, output.kind, output.suffix, text, len(blob)])
        blobs.append(blob)
    fn = call.function.fn
    head = {
        "dsl": language.name,
        "function": f"{fn.__module__}.{fn.__qualname__}",
        "shown": call.shown,
        "made": time.time(),
        "shape": _serialize_shape(results.shape),
        "leaves": [_serialize_leaf(leaf) for leaf in results.leaves],
        "types": [_serialize_type(kind) for kind in results.types],
        "storage": derived_storage(call.arguments),
        "places": results.places,
        "stages": table,
    }
    return b"".join((json.dumps(head).encode(), b"\n", *blobs))


def read_header(content: bytes) -> dict[str, Any]:
    """Return the header of an entry: the JSON object in its first line."""
    head: dict[str, Any] = json.loads(content[: content.index(b"\n")])
    return head


def deserialize(
    content: bytes,
    arguments: Sequence[ArgumentType],
    pipeline: Callable[[], Pipeline],
    context: Callable[[], MLIRContext],
) -> tuple[Results, Stages]:
    """Return the results and stages that `serialize` was given, for a call with equal `arguments`,
    which get their storage. `pipeline` makes the pipeline of the stages, and `context` the MLIR
    context, which only printing a module needs; neither is called here.
    """
    head = read_header(content)
    stages = read_stages(content, pipeline, context)
    types = [_deserialize_type(packed) for packed in head["types"]]
    restore_storage(arguments, head["storage"])
    leaves = [_deserialize_leaf(leaf) for leaf in head["leaves"]]
    results = Results.of_parts(_deserialize_shape(head["shape"]), leaves, types, head["places"])
    return results, stages


def read_stages(
    content: bytes, pipeline: Callable[[], Pipeline], context: Callable[[], MLIRContext]
) -> Stages:
    """Return the outputs of the stages in an entry."""
    head = read_header(content)
    at = content.index(b"\n") + 1
    stages = Stages(pipeline)
    deferred = cast(Any, _Deferred(context))
    for name, kind, suffix, text, size in head["stages"]:
        blob = content[at : at + size]
        at += size
        data = blob.decode() if text else blob
        is_module = kind == "mlir"
        stages.outputs[name] = Snapshot(data, kind, suffix, deferred if is_module else None)
        if not is_module:
            stages.artifacts[name] = stages.artifact = data
    return stages


class _Deferred:
    """A proxy of an MLIR context, which is made at the first use of an attribute."""

    def __init__(self, make: Callable[[], MLIRContext]) -> None:
        self._make = make

    def __getattr__(self, name: str) -> Any:
        return getattr(self._make(), name)


def _serialize_shape(shape: Shape | None) -> Any:
    if shape is None:
        return None
    name = shape.cls.__name__
    if _CLASSES.get(name) is not shape.cls or shape.exemplar is not None:
        raise TypeError(f"a result of class {name}")
    keys = [_serialize_leaf(key) for key in shape.keys]
    return [shape.kind, name, keys, shape.number, [_serialize_shape(c) for c in shape.children]]


def _deserialize_shape(packed: Any) -> Shape | None:
    if packed is None:
        return None
    kind, name, keys, number, children = packed
    return Shape(
        kind,
        _CLASSES[name],
        tuple(map(_deserialize_leaf, keys)),
        number,
        [_deserialize_shape(child) for child in children],
    )


def _serialize_type(kind: Any) -> Any:
    """The JSON of a leaf's type: the name of a numeric class, or a result type by its class, the
    values of its fields and its storage.
    """
    if not isinstance(kind, ResultType):
        return kind.__name__
    if not dataclasses.is_dataclass(kind) or "<locals>" in type(kind).__qualname__:
        raise TypeError(f"a result of type {type(kind).__name__}")
    fields = {f.name: _serialize_field(getattr(kind, f.name)) for f in dataclasses.fields(kind)}
    return [type(kind).__module__, type(kind).__qualname__, fields, list(kind.storage)]


def _deserialize_type(packed: Any) -> Any:
    if isinstance(packed, str):
        return getattr(numeric, packed)
    module, name, fields, storage = packed
    cls: Any = importlib.import_module(module)
    for part in name.split("."):
        cls = getattr(cls, part)
    kind = cls(**{key: _deserialize_field(value) for key, value in fields.items()})
    if type(kind).storage is ResultType.storage:
        vars(kind)["_storage"] = tuple(storage)
    return kind


def _serialize_field(value: Any) -> Any:
    if type(value) is tuple:
        return {"tuple": [_serialize_field(one) for one in value]}
    if isinstance(value, type) and issubclass(value, numeric.Numeric):
        return {"numeric": value.__name__}
    return _serialize_leaf(value)


def _deserialize_field(packed: Any) -> Any:
    if isinstance(packed, dict) and "tuple" in packed:
        return tuple(map(_deserialize_field, packed["tuple"]))
    if isinstance(packed, dict) and "numeric" in packed:
        return getattr(numeric, packed["numeric"])
    return _deserialize_leaf(packed)


def _serialize_leaf(leaf: Any) -> Any:
    if type(leaf) is float:
        return {"float": leaf.hex()}
    if leaf is None or type(leaf) in (bool, int, str):
        return leaf
    raise TypeError(f"a result of class {type(leaf).__name__}")


def _deserialize_leaf(packed: Any) -> Any:
    return float.fromhex(packed["float"]) if isinstance(packed, dict) else packed
