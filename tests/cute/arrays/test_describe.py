"""The native description of PyTorch tensors, by which calls for tensors of one kind are known."""

from __future__ import annotations

import warnings

import pytest

from basedsl_cute.arrays.describe import tensor_describer
from basedsl_cute.ops.array_libraries import library

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.fixture(scope="module")
def describe():
    found = tensor_describer(torch, 32)
    if found is None:
        pytest.skip("this PyTorch has no exchange API of DLPack")
    return found


def aligned(*shape, dtype=torch.float16, by=0):
    """A tensor whose address is a multiple of 64 bytes and `by` elements more."""
    count = torch.Size(shape).numel()
    whole = torch.zeros(count + 64 + by, dtype=dtype)
    start = -whole.data_ptr() % 64 // whole.itemsize + by
    return whole[start : start + count].view(shape)


def test_addresses_are_those_of_what_is_there(describe):
    x, y = aligned(2, 3), aligned(4, by=8)
    key, addresses = describe((x, None, y, None))
    assert addresses == [x.data_ptr(), y.data_ptr()] and type(key) is bytes
    assert describe(()) == (b"", [])


def test_what_tells_kinds_apart(describe):
    kinds = [
        (aligned(4, 6),),
        (aligned(4, 6), None),
        (None, aligned(4, 6)),
        (aligned(6, 4),),
        (aligned(6, 4).T,),
        (aligned(24),),
        (aligned(4, 6, dtype=torch.bfloat16),),
        (aligned(4, 6, dtype=torch.float32),),
        (aligned(4, 6, dtype=torch.float8_e4m3fn),),
        (aligned(4, 6, by=8),),
        (aligned(4, 6), aligned(4, 6)),
        (aligned(8, 6)[::2],),
        (None,),
        (None, None),
    ]
    keys = [describe(one)[0] for one in kinds]
    assert len(set(keys)) == len(kinds)
    assert describe((aligned(4, 6),))[0] == keys[0]


def test_alike_are_other_addresses_with_the_same_last_bits(describe):
    one, other = aligned(4, 6), aligned(4, 6)
    assert describe((one,))[0] == describe((other,))[0] == describe((aligned(4, 6, by=16),))[0]
    parameter = torch.nn.Parameter(one)
    with torch.no_grad():
        assert describe((parameter,)) == describe((one,))


class Own(torch.Tensor):
    """A subclass, which may have no memory."""


def nested():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that PyTorch may change them
        return torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)])


def freed():
    x = aligned(4)
    x.untyped_storage().resize_(0)
    return x


@pytest.mark.parametrize(
    "make",
    [
        lambda: aligned(4).requires_grad_(),
        lambda: torch.zeros(4, dtype=torch.complex64).conj().imag,
        lambda: torch.eye(3).to_sparse(),
        nested,
        lambda: aligned(4).as_subclass(Own),
        lambda: torch.zeros((1,) * 9),
        lambda: torch.empty(4, device="meta"),
        lambda: aligned(4).numpy(),
        lambda: 3.0,
    ],
    ids="gradient negated sparse nested subclass modes meta NumPy number".split(),
)
def test_what_python_looks_at(describe, make):
    assert describe((aligned(4), make())) is None


@pytest.mark.parametrize("given", [(), ([1],), ((), ()), (None,)])
def test_other_arguments(describe, given):
    assert describe(*given) is None


def test_freed_memory_has_no_description(describe):
    assert describe((freed(),)) is None
    assert library(torch.zeros(1)).described((freed(),)) is None


def test_python_describes_where_native_code_does_not(monkeypatch, describe):
    lib = library(torch.zeros(1))
    kinds = [(aligned(4, 6),), (aligned(6, 4).T, None), (aligned(4, 6, by=8),), (None, aligned(4))]
    native = [lib.described(x) for x in kinds]
    monkeypatch.setattr(lib, "_describe", lambda arrays: None)
    python = [lib.described(x) for x in kinds]
    assert [x[1] for x in native] == [x[1] for x in python]
    assert len({x[0] for x in native}) == len({x[0] for x in python}) == len(kinds)
    assert lib.described((aligned(4), 2.0))[0] != lib.described((aligned(4), 2))[0]
    assert lib.described((aligned(4), "text")) is None
