"""The server answers its own address alone: loopback, the token, the right host name."""

from __future__ import annotations

import http.client
import json
import threading
import urllib.error
import urllib.request

import pytest

from basedsl.explorer.server import Server, Versions

RECORD = {
    "file": "f.py", "source": "x = '</script>'", "error": "", "output": "", "warnings": [],
    "compilations": [],
}  # fmt: skip


@pytest.fixture
def server():
    versions = Versions()
    versions.add(RECORD)
    made = Server(versions)
    made.versions = versions
    made.start()
    yield made
    made.stop()


def get(address):
    with urllib.request.urlopen(address, timeout=10) as answer:
        return answer.headers, answer.read().decode()


def test_the_page_has_what_there_is(server):
    headers, text = get(server.address)
    assert server.address.startswith("http://127.0.0.1:") and len(server.token) >= 32
    assert headers["Cache-Control"] == "no-store" and headers["Referrer-Policy"] == "no-referrer"
    assert "default-src 'none'" in text and '"file": "f.py"' in text
    assert "x = '</script>'" not in text  # would end the page's own script


def test_the_next_version_is_waited_for(server):
    timer = threading.Timer(0.1, server.versions.add, [{**RECORD, "source": "y"}])
    timer.start()
    _, text = get(f"{server.address}data?after=1")
    (found,) = json.loads(text)
    timer.join()
    assert (found["number"], found["source"]) == (2, "y")
    assert len(json.loads(get(f"{server.address}data?after=0")[1])) == 2


def test_the_exported_page_asks_nobody(server):
    assert '"follows": false' in get(f"{server.address}export")[1]


@pytest.mark.parametrize("path", ["/", "/wrong/", "/wrong/data", "/%s", "/../%s/"])
def test_another_token_is_refused(server, path):
    path = path % (server.token[:-1] + "~") if "%s" in path else path
    with pytest.raises(urllib.error.HTTPError) as caught:
        get(f"http://127.0.0.1:{server.port}{path}")
    assert caught.value.code == 403
    caught.value.close()


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "evil.example:80", ""])
def test_another_host_is_refused(server, host):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.putrequest("GET", f"/{server.token}/", skip_host=True)
    connection.putheader("Host", host)
    connection.endheaders()
    answer = connection.getresponse()
    assert answer.status == 403 and server.token not in answer.read().decode()
    connection.close()


def test_it_listens_on_the_loopback_interface_alone(server):
    assert server._http.socket.getsockname()[0] == "127.0.0.1"


def test_what_is_not_there(server):
    with pytest.raises(urllib.error.HTTPError) as caught:
        get(f"{server.address}nothing")
    assert caught.value.code == 404
    caught.value.close()
