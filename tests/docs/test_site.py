"""The site: links lead somewhere, pictures are what the code draws, the menu has every page."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def load(name):
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def generated():
    return load("site").pages()


def anchors(text):
    """The anchors of a page's headings, as Python-Markdown and GitHub make them."""
    found = set()
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        plain = re.sub(r"[^\w\s-]", "", heading.lower()).strip()
        found.add(re.sub(r"[-\s]+", "-", plain))
    return found


def links(path):
    text = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(), flags=re.DOTALL)
    return re.findall(r"\]\(([^)\s]+)\)", text)


@pytest.mark.parametrize(
    "page",
    [*sorted(DOCS.rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_links_lead_somewhere(page, generated):
    for link in links(page):
        if link.startswith(("https://", "http://", "mailto:")):
            continue
        target, _, anchor = link.partition("#")
        path = (page.parent / target).resolve() if target else page
        made = str(path.relative_to(DOCS)) if path.is_relative_to(DOCS) else ""
        if made in generated:
            text = generated[made]
        else:
            assert path.exists(), f"{link} in {page.name}"
            text = path.read_text() if path.suffix == ".md" else ""
        if anchor:
            assert anchor in anchors(text), f"{link} in {page.name}"


def test_pictures_are_what_the_code_draws(tmp_path):
    pictures = load("pictures")
    pictures.FOLDER = tmp_path
    pictures.main()
    for drawn in tmp_path.iterdir():
        assert (DOCS / "pictures" / drawn.name).read_text() == drawn.read_text(), drawn.name


def test_every_page_is_in_the_menu_or_linked(generated):
    menu = set(
        re.findall(r"^ +- [^:]+: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    )
    written = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    assert menu <= written | set(generated)
    linked = {
        str((page.parent / link.partition("#")[0]).resolve())
        for page in [*DOCS.rglob("*.md"), ROOT / "README.md"]
        for link in links(page)
    }
    alone = [page for page in written - menu if str(DOCS / page) not in linked]
    assert not alone, "add these to the menu in mkdocs.yml"


def test_the_reference_has_every_public_name(generated):
    import basedsl_cute as cute

    for module, names, page in (
        (cute, cute.__all__, "api/cute.md"),
        (cute.arch, cute.arch.__all__, "api/cute.arch.md"),
        (cute.jax, cute.jax.__all__, "api/cute.jax.md"),
    ):
        headings = set(re.findall(r"^## `(\w+)`$", generated[page], re.MULTILINE))
        modules = {name for name in names if type(getattr(module, name)).__name__ == "module"}
        assert set(names) - modules - headings == set()


def test_messages_can_be_searched(generated):
    text = generated["api/messages.md"]
    assert text.count("\n## ") > 200
    assert "is called and never launched" in text
