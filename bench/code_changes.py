"""Are two texts of MLIR the same but for changes made on purpose? Rules undo each, in both texts.

`report` explains the differences between two records of `same_code.py`; `code_changes.toml` has
what `code_history.py` found for functions that the rules do not explain.

The texts are read as lines: an operation without effects is known by its name, attributes and
operands alone, wherever it stands; the others, in their order, with those operands. So the order,
repeats and unused ones of operations without effects, and the numbers of values, are no difference,
which is the rule `ORDER`. The other rules rewrite operations; `RULES` says which change of the
library each stands for.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

CAUSES = Path(__file__).with_name("code_changes.toml")

ORDER = "order"
# With the commit, and for what users see the line of CHANGELOG.md.
RULES = {
    ORDER: "operations without effects are moved, shared or left out; numbers of values",
    "alignment": "36cd279d: the first shared allocation of a kernel is aligned to 1024 bytes",
    "contraction": "2b7f5723: `a * b + c` of floats rounds once, as in CUDA",
    "addresses": "4b8a4c98: constant parts of an address are in the access, sums have no zeros",
    "exp2": "36cd279d: `exp` and `exp2` with `fastmath=True` flush Float32 results",
    "launch table": "d5816ccd: launches record events: four more words in the table of a launch",
    "bit strides": "15c5ded2: TMA of 4- and 6-bit elements, whose strides are computed in bits",
    "wgmma": "cute.wgmma is cute.ptx_wgmma once its operands are addresses (HOUSE.md 5.5)",
    "parameter alignment": "a0b00beb: kernels know the alignment of the pointers that they take",
    "cluster": "a0798ec0: split-K: the last barrier of a cluster orders the reads before it",
    "shared names": "what lies in shared memory is named for the simulator alone",
}

Rule = Callable[["Reader", str, tuple[int, ...]], "int | None"]

_VALUE = re.compile(r"%[\w$.-]+(?:#\d+)?")
_RESULTS = re.compile(r"((?:%[\w$.-]+(?::\d+)?(?:, )?)+) = (.*)")
_PURE = re.compile(
    r'"?(?:(?:arith|math|vector|complex|ub)\.|cute\.(?:view|recast|iterator)\b|nvvm\.read\.'
    r"|builtin\.unrealized_conversion_cast|llvm\.(?:getelementptr|ptrtoint|inttoptr|bitcast"
    r"|addrspacecast|mlir\.(?:constant|undef|zero|poison|addressof)|(?:insert|extract)(?:element"
    r"|value)|shufflevector|f?(?:add|sub|mul|neg)|[fsu]?(?:div|rem)|[if]cmp|and|or|xor|shl|[la]shr"
    r"|select|[sz]ext|trunc|[su]itofp|fpto[su]i|fpext|fptrunc|intr\.)\b"
    r'|llvm\.call_intrinsic "llvm\.fma")'
)
_BYTES = {"i8": 1, "i16": 2, "f16": 2, "bf16": 2, "i32": 4, "f32": 4, "i64": 8, "f64": 8}
_HOLE = "•"
_SIZE = "llvm.mlir.constant(18 : i64) : i64"
_WORD = re.compile(r"llvm\.getelementptr •\[1[4-7]\] : .*")


class Reader:
    """Reads texts into lists of lines, in which equal operations have equal numbers. `rules` are
    the names of those that apply.
    """

    def __init__(self, rules: Collection[str]) -> None:
        self.rules = rules
        self.nodes: list[tuple[str, tuple[int, ...]]] = []
        self._numbers: dict[tuple[str, tuple[int, ...]], int] = {}
        self._sums: dict[int, tuple[dict[int, Fraction], Fraction]] = {}
        self._digests: dict[int, str] = {}
        self._tables: set[int] = set()  # of launches, in the text that is being read

    def node(self, head: str, operands: tuple[int, ...] = ()) -> int:
        """Return the number of an operation, after the rules."""
        for name, rule in _REWRITES:
            if name in self.rules:
                found = rule(self, head, operands)
                if found is not None:
                    return found
        return self.plain(head, operands)

    def plain(self, head: str, operands: tuple[int, ...] = ()) -> int:
        key = (head, operands)
        if key not in self._numbers:
            self._numbers[key] = len(self.nodes)
            self.nodes.append(key)
        return self._numbers[key]

    def operations(self, text: str) -> list[tuple[int, str, tuple[int, ...]]]:
        """Return the operations with effects, and what opens and closes regions: the number of
        results, the text without values, and the numbers of operands.
        """
        values: dict[str, int] = {}
        made: list[tuple[int, str, tuple[int, ...]]] = []
        self._tables.clear()
        defined = 0

        def define(name: str) -> None:
            nonlocal defined
            values[name] = self.plain(f"value {defined}")
            defined += 1

        for raw in text.splitlines():
            line = _plain_line(raw, self.rules)
            if not line:
                continue
            found = _RESULTS.fullmatch(line)
            results, body = (found[1].split(", "), found[2]) if found else ([], line)
            inner = _definitions(body)
            operands = [name for name in _VALUE.findall(body) if name not in inner]
            numbers = tuple(self._value(values, name) for name in operands)
            for name in inner:
                define(name)
            head = _shape(body, inner)
            if results and _PURE.match(body) and not body.endswith("{"):
                number = self.node(head, numbers)
                for name in results:
                    values[name.partition(":")[0]] = number
                continue
            is_table = False
            if "launch table" in self.rules:
                if body.startswith("llvm.alloca"):
                    former = tuple(self._former_size(one) for one in numbers)
                    is_table = former != numbers
                    numbers = former
                elif body.startswith("llvm.store") and self._is_of_event(numbers[1]):
                    continue
            for name in results:
                define(name.partition(":")[0])
            if is_table:
                self._tables.add(values[results[0]])
            made.append((len(results), head, numbers))
        return made

    def lines(self, text: str) -> list[str]:
        """Return the lines of `operations`; without the rule `ORDER`, those of the text."""
        if ORDER not in self.rules:
            return text.splitlines()
        return [f"{results} {head} {numbers}" for results, head, numbers in self.operations(text)]

    def digest(self, text: str) -> str:
        """Return a digest of the text after the rules, the same in each process."""
        found = hashlib.sha256()
        for results, head, numbers in self.operations(text):
            found.update(f"{results} {head} {[*map(self._digest_of, numbers)]}\n".encode())
        return found.hexdigest()[:24]

    def _digest_of(self, number: int) -> str:
        if number not in self._digests:
            head, operands = self.nodes[number]
            of = [self._digest_of(one) for one in operands]
            if number in self._sums:
                terms, constant = self._sums[number]
                factors = zip(of, terms.values(), strict=True)
                head = f"sum {constant} {sorted((one, str(factor)) for one, factor in factors)}"
            elif head.startswith(_HOLE):  # operands in any order
                of.sort()
            self._digests[number] = hashlib.sha256(f"{head} {of}".encode()).hexdigest()
        return self._digests[number]

    def _value(self, values: dict[str, int], name: str) -> int:
        whole, _, part = name.partition("#")
        number = values.get(whole)
        if number is None:
            number = self.plain(f"free {whole}")
        return self.plain(f"result {part}", (number,)) if part else number

    def _former_size(self, number: int) -> int:
        """The number of words of a launch's table, before it had four for events."""
        head, _ = self.nodes[number]
        if head == "sum [] 18":
            return self.add_up({}, Fraction(14))
        return self.plain(head.replace("18", "14")) if head == _SIZE else number

    def _is_of_event(self, address: int) -> bool:
        """True for the address of one of the last four words of a launch's table."""
        head, operands = self.nodes[address]
        terms, offset = self.sum_of(address)
        if list(terms.values()) == [1] and len(self.nodes[next(iter(terms))][1]) == 0:
            return next(iter(terms)) in self._tables and 14 * 8 <= offset < 18 * 8
        return bool(_WORD.fullmatch(head)) and operands[0] in self._tables

    # Sums of products of integers, for addresses

    def sum_of(self, number: int) -> tuple[dict[int, Fraction], Fraction]:
        return self._sums.get(number, ({number: Fraction(1)}, Fraction(0)))

    def add_up(self, terms: dict[int, Fraction], constant: Fraction) -> int:
        """Return the number of a sum of numbers with their factors."""
        terms = {number: factor for number, factor in sorted(terms.items()) if factor}
        if not constant and list(terms.values()) == [1]:
            return next(iter(terms))
        number = self.plain(f"sum {list(terms.values())} {constant}", tuple(terms))
        self._sums[number] = (terms, constant)
        return number


