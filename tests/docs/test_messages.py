"""Words of error messages: headlines are short, and an article fits the noun after it.

What is read is the source: the literal parts of each headline, with eight characters for each value
that is filled in. Values that may be long (layouts, types of tensors) belong in notes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ("basedsl", "plugins/toy/basedsl_toy", "plugins/cute/basedsl_cute")
LONGEST, VALUE = 100, 8
ERROR = re.compile(r"(Error|Bug)$")
#: "a Int32", "an Uint8": the sound of the noun decides.
WRONG_ARTICLE = re.compile(
    r"\b(a (?:Int|[aeio](?!(?:ne|nd|re)\b)[a-z]{2,})"
    r"|an (?:Uint|T?Float|BFloat|Buffer|Tensor|Layout|Pointer|unit|user))"
)
FILLED_IN = "\x00"

Message = tuple[int, str]


def texts(node: ast.expr) -> list[str]:
    """The texts that an expression may give, with a mark for each value filled in."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values=parts):
            return ["".join(p.value if isinstance(p, ast.Constant) else FILLED_IN for p in parts)]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [a + b for a in texts(left) for b in texts(right)]
        case ast.IfExp(body=body, orelse=orelse):
            return texts(body) + texts(orelse)
    return [FILLED_IN]


def name_of(call: ast.Call) -> str:
    return getattr(call.func, "id", None) or getattr(call.func, "attr", "")


def takers(trees: list[ast.Module]) -> dict[str, int]:
    """The functions that take a headline, a parameter called `message`, and its position."""
    found = {}
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("__"):
                names = [arg.arg for arg in node.args.args if arg.arg != "self"]
                if "message" in names:
                    found[node.name] = names.index("message")
    return found


def headlines(tree: ast.Module, takers: dict[str, int]) -> Iterator[Message]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = name_of(node)
            place = 0 if ERROR.search(name) else takers.get(name, len(node.args))
            for text in texts(node.args[place]) if place < len(node.args) else ():
                yield node.lineno, text


def too_long(text: str) -> bool:
    values = text.count(FILLED_IN)
    return len(text) - values + VALUE * values > LONGEST


def wrong_articles(tree: ast.Module) -> Iterator[Message]:
    """Yield texts with a wrong article, and "a {T.__name__}", which is wrong for some types."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found = WRONG_ARTICLE.search(node.value)
            if found:
                yield node.lineno, found[0]
        if isinstance(node, ast.JoinedStr):
            for before, value in zip(node.values, node.values[1:], strict=False):
                text = before.value if isinstance(before, ast.Constant) else ""
                named = isinstance(value, ast.FormattedValue) and "__name__" in ast.unparse(value)
                if named and re.search(r"(^|\s)an? $", str(text)):
                    yield node.lineno, ast.unparse(node)


def sources() -> dict[str, ast.Module]:
    files = [path for folder in SOURCES for path in sorted((ROOT / folder).rglob("*.py"))]
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text()) for path in files}


TREES = {path: tree for path, tree in sources().items() if "/conformance/programs/" not in path}
TAKERS = takers(list(TREES.values()))


def test_headlines_are_short():
    found = [
        f"{path}:{line}: {text.replace(FILLED_IN, '{}')}"
        for path, tree in TREES.items()
        for line, text in headlines(tree, TAKERS)
        if too_long(text)
    ]
    assert {"reject", "unsupported"} <= TAKERS.keys()
    assert not found, "\n".join(["put some of these headlines into notes or a hint:", *found])


def test_articles_fit_their_nouns():
    found = [
        f"{path}:{line}: {text}"
        for path, tree in TREES.items()
        for line, text in wrong_articles(tree)
    ]
    assert not found, "\n".join(["use with_article for the name of a type:", *found])


def test_long_headlines_and_wrong_articles_are_found():
    source = f"""
def refuse(node, message): ...
raise DSLError(f"{"word " * 18}{{x}}, {{y}}")
raise DSLError("short", hint="{"word " * 30}")
refuse(1, "{"word " * 21}")
raise errors.DSLTypeError("{"word " * 10}" + ("{"word " * 11}" if x else "y"))
raise DSLError(f"a {{type(x).__name__}} in an Int32")
raise DSLError("a Int32 and an Uint8, a unit, a user, an 8-bit number, a Uint8")
"""
    tree = ast.parse(source)
    long = [line for line, text in headlines(tree, takers([tree])) if too_long(text)]
    assert long == [3, 5, 6]
    assert [line for line, _ in wrong_articles(tree)] == [7, 8]
