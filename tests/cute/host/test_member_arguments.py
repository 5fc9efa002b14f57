"""Kernels take members of an enumeration that their host code chooses at run time."""

import enum
from dataclasses import dataclass

import numpy as np
import pytest

import basedsl_cute as cute


class Option(enum.IntEnum):
    ALONG_M = 0
    ALONG_N = 1
    HEURISTIC = 2


class Order(enum.IntEnum):
    M = 3
    N = 4


@dataclass
class Params:
    shape: tuple
    order: Order


@cute.kernel
def swizzle(out: cute.Tensor, params: Params, order):
    i, j = 1, 2
    if params.order == Order.N:
        i, j = j, i
    out[0] = i
    out[1] = params.order
    out[2] = 1 if order is Order.N else 0


@cute.jit
def order_of(option, m, n):
    order = Order.M if option == Option.ALONG_M else Order.N
    if option == Option.HEURISTIC:
        order = Order.N if m > n else Order.M
    return order


@cute.jit
def launch(out: cute.Tensor, option, m, n):
    order = order_of(option, m, n)
    swizzle(out, Params((m, n), order), order).launch(grid=(1, 1, 1), block=(1, 1, 1))


@pytest.mark.parametrize(
    ("option", "m", "n", "wanted"),
    [
        (Option.ALONG_M, 1, 2, [1, 3, 0]),
        (Option.HEURISTIC, 1, 2, [1, 3, 0]),
        (Option.HEURISTIC, 3, 2, [2, 4, 1]),
    ],
)
def test_a_dataclass_and_a_member(option, m, n, wanted, monkeypatch):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sim")
    out = np.zeros(3, np.int32)
    launch(out, option, m, n)
    assert out.tolist() == wanted
