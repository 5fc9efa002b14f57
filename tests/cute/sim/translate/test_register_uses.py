"""Local arrays that can be kept as registers."""

from __future__ import annotations

import pytest

from basedsl_cute.sim.translate.register_uses import Use, register_uses

HEAD = """
%tid = nvvm.read.ptx.sreg.tid.x : i32
%four = arith.constant 4 : i32
%l = llvm.alloca %four x f32 : (i32) -> !llvm.ptr
%p = llvm.getelementptr %l[%tid] : (!llvm.ptr, i32) -> !llvm.ptr, f32
%v = llvm.load %p : !llvm.ptr -> f32
"""


@pytest.mark.parametrize(
    ("line", "use"),
    [
        ("", Use(4, False)),
        ("llvm.store %tid, %p : i32, !llvm.ptr", Use(4, False)),
        ("%w = llvm.load %l : !llvm.ptr -> vector<4xf32>", Use(4, False)),
        ("%h = llvm.load %l : !llvm.ptr -> f16", None),  # elements of two sizes
        ("%b = llvm.load %l : !llvm.ptr -> i1", None),
        ("llvm.store %p, %out : !llvm.ptr, !llvm.ptr<1>", None),  # the address is stored
        ("%i = llvm.ptrtoint %p : !llvm.ptr to i64", None),
    ],
)
def test_uses_of_one_element_size_that_stay_in_sight(record, line, use):
    found = register_uses(record("%out: !llvm.ptr<1>", HEAD + line))
    assert list(found.values()) == ([] if use is None else [use])
