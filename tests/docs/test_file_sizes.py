"""One idea a file: no module is longer than 600 lines."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST = 600
FOLDERS = ("basedsl", "plugins", "tests", "examples", "bench", "docs")


def test_no_module_is_longer_than_600_lines():
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    assert len(files) > 1000
    lines = {str(path.relative_to(ROOT)): path.read_bytes().count(b"\n") for path in files}
    assert {path: count for path, count in lines.items() if count > MOST} == {}
