"""Every op: its documented sample parses, prints and parses back; wrong ones are refused."""

from __future__ import annotations

import re

import pytest

from basedsl_cute.dialect import OPS

G = '!cute.memref<f32, "gmem", "(?):(1)">'
G16 = '!cute.memref<f32, "gmem align<16>", "(4):(1)">'
S = '!cute.memref<f32, "smem", "(64):(1)">'
S16 = '!cute.memref<f32, "smem align<16>", "(4):(1)">'
R = '!cute.memref<f32, "rmem align<16>", "(4):(1)">'
I = '!cute.memref<i32, "gmem", "(?):(1)">'


def wgmma(acc: str = "%r", kind: str = R, **changes: object) -> str:
    """A `cute.wgmma` of two steps, with some attributes changed."""
    attributes = {
        "n": 8,
        "d_type": '"f32"',
        "a_type": '"f16"',
        "b_type": '"f16"',
        "a_major": '"k"',
        "b_major": '"k"',
        "a_steps": "array<i64: 0, 2>",
        "b_steps": "array<i64: 0, 2>",
    }
    text = ", ".join(f"{name} = {value}" for name, value in {**attributes, **changes}.items())
    return f"({acc}, %d, %d) {{{text}}} : ({kind}, i64, i64) -> ()"


def replace(
    field: str, value: str, kind: str, at: str = "%p", place: str = "!llvm.ptr<1>", ordinal: int = 0
) -> str:
    """A `cute.tensormap_replace`."""
    attributes = f"{{field = {field}, ordinal = {ordinal} : i64}}"
    return f"({at}, {value}) {attributes} : ({place}, {kind}) -> ()"


def tmem(way: str, address: str = "!llvm.ptr<6>", **changes: str) -> str:
    """A `cute.tmem_load` or `cute.tmem_store` of two registers, with some attributes changed."""
    attributes = {"shape": '"32x32b"', "repeat": "2 : i64", "steps": "array<i64: 0>"} | changes
    text = "{" + ", ".join(f"{name} = {value}" for name, value in attributes.items()) + "}"
    at = "%t" if address == "!llvm.ptr<6>" else "%p"
    if way == "load":
        return f"({at}) {text} : ({address}) -> vector<2xi32>"
    return f"({at}, %w) {text} : ({address}, vector<2xi32>) -> ()"


