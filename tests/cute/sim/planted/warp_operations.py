"""Operations of whole warps, assertions, divisions: with the bug planted, or without."""

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.sim import ArithmeticTrapError, AssertionFailedError, WarpError


@cute.kernel
def shuffle_in_a_branch(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    if not bug or t < 16:
        y[t] = arch.shuffle_sync(x[t], 3)


@cute.kernel
def lane_outside_the_mask(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    if t < 16:
        y[t] = arch.shuffle_sync(x[t], 20 if bug else 5, mask=0xFFFF)


@cute.kernel
def offset_outside_the_mask(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    if t < 24:
        y[t] = arch.shuffle_sync_bfly(x[t], 8 if bug else 4, mask=0xFFFFFF)


@cute.kernel
def down_from_outside(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    if t < 16:
        got = arch.shuffle_sync_down(x[t], 1, mask=0xFFFF, mask_and_clamp=31 if bug else 15)
        y[t] = got


@cute.kernel
def mask_without_oneself(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    if t < 16:
        y[t] = arch.shuffle_sync(x[t], 3, mask=0xFF if bug else 0xFFFF)


@cute.kernel
def vote_in_a_branch(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    if not bug or t % 2 == 0:
        c[t] = arch.vote_ballot_sync(x[t] > 3)


@cute.kernel
def reduction_in_a_loop(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    for _i in range(t % 4 if bug else cute.Int32(4)):
        y[t] = arch.warp_reduction_sum(x[t])


@cute.kernel
def sync_warp_in_a_branch(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    if t < 8:
        arch.sync_warp() if bug else arch.sync_warp(0xFF)
    y[t] = x[t]


@cute.kernel
def partial_warp(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    if t < (50 if bug else 64):
        y[t] = arch.warp_reduction_max(x[t])


@cute.kernel
def assertion(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    assert t < (60 if bug else 64), "too many threads"
    y[t] = x[t]


@cute.kernel
def quotient_by_zero(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    c[t] = 100 // (t - (5 if bug else 100))


@cute.kernel
def index_by_zero(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    n = x[0 if bug else 5].to(cute.Int32)
    y[t] = x[t % n]


@cute.kernel
def condition_by_zero(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    n = x[0 if bug else 5].to(cute.Int32)
    if t // n > 1:
        y[t] = x[t]


CASES = [
    (shuffle_in_a_branch, WarpError, "names lane"),
    (lane_outside_the_mask, WarpError, "lane 20"),
    (offset_outside_the_mask, WarpError, "lane 24"),
    (down_from_outside, WarpError, "lane 16"),
    (mask_without_oneself, WarpError, "does not name it"),
    (vote_in_a_branch, WarpError, "names lane"),
    (reduction_in_a_loop, WarpError, "names lane"),
    (sync_warp_in_a_branch, WarpError, "names lane"),
    (partial_warp, WarpError, "names lane"),
    (assertion, AssertionFailedError, "too many threads"),
    (quotient_by_zero, ArithmeticTrapError, "by zero"),
    (index_by_zero, ArithmeticTrapError, "by zero"),
    (condition_by_zero, ArithmeticTrapError, "by zero"),
]
