"""How ops of the dialect are declared: records of fields, independent of any bindings package.

An op is a class decorated with `@op("name")` whose attributes say what it takes; its docstring
carries an IR sample; `verify` returns what is wrong, or None. `dialect.definition` turns these
records into an IRDL dialect of given bindings.
"""

from __future__ import annotations

import functools
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Verifier = Callable[["Operands"], "str | None"]


@dataclass(frozen=True)
class OpSpec:
    """One op. `operands` and `results` are field names, `?name` (the last one) may be absent, as
    may the attributes in `optional` (IRDL knows only required ones).
    """

    name: str
    doc: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    attributes: tuple[str, ...]
    optional: tuple[str, ...]
    verify: Verifier

    @functools.cached_property
    def places(self) -> dict[str, tuple[bool, int]]:
        """For each operand and result by name: whether it is an operand, and which one."""
        operands = {n.removeprefix("?"): (True, i) for i, n in enumerate(self.operands)}
        return operands | {n: (False, i) for i, n in enumerate(self.results)}

    @property
    def full_name(self) -> str:
        return f"cute.{self.name}"

    @property
    def sample(self) -> str:
        """The IR in the docstring: its paragraphs that begin with an op or with what one gives."""
        paragraphs = [textwrap.dedent(p) for p in self.doc.split("\n\n")]
        return "\n".join(p for p in paragraphs if p.startswith(("%", '"cute.')))


OPS: dict[str, OpSpec] = {}


def op(name: str) -> Callable[[type], OpSpec]:
    """Declare `cute.<name>` from a class of fields; the name then stands for its `OpSpec`."""

    def declare(cls: type) -> OpSpec:
        fields = vars(cls)
        verify = fields["verify"]
        spec = OpSpec(
            name=name,
            doc=inspect.cleandoc(cls.__doc__ or ""),
            operands=tuple(fields.get("operands", ())),
            results=tuple(fields.get("results", ())),
            attributes=tuple(fields.get("attributes", ())),
            optional=tuple(fields.get("optional", ())),
            verify=verify.__func__ if isinstance(verify, staticmethod) else verify,
        )
        OPS[name] = spec
        return spec

    return declare


class Operands:
    """An operation as a verifier and a lowering rule see it: fields by name, types as records."""

    __slots__ = ("dialect", "op", "spec")

    def __init__(self, dialect: Any, spec: OpSpec, op: Any) -> None:
        self.dialect = dialect
        self.spec = spec
        self.op = op

    def __getattr__(self, name: str) -> Any:
        """The operand, result or attribute called `name`; None for an absent optional one."""
        at = self.spec.places.get(name)
        if at is None:
            if name not in self.spec.attributes and name not in self.spec.optional:
                raise AttributeError(name)
            attributes = self.op.attributes
            return attributes[name] if name in attributes else None
        is_operand, index = at
        values = self.op.operands if is_operand else self.op.results
        return values[index] if index < len(values) else None

    def integer(self, name: str, default: int | None = None) -> int | None:
        """An integer attribute as a Python int."""
        attribute = getattr(self, name)
        return default if attribute is None else int(attribute.value)

    def text(self, name: str, default: str | None = None) -> str | None:
        """A string attribute as a Python str."""
        attribute = getattr(self, name)
        return default if attribute is None else str(attribute.value)
