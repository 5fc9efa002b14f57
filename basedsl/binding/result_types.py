"""Result types: how values of a DSL's own kinds leave a compiled function."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from basedsl.binding.c_interface import CParameter
from basedsl.binding.storage import codes_of
from basedsl.errors import DSLCallError


class ResultType(ABC):
    """The base class of result types: `Language.result_type` returns one for a value of the DSL's
    own kinds (a tensor, a handle), and calls from Python get what `unpack` makes of it.

    A frozen dataclass whose fields are numbers, strings, numeric classes or tuples of these is
    stored on disk with the code; code with results of other types is compiled in each process.
    """

    def ir_values(self, value: Any) -> Sequence[Any]:
        """Return the SSA values that compiled code returns for `value`, the object that the traced
        function returned; by default its `ir_value()`.
        """
        return [value.ir_value()]

    @abstractmethod
    def unpack(self, storage: tuple[Any, ...]) -> Any:
        """Return the Python value for the C values of `ir_values`, in order: a number for each
        number or pointer. A memref has 3 + 2 * rank of them, as in `ArgumentType.storage`;
        `memref_array` makes a NumPy array of them.
        """

    def c_results(self, name: str) -> list[CParameter]:
        """Return how an exported function gives C the result `name`: numbers and structs, into each
        of which it writes through a pointer, with one item of `storage` for each of this type's. By
        default raises DSLCallError: there are none.
        """
        raise DSLCallError(
            f"{name} is of the result type {type(self).__name__}, which has no C type",
            hint=f"{type(self).__name__} would define c_results",
        )

    @property
    def storage(self) -> tuple[str, ...]:
        """The `struct` codes of the C values, derived from the types of `ir_values`. Declare it
        only for types of the DSL's own dialect.
        """
        known: tuple[str, ...] | None = vars(self).get("_storage")
        if known is None:
            raise RuntimeError(f"the storage of {type(self).__name__} is not derived yet")
        return known


def settle_result(result: ResultType, values: Sequence[Any]) -> str | None:
    """Derive the storage of a result type from its SSA values. Returns the text of a type whose
    storage is not known.
    """
    if type(result).storage is not ResultType.storage:
        return None
    codes: list[str] = []
    for value in values:
        found = codes_of(str(value.type))
        if found is None:
            return str(value.type)
        codes += found
    vars(result)["_storage"] = tuple(codes)
    return None