def _plain_line(raw: str, rules: Collection[str]) -> str:
    line = raw.strip().partition("  //")[0].rstrip()
    if "alignment" in rules:
        line = re.sub(r'("smem)(?: align<\d+>)?', r"\1", line)
        line = re.sub(r"(addr_space = 3 : i32, alignment =) \d+", r"\1 _", line)
    if "parameter alignment" in rules:
        line = re.sub(r"(?:cute|basedsl)\.parameters = \[(.*?)\](?:, )?(.*)", _parameters, line)
        line = re.sub(r" \{llvm\.align = \d+ : i64\}", "", line)
    if "exp2" in rules:
        line = line.replace("ex2.approx.ftz.f32", "ex2.approx.f32")
    if "cluster" in rules:
        line = line.replace("nvvm.cluster.arrive.relaxed", "nvvm.cluster.arrive")
    if "shared names" in rules:
        line = re.sub(r'cute\.dynamic_smem_names = "[^"]*", ', "", line)
    if "wgmma" in rules:
        line = line.replace("cute.ptx_wgmma", "cute.wgmma")
    return line


def _parameters(found: re.Match[str]) -> str:
    """The attributes of a kernel's parameters, last in their line and without the alignment of
    pointers in global memory, which have no others; nothing if that is all there is.
    """
    left = re.sub(r"\{llvm\.align = \d+ : i64\}", "{}", found[1])
    return found[2] + (f" parameters = [{left}]" if left.strip("{}, ") else "")


