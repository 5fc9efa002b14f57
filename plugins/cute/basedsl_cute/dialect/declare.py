"""How ops of the dialect are declared: records of fields, independent of any bindings package.

An op is a class decorated with `@op("name")` whose attributes say what it takes; its docstring
carries an IR sample; `verify` returns what is wrong, or None. `dialect.definition` turns these
records into an IRDL dialect of given bindings.
"""

from __future__ import annotations

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

    __slots__ = ("_fields", "dialect", "op", "spec")

    def __init__(self, dialect: Any, spec: OpSpec, op: Any) -> None:
        self.dialect = dialect
        self.spec = spec
        self.op = op
        self._fields: dict[str, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        """The operand, result or attribute called `name`; None for an absent optional one."""
        if name in self.spec.attributes or name in self.spec.optional:
            attributes = self.op.attributes
            return attributes[name] if name in attributes else None
        if self._fields is None:
            self._fields = self._read()
        try:
            return self._fields[name]
        except KeyError:
            raise AttributeError(name) from None

    def _read(self) -> dict[str, Any]:
        fields = _spread(self.spec.operands, list(self.op.operands))
        fields.update(_spread(self.spec.results, list(self.op.results)))
        return fields

    def integer(self, name: str, default: int | None = None) -> int | None:
        """An integer attribute as a Python int."""
        attribute = getattr(self, name)
        return default if attribute is None else int(attribute.value)

    def text(self, name: str, default: str | None = None) -> str | None:
        """A string attribute as a Python str."""
        attribute = getattr(self, name)
        return default if attribute is None else str(attribute.value)


def _spread(names: tuple[str, ...], values: list[Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for i, name in enumerate(names):
        if name[0] == "?":
            fields[name[1:]] = values[i] if i < len(values) else None
        else:
            fields[name] = values[i]
    return fields