# Per op: generic text after the op's name, and what the message must say.
REFUSED = {
    "load": [
        (f"(%g, %i) : ({G}, i32) -> f16", "the value is f16, the tensor's elements are f32"),
        (f"(%g, %x) : ({G}, f32) -> f32", "the index is f32, not i32 or i64"),
        ("(%i, %i) : (i32, i32) -> f32", "i32 is no tensor"),
        (f"(%g, %i) : ({G}, i32) -> vector<2x2xf32>", "one dimension"),
        (f"(%g, %i) {{alignment = 6 : i64}} : ({G}, i32) -> f32", "6 is no power of two"),
        (f'(%g, %i) {{cache = "zz"}} : ({G}, i32) -> f32', "cache 'zz' is none of"),
        ('(%bad, %i) : (!cute.memref<f32, "moon", "(1):(0)">, i32) -> f32', "'moon' is no memory"),
    ],
    "store": [
        (f"(%h, %g, %i) : (f16, {G}, i32) -> ()", "the value is f16, the tensor's elements"),
        (f"(%x, %g, %x) : (f32, {G}, f32) -> ()", "the index is f32"),
    ],
    "atomic_rmw": [
        (f'(%i, %n, %i) {{kind = "nand"}} : (i32, {I}, i32) -> i32', "'nand' is none of"),
        (f'(%x, %n, %i) {{kind = "add"}} : (f32, {I}, i32) -> f32', "the value is f32"),
        (f'(%x, %r, %i) {{kind = "add"}} : (f32, {R}, i32) -> f32', "belong to one thread"),
        (f'(%i, %n, %i) {{kind = "add", order = "x"}} : (i32, {I}, i32) -> i32', "order 'x'"),
        (f'(%i, %n, %i) {{kind = "add", scope = "x"}} : (i32, {I}, i32) -> i32', "scope 'x'"),
    ],
    "atomic_cas": [(f"(%x, %x, %n, %i) : (f32, f32, {I}, i32) -> f32", "the value is f32")],
    "view": [
        (f"(%g, %i) : ({G}, i32) -> {S}", "the view is in smem, the source in gmem"),
        (f"(%g, %i) : ({G}, i32) -> {I}", "the view's elements are i32"),
        (f"(%g, %x) : ({G}, f32) -> {G}", "the offset is f32"),
    ],
    "recast": [
        (f"(%g) : ({G}) -> {S}", "the view is in smem"),
        (f"(%g) : ({G}) -> i32", "i32 is no tensor"),
    ],
    "iterator": [(f"(%g) : ({G}) -> !llvm.ptr<3>", "an address in gmem is !llvm.ptr<1>")],
    "make_memref": [(f"(%p) : (!llvm.ptr<1>) -> {S}", "an address in smem is !llvm.ptr<3>")],
    "alloc_smem": [
        (f"() {{bytes = 0 : i64}} : () -> {S}", "cannot allocate 0 bytes"),
        (f"() {{bytes = 4 : i64}} : () -> {G}", "the tensor is in gmem, not in smem"),
    ],
    "dynamic_smem": [(f"() : () -> {G}", "the tensor is in gmem, not in smem")],
    "alloc_rmem": [(f"() {{bytes = 4 : i64}} : () -> {S}", "the tensor is in smem, not in rmem")],
    "copy": [
        (f'(%g16, %r) {{atom = "x", bits = 32}} : ({G16}, {R}) -> ()', "no copy atom 'x'"),
        (f'(%n, %r) {{atom = "universal", bits = 32}} : ({I}, {R}) -> ()', "converts nothing"),
        (f'(%g, %r) {{atom = "universal", bits = 128}} : ({G}, {R}) -> ()', "16-byte alignment"),
        (f'(%g16, %r) {{atom = "universal", bits = 48}} : ({G16}, {R}) -> ()', "no whole number"),
        (f'(%g16, %r) {{atom = "universal", bits = 64, cache = "q"}} : ({G16}, {R}) -> ()', "'q'"),
        (f'(%g16, %r) {{atom = "cp_async", bits = 128}} : ({G16}, {R}) -> ()', "into smem, not"),
        (f'(%s16, %s16) {{atom = "cp_async", bits = 128}} : ({S16}, {S16}) -> ()', "from gmem"),
        (
            f'(%g16, %s16) {{atom = "cp_async", bits = 64, cache = "cg"}} : ({G16}, {S16}) -> ()',
            "'cg' copies 128 bits",
        ),
        (f'(%g16, %r, %i) {{atom = "universal", bits = 32}} : ({G16}, {R}, i32) -> ()', "not i1"),
    ],
    "gemm": [
        (f'(%r, %r, %r, %r) {{atom = "x"}} : ({R}, {R}, {R}, {R}) -> ()', "no MMA atom 'x'"),
        (
            f'(%r, %n, %r, %r) {{atom = "universal_fma"}} : ({R}, {I}, {R}, {R}) -> ()',
            "takes one element type, not f32, i32, f32, f32",
        ),
    ],
    "barrier": [
        ("() {id = 16 : i64} : () -> ()", "a block has barriers 0 to 15"),
        ("() {count = 33 : i64} : () -> ()", "a barrier counts whole warps"),
    ],
    "wgmma": [
        (wgmma(n=12), "n is 12: N is a multiple of 8"),
        (wgmma(n=40, d_type='"i32"', a_type='"i8"', b_type='"i8"'), "N of integers is 8, 24"),
        (wgmma(b_type='"bf16"'), "a of f16 goes with b of f16"),
        (wgmma(d_type='"i32"'), "a of f16 goes with d of f32 or f16"),
        (
            wgmma(d_type='"i32"', a_type='"i8"', b_type='"i8"', negate_a="unit"),
            "integers are not negated",
        ),
        (wgmma(a_type='"f64"'), "a of f64: there are f16"),
        (wgmma(b_major='"n"'), "the major mode of b is 'n'"),
        (wgmma(a_type='"i8"', b_type='"i8"', b_major='"mn"'), "b of i8 must have K contiguous"),
        (wgmma(a_steps="array<i64: 0>"), "a and b have different numbers of steps"),
        (wgmma("%g", G), "acc is !cute.memref<f32"),
        (wgmma("%a", "!llvm.ptr"), "acc is !llvm.ptr, not a tensor in registers"),
    ],
    "ptx_wgmma": [
        (wgmma("%a", "!llvm.ptr", n=12), "n is 12: N is a multiple of 8"),
        (wgmma(), 'acc is !cute.memref<f32, "rmem align<16>", "(4):(1)">, not an address'),
        (wgmma("%p", "!llvm.ptr<1>"), "acc is !llvm.ptr<1>, not an address"),
    ],
    "dsmem_store": [
        ("(%p, %p, %i) : (!llvm.ptr<1>, !llvm.ptr<1>, i32) -> ()", "the target is !llvm.ptr<1>"),
        ("(%c, %p, %i) : (!llvm.ptr<7>, !llvm.ptr<1>, i32) -> ()", "the barrier is !llvm.ptr<1>"),
        ("(%c, %c, %x) : (!llvm.ptr<7>, !llvm.ptr<7>, f32) -> ()", "the value is f32, not i32"),
    ],
    "launch_response": [
        ("(%p) : (!llvm.ptr<1>) -> vector<4xi32>", "the address is !llvm.ptr<1>, not !llvm.ptr<3>"),
        ("(%q) : (!llvm.ptr<3>) -> vector<2xi32>", "vector<2xi32>, not vector<4xi32>"),
    ],
    "tmem_load": [
        (tmem("load", shape='"8x8b"'), "the shape '8x8b' is none of 32x32b"),
        (tmem("load", repeat="3 : i64"), "a power of two times up to 128, not 3"),
        (tmem("load", "!llvm.ptr<1>"), "the address is !llvm.ptr<1>, not !llvm.ptr<6>"),
        (tmem("load", repeat="4 : i64"), "vector<2xi32>, not vector<4xi32>"),
        (tmem("load", reduction='"sum"'), "'sum' is none of max, min"),
        (
            tmem("load", reduction='"max"', shape='"16x64b"'),
            "only 32x32b and 16x32bx2, from 2 repetitions on",
        ),
    ],
    "tmem_store": [
        (tmem("store", shape='"16x256b"', repeat="64 : i64"), "up to 32, not 64"),
        (tmem("store", steps="array<i64: 0, 2>"), "vector<2xi32>, not vector<4xi32>"),
    ],
    "tensormap_replace": [
        (replace('"global_dim"', "%i", "i32", "%g", G), "map is !cute.memref<f32"),
        (replace('"box_dim"', "%i", "i32"), "'box_dim' is none of the fields global_address"),
        (replace('"global_dim"', "%d", "i64"), "the value of global_dim is i64, not i32"),
        (replace('"global_stride"', "%d", "i64", ordinal=5), "the ordinal of global_stride"),
        (replace('"global_address"', "%d", "i64", ordinal=1), "the ordinal of global_address"),
    ],
    "tensormap_release": [
        ("(%p, %p) : (!llvm.ptr<1>, !llvm.ptr<1>) -> ()", "source is !llvm.ptr<1>, not !llvm.ptr"),
        (f"(%g, %p) : ({G}, !llvm.ptr<1>) -> ()", "target is !cute.memref<f32"),
    ],
}