def _shape(body: str, defined: list[str]) -> str:
    """The line without the names of values."""
    return _VALUE.sub(lambda one: "@" if one[0] in defined else _HOLE, body)


def _definitions(body: str) -> list[str]:
    """The values that a line itself defines: arguments of functions and blocks, of loops."""
    if body.startswith("^") or "func @" in body or "func.func" in body or "llvm.func" in body:
        return re.findall(r"(%[\w$.-]+):", body)
    return re.findall(r"(%[\w$.-]+) =", body) if body.endswith("{") else []


# The rules ---------------------------------------------------------------------------------------


def _contract(reader: Reader, head: str, operands: tuple[int, ...]) -> int | None:
    """Write `math.fma` as a product and a sum, differences as sums, and operands in order."""
    name, _, type_ = head.partition(" ")
    kind = type_.rpartition(" : ")[2].rpartition("-> ")[2]
    if name == "math.fma" or head.startswith(("llvm.intr.fma(", 'llvm.call_intrinsic "llvm.fma"')):
        a, b, c = operands
        return _float_sum(reader, kind, (_product(reader, kind, a, b), c))
    if name in ("arith.addf", "llvm.fadd"):
        return _float_sum(reader, kind, operands)
    if name in ("arith.subf", "llvm.fsub"):
        a, b = operands
        return _float_sum(reader, kind, (a, _negated(reader, kind, b)))
    if name in ("arith.mulf", "llvm.fmul"):
        return _product(reader, kind, *operands)
    if name in ("arith.negf", "llvm.fneg"):
        return _negated(reader, kind, *operands)
    return None


def _float_sum(reader: Reader, kind: str, operands: tuple[int, ...]) -> int:
    a, b = sorted(operands)
    return reader.plain(f"{_HOLE} + {_HOLE} : {kind}", (a, b))


def _product(reader: Reader, kind: str, a: int, b: int) -> int:
    """A product; signs are in front of it."""
    minus = 0
    factors = []
    for one in (a, b):
        head, inner = reader.nodes[one]
        is_negated = head.startswith("- ")
        minus += is_negated
        factors.append(inner[0] if is_negated else one)
    product = reader.plain(f"{_HOLE} * {_HOLE} : {kind}", tuple(sorted(factors)))
    return _negated(reader, kind, product) if minus == 1 else product


def _negated(reader: Reader, kind: str, a: int) -> int:
    head, inner = reader.nodes[a]
    return inner[0] if head.startswith("- ") else reader.plain(f"- {_HOLE} : {kind}", (a,))


_INTEGER = re.compile(
    r"arith\.constant (-?\d+) : (?:i32|i64|index)"
    r"|llvm\.mlir\.constant\((-?\d+) : (?:i32|i64|index)\) : \w+"
)


def _address(reader: Reader, head: str, operands: tuple[int, ...]) -> int | None:
    """Write sums, products with constants and addresses as sums with factors."""
    constant = _INTEGER.fullmatch(head)
    if constant:
        value = next(one for one in constant.groups() if one is not None)
        return reader.add_up({}, Fraction(value))
    name = head.partition(" ")[0]
    if name in ("arith.addi", "llvm.add", "arith.subi", "llvm.sub"):
        sign = -1 if "sub" in name else 1
        return _added(reader, [(operands[0], Fraction(1)), (operands[1], Fraction(sign))])
    if name in ("arith.muli", "llvm.mul"):
        for one, other in (operands, operands[::-1]):
            terms, value = reader.sum_of(other)
            if not terms:
                return _added(reader, [(one, value)])
    if name in ("arith.shli", "llvm.shl"):
        terms, value = reader.sum_of(operands[1])
        if not terms:
            return _added(reader, [(operands[0], Fraction(2 ** int(value)))])
    if name == "llvm.getelementptr":
        return _element_pointer(reader, head, operands)
    return None


