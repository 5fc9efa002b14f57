"""Export of functions with results of a DSL's own types: C gets numbers and structs of them."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass

import numpy as np
import pytest

from basedsl import (
    DSL,
    CompilerBug,
    CParameter,
    DSLCallError,
    Float64,
    Int64,
    Language,
    ResultType,
    as_numeric,
    current_trace,
    memref_array,
)


class Table:
    """Numbers in memory that the function allocates."""

    def __init__(self, memref):
        self.memref = memref

    def ir_value(self):
        return self.memref

    def with_ir_value(self, value):
        return Table(value)

    def leaf_type(self):
        return str(self.memref.type)

    @classmethod
    def of_size(cls, size):
        trace = current_trace("of_size")
        ir = trace.ir
        memref = trace.emit_op(
            "memref.alloc",
            ir.Type.parse("memref<?xf64>"),
            as_index(size),
            operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, 0]),
        )
        return cls(memref)

    def __setitem__(self, i, number):
        trace = current_trace("tables[i] = x")
        trace.emit_op("memref.store", None, number.ir_value(), self.memref, as_index(i))


def as_index(number):
    trace = current_trace("index")
    value = as_numeric(number).to(Int64).ir_value()
    return trace.emit_op("arith.index_cast", trace.ir.IndexType.get(), value)


@dataclass(frozen=True)
class TableResult(ResultType):
    def unpack(self, storage):
        return memref_array(Float64, storage)


class SaidResult(TableResult):
    """The same, which says how C gets it."""

    def c_results(self, name):
        fields = ("allocated", "data", "offset", "size", "stride")
        text = "free() the address `allocated`"
        return [CParameter(name, "struct", self.storage, fields=fields, text=text)]


class ShortResult(TableResult):
    def c_results(self, name):
        return [CParameter(name, "number", ("q",))]


class Tables(Language):
    name = "tables"
    exported_packages = ("basedsl", __name__.partition(".")[0])
    result = TableResult

    def result_type(self, value):
        return self.result() if isinstance(value, Table) else None


def numbers(n, step):
    table = Table.of_size(n)
    for i in range(n):
        table[i] = step * i
    return n > 2, table, step


def exported(result, folder):
    language = type(result.__name__, (Tables,), {"result": result, "name": "tables"})
    dsl = DSL(language())
    compiled = dsl.compile(dsl.jit(numbers), 3, 0.5)
    return dsl, compiled.export_to_c(folder, "numbers")


MAIN = r"""
#include <stdio.h>
#include <stdlib.h>
#include "numbers.h"
int main(void) {
  uint8_t many;
  numbers_result1_t table;
  double step;
  const int32_t status = numbers(4, 1.5, &many, &table, &step);
  const double *data = (const double *)table.data + table.offset;
  printf("%d %d %d %d %g %g %g\n", (int)status, many, (int)table.size, (int)table.stride, step,
         data[1], data[3]);
  free((void *)table.allocated);
  printf("%d\n", numbers(4, 1.5, &many, 0, &step) == numbers_ERROR_NULL);
}
"""


def test_c_gets_a_struct_and_python_what_unpack_makes(tmp_path):
    dsl, (path, header) = exported(SaidResult, tmp_path)
    assert "/* free() the address `allocated` */\ntypedef struct {" in header.read_text()
    array = dsl.load_module(path).numbers(4, 1.5)[1]
    assert type(array) is np.ndarray and array.tolist() == [0, 1.5, 3, 4.5]
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    (tmp_path / "main.c").write_text(MAIN)
    flags = ["-Wall", "-Werror", "-I.", "-lm", "-o", "main"]
    subprocess.run([compiler, "main.c", "numbers.o", *flags], cwd=tmp_path, check=True)
    done = subprocess.run(["./main"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["0 1 4 1 1.5 1.5 4.5", "1"]


def test_a_result_type_that_says_nothing_of_c(tmp_path):
    with pytest.raises(DSLCallError, match="result1 is of the result type TableResult") as caught:
        exported(TableResult, tmp_path)
    assert "TableResult would define c_results" in str(caught.value)


def test_a_result_type_that_gives_too_few_values(tmp_path):
    with pytest.raises(CompilerBug, match=r"ShortResult\.c_results gives C values") as caught:
        exported(ShortResult, tmp_path)
    assert "the DSL 'tables' of" in str(caught.value)
