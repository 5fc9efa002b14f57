"""`compiled.export_to_c(...)`: a compiled function as an object file and a C header."""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from basedsl.binding.arguments import NumericArgument
from basedsl.binding.c_interface import C_TYPES, CParameter
from basedsl.binding.result_types import ResultType
from basedsl.errors import DSLCallError, DSLRuntimeError, plugin_defect, with_article
from basedsl.export.header import CInterface
from basedsl.export.metadata import sealed, write_metadata
from basedsl.export.wrapper import wrapper
from basedsl.objectstage import asserts, native
from basedsl.objectstage.entry_thunk import ENTRY_SUFFIX
from basedsl.objectstage.native import NativeTarget
from basedsl.tracing.raised import VALUES_SYMBOL

# The baseline processor of an architecture, since the object may run on another machine.
_BASELINES = {"x86_64": "x86-64", "AMD64": "x86-64"}

META = "_basedsl_meta"
RAISED = 1  # what the C function returns after an exception


class Export:
    """The export of one compiled function: what goes into its object file and its header.

    A language whose code needs more than the C library has a subclass, which `Language.export`
    returns: it gives what is missing by `support`, and says more to C by `interface`. `compiled` is
    the compiled function, `prefix` begins every global name.
    """

    #: Names that the code calls, which `support` defines as `{prefix}_NAME`.
    provides: tuple[str, ...] = (asserts.SYMBOL, VALUES_SYMBOL)

    def __init__(self, compiled: Any, prefix: str) -> None:
        self.compiled = compiled
        self.prefix = prefix
        self.names = [one.name for one in compiled.function.signature.parameters]

    def code(self) -> str:
        """Return the LLVM IR with the entry. Raises DSLRuntimeError if there is none."""
        stages = self.compiled.stages
        if "entry" not in stages:
            language = self.compiled.function.language
            raise DSLRuntimeError(
                f"the DSL '{language.name}' makes no native code of this function to export",
                hint="its pipeline would end in native_steps()",
            )
        text: str = stages.text("entry")
        return text

    def support(self) -> str:
        """Return LLVM IR that the code needs besides. It defines PREFIX_basedsl_begin and
        PREFIX_basedsl_status, which are called before and after: 0, or what the C function returns.
        """
        return _failures(self.prefix)

    def parameters(self) -> list[CParameter]:
        """Return the parameters of the C function. Raises DSLCallError for one without a C type."""
        out = []
        for name, argument in zip(self.names, self.compiled.arguments, strict=True):
            out += argument.c_parameters(name)
        return out

    def results(self) -> list[CParameter]:
        """Return what the C function writes: a number or struct for each pointer that follows the
        parameters. Raises DSLCallError for a result without a C type.
        """
        results = self.compiled.results
        if results.returns_arguments:
            raise DSLCallError(
                "a part of the arguments is returned, which C has already",
                hint="return numbers of at most 64 bits, or write to arrays",
            )
        out: list[CParameter] = []
        for i, kind in enumerate(results.types):
            if isinstance(kind, ResultType):
                out += self._of_own_type(kind, f"result{i}")
                continue
            number = NumericArgument(kind)
            if number.storage[0] not in C_TYPES:
                raise DSLCallError(
                    f"a result is {with_article(kind)}, which has no C type",
                    hint="return numbers of at most 64 bits, or write to arrays",
                )
            out += number.c_parameters(f"result{i}")
        return out

    def _of_own_type(self, kind: ResultType, name: str) -> list[CParameter]:
        found = kind.c_results(name)
        codes = tuple(code for one in found for code in one.storage)
        known = all(one.kind in ("number", "struct") for one in found)
        if not known or codes != kind.storage or any(code not in C_TYPES for code in codes):
            raise plugin_defect(
                self.compiled.function.language,
                f"{type(kind).__name__}.c_results gives C values of {codes}, not {kind.storage}",
                hint='return CParameter(name, "number", self.storage), or "struct" with its fields',
            )
        return found

    def interface(self) -> CInterface:
        """Return the C interface."""
        prefix = self.prefix
        return CInterface(
            prefix,
            prefix,
            f"{self.compiled.function.fn.__qualname__}()",
            self.parameters(),
            self.results(),
            "made by basedsl. Link with -lm.",
            declared=(
                "/* The function returns 0, one of the codes below, or after an exception: */",
                f"#define {prefix}_ERROR_RAISED ({RAISED})",
                "/* The exception that the last call of this thread raised, such as",
                '   "ZeroDivisionError: division by zero"; null if it raised none. */',
                f"const char *{prefix}_failure(void);",
                "",
            ),
        )

    def meta(self) -> bytes:
        """Return the description by which the object is loaded into Python."""
        results = self.compiled.results
        kept: dict[str, Any] = {
            "name": self.compiled.function.fn.__qualname__,
            "parameters": [
                (name, self.exported_argument(argument))
                for name, argument in zip(self.names, self.compiled.arguments, strict=True)
                if argument.storage
            ],
            "results": (results.shape, results.leaves, results.types, results.places),
        }
        try:
            return write_metadata(kept, self.compiled.function.language.exported_packages)
        except TypeError as error:
            raise DSLCallError(f"a parameter or result cannot be exported: {error}") from None

    def exported_argument(self, argument: Any) -> Any:
        """Return the argument type that calls of the exported function take, by default the
        compiled one.
        """
        return argument

    def llvmir(self, interface: CInterface) -> str:
        """Return all that the object file is made of; C calls it through `interface`."""
        prefix, meta = self.prefix, self.meta()
        entry = self.compiled.function.symbol + ENTRY_SUFFIX
        return "\n".join(
            [
                renamed(self.code(), prefix, self.provides),
                f"@{prefix}{META} = constant {constant_bytes(meta)}",
                f"@{prefix}{META}_size = constant i64 {len(meta)}",
                self.support(),
                f"define void @{prefix}_basedsl_entry(ptr %slots) {{",
                f"  call void @{prefix}_{entry}(ptr %slots)",
                "  ret void",
                "}",
                wrapper(interface),
            ]
        )


