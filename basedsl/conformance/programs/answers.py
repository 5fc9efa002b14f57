"""Functions that reach outside of the program: clocks, entropy, files, processes. Static code may
call them; captured code, which is traced once, may not.
"""

# mypy: ignore-errors

import datetime
import linecache
import os
import pathlib
import random
import secrets
import subprocess
import sys
import tempfile
import time
import types
import uuid
import weakref
from datetime import date
from time import perf_counter as clock

import numpy as np

from basedsl.conformance.cases import program, program_of, refused, session

OUTSIDE = "which reaches outside of the program, is used inside staged control flow"


@refused(f"'time.time', {OUTSIDE}", "count")
def the_time_in_a_loop(n):
    s = 0.0
    for _ in range(n):
        s += time.time()  # error
    return s


@refused(OUTSIDE, "count")
def a_clock_by_another_name(n):
    s = 0.0
    for _ in range(n):
        s += clock()  # error
    return s


@refused(f"'datetime.datetime.now', {OUTSIDE}", "count")
def the_date_in_a_loop(n):
    s = 0
    for _ in range(n):
        s += datetime.datetime.now().microsecond  # error
    return s


@refused(OUTSIDE, "int")
def the_day_in_a_branch(n):
    if n > 0:
        n += date.today().day  # error
    return n


@refused(f"'os.urandom', {OUTSIDE}", "count")
def entropy_in_a_loop(n):
    s = 0
    for _ in range(n):
        s += os.urandom(1)[0]  # error
    return s


@refused(OUTSIDE, "count")
def secrets_in_a_loop(n):
    s = 0
    for _ in range(n):
        s += secrets.randbelow(5)  # error
    return s


@refused(OUTSIDE, "count")
def an_identifier_in_a_loop(n):
    s = 0
    for _ in range(n):
        s += len(uuid.uuid4().hex)  # error
    return s


@refused(f"'time.time', {OUTSIDE}", "count")
def a_clock_imported_in_the_function(n):
    import time

    s = 0.0
    for _ in range(n):
        s += time.time()  # error
    return s


@program("int")
def attributes_with_the_names_of_clocks(n):
    made = types.SimpleNamespace(time=3, now=4, sleep=5, read=6)
    for _ in range(3):
        n += made.time + made.now + made.sleep + made.read
    return n


def _stamp():
    return time.monotonic()


@refused(f"'time.monotonic', {OUTSIDE}", "count")
def a_clock_by_a_helper(n):
    s = 0.0
    for _ in range(n):
        s += _stamp()  # error
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


# Files and processes ------------------------------------------------------------------------------


@refused(f"'open', {OUTSIDE}", "count")
def a_file_written_in_a_loop(n):
    for _ in range(n):
        open(os.devnull, "w").write("x")  # error
    return n


@refused(f"'pathlib.Path.read_text', {OUTSIDE}", "int")
def a_file_read_in_a_branch(n):
    if n > 0:
        n += len(pathlib.Path(os.devnull).read_text())  # error
    return n


@refused(f"'os.listdir', {OUTSIDE}", "count")
def a_folder_in_a_loop(n):
    for _ in range(n):
        n += len(os.listdir(os.curdir)) * 0  # error
    return n


@refused(f"'subprocess.run', {OUTSIDE}", "int")
def a_process_in_a_branch(n):
    if n > 0:
        subprocess.run([sys.executable, "--version"])  # error
    return n


@session((1,), (1,), (5,))
def a_file_is_read_in_each_call(jit):
    handle, name = tempfile.mkstemp()
    os.close(handle)
    path = pathlib.Path(name)
    path.write_text("3")

    def f(n):
        found = int(path.read_text())
        path.write_text(str(found * 2))
        return n + found

    def left():
        return path.read_text()

    weakref.finalize(left, path.unlink)
    return f, left


@program("int")
def a_module_imported_in_a_branch(n):
    if n > 0:
        import colorsys

        n += len(colorsys.__name__)
    return n


# Helpers that are not decorated -------------------------------------------------------------------


def _refused_in_helper(message, name, body, argument):
    text = (
        f"def {name}(jit):\n    def helper(v):\n{body}\n\n    def program(n):\n"
        f"        return helper({argument})\n\n    return program\n"
    )
    filename = f"<{__name__}.{name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    exec(compile(text, filename, "exec"), globals())
    program_of("int", message=message)(globals()[name])


_TYPE, _TRUE = "type(v) of a dynamic", "`v is True` of a dynamic Boolean"
for _message, _name, _body, _argument in (
    (_TYPE, "asks_for_the_type", "        return 1 if type(v) is int else 2  # error", "n"),
    (_TYPE, "asks_backwards", "        return 1 if int is type(v) else 2  # error", "n"),
    (_TYPE, "looks_up_the_type", "        return {int: 1}.get(type(v), 3)  # error", "n"),
    (_TYPE, "indexes_by_the_type", "        return {int: 1}[type(v)]  # error", "n"),
    (_TYPE, "names_the_type", "        return len(type(v).__name__)  # error", "n"),
    (_TRUE, "asks_for_true", "        return 1 if v is True else 2  # error", "n > 2"),
    (_TRUE, "asks_for_not_false", "        return 1 if v is not False else 2  # error", "n > 2"),
    (
        _TRUE,
        "matches_true",
        "        match v:\n            case True:  # error\n                return 1",
        "n > 2",
    ),
):
    _refused_in_helper(_message, f"a_helper_{_name}", _body, _argument)


def _is_int(v):
    return 1 if type(v) is int else 2


def _is_true(v):
    return 1 if v is True else 2


def _made_by_type(v):
    return type(v)(3) + v


@program("int")
def helpers_that_ask_about_what_is_static(n):
    return n + _is_int(3) + _is_true(True) + _is_int("x")


@program("int")
def a_helper_makes_a_number_of_the_type(n):
    return _made_by_type(n) + _is_true(n)