ARGUMENTS = f"""%g: {G}, %g16: {G16}, %s: {S}, %s16: {S16}, %r: {R}, %n: {I}, %i: i32, %x: f32,
  %h: f16, %d: i64, %a: !llvm.ptr, %p: !llvm.ptr<1>, %c: !llvm.ptr<7>, %t: !llvm.ptr<6>,
  %w: vector<2xi32>, %q: !llvm.ptr<3>,
  %bad: !cute.memref<f32, "moon", "(1):(0)">"""


def function(body: str, arguments: str = ARGUMENTS) -> str:
    return f"func.func @f({arguments}) {{\n{body}\nreturn\n}}"


def arguments_of(sample: str) -> str:
    """Parameters for what a sample uses and does not define, typed by its own signatures."""
    types: dict[str, str] = {}
    defined = re.findall(r"^(%\w+) =", sample, re.MULTILINE)
    for statement in re.split(r"\n(?=%|\")", sample):
        found = re.search(r'"cute\.\w+"\(([^)]*)\)(?: \{.*?\})?\s*:\s*\(', statement, re.DOTALL)
        assert found, statement
        names = [n.strip() for n in found[1].split(",") if n.strip()]
        kinds = split_types(statement[found.end() :])
        types.update(zip(names, kinds, strict=True))
    return ", ".join(f"{name}: {kind}" for name, kind in types.items() if name not in defined)