def export_to_c(
    export: type[Export] | Any,
    compiled: Any,
    file_path: str | Path,
    file_name: str | None = None,
    function_prefix: str | None = None,
    target: NativeTarget | None = None,
) -> tuple[Path, Path]:
    """Write the object file and the header of a compiled function (see `Compiled.export_to_c`);
    `export` makes its Export from it and the prefix.
    """
    folder = Path(file_path)
    if file_name is None:
        folder, file_name = folder.parent, folder.name.removesuffix(".o")
    prefix = function_prefix or file_name
    if not re.fullmatch(r"[A-Za-z_]\w*", prefix):
        raise DSLCallError(f"function_prefix={prefix!r} is no C identifier")
    made: Export = export(compiled, prefix)
    made.code()  # an error if there is none
    interface = made.interface()
    cpu = _BASELINES.get(platform.machine(), "generic")
    code = native.compile_llvmir(made.llvmir(interface), target or NativeTarget(2, cpu, ""))
    folder.mkdir(parents=True, exist_ok=True)
    object_file, header_file = folder / f"{file_name}.o", folder / f"{file_name}.h"
    object_file.write_bytes(sealed(code))
    header_file.write_text(interface.header())
    return object_file, header_file


def renamed(text: str, prefix: str, provided: Sequence[str]) -> str:
    """Return LLVM IR with `prefix` on every global name that it defines and on the `provided` ones,
    and without declarations of these.
    """
    own = set(re.findall(r'^define [^@]*@"?([\w.$-]+)"?\(', text, re.MULTILINE)) | set(provided)
    gone = "|".join(re.escape(f"@{name}") for name in provided)
    lines = [
        line
        for line in text.split("\n")
        if not re.match(rf"(declare .*({gone})\()|({gone}) = external", line)
    ]
    names = "|".join(sorted(map(re.escape, own), key=len, reverse=True))
    return re.sub(rf"@({names})\b(?![\w.$-])", rf"@{prefix}_\1", "\n".join(lines))


def constant_bytes(data: bytes) -> str:
    """Return a constant array of bytes in LLVM IR."""
    return f'[{len(data)} x i8] c"' + "".join(f"\\{byte:02X}" for byte in data) + '"'


def _failures(prefix: str) -> str:
    """LLVM IR that keeps the first failed assertion of each thread's call: where, and two numbers.

    The memory of a thread is what C compilers use for `thread_local` where the system has none
    (libgcc and compiler-rt: __emutls_get_address); it needs no relocations of its own.
    """
    state = f"call ptr @__emutls_get_address(ptr @{prefix}_state)"
    return f"""
@{prefix}_state = internal global {{ i64, i64, ptr, ptr }} {{ i64 24, i64 8, ptr null, ptr null }}
declare ptr @__emutls_get_address(ptr)

define void @{prefix}_basedsl_begin() {{
  %state = {state}
  store ptr null, ptr %state
  ret void
}}

define i32 @{prefix}_basedsl_status() {{
  %state = {state}
  %where = load ptr, ptr %state
  %failed = icmp ne ptr %where, null
  %code = select i1 %failed, i32 {RAISED}, i32 0
  ret i32 %code
}}

define ptr @{prefix}_basedsl_failure() {{
  %state = {state}
  ret ptr %state
}}

define internal void @{prefix}_{asserts.SYMBOL}(ptr %where) {{
  %state = {state}
  %known = load ptr, ptr %state
  %first = icmp eq ptr %known, null
  %shown = select i1 %first, ptr %where, ptr %known
  store ptr %shown, ptr %state
  ret void
}}

define internal void @{prefix}_{VALUES_SYMBOL}(i64 %a, i64 %b) {{
  %state = {state}
  %known = load ptr, ptr %state
  %first = icmp eq ptr %known, null
  br i1 %first, label %keep, label %done
keep:
  %a.at = getelementptr i8, ptr %state, i64 8
  %b.at = getelementptr i8, ptr %state, i64 16
  store i64 %a, ptr %a.at
  store i64 %b, ptr %b.at
  br label %done
done:
  ret void
}}

define ptr @{prefix}_failure() {{
  %state = {state}
  %where = load ptr, ptr %state
  %none = icmp eq ptr %where, null
  br i1 %none, label %done, label %next
next:
  %at = phi ptr [ %where, %0 ], [ %after, %next ]
  %left = phi i32 [ {asserts.FIELDS}, %0 ], [ %less, %next ]
  %byte = load i8, ptr %at
  %after = getelementptr i8, ptr %at, i64 1
  %separates = icmp eq i8 %byte, {ord(asserts.SEPARATOR)}
  %one = zext i1 %separates to i32
  %less = sub i32 %left, %one
  %more = icmp ne i32 %less, 0
  br i1 %more, label %next, label %done
done:
  %message = phi ptr [ null, %0 ], [ %after, %next ]
  ret ptr %message
}}
"""
