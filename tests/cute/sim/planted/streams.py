"""Launches on several streams that nothing orders, or that events and waits order."""

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.cuda import StreamHandle, stream_sync, wait_stream
from basedsl_cute.sim import RaceError

ONE, TWO, THREE = StreamHandle(0x1010), StreamHandle(0x2020), StreamHandle(0x3030)


@cute.kernel
def fill(x: cute.Tensor, y: cute.Tensor):
    t = arch.thread_idx()[0]
    y[t] = x[t] + 1


@cute.kernel
def double(y: cute.Tensor, z: cute.Tensor):
    t = arch.thread_idx()[0]
    z[t] = y[t] * 2


@cute.kernel
def count(c: cute.Tensor):
    arch.atomic_add(c.iterator, 1)


@cute.jit
def run_fill(x: cute.Tensor, y: cute.Tensor, stream: cute.Stream):
    fill(x, y).launch(grid=1, block=64, stream=stream)


@cute.jit
def run_double(y: cute.Tensor, z: cute.Tensor, stream: cute.Stream):
    double(y, z).launch(grid=1, block=64, stream=stream)


@cute.jit
def run_count(c: cute.Tensor, stream: cute.Stream):
    count(c).launch(grid=1, block=64, stream=stream)


def read_on_another_stream(x, y, c, bug):
    run_fill(x, y, ONE)
    run_double(y, x[64:128], TWO if bug else ONE)
    stream_sync(ONE)
    stream_sync(TWO)


def written_on_two_streams(x, y, c, bug):
    run_fill(x, y, ONE)
    run_fill(x[64:128], y if bug else y[64:], TWO)
    stream_sync(ONE)
    stream_sync(TWO)


def overwritten_while_read(x, y, c, bug):
    run_double(x, y, ONE)
    if not bug:
        stream_sync(ONE)
    run_fill(y[128:], x, TWO)
    stream_sync(ONE)
    stream_sync(TWO)


def the_wrong_stream_is_waited_for(x, y, c, bug):
    run_fill(x, y, ONE)
    run_fill(x[64:128], y[64:], TWO)
    stream_sync(ONE if bug else TWO)
    run_double(y[64:], x[128:], THREE)
    stream_sync(ONE)
    stream_sync(TWO)
    stream_sync(THREE)


@cute.jit
def two_launches(x: cute.Tensor, y: cute.Tensor, one: cute.Stream, two: cute.Stream):
    fill(x, y).launch(grid=1, block=64, stream=one)
    double(y, x).launch(grid=1, block=64, stream=two)


def in_one_function(x, y, c, bug):
    two_launches(x, y, ONE, TWO if bug else ONE)
    stream_sync(ONE)
    stream_sync(TWO)


def plain_beside_atomics(x, y, c, bug):
    run_count(c, ONE)
    if bug:
        run_fill(x, c.view("float32"), TWO)
    else:
        run_count(c, TWO)
    stream_sync(ONE)
    stream_sync(TWO)


def waits_too_late(x, y, c, bug):
    run_fill(x, y, ONE)
    if not bug:
        wait_stream(TWO, ONE)
    run_double(y, x[64:128], TWO)
    if bug:
        wait_stream(TWO, ONE)
    stream_sync(TWO)


def waits_for_what_is_not_there_yet(x, y, c, bug):
    if bug:
        wait_stream(THREE, ONE)
    run_fill(x, y, ONE)
    if not bug:
        wait_stream(TWO, ONE)
        wait_stream(THREE, TWO)  # and so for the first one
    run_double(y, x[64:128], THREE)
    stream_sync(ONE)
    stream_sync(THREE)


WHOLE = {"whole": True}
CASES = [
    (read_on_another_stream, RaceError, "stream", WHOLE),
    (written_on_two_streams, RaceError, "stream", WHOLE),
    (overwritten_while_read, RaceError, "stream", WHOLE),
    (the_wrong_stream_is_waited_for, RaceError, "stream", WHOLE),
    (in_one_function, RaceError, "stream", WHOLE),
    (plain_beside_atomics, RaceError, "stream", WHOLE),
    (waits_too_late, RaceError, "stream", WHOLE),
    (waits_for_what_is_not_there_yet, RaceError, "stream", WHOLE),
]