def _added(reader: Reader, parts: list[tuple[int, Fraction]], constant: int = 0) -> int:
    terms: dict[int, Fraction] = {}
    total = Fraction(constant)
    for number, factor in parts:
        inner, value = reader.sum_of(number)
        total += factor * value
        for one, times in inner.items():
            terms[one] = terms.get(one, Fraction(0)) + factor * times
    return reader.add_up(terms, total)


_POINTER = re.compile(
    rf"llvm\.getelementptr (?:inbounds )?{_HOLE}\[({_HOLE}|-?\d+)\] : \(.*\) -> \S+, (\S+)"
)


def _element_pointer(reader: Reader, head: str, operands: tuple[int, ...]) -> int | None:
    found = _POINTER.fullmatch(head)
    size = _BYTES.get(found[2]) if found else None
    if found is None or size is None:
        return None
    base = (operands[0], Fraction(1))
    if found[1] == _HOLE:
        return _added(reader, [base, (operands[1], Fraction(size))])
    return _added(reader, [base], size * int(found[1]))


def _bit_strides(reader: Reader, head: str, operands: tuple[int, ...]) -> int | None:
    """Write `x * 8n >> 3` as `x * n`."""
    if not head.startswith(("arith.shrsi", "llvm.ashr")):
        return None
    terms, value = reader.sum_of(operands[1])
    inner, constant = reader.sum_of(operands[0])
    exact = all(factor % 8 == 0 for factor in (*inner.values(), constant))
    if terms or value != 3 or not exact:
        return None
    return reader.add_up({one: factor / 8 for one, factor in inner.items()}, constant / 8)


_REWRITES: tuple[tuple[str, Rule], ...] = (
    ("contraction", _contract),
    ("bit strides", _bit_strides),
    ("addresses", _address),
)


def unexplained(before: Sequence[str], after: Sequence[str]) -> tuple[set[str], int]:
    """Compare texts that a function had with those that it has now.

    Return the rules that are needed to find the first old text among the new ones, since trying
    takes long, and how many are not found with all rules.
    """
    reader = Reader(set(RULES))
    forms = {tuple(reader.lines(text)): text for text in after}
    found = [(text, forms.get(tuple(reader.lines(text)))) for text in before]
    first = next(((text, other) for text, other in found if other is not None), None)
    needed = _needed(*first) if first else set()
    return needed, sum(other is None for _, other in found)


def _needed(before: str, after: str) -> set[str]:
    """The rules without which two texts differ that are equal with all."""
    needed = set(RULES)
    for name in reversed(RULES):
        if _equal(before, after, needed - {name}):
            needed.remove(name)
    return needed


def _equal(before: str, after: str, rules: set[str]) -> bool:
    reader = Reader(rules)
    return reader.lines(before) == reader.lines(after)


# Reporting ---------------------------------------------------------------------------------------

COMPARED = ("traced", "lowered")  # what other texts are made from


def report(base: Any, new: Any) -> int:
    """Print what explains the differences between two records of `same_code.py`, by function;
    return how many functions nothing explains.
    """
    known = tomllib.loads(CAUSES.read_text(encoding="utf-8"))
    functions: dict[tuple[str, str], set[str]] = defaultdict(set)
    missing = {key[:2] for key in base.digests} - {key[:2] for key in new.digests}
    for key in sorted(base.digests):
        if key[:2] in missing or key[2] not in COMPARED:
            continue
        here, there = base.digests[key], new.digests[key]
        causes = functions[key[:2]]
        if here <= there:
            continue
        needed, left = unexplained(
            [base.texts[one] for one in sorted(here - there)],
            [new.texts[one] for one in sorted(there - here)],
        )
        causes |= needed
        if left:
            causes |= set(known["functions"].get(key[1], ["unexplained"]))
    equal = [one for one, causes in functions.items() if not causes]
    by_rules = [one for one, causes in functions.items() if causes and causes <= RULES.keys()]
    open_ = [one for one, causes in functions.items() if "unexplained" in causes]
    for name in (*RULES, *known["commits"], "unexplained"):
        of = sorted(symbol for (_, symbol), causes in functions.items() if name in causes)
        if of:
            print(f"{len(of):5}  {name}: {RULES.get(name) or known['commits'].get(name, '')}")
            print("       " + " ".join(of[:6]) + (" ..." if len(of) > 6 else ""))
    for dsl, symbol in sorted(missing):
        print(f"       {dsl} {symbol} is gone: {known['gone'].get(symbol, 'unexplained')}")
    others = len(functions) - len(equal) - len(by_rules) - len(open_)
    print(
        f"{len(functions)} functions: {len(equal)} equal byte for byte, {len(by_rules)} after the "
        f"rules above, {others} changed by commits that the file names, {len(open_)} unexplained"
    )
    return len(open_)
