"""The explorer's server: one page and its data, for this machine and this address alone.

It listens on the loopback interface. Every path begins with a token that only the printed address
has, and a request under another host's name is refused: a page of the network can then neither
guess the address nor have a name point at it.
"""

from __future__ import annotations

import hmac
import http
import http.server
import importlib.resources
import json
import secrets
import threading
import time
from typing import Any

_HOST = "127.0.0.1"
_WAIT_SECONDS = 20.0
_VERSIONS_KEPT = 20


class Versions:
    """The records of a file's versions, oldest first, and waiting for the next."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._records: list[dict[str, Any]] = []
        self._count = 0

    def add(self, record: dict[str, Any]) -> None:
        """Add the record of a new version."""
        with self._changed:
            self._count += 1
            shown = time.strftime("%H:%M:%S")
            self._records.append({**record, "number": self._count, "time": shown})
            del self._records[:-_VERSIONS_KEPT]
            self._changed.notify_all()

    def since(self, number: int, seconds: float = 0.0) -> list[dict[str, Any]]:
        """Return the versions after `number`; wait for one at most `seconds`."""
        with self._changed:
            self._changed.wait_for(lambda: self._count > number, seconds)
            return [one for one in self._records if one["number"] > number]


def page(versions: list[dict[str, Any]], follows: bool) -> str:
    """Return the page with these versions in it. One that `follows` asks its server for others; one
    that does not is whole, a file to keep.
    """
    text = importlib.resources.files("basedsl.explorer").joinpath("page.html").read_text("utf-8")
    data = json.dumps({"versions": versions, "follows": follows}).replace("</", "<\\/")
    return text.replace("/*DATA*/null", data)


class Server:
    """Serves the explorer of `versions`; `address` is what a browser opens."""

    def __init__(self, versions: Versions, port: int = 0) -> None:
        self.token = secrets.token_urlsafe(24)
        handler = type("Handler", (_Handler,), {"versions": versions, "token": self.token})
        self._http = http.server.ThreadingHTTPServer((_HOST, port), handler)
        self._http.daemon_threads = True
        self.port = self._http.server_address[1]
        self._thread = threading.Thread(target=self._http.serve_forever, daemon=True)

    @property
    def address(self) -> str:
        """The address of the page, with the token."""
        return f"http://{_HOST}:{self.port}/{self.token}/"

    def start(self) -> None:
        """Answer requests in a thread."""
        self._thread.start()

    def stop(self) -> None:
        """Answer no more requests."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


class _Handler(http.server.BaseHTTPRequestHandler):
    versions: Versions
    token: str
    server: http.server.ThreadingHTTPServer

    def do_GET(self) -> None:
        port = self.server.server_address[1]
        if self.headers.get("Host") not in (f"{_HOST}:{port}", f"localhost:{port}"):
            self.send_error(http.HTTPStatus.FORBIDDEN, "another host's name")
            return
        path, _, query = self.path.partition("?")
        given, _, rest = path.removeprefix("/").partition("/")
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            self.send_error(http.HTTPStatus.FORBIDDEN, "wrong token")
        elif rest == "":
            self._answer("text/html; charset=utf-8", page(self.versions.since(0), follows=True))
        elif rest == "data":
            number = int(query.partition("=")[2]) if query.partition("=")[2].isdigit() else 0
            found = self.versions.since(number, _WAIT_SECONDS)
            self._answer("application/json", json.dumps(found))
        elif rest == "export":
            self._answer("text/html; charset=utf-8", page(self.versions.since(0), follows=False))
        else:
            self.send_error(http.HTTPStatus.NOT_FOUND)

    def _answer(self, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(http.HTTPStatus.OK)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        try:
            self.end_headers()
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the page was closed

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: the address has the token."""
