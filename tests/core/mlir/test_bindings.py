"""The bindings as a value: what loading them loads."""

from __future__ import annotations

import subprocess
import sys


def run(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_op_classes_of_large_dialects_are_made_on_use() -> None:
    code = (
        "import sys\n"
        "from basedsl.mlir import load_bindings\n"
        "b = load_bindings(None, ('llvm', 'nvvm'))\n"
        "heavy = ('_llvm_ops_gen', '_nvvm_ops_gen')\n"
        "def made(): return [m for m in sys.modules if m.endswith(heavy)]\n"
        "with b.ir.Context(), b.ir.Location.unknown():\n"
        "    text = 'llvm.func @f() { %0 = llvm.mlir.zero : !llvm.ptr  llvm.return }'\n"
        "    module = b.ir.Module.parse(text)\n"
        "    zero = module.body.operations[0].regions[0].blocks[0].operations[0]\n"
        "    assert zero.operation.name == 'llvm.mlir.zero'\n"
        "    assert zero.operation.results[0].type == b.llvm.PointerType.get()\n"
        "    assert not made(), made()\n"
        "    b.llvm.ZeroOp(b.llvm.PointerType.get(), ip=b.ir.InsertionPoint(zero))\n"
        "assert len(made()) == 1\n"
        "package = b.package\n"
        "exec(f'from {package}.dialects.nvvm import *')\n"
        "assert SyncWarpOp.OPERATION_NAME == 'nvvm.bar.warp.sync' and len(made()) == 2\n"
    )
    run(code)


def test_dialect_import_is_whole_under_deep_recursion() -> None:
    run(
        "from basedsl.mlir import load_bindings\n"
        "b = load_bindings(None, ('cf', 'func', 'shape'))\n"
        "found = []\n"
        "def down():\n"
        "    try:\n"
        "        down()\n"
        "    except RecursionError:\n"
        "        pass\n"
        "    for get in lambda: b.cf.BranchOp, lambda: b.func.FuncOp, lambda: b.shape.AddOp:\n"
        "        try:\n"
        "            found.append(get())\n"
        "        except RecursionError:\n"
        "            found.append(None)\n"
        "import sys\n"
        "limit = sys.getrecursionlimit()\n"
        "down()\n"
        "assert None in found[:3] and found[-3:] == [b.cf.BranchOp, b.func.FuncOp, b.shape.AddOp]\n"
        "assert sys.getrecursionlimit() == limit\n"
    )
