"""Plugins and examples import the core by its one namespace, which is documented whole."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import basedsl

ROOT = Path(__file__).parents[2]
PLUGINS = [
    *ROOT.glob("plugins/*/basedsl_*/**/*.py"),
    *ROOT.glob("examples/**/*.py"),
]
PAGES = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("plugins/*/README.md")]


def imports_of_the_core(source):
    """Yield (line, module, name) of each import of basedsl."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found = [(alias.name, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found = [(node.module, alias.name) for alias in node.names]
        else:
            continue
        for module, name in found:
            if module.partition(".")[0] == "basedsl":
                yield node.lineno, module, name


def strangers(source):
    """The imports of the core that are not of its namespace."""
    return [
        (line, module, name)
        for line, module, name in imports_of_the_core(source)
        if module != "basedsl" or (name is not None and name not in basedsl.__all__)
    ]


def test_a_deeper_import_is_found():
    assert strangers("from basedsl.errors import DSLError") == [(1, "basedsl.errors", "DSLError")]
    assert strangers("import basedsl.driver") == [(1, "basedsl.driver", None)]
    assert strangers("from basedsl import driver") == [(1, "basedsl", "driver")]
    assert strangers("import basedsl\nfrom basedsl import DSL\nimport basedsl_toy") == []


def test_plugins_and_examples_import_the_namespace_alone():
    assert len(PLUGINS) > 200
    found = {str(p.relative_to(ROOT)): s for p in PLUGINS if (s := strangers(p.read_text()))}
    assert found == {}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_documentation_imports_the_namespace_alone(page):
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
        if ">>>" not in block:
            assert strangers(block) == []


def test_reference_names_everything_once():
    page = (ROOT / "docs" / "reference.md").read_text()
    named = re.findall(r"^\| `(\w+)` \| \S.* \|$", page, re.MULTILINE)
    assert sorted(named) == sorted(basedsl.__all__)


def test_every_name_exists():
    for name in basedsl.__all__:
        getattr(basedsl, name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = basedsl.nothing


def test_importing_it_loads_no_mlir_and_no_llvm():
    program = (
        "import sys, basedsl\n"
        "print([n for n in sys.modules if 'mlir' in n.split('.')[0].lower() or n == 'llvmlite'])"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (out.stdout.strip(), out.stderr) == ("[]", "")


def test_new_distributions_import_the_namespace_alone():
    templates = list((ROOT / "basedsl" / "cli" / "new_files").rglob("*.py.txt"))
    assert len(templates) == 4
    for template in templates:
        assert strangers(template.read_text().replace("$", "own_")) == []
