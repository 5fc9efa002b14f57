"""`Trace.checkpoint`: what was emitted is taken away again, blocks and branches included."""

from __future__ import annotations

from typing import Any

import pytest

import basedsl_toy as toy
from basedsl.testing import TraceLog
from basedsl.tracing import current_trace_or_none


@pytest.mark.parametrize("with_blocks", [False, True])
def test_undo_leaves_the_block_as_it_was(with_blocks: bool) -> None:
    texts = TraceLog()

    class Probe:
        __dsl_leaf__ = True

        def __call__(self, n: Any) -> None:
            trace = current_trace_or_none()
            assert trace is not None
            block = trace.ir.InsertionPoint.current.block
            texts.append(str(block.owner))
            undo = trace.checkpoint()
            value = n + 5
            if with_blocks:
                emitter = trace.emitter
                emitter.if_(
                    (value > 3).ir_value(),
                    lambda: None,
                    lambda: None,
                    lambda a, b: (list, list),
                    trace.loc(),
                )
            assert str(block.owner) != texts[0]
            undo()
            texts.append(str(trace.ir.InsertionPoint.current.block.owner))

    probe = Probe()

    @toy.jit
    def program(n):
        m = n * 2
        probe(m)
        return m + 1

    assert program.compile(4)(4) == 9
    assert texts[0] == texts[1]
