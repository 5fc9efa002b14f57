"""A text that shows a dynamic value may be shown to people; nothing else may read it."""

import bisect
import csv
import fnmatch
import functools
import io
import json
import logging
import operator
import re
import string
import sys
import textwrap
import warnings
from collections import ChainMap, Counter, UserString
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import pytest

import basedsl_toy as toy
from basedsl import DSLError


class Table:
    v2 = 3


class Text(str):
    pass


@dataclass
class Named:
    name: str


def lookup(name):
    return getattr(Table, name, 0)


@toy.jit
def decorated_lookup(name):
    found = f"{name}"
    return getattr(Table, found, 0)


@toy.jit
def label(n):
    return f"v{n}"


@functools.lru_cache
def cached(text):
    return len(text)


def with_name(n):
    name = f"v{n}"
    return getattr(Table, name, 0)


def in_a_branch(n):
    found = 0
    pattern = re.compile("2")
    if n > 1:
        text = str(n)
        found = len(pattern.findall(text))
    return found


def printed_into(n):
    out = io.StringIO()
    print(n, file=out)
    return len(out.getvalue())


def written_row(n):
    out = io.StringIO()
    csv.writer(out).writerow([n])
    return len(out.getvalue())


def over_characters(n):
    count = 0
    for _ in str(n):
        count += 1
    return count


def stored(n):
    table = {"v2": 1}
    table[f"v{n}"] = 5
    return len(table)


READS = {
    "getattr": lambda n: getattr(Table, f"v{n}", 0),
    "hasattr": lambda n: hasattr(Table, f"v{n}"),
    "ord": lambda n: ord(str(n)),
    "re": lambda n: re.match("2", f"{n}") is not None,
    "re_sub": lambda n: len(re.sub("a", f"{n}", "aa")),
    "json": lambda n: json.dumps({"a": str(n)}) == "",
    "decimal": lambda n: int(Decimal(str(n))),
    "fraction": lambda n: Fraction(str(n)).numerator,
    "bytes": lambda n: bytes(str(n), "ascii")[0],
    "file": lambda n: io.StringIO(f"{n}").read() == "2",
    "find": lambda n: "a2b".find(f"{n}"),
    "startswith": lambda n: "2b".startswith(("z", f"{n}")),
    "replaced": lambda n: "axa".replace("x", f"{n}") == "a2a",
    "filled": lambda n: "b".ljust(3, f"{n}") == "b22",
    "stripped": lambda n: 1 if f"{n}".strip("2") else 0,
    "counter": lambda n: Counter([f"{n}", "2"])["2"],
    "chain": lambda n: ChainMap({"2": 1}).get(str(n), 0),
    "bisect": lambda n: bisect.bisect(["0", "2"], str(n)),
    "key": lambda n: min(["aa", f"{n}"], key=len) == "aa",
    "mapped": lambda n: sum(map(len, map(str, [n, 1]))),
    "filled_lines": lambda n: len(textwrap.fill(f"{n} a", 3)),
    "pattern": lambda n: fnmatch.fnmatch("2", f"{n}"),
    "operator": lambda n: operator.contains(f"a{n}", "2"),
    "unbound": lambda n: str.__eq__(f"{n}", "2"),
    "subclass": lambda n: Text(f"{n}") == "2",
    "user_string": lambda n: UserString(f"{n}") == "2",
    "template": lambda n: string.Template("$a").substitute(a=n) == "2",
    "specification": lambda n: len(f"{3:>{n}}"),
    "specification_name": lambda n: f"{3:>{str(n)}}" == "",
    "cached": lambda n: cached(f"{n}"),
    "parameter": lambda n: lookup(f"v{n}"),
    "keyword": lambda n: lookup(name=f"v{n}"),
    "parameter_of_a_decorated_function": lambda n: decorated_lookup(f"v{n}"),
    "result": lambda n: getattr(Table, label(n), 0),
    "walrus": lambda n: (name := f"v{n}") and hasattr(Table, name),
    "name": with_name,
    "branch": in_a_branch,
    "print": printed_into,
    "row": written_row,
    "loop": over_characters,
    "stored": stored,
}


@pytest.mark.parametrize("name", READS)
def test_what_reads_the_text_is_refused(name):
    with pytest.raises(DSLError, match="a text that shows a value of run time is"):
        toy.jit(READS[name])(2)


def raised_with_parts(n):
    parts = []
    for i in (1, 2):
        parts.append(f"{i} of {n}")
    if n > 5:
        raise ValueError("; ".join(parts))
    return n


def passed_to_a_check(n):
    def check(holds, message):
        if not holds:
            raise ValueError(message)

    check(isinstance(n, int), f"{n} is no int".upper())
    return n


def held(n):
    one = Named(f"item {n}")
    assert n < 5, one.name
    return n


def told(n):
    logging.getLogger("texts").info(f"{n}")
    warnings.warn(f"{n} is small", stacklevel=1)
    print(f"{n:>4}", label(n), file=sys.stderr)
    sys.stderr.write(f"{n}\n")
    return n


@pytest.mark.parametrize("program", [raised_with_parts, passed_to_a_check, held, told])
def test_what_shows_the_text_to_people_works(program):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert toy.jit(program)(2) == 2


def test_the_message_names_the_reader():
    with pytest.raises(DSLError, match=r"is given to 're\.match', which reads it"):
        toy.jit(READS["re"])(2)