def split_types(text: str) -> list[str]:
    """The types up to the parenthesis that closes the list."""
    depth, quoted, kinds, last = 0, False, [], ""
    for char in text:
        quoted ^= char == '"'
        if not quoted and depth == 0 and char in ",)":
            kinds.append(" ".join(last.split()))
            last = ""
            if char == ")":
                return [k for k in kinds if k]
            continue
        if not quoted:
            depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(char, 0)
        last += char
    raise AssertionError(text)


@pytest.mark.parametrize("name", OPS)
def test_the_documented_sample_round_trips(cute, name):
    sample = OPS[name].sample()
    assert f'"cute.{name}"' in sample, "the docstring shows no IR"
    ir = cute.ir
    once = str(ir.Module.parse(function(sample, arguments_of(sample))))
    assert str(ir.Module.parse(once)) == once
    assert f'"cute.{name}"' in once


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [(name, text, message) for name, cases in REFUSED.items() for text, message in cases],
)
def test_wrong_operands_are_refused_in_words(cute, name, text, message):
    result = "%r0 = " if "-> ()" not in text else ""
    with pytest.raises(cute.ir.MLIRError) as refused:
        cute.ir.Module.parse(function(f'{result}"cute.{name}"{text}'))
    assert message in str(refused.value)
    assert f"'cute.{name}':" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"(%g) : ({G}) -> f32", "1 operands, where it has memref, index"),
        (f"(%g, %i, %i) : ({G}, i32, i32) -> f32", "3 operands, where it has memref, index"),
        (f"(%g, %i) : ({G}, i32) -> (f32, f32)", "2 results, where it has value"),
        (
            f"(%g, %i) {{alignment = 16 : i32}} : ({G}, i32) -> f32",
            "the attribute 'alignment' is 16 : i32, not an integer of 64 bits",
        ),
        (f"(%g, %i) {{cache = 3}} : ({G}, i32) -> f32", "'cache' is 3 : i64, not a string"),
        (f"(%g, %i) {{volatile = 1}} : ({G}, i32) -> f32", "'volatile' is 1 : i64, not a unit"),
    ],
)
def test_what_does_not_fit_the_declaration_is_refused(cute, text, message):
    result = "%r0:2 = " if "(f32, f32)" in text else "%r0 = "
    with pytest.raises(cute.ir.MLIRError) as refused:
        cute.ir.Module.parse(function(f'{result}"cute.load"{text}'))
    assert message in str(refused.value)
    assert "'cute.load': " in str(refused.value)


def test_a_required_attribute_is_missed_by_name(cute):
    with pytest.raises(cute.ir.MLIRError, match=r"'cute\.gemm': the attribute 'atom' is missing"):
        cute.ir.Module.parse(function(f'"cute.gemm"(%r, %r, %r, %r) : ({R}, {R}, {R}, {R}) -> ()'))


def test_every_op_has_a_negative_test():
    assert REFUSED.keys() == OPS.keys(), "give REFUSED a wrong use of each operation"


def test_bytecode_round_trip(cute):
    import io

    module = cute.ir.Module.parse(function(f'%v = "cute.load"(%g, %i) : ({G}, i32) -> f32'))
    data = io.BytesIO()
    module.operation.write_bytecode(data)
    assert str(cute.ir.Module.parse(data.getvalue())) == str(module)


def test_verification_does_not_wait_for_itself(cute):
    # Verifiers are Python; MLIR would run them in other threads for several functions at once.
    body = f'%v = "cute.load"(%g, %i) : ({G}, i32) -> f32'
    functions = [function(body).replace("@f", f"@f{i}") for i in range(8)]
    assert cute.ir.Module.parse("\n".join(functions)).operation.verify()
