"""The page in headless Chromium, driven through chromedriver's HTTP interface (W3C WebDriver)."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request

import pytest

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="no chromium and chromedriver"),
]

PROGRAM = """import basedsl_toy as toy

@toy.jit
def clamp(n, low):
    if n < low:
        n = low
    return 3 * n

clamp(5, 7)
"""
ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--window-size=1600,900",
]  # fmt: skip


class Browser:
    """A session of chromedriver."""

    def __init__(self, folder):
        self.process = subprocess.Popen(
            [DRIVER, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        line = next(one for one in self.process.stdout if "started successfully on port" in one)
        port = line.strip().rstrip(".").rpartition(" ")[2]
        self.base = f"http://127.0.0.1:{port}"
        options = {"binary": CHROMIUM, "args": [*ARGUMENTS, f"--user-data-dir={folder}"]}
        made = self.post("/session", capabilities={"alwaysMatch": {"goog:chromeOptions": options}})
        self.base += f"/session/{made['sessionId']}"

    def post(self, path, **body):
        request = urllib.request.Request(
            self.base + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]

    def run(self, script, *args):
        return self.post("/execute/sync", script=script, args=list(args))

    def wait(self, script, seconds=60):
        end = time.monotonic() + seconds
        while not (found := self.run(script)):
            assert time.monotonic() < end, self.run("return document.body.innerText")
            time.sleep(0.1)
        return found

    def end(self):
        with contextlib.suppress(OSError):
            request = urllib.request.Request(self.base, method="DELETE")
            urllib.request.urlopen(request, timeout=20).close()
        self.process.terminate()
        self.process.communicate()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    made = Browser(tmp_path_factory.mktemp("profile"))
    yield made
    made.end()


@pytest.fixture
def page(browser, tmp_path):
    """The explorer of a program's file, open in the browser."""
    file = tmp_path / f"prog_{os.urandom(4).hex()}.py"
    file.write_text(PROGRAM)
    process = subprocess.Popen(
        [sys.executable, "-m", "basedsl", "explore", str(file), "--no-browser"],
        stdout=subprocess.PIPE,
        text=True,
    )
    address = process.stdout.readline().strip()
    browser.post("/url", url=address)
    browser.wait("return document.querySelectorAll('section').length > 2")
    yield file
    process.terminate()
    process.communicate()


LINES = """
const of = name => [...document.querySelectorAll('section')]
  .find(s => s.querySelector('select').value === name).querySelectorAll('li');
"""


def test_lines_are_linked_both_ways(browser, page):
    found = browser.run(
        LINES
        + """
        const source = of('file'), ir = of('input');
        const cmp = [...ir].find(i => i.textContent.includes('arith.cmpi'));
        const over = item => item.dispatchEvent(new MouseEvent('mouseenter'));
        const out = item => item.dispatchEvent(new MouseEvent('mouseleave'));
        const lit = list => [...list].filter(i => i.classList.contains('on'));
        over(source[4]);
        const forwards = lit(ir).map(i => i.textContent);
        out(source[4]);
        const none = lit(ir).length + lit(source).length;
        over(cmp);
        const backwards = lit(source).map(i => i.textContent);
        out(cmp);
        const colour = item => getComputedStyle(item).backgroundColor;
        return {forwards, none, backwards, same: colour(cmp) === colour(source[4]),
          other: colour(source[4]) === colour(source[6])};
        """
    )
    assert any("arith.cmpi" in line for line in found["forwards"])
    assert found["none"] == 0 and found["backwards"] == ["    if n < low:"]
    assert found["same"] and not found["other"]


def test_a_save_is_followed_and_an_error_is_shown_and_survived(browser, page):
    page.write_text(PROGRAM.replace("3 * n", "3 *"))
    browser.wait("return document.querySelector('#problems .error')")
    shown = browser.run("return document.querySelector('#problems').innerText")
    assert "SyntaxError" in shown and "the last that compiled" in shown
    assert browser.run(LINES + "return of('input').length") > 3
    page.write_text(PROGRAM.replace("3 * n", "3 - n"))
    browser.wait("return !document.querySelector('#problems .error')")
    text = browser.run(LINES + "return [...of('input')].map(i => i.textContent).join('\\n')")
    assert "arith.subi" in text


def test_two_versions_side_by_side(browser, page):
    page.write_text(PROGRAM.replace("3 * n", "3 - n"))
    browser.wait("return document.getElementById('state').textContent.includes('version 2')")
    found = browser.run(
        """
        panes = [{version: 1, view: 'input'}, {version: 0, view: 'input'}];
        document.getElementById('diff').click();
        const of = name => [...document.querySelectorAll('li.' + name)].map(i => i.textContent);
        return {added: of('added'), removed: of('removed')};
        """
    )
    assert any("arith.subi" in line for line in found["added"])
    assert any("arith.muli" in line for line in found["removed"])


def test_facts_of_the_compilation(browser, page):
    text = browser.run("return document.getElementById('facts').innerText")
    assert "clamp" in text and "bytes of code" in text and "compiled in" in text


def test_nothing_is_fetched_from_elsewhere(browser, page):
    names = browser.run("return performance.getEntriesByType('resource').map(e => e.name)")
    origin = browser.run("return location.origin")
    assert all(name.startswith(origin + "/") for name in names)
    refused = browser.run(
        "return fetch('http://127.0.0.1:9/').then(() => 'fetched', e => String(e))"
    )
    assert refused != "fetched"


def test_light_and_dark(browser, page):
    colours = browser.run(
        """
        const back = () => getComputedStyle(document.body).backgroundColor;
        const first = back();
        document.getElementById('light').click();
        return [first, back()];
        """
    )
    assert colours[0] != colours[1]
