"""TLS between machines: what programs see of it is what they see on real loopback, and every run is the same."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import socket
import ssl
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.federation.transports import make_certificate
from worldline import Federation, Machine, Network, WorldlineError, link, run
from worldline.history.observer import Observer

Settings = dict[str, Any]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("certificate"), "DNS:server")


def having(context: ssl.SSLContext, settings: Settings) -> ssl.SSLContext:
    for name, value in settings.items():
        if name.startswith("set_"):
            getattr(context, name)(value)
        else:
            setattr(context, name, value)
    return context


def serving(certificate: tuple[Path, Path], *protocols: str, **settings: Any) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    if protocols:
        context.set_alpn_protocols(protocols)
    return having(context, settings)


def asking(certificate: tuple[Path, Path] | None, *protocols: str, **settings: Any) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=None if certificate is None else str(certificate[0]))
    if protocols:
        context.set_alpn_protocols(protocols)
    return having(context, settings)


# --- The same on real loopback ---


def serve(listener: socket.socket, context: ssl.SSLContext, seen: list[Any]) -> None:
    """Serve one client; it may go away before."""
    plain, _ = listener.accept()
    try:
        with context.wrap_socket(plain, server_side=True) as found:
            seen.append((found.version(), found.selected_alpn_protocol(), found.getpeercert()))
            while data := found.recv(1000):
                found.sendall(data.upper() * 3)
    except OSError as error:
        seen.append(_in_brief(error))


def ask(host: str, port: int, context: ssl.SSLContext, name: str, seen: list[Any]) -> None:
    try:
        with socket.create_connection((host, port)) as plain, context.wrap_socket(plain, server_hostname=name) as found:
            seen.append((found.version(), found.cipher(), found.selected_alpn_protocol(), found.getpeercert()))
            seen.append(hashlib.sha256(found.getpeercert(binary_form=True) or b"").hexdigest())
            found.sendall(b"x" * 70_000)
            got = bytearray()
            while len(got) < 210_000:
                got += found.recv(5_000)
            seen.append((bytes(got) == b"X" * 210_000, found.pending()))
            found.settimeout(0.01)
            seen.append(found.recv(0))
            with pytest.raises(TimeoutError, match="The read operation timed out"):
                found.recv(1)
    except OSError as error:
        seen.append(_in_brief(error))


def _in_brief(error: OSError) -> tuple[object, ...]:
    reason = getattr(error, "reason", None)
    return type(error).__name__, str(reason).removeprefix("SSL"), getattr(error, "verify_message", None)


def on_loopback(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> tuple[list[Any], list[Any]]:
    seen: tuple[list[Any], list[Any]] = ([], [])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(30)
        thread = threading.Thread(target=serve, args=(listener, server, seen[0]))
        thread.start()
        ask("127.0.0.1", listener.getsockname()[1], client, name, seen[1])
        thread.join()
    return seen


def on_machines(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> tuple[list[Any], list[Any]]:
    seen: tuple[list[Any], list[Any]] = ([], [])

    def serving() -> None:
        with socket.create_server(("", 443)) as listener:
            serve(listener, server, seen[0])

    def asking() -> None:
        time.sleep(1)
        ask("server", 443, client, name, seen[1])

    machines = {"server": Machine(serving, allow=["tls"]), "client": Machine(asking, allow=["tls"])}
    run(Federation(machines, until="9s"))
    return seen


OLD: Settings = {"maximum_version": ssl.TLSVersion.TLSv1_2}
AES128, AES256 = "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384"


@pytest.mark.parametrize(
    ("server", "client", "name"),
    [
        ((), (), "server"),
        (("h2", "http/1.1"), ("http/1.1", "h2"), "server"),
        (("h2",), ("http/1.1",), "server"),
        ((OLD,), (), "server"),
        ((), ({"check_hostname": False, "verify_mode": ssl.CERT_NONE},), "other"),
        ((), (), "other"),
        ((), (None,), "server"),
        (({"minimum_version": ssl.TLSVersion.TLSv1_3},), (OLD,), "server"),
        ((), (OLD | {"set_ciphers": AES128},), "server"),
        (({"set_ciphers": AES256},), (OLD | {"set_ciphers": AES128},), "server"),
        (({"set_ciphers": f"{AES128}:{AES256}"},), (OLD | {"set_ciphers": f"{AES256}:{AES128}"},), "server"),
        ((), ({"options": ssl.OP_NO_TLSv1_3},), "server"),
        ((), ({"set_ecdh_curve": "secp384r1"},), "server"),
        (({"set_ecdh_curve": "prime256v1"},), ({"set_ecdh_curve": "secp384r1"},), "server"),
    ],
    ids=[
        *("usual", "protocols", "no common protocol", "older", "unchecked", "another name", "unknown", "too old"),
        *("one cipher", "no common cipher", "order of ciphers", "options", "curve", "no common curve"),
    ],
)
@pytest.mark.filterwarnings("ignore:ssl.OP_NO_:DeprecationWarning")
def test_programs_see_what_they_see_on_real_loopback(
    certificate: tuple[Path, Path], server: tuple[Any, ...], client: tuple[Any, ...], name: str
) -> None:
    def made(make: Callable[..., ssl.SSLContext], given: tuple[Any, ...]) -> ssl.SSLContext:
        texts = [each for each in given if isinstance(each, str)]
        settings: Settings = next((each for each in given if isinstance(each, dict)), {})
        return make(None if None in given else certificate, *texts, **settings)

    def both() -> tuple[ssl.SSLContext, ssl.SSLContext, str]:
        return made(serving, server), made(asking, client), name

    assert on_machines(*both()) == on_loopback(*both())


ROOT = "basicConstraints = critical, CA:TRUE\nkeyUsage = critical, keyCertSign"
LEAF = "basicConstraints = critical, CA:FALSE\nauthorityKeyIdentifier = keyid\nsubjectAltName = DNS:server"
REQUEST = """
[req]
distinguished_name = name
x509_extensions = extensions
prompt = no
[name]
CN = %s
[extensions]
subjectKeyIdentifier = hash
%s
"""


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    """Make a root, what it has issued, and another root of the same name; and two that have issued themselves."""
    openssl, folder = shutil.which("openssl"), tmp_path_factory.mktemp("certificates")
    if openssl is None:
        pytest.skip("there is no openssl command to make a certificate with")
    made: dict[str, tuple[Path, Path]] = {}
    for name, subject, kind, by in [
        ("root", "root", ROOT, None),
        ("twin", "root", ROOT, None),
        ("issued", "server", LEAF, "root"),
        ("own", "server", LEAF, None),
        ("impostor", "server", LEAF, None),
    ]:
        made[name] = folder / f"{name}.pem", folder / f"{name}.key"
        (folder / "request.cnf").write_text(REQUEST % (subject, kind))
        command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        command += ["-days", "2", "-config", str(folder / "request.cnf")]
        command += ["-out", str(made[name][0]), "-keyout", str(made[name][1])]
        command += ["-CA", str(made[by][0]), "-CAkey", str(made[by][1])] if by else []
        subprocess.run(command, check=True, capture_output=True)
    return made


@pytest.mark.parametrize(
    ("shown", "loaded", "settings", "is_trusted"),
    [
        ("issued", "root", {}, True),
        ("issued", "twin", {}, False),
        ("own", "own", {"verify_flags": ssl.VERIFY_X509_PARTIAL_CHAIN}, True),
        ("impostor", "own", {}, False),
        ("impostor", "root", {"minimum_version": ssl.TLSVersion.TLSv1_3}, False),
        ("issued", "root", {"minimum_version": ssl.TLSVersion.TLSv1_3}, True),
        ("issued", "root", {"options": ssl.OP_NO_TLSv1_2}, True),
    ],
)
@pytest.mark.filterwarnings("ignore:ssl.OP_NO_:DeprecationWarning")
def test_clients_trust_whom_they_trust_on_real_loopback(
    certificates: dict[str, tuple[Path, Path]], shown: str, loaded: str, settings: Settings, is_trusted: bool
) -> None:
    def both() -> tuple[ssl.SSLContext, ssl.SSLContext, str]:
        return serving(certificates[shown]), asking(certificates[loaded], **settings), "server"

    server, client, name = both()
    before = client.options, client.verify_flags, client.minimum_version, client.maximum_version
    seen = on_machines(server, client, name)
    assert seen == on_loopback(*both())
    assert (len(seen[1]) > 1) == is_trusted
    assert (client.options, client.verify_flags, client.minimum_version, client.maximum_version) == before


# --- What only a simulation has ---


class Payloads(Observer):
    def __init__(self) -> None:
        self.said: list[bytes] = []

    def sent(self, who: str, number: int, topic: str, at: int, payload: bytes, until: int, detail: Any = None) -> None:
        self.said.append(payload)


def test_asyncios_tls_takes_a_trip_more_and_is_the_same_in_every_run(certificate: tuple[Path, Path]) -> None:
    lines: list[Any] = []

    async def server() -> None:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"heard " + await reader.readline())
            writer.close()

        async with await asyncio.start_server(handle, port=443, ssl=serving(certificate)) as listening:
            await listening.serve_forever()

    async def client() -> None:
        reader, writer = await asyncio.open_connection("server", 443, ssl=asking(certificate))
        begun = time.monotonic()
        writer.write(b"hello\n")
        lines.append((begun, await reader.read(), time.monotonic(), ssl.RAND_bytes(4)))
        writer.close()
        await writer.wait_closed()

    machines = {"server": Machine(server, allow=["tls"]), "client": Machine(client, allow=["tls"])}
    observers = Payloads(), Payloads()
    digests = [
        run(Federation(machines, Network(default=link("10ms")), until="9s"), observer=each).digest for each in observers
    ]
    assert digests[0] == digests[1]
    assert lines[0] == lines[1]
    assert lines[0][:3] == (0.04, b"heard hello\n", 0.06)  # A trip there and back to connect, and one for TLS.
    assert any(b"heard hello\n" in each for each in observers[0].said)


@contextmanager
def https(certificate: tuple[Path, Path]) -> Iterator[HTTPServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.path.encode() * 10_000
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with HTTPServer(("", 443), Handler) as server:
        server.socket = serving(certificate).wrap_socket(server.socket, server_side=True)
        yield server


def test_pages_are_read_whole_over_https(certificate: tuple[Path, Path]) -> None:
    sizes: list[int] = []

    def server() -> None:
        with https(certificate) as serving_:
            serving_.serve_forever()

    def client() -> None:
        time.sleep(1)
        for path in ("a", "bc"):
            with urllib.request.urlopen(f"https://server/{path}", context=asking(certificate)) as page:
                sizes.append(len(page.read()))

    run(Federation({"server": Machine(server, allow=["tls"]), "c": Machine(client, allow=["tls"])}, until="9s"))
    assert sizes == [20_000, 30_000]


def test_a_server_that_asks_for_a_certificate_is_refused(certificate: tuple[Path, Path]) -> None:
    server = serving(certificate, verify_mode=ssl.CERT_REQUIRED)
    with pytest.raises(WorldlineError, match="it asks for a client's certificate, which isn't simulated"):
        on_machines(server, asking(certificate), "server")


def test_a_client_without_tls_is_told_apart(certificate: tuple[Path, Path]) -> None:
    seen: list[Any] = []

    def server() -> None:
        with socket.create_server(("", 443)) as listener:
            serve(listener, serving(certificate), seen)

    def client() -> None:
        time.sleep(1)
        with socket.create_connection(("server", 443)) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
            seen.append(plain.recv(10))

    run(Federation({"server": Machine(server, allow=["tls"]), "client": Machine(client)}, until="9s"))
    assert seen == [("SSLError", "HTTP_REQUEST", None), b""]


def served(
    certificate: tuple[Path, Path],
    server: Callable[[ssl.SSLSocket], None],
    client: Callable[[ssl.SSLSocket], None],
    asks: ssl.SSLContext | None = None,
) -> None:
    """Run a server and a client of one connection, on machines."""

    def serving_() -> None:
        with socket.create_server(("", 443)) as listener:
            plain, _ = listener.accept()
            with serving(certificate).wrap_socket(plain, server_side=True) as found:
                server(found)

    def asking_() -> None:
        time.sleep(1)
        context = asks or asking(certificate)
        with (
            socket.create_connection(("server", 443)) as plain,
            context.wrap_socket(plain, server_hostname="server") as found,
        ):
            client(found)

    machines = {"server": Machine(serving_, allow=["tls"]), "client": Machine(asking_, allow=["tls"])}
    run(Federation(machines, until="60s"))


def read_late(found: ssl.SSLSocket) -> bytes:
    """Return all that is sent, once the sender has had to wait."""
    time.sleep(1)
    got = bytearray()
    while data := found.recv(60_000):
        got += data
    return bytes(got)


def test_threads_that_write_to_one_connection_take_turns(certificate: tuple[Path, Path]) -> None:
    got: list[bytes] = []

    def write(found: ssl.SSLSocket) -> None:
        threads = [threading.Thread(target=found.sendall, args=(each * 1_000_000,)) for each in (b"a", b"b")]
        for each in threads:
            each.start()
        for each in threads:
            each.join()

    served(certificate, lambda found: got.append(read_late(found)), write)
    assert [(len(each), each.count(b"a"), each.count(b"b")) for each in got] == [(2_000_000, 1_000_000, 1_000_000)]


def test_after_a_write_that_had_to_wait_another_is_refused(certificate: tuple[Path, Path]) -> None:
    got: list[bytes] = []
    sizes: list[int] = []

    def write(found: ssl.SSLSocket) -> None:
        found.setblocking(False)
        with suppress(ssl.SSLWantWriteError):
            while True:
                sizes.append(found.send(b"a" * 50_000))
        found.setblocking(True)
        for other in (b"bye", b"b" * 50_000):
            with pytest.raises(ssl.SSLError, match="bad length"):
                found.send(other)
        sizes.append(found.send(b"a" * 50_000 + b"more"))

    served(certificate, lambda found: got.append(read_late(found)), write)
    assert set(sizes) == {50_000}
    assert got == [b"a" * sum(sizes)]


def test_a_server_is_asked_for_a_name_once(certificate: tuple[Path, Path]) -> None:
    names: list[object] = []
    server = serving(certificate, sni_callback=lambda _, name, __: names.append(name))
    on_machines(server, asking(certificate), "server")
    assert names == ["server"]
