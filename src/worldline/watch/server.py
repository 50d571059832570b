"""Serves the page to browsers on this machine.

A page polls: it asks for what it hasn't got, a few times a second, and as often as it can draw. So nothing is pushed to
a browser that is slow or gone, a page that was reloaded or lost its connection just asks again, and a hundred of them
need no more than a hundred questions.

Access: only on loopback, unless another address is given. The address of the page has a token in it, without which
nothing is served. A question must name the host that it was meant for and come from the page itself, so no other page
in the browser can ask (DNS rebinding, cross-site requests), and the page can neither load nor send anything elsewhere.
"""

from __future__ import annotations

import hmac
import secrets
import socket
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, ClassVar, Self
from urllib.parse import parse_qs, urlsplit

from msgspec import DecodeError, json

from worldline.model.errors import UsageError, WorldlineError
from worldline.model.text import printable
from worldline.pictures.page import policy, title_of, written_page
from worldline.watch.show import Show

LOOPBACK = "127.0.0.1"
_CONNECTIONS_MAX = 256
_QUESTION_MAX = 2**16
_PATIENCE_S = 30.0


class PageServer:
    """Serves the shows of one page, one or two to be compared, from when it is entered until it is left."""

    def __init__(
        self, shows: list[Show], *, host: str = LOOPBACK, port: int = 0, extras: dict[str, Any] | None = None
    ) -> None:
        self._shows = shows
        self._token = secrets.token_urlsafe(16)
        facts = [show.facts for show in shows]
        self._page = written_page(title_of(facts), {"shows": facts, **(extras or {})}).encode()
        self._http = _opened(host, port)
        self._http.answer = self._answer
        self._thread = threading.Thread(
            target=self._http.serve_forever, args=(0.2,), name="worldline page", daemon=True
        )

    @property
    def url(self) -> str:
        host, port = self._http.server_address[:2]
        return f"http://{host!s}:{port}/{self._token}/"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def _answer(self, method: str, target: str, body: bytes) -> tuple[HTTPStatus, str, bytes]:
        """Answer a question that came from the page, or may be the first for it."""
        parts = urlsplit(target)
        _, token, *path = parts.path.split("/")
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            return HTTPStatus.FORBIDDEN, "text/plain", b"use the whole address that was printed, with its token\n"
        given = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        name = "/".join(path)
        try:
            if method == "GET" and name == "":
                return HTTPStatus.OK, "text/html", self._page
            show = self._shows[int(given.get("show", "0"))]
            if method == "GET" and name == "news":
                have = {each: int(value) for each, value in given.items()}
                return HTTPStatus.OK, "application/octet-stream", show.news(have)
            found: Any
            if method == "GET" and name == "message":
                found = show.message(int(given["row"]))
            elif method == "GET" and name == "fields":
                found = show.fields()._asdict()
            elif method == "GET" and name == "scene":
                found = show.scene(int(given.get("have", "0")), int(given.get("stride", "0")))
            elif method == "GET" and name == "signal":
                found = show.signal(given["topic"], given["field"])
            elif method == "POST" and name == "order":
                order = json.decode(body, type=dict[str, Any])
                found = {"said": show.order(str(order.get("order")), order)}
            else:
                return HTTPStatus.NOT_FOUND, "text/plain", b"there is no such page\n"
        except WorldlineError as error:
            return HTTPStatus.CONFLICT, "application/json", json.encode({"error": printable(str(error))})
        except (KeyError, ValueError, IndexError, DecodeError) as error:
            return HTTPStatus.BAD_REQUEST, "text/plain", f"it can't be read: {error}\n".encode()
        return HTTPStatus.OK, "application/json", json.encode(found)


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 128  # Many tabs may come at once.
    answer: Callable[[str, str, bytes], tuple[HTTPStatus, str, bytes]]

    def __init__(self, address: tuple[str, int]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.places = threading.BoundedSemaphore(_CONNECTIONS_MAX)
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self.places.acquire(blocking=False):
            self.shutdown_request(request)  # The browser tries again.
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # No thread can be started.
            self.places.release()
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a browser may go at any moment, and the run's terminal isn't the place for it."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _PATIENCE_S
    server: _Http
    server_version, sys_version = "Worldline", ""
    _SAFE: ClassVar = ("none", "same-origin")

    def do_GET(self) -> None:
        self._serve("GET")

    def do_POST(self) -> None:
        self._serve("POST")

    def _serve(self, method: str) -> None:
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal() or int(length) > _QUESTION_MAX or "Transfer-Encoding" in self.headers:
            self.close_connection = True
            self._send(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "text/plain", b"too long\n")
            return
        body = self.rfile.read(int(length))
        if not self._is_own(method):
            self._send(HTTPStatus.FORBIDDEN, "text/plain", b"this page answers to itself alone\n")
            return
        self._send(*self.server.answer(method, self.path, body))

    def _is_own(self, method: str) -> bool:
        """Whether a question is meant for this server, and comes from its page or from the address line."""
        host, port = self.server.server_address[:2]
        names = {f"{host!s}:{port}", f"localhost:{port}", f"[{host!s}]:{port}"}
        asked = self.headers.get("Host", "")
        if asked not in names and str(host) not in ("0.0.0.0", "::"):
            return False
        origin = self.headers.get("Origin")
        if origin is not None and origin != f"http://{asked}":
            return False
        if method == "POST" and (origin is None or self.headers.get_content_type() != "application/json"):
            return False
        return self.headers.get("Sec-Fetch-Site", "none") in self._SAFE

    def _send(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind if "octet" in kind else f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Content-Security-Policy", policy() if kind == "text/html" else "default-src 'none'")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing: the terminal is the run's."""


def _opened(host: str, port: int) -> _Http:
    """Listen there, or, where that port is taken, on another one."""
    try:
        return _Http((host, port))
    except OSError as error:
        if port == 0:
            raise UsageError(f"no page can be served on {host}: {error.strerror}") from error
    return _opened(host, 0)
