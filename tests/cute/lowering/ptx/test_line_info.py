"""Line information changes no instruction: machine code is the same, with line tables beside it."""

from __future__ import annotations

import struct

import pytest

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.runtime import make_fake_compact_tensor

pytestmark = pytest.mark.skipif(ptxas.find_ptxas() is None, reason="no ptxas")


@cute.jit
def step(a, b):
    return a * b + 1.0


@cute.kernel
def elementwise(x: cute.Tensor, out: cute.Tensor):
    i = arch.block_idx()[0] * 128 + arch.thread_idx()[0]
    if i < cute.size(x):
        total = cute.Float32(0)
        for _ in cute.range(16):
            total += step(x[i], total)
        out[i] = total


@cute.kernel
def product(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor):
    """A warp's tile by mma.sync, over a dynamic K, with the operands in shared memory."""
    lane = arch.thread_idx()[0]
    op = cute.nvgpu.warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16))
    mma = cute.make_tiled_mma(op, (1, 1, 1))
    thread = mma.get_slice(lane)
    total = cute.make_rmem_tensor(mma.partition_shape_C((16, 8)), cute.Float32)
    total.fill(0.0)
    for k in range(cute.size(a, mode=[1]) // 16):
        left = thread.partition_A(cute.local_tile(a, (16, 16), (0, k)))
        right = thread.partition_B(cute.local_tile(b, (8, 16), (0, k)))
        first, second = cute.make_fragment_like(left), cute.make_fragment_like(right)
        cute.autovec_copy(left, first)
        cute.autovec_copy(right, second)
        cute.gemm(mma, total, first, second, total)
    cute.autovec_copy(total, thread.partition_C(out))


@cute.jit
def run_elementwise(x: cute.Tensor, out: cute.Tensor):
    elementwise(x, out).launch(grid=8, block=128)


@cute.jit
def run_product(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor):
    product(a, b, out).launch(grid=1, block=32)


def fake(dtype, *shape):
    order = tuple(reversed(range(len(shape))))
    return make_fake_compact_tensor(dtype, shape, stride_order=order, assumed_align=16)


def sections(elf: bytes) -> dict[str, bytes]:
    """The sections of a 64-bit ELF file by name."""
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    count, names = struct.unpack_from("<HH", elf, 0x3C)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, table + 64 * i) for i in range(count)]
    text = headers[names][4]
    found = {}
    for name, kind, _, _, offset, size, *_ in headers:
        start = text + name
        label = elf[start : elf.index(b"\0", start)].decode()
        found[label] = b"" if kind == 8 else elf[offset : offset + size]  # 8: SHT_NOBITS
    return found


n = cute.sym_int()
k = cute.sym_int(divisibility=16)
KERNELS = {
    "elementwise": (run_elementwise, (fake(cute.Float32, n), fake(cute.Float32, n))),
    "product": (
        run_product,
        (fake(cute.Float16, 16, k), fake(cute.Float16, 8, k), fake(cute.Float32, 16, 8)),
    ),
}


@pytest.mark.parametrize("name", KERNELS)
def test_machine_code_is_the_same_with_line_tables(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # kept files are written there
    function, arguments = KERNELS[name]
    options = "--gpu-arch sm_90a --keep-ptx --keep-cubin"
    plain = cute.compile(function, *arguments, options=options)
    lined = cute.compile(function, *arguments, options=options + " --generate-line-info")
    assert ", debug" not in lined.__ptx__
    assert ".loc" in lined.__ptx__ and ".loc" not in plain.__ptx__
    without, with_lines = sections(plain.__cubin__), sections(lined.__cubin__)
    code = f".text.{name}"
    assert without[code] == with_lines[code] and len(without[code]) > 16 * 16
    assert (
        __file__.encode() in with_lines[".debug_line"]
        or b"test_line_info.py" in with_lines[".debug_line"]
    )
    assert ".debug_line" not in without
