"""Strong accesses to shared memory release at the addresses that they write."""

from types import SimpleNamespace

import numpy as np
import pytest

from basedsl_cute.sim.machine.shadow_order import synchronise


class Order:
    """Keeps the places at which something was released or acquired."""

    def __init__(self):
        self.released, self.acquired = [], []

    def release(self, token, agent):
        self.released.append(token[2])

    def publish(self, token):
        pass

    def acquire(self, token, agent):
        self.acquired.append(token[2])


@pytest.mark.parametrize(
    "writes, released",
    [
        (True, [0, 4, 8]),
        (False, []),
        (np.array([True, False, False, False]), [0]),
        (np.array([False, False, True, True]), [4, 8]),
    ],
)
def test_an_address_is_released_where_a_lane_writes(writes, released):
    order = Order()
    shadow = SimpleNamespace(order=order, own_warps=range(4))
    group = SimpleNamespace(
        known=SimpleNamespace(fences=None), block=SimpleNamespace(rank=0), agent=0
    )
    access = SimpleNamespace(reads=True, acquires=True, releases=True, wide=False, scope=0)
    synchronise(shadow, group, access, np.array([0, 4, 4, 8]), writes)
    assert order.released == released
    assert order.acquired == [0, 4, 8]
