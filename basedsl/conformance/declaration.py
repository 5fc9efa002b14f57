"""`Conformance`, which a DSL's author declares to run the conformance programs on the DSL."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from basedsl.binding.argument_types import argument_type
from basedsl.conformance.cases import Case
from basedsl.errors import DSLError
from basedsl.numeric import from_numpy_dtype


class Conformance:
    """Runs Python functions of scalars and 1-D buffers on one DSL.

    This class is enough for a DSL whose `@jit` functions take Python numbers and NumPy arrays and
    return numbers, tuples and dataclasses. Others override `entry`.

        CONFORMANCE = Conformance("toy", TOY)

    name
        The name for `--basedsl-dsl`.
    dsl
        The `basedsl.DSL`.
    without
        Features that the DSL does not have (`features.FEATURES` lists them: "loops", "floats",
        "buffers", ...), each with the reason. Programs that need one are skipped, with that reason,
        and random programs do not have it. A key may also be the name of one program
        ("loops-gauss"). Arrays as arguments are left out by themselves where the DSL passes none.
    least_share
        The share of the programs that must be run, from 0 to 1: one that skips more does not pass.
    time_limit
        The seconds that one program may take, and the making of a small one that fails; 0 for no
        limit.
    unsupported
        Feature tags (see `programs`) that the DSL does not have, each with the reason. Programs
        with such a tag must fail with a `DSLError` that points into the program.
    differs
        Feature tags that mean something else in the DSL on purpose, each with the difference.
        Programs with such a tag are skipped, with that reason.
    fuzz_share
        The share of the random programs to run, from 0 to 1.
    kernels
        True if the DSL has kernels; then `launch` runs one.
    raises
        True if `raise` and `assert` over run-time conditions come back as the same Python
        exceptions. Where not (a GPU kernel traps), any `DSLError` with the message will do.
    environment
        Environment variables while its programs run: those that choose a target which failing
        programs cannot harm.
    """

    def __init__(
        self,
        name: str,
        dsl: Any,
        unsupported: Mapping[str, str] | None = None,
        differs: Mapping[str, str] | None = None,
        raises: bool = True,
        fuzz_share: float = 1.0,
        kernels: bool = False,
        environment: Mapping[str, str] | None = None,
        without: Mapping[str, str] | None = None,
        least_share: float = 0.5,
        time_limit: float = 60.0,
    ) -> None:
        self.name = name
        self.dsl = dsl
        self.unsupported = dict(unsupported or {})
        self.differs = dict(differs or {})
        self.raises = raises
        self.fuzz_share = fuzz_share
        self.kernels = kernels
        self.environment = dict(environment or {})
        self.least_share = least_share
        self.time_limit = time_limit
        self._without = dict(without or {})

    @functools.cached_property
    def without(self) -> dict[str, str]:
        """The features that the DSL does not have, with the reasons."""
        found = dict(self._without)
        if "buffers" not in found and not self._passes_buffers():
            found["buffers"] = f"{self.dsl.name} passes no arrays"
        return found

    def _passes_buffers(self) -> bool:
        try:
            argument_type(self.dsl.language, self.buffer([0]), None, "a")
        except DSLError:
            return False
        return True

    @property
    def int_bits(self) -> int:
        """The width, in bits, of the type of a Python int."""
        return int(self.dsl.language.default_int.width)

    @property
    def float_bits(self) -> int:
        """The width, in bits, of the type of a Python float."""
        return int(self.dsl.language.default_float.width)

    def cases(self, area: str = "") -> list[tuple[str, Case]]:
        """Return name and case of the programs that are run on the DSL, of all areas or `area`."""
        from basedsl.conformance.features import why_skipped
        from basedsl.conformance.programs import all_cases

        return [
            (name, case)
            for name, case in all_cases()
            if name.startswith(area) and why_skipped(self, name, case) is None
        ]

    def check(self, case: Case) -> None:
        """Run the program `case` by Python and by the DSL; AssertionError where they differ."""
        from basedsl.conformance.compare import check

        check(self, case)

    def coverage(self) -> tuple[int, dict[str, int]]:
        """Return how many programs are run, and how many are left out, by the reason."""
        from basedsl.conformance.features import skipped
        from basedsl.conformance.programs import all_cases

        return skipped(self, all_cases())

    def jit(self, fn: Callable[..., Any]) -> Any:
        """Decorate `fn`, a helper that a program calls."""
        return self.dsl.jit(fn)

    def launch(self, call: Any) -> None:
        """Launch `call`, the call of a @kernel in a @jit function, once and in one thread."""
        raise NotImplementedError(f"{type(self).__name__} does not define launch")

    def entry(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Return `fn` compiled: it is called from Python with the arguments of `fn`, returns its
        result.
        """
        return self.jit(fn)  # type: ignore[no-any-return]

    def buffer(self, values: list[Any]) -> Any:
        """Return an array with the numbers `values`, of the DSL's default int or float."""
        floats = any(isinstance(value, float) for value in values)
        kind = self.dsl.language.default_float if floats else self.dsl.language.default_int
        array = np.array(values, dtype=kind.numpy_dtype)
        assert from_numpy_dtype(array.dtype) is kind
        return array

    def contents(self, buffer: Any) -> list[Any]:
        """Return the numbers in an array that `buffer` made, as Python numbers."""
        return list(np.asarray(buffer).tolist())

    def __repr__(self) -> str:
        return f"Conformance({self.name!r})"
