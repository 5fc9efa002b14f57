"""Elements of 4 bits, two to a byte: single ones, vectors, views, pointers, copies."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLError
from basedsl_cute.runtime import from_dlpack

RNG = np.random.default_rng(0)


def halves(data):
    """The unsigned elements of bytes, the low half first."""
    return np.stack([data & 15, data >> 4], axis=-1).reshape(*data.shape[:-1], -1)


def signed(x):
    return ((x.astype(np.int32) + 8) & 15) - 8


def run(kernel, *arrays, threads=1, **static):
    @cute.jit
    def host(*tensors):
        kernel(*tensors).launch(grid=(1, 1, 1), block=(threads, 1, 1))

    tensors = [from_dlpack(x, assumed_align=16) for x in arrays]
    host(*tensors)
    ptx = cute.compile(host, *tensors, options="--arch sm_90a").stages
    assert "cubin" in ptx or "ptx" in ptx
    return ptx.text("ptx")


def test_single_elements(target):
    data, out = RNG.integers(0, 256, 16, np.uint8), np.zeros(32, np.int32)

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        elements = cute.recast_tensor(x, cute.Int4)
        y[i] = elements[i].to(cute.Int32)

    run(kernel, data, out, threads=32)
    np.testing.assert_array_equal(out, signed(halves(data)))


def test_unsigned_and_stores_of_single_elements(target):
    data = RNG.integers(0, 256, 8, np.uint8)
    before = data.copy()

    @cute.kernel
    def kernel(x: cute.Tensor):
        elements = cute.recast_tensor(x, cute.Uint4)
        for i in cute.range(1, 16, 3):
            elements[i] = (elements[i].to(cute.Int32) + 1).to(cute.Uint4)

    run(kernel, data)
    expected = halves(before)
    expected[1:16:3] = (expected[1:16:3] + 1) % 16
    np.testing.assert_array_equal(halves(data), expected)


def test_vectors_are_wide(target):
    data, out = RNG.integers(0, 256, (4, 16), np.uint8), np.zeros((4, 32), np.int8)

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        row = cute.recast_tensor(x, cute.Int4)[i, None]
        y[i, None].store(row.load().to(cute.Int8))

    ptx = run(kernel, data, out, threads=4)
    np.testing.assert_array_equal(out, signed(halves(data)))
    assert "ld.global.v4.b32" in ptx or "ld.global.v2.b64" in ptx


def test_vectors_are_stored_packed(target):
    data, out = RNG.integers(-8, 8, 32, np.int8), np.zeros(16, np.uint8)

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        cute.recast_tensor(y, cute.Int4).store(x.load().to(cute.Int4))

    ptx = run(kernel, data, out)
    np.testing.assert_array_equal(signed(halves(out)), data)
    assert "st.global.v4.b32" in ptx or "st.global.v2.b64" in ptx


def test_registers_and_copies(target):
    data, out = RNG.integers(0, 256, 16, np.uint8), np.zeros(16, np.uint8)

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        source, target = cute.recast_tensor(x, cute.Uint4), cute.recast_tensor(y, cute.Uint4)
        fragment = cute.make_rmem_tensor_like(source)
        cute.autovec_copy(source, fragment)
        fragment[3] = fragment[4]
        cute.autovec_copy(fragment, target)

    run(kernel, data, out)
    expected = halves(data)
    expected[3] = expected[4]
    np.testing.assert_array_equal(halves(out), expected)


def test_pointers_move_by_elements(target):
    data, out = RNG.integers(0, 256, 16, np.uint8), np.zeros(4, np.int32)

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        p = cute.recast_ptr(x.iterator, dtype=cute.Uint4)
        y[0] = (p + 5).load().to(cute.Int32)
        y[1] = (p + 5 + 2).load().to(cute.Int32)
        q = p + 3
        total = cute.Int32(0)
        for i in cute.range(4):
            total += q.load().to(cute.Int32)
            q = q + i
        y[2] = total
        y[3] = cute.recast_ptr(p + 6, dtype=cute.Uint8).load().to(cute.Int32)

    run(kernel, data, out)
    e = halves(data).astype(np.int64)
    np.testing.assert_array_equal(out, [e[5], e[7], e[3] + e[3] + e[4] + e[6], data[3]])


def test_shared_memory_and_slices(target):
    data, out = RNG.integers(0, 256, (8, 8), np.uint8), np.zeros((16, 8), np.int32)

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        elements = cute.recast_tensor(x, cute.Int4)
        tile = cute.utils.SmemAllocator().allocate_tensor(
            cute.Int4, cute.make_layout((8, 16), stride=(16, 1)), 16
        )
        cute.autovec_copy(elements[i, None], tile[i, None])
        cute.arch.sync_threads()
        column = tile[None, i]
        for j in cute.range_constexpr(8):
            y[i, j] = column[j].to(cute.Int32)
            y[i + 8, j] = tile[j, i + 8].to(cute.Int32)

    run(kernel, data, out, threads=8)
    np.testing.assert_array_equal(out, signed(halves(data)).T)


def test_floats_of_four_bits(target):
    values = RNG.choice(np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn), 32)
    data = values.view(np.uint8)[::2] | values.view(np.uint8)[1::2] << 4
    out = np.zeros(32, np.float32)

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        elements = cute.recast_tensor(x, cute.Float4E2M1FN)
        y.store(elements.load().to(cute.Float32))

    run(kernel, data, out)
    np.testing.assert_array_equal(out, values.astype(np.float32))


def sixes(codes):
    """Bytes of 6-bit codes: four are three bytes, the first in the lowest bits."""
    bits = (codes[:, None] >> np.arange(6)) & 1
    return np.packbits(bits.reshape(-1), bitorder="little")


NARROW = {
    cute.Float6E3M2FN: ml_dtypes.float6_e3m2fn,
    cute.Float6E2M3FN: ml_dtypes.float6_e2m3fn,
    cute.Float4E2M1FN: ml_dtypes.float4_e2m1fn,
}


@pytest.mark.parametrize("kind", NARROW)
def test_every_narrow_float_both_ways(target, kind):
    """Each code is read; its number, doubled, is rounded to the format again."""
    n = 1 << kind.width
    codes = RNG.permutation(n).astype(np.uint8)
    data = sixes(codes) if kind.width == 6 else codes[::2] | codes[1::2] << 4
    numbers, doubled = np.zeros(n, np.float32), np.zeros(data.size, np.uint8)

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor):
        elements, doubles = cute.recast_tensor(x, kind), cute.recast_tensor(z, kind)
        y.store(elements.load().to(cute.Float32))
        for i in cute.range(n):
            doubles[i] = (elements[i].to(cute.Float32) * 2).to(kind)

    run(kernel, data, numbers, doubled)
    expected = codes.view(NARROW[kind]).astype(np.float32)
    np.testing.assert_array_equal(numbers.view(np.uint32), expected.view(np.uint32))
    largest = np.float32(ml_dtypes.finfo(NARROW[kind]).max)
    twice = np.clip(expected * 2, -largest, largest).astype(NARROW[kind]).view(np.uint8)
    again = sixes(twice) if kind.width == 6 else twice[::2] | twice[1::2] << 4
    np.testing.assert_array_equal(doubled, again)


def test_six_bits_in_registers_and_shared_memory(target):
    codes = RNG.integers(0, 64, 32, np.uint8)
    data, out = sixes(codes), np.zeros(24, np.uint8)

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        source = cute.flat_divide(cute.recast_tensor(x, cute.Float6E3M2FN), (8,))[None, i]
        result = cute.flat_divide(cute.recast_tensor(y, cute.Float6E3M2FN), (8,))[None, 3 - i]
        tile = cute.utils.SmemAllocator().allocate_tensor(
            cute.Float6E3M2FN, cute.make_layout((8, 4)), 16
        )
        fragment = cute.make_rmem_tensor_like(source)
        cute.autovec_copy(source, fragment)
        fragment[3] = fragment[4]
        cute.autovec_copy(fragment, tile[None, i])
        cute.arch.sync_threads()
        cute.autovec_copy(tile[None, i], result)

    run(kernel, data, out, threads=4)
    expected = codes.reshape(4, 8).copy()
    expected[:, 3] = expected[:, 4]
    np.testing.assert_array_equal(out, sixes(expected[::-1].reshape(-1)))


@pytest.mark.parametrize("kind", [cute.Float8E4M3FN, cute.Float8E8M0FNU, cute.Float6E2M3FN])
def test_conversions_of_host_code(sim, kind):
    """Arrays that the host's own code reads and writes."""
    values = RNG.standard_normal(16).astype(np.float32) * 3
    stored = np.zeros(16 * kind.width // 8, np.uint8)
    again = np.zeros(16, np.float32)

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor):
        narrow = cute.recast_tensor(y, kind)
        for i in range(16):
            narrow[i] = x[i].to(kind)
        for i in range(16):
            z[i] = narrow[i].to(cute.Float32)

    host(values, stored, again)
    np.testing.assert_array_equal(again, [float(kind(float(v))) for v in values])


