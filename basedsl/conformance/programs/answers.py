"""Functions that answer otherwise each time: clocks, entropy, numbers of a hidden source. Static
code may call them; captured code, which is traced once, may not.
"""

# mypy: ignore-errors

import datetime
import os
import random
import secrets
import time
import uuid
from datetime import date
from time import perf_counter as clock

import numpy as np

from basedsl.conformance.cases import program, refused, session

EACH_TIME = "which answers otherwise each time, is used inside staged control flow"


@refused(f"'time.time', {EACH_TIME}", "count")
def the_time_in_a_loop(n):
    s = 0.0
    for _ in range(n):
        s += time.time()  # error
    return s


@refused(EACH_TIME, "count")
def a_clock_by_another_name(n):
    s = 0.0
    for _ in range(n):
        s += clock()  # error
    return s


@refused(f"'datetime.datetime.now', {EACH_TIME}", "count")
def the_date_in_a_loop(n):
    s = 0
    for _ in range(n):
        s += datetime.datetime.now().microsecond  # error
    return s


@refused(EACH_TIME, "int")
def the_day_in_a_branch(n):
    if n > 0:
        n += date.today().day  # error
    return n


@refused(f"'os.urandom', {EACH_TIME}", "count")
def entropy_in_a_loop(n):
    s = 0
    for _ in range(n):
        s += os.urandom(1)[0]  # error
    return s


@refused(EACH_TIME, "count")
def secrets_in_a_loop(n):
    s = 0
    for _ in range(n):
        s += secrets.randbelow(5)  # error
    return s


@refused(EACH_TIME, "count")
def an_identifier_in_a_loop(n):
    s = 0
    for _ in range(n):
        s += len(uuid.uuid4().hex)  # error
    return s


def _stamp():
    return time.monotonic()


@refused(f"'time.monotonic', {EACH_TIME}", "count")
def a_clock_by_a_helper(n):
    s = 0.0
    for _ in range(n):  # error
        s += _stamp()
    return s


@refused("'random.random' is changed inside staged control flow", "count")
def a_random_number_in_a_loop(n):
    s = 0.0
    for _ in range(n):
        s += random.random()  # error
    return s


@refused("'numpy.random.rand' is changed inside staged control flow", "count")
def a_random_number_of_numpy_in_a_loop(n):
    s = 0.0
    for _ in range(n):
        s += np.random.rand()  # error
    return s


_SYSTEM = random.SystemRandom()


@refused("'_SYSTEM'", "count")
def a_source_of_the_system_in_a_loop(n):
    s = 0.0
    for _ in range(n):
        s += _SYSTEM.random()  # error
    return s


@program("count")
def a_clock_beside_a_loop(n):
    started = time.perf_counter()
    s = 0
    for i in range(n):
        s += i
    return s + (time.perf_counter() < started)


@session((1,), (1,), (2,))
def random_numbers_of_the_module(jit):
    seen = []

    def f(n):
        random.seed(4 + len(seen))
        seen.append(random.randrange(1000))
        return n + random.randrange(1000)

    return f, lambda: list(seen)


@session((1,), (1,), (2,))
def dates_are_read_in_each_call(jit):
    seen = []

    def f(n):
        seen.append(datetime.datetime.now() > datetime.datetime(2020, 1, 1))
        return n + len(seen)

    return f, lambda: list(seen)