@pytest.mark.parametrize(
    "kind", [cute.Float8E5M2, cute.Float6E3M2FN, cute.Float4E2M1FN, cute.TFloat32, cute.Int4]
)
def test_single_narrow_numbers_as_arguments(target, kind):
    out = np.zeros(2, np.float32)

    @cute.kernel
    def kernel(x, y: cute.Float32, out: cute.Tensor):
        out[0] = x.to(cute.Float32)
        out[1] = (y if out[0] > 1.0 else kind(0.5).to(cute.Float32)).to(kind).to(cute.Float32)

    @cute.jit
    def host(x, y: cute.Float32, out: cute.Tensor):
        kernel(x, y, out).launch(grid=(1, 1, 1), block=(1, 1, 1))

    arguments = (kind(-2.0), 1.0, out)
    assert "ptx" in cute.compile(host, *arguments, options="--arch sm_90a").stages
    host(*arguments)
    np.testing.assert_array_equal(out, [-2.0, float(kind(0.5))])
    host(kind(3.0), 1.9, out)
    np.testing.assert_array_equal(out, [3.0, float(kind(1.9))])


@pytest.mark.parametrize(
    "body, message",
    [
        (lambda x: (cute.recast_ptr(x.iterator, dtype=cute.Int4) + 1).llvm_ptr, "it is no address"),
        (
            lambda x: cute.recast_ptr(
                cute.recast_ptr(x.iterator, dtype=cute.Int4) + 1, dtype=cute.Uint8
            ),
            "stands between two elements",
        ),
    ],
)
def test_what_is_refused(sim, body, message):
    @cute.kernel
    def kernel(x: cute.Tensor):
        body(x)

    @cute.jit
    def host(x: cute.Tensor):
        kernel(x).launch(grid=(1, 1, 1), block=(1, 1, 1))

    with pytest.raises(DSLError, match=message):
        cute.compile(host, from_dlpack(np.zeros(12, np.uint8)))
