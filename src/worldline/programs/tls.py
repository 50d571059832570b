"""TLS whose records are plain text: everything of a connection but its secrecy.

Python's own `SSLSocket`, `SSLObject` and all of asyncio's TLS stay as they are. What is replaced is the object of
OpenSSL's below them, whose random numbers would make every run different: a `TlsEnd` sends TLS's records, with what it
is given in them. The client says hello, the server answers, the client finishes: as many trips as TLS 1.3 takes.

What the two agree on (version, cipher, protocol by ALPN, the server's certificate) is what OpenSSL says: the server's
context really shakes hands, in memory, with one that offers what the client has. And whether a client trusts a server
is what OpenSSL says: the client's context is shown the server's certificates. Only their dates aren't checked, which
would be compared with the real clock.
"""

from __future__ import annotations

import base64
import ssl
import struct
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msgspec import Struct, json

from worldline.programs.reals import here, really
from worldline.programs.sockets import Socket
from worldline.programs.threads import Lock

_HEADER = struct.Struct(">BHH")
_ALERT, _HANDSHAKE, _DATA = 21, 22, 23
_VERSION = 0x0303  # What records of TLS 1.3 say, too.
_RECORD_MAX = 2**14
_CLOSE = b"close"  # An alert: the other end has nothing more to say. All others say why it fails, in two words.

Reason = tuple[str, str]
_FAILURE: Reason = ("SSLV3_ALERT_HANDSHAKE_FAILURE", "sslv3 alert handshake failure")
_ANY_TIME = 0x200000  # A flag of OpenSSL's: a certificate is good whatever its dates.
_SERVER_HELLO, _CERTIFICATE = 2, 11  # Messages of a handshake.
_SAFE_RENEGOTIATION = bytes.fromhex("0005 ff01 0001 00")  # The one extension that OpenSSL wants of every server.
_CURVES, _ALPN = 10, 16  # The numbers of extensions.
_CURVE_NAMES = {23: "prime256v1", 24: "secp384r1", 25: "secp521r1", 29: "X25519", 30: "X448"}

_real_wrap_bio: Any = ssl.SSLContext._wrap_bio  # type: ignore[attr-defined]
_real_wrap_socket: Any = ssl.SSLContext._wrap_socket  # type: ignore[attr-defined]


class TlsHello(Struct, array_like=True):
    """What a client offers, and for which host."""

    host: str | None
    protocols: tuple[str, ...]
    curve: str | None
    versions: tuple[int, int]
    options: int
    ciphers: str


class TlsAnswer(Struct, array_like=True):
    """What a server has chosen, and its certificates."""

    version: str
    cipher: tuple[str, str, int]
    protocol: str | None
    certificates: tuple[str, ...]


def _ssl_error(reason: str, words: str, kind: Any = ssl.SSLError) -> Any:
    error = kind(1, f"[SSL: {reason}] {words} (_ssl.c:1000)")
    error.library, error.reason = "SSL", reason
    return error


# --- What carries the records ---


class _Memory:
    """Two buffers, which asyncio fills and empties."""

    socket = None

    def __init__(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    def receive(self) -> bytes:
        data = self._incoming.read()
        if not data and not self._incoming.eof:
            raise ssl.SSLWantReadError(ssl.SSL_ERROR_WANT_READ, "The operation did not complete (read)")
        return data

    def send(self, data: bytearray) -> int:
        return self._outgoing.write(data)


class _Wire:
    """A socket below TLS: it blocks or not, as it was told."""

    def __init__(self, socket: Any) -> None:
        self.socket = socket

    def receive(self) -> bytes:
        try:
            return Socket.recv(self.socket, 2**16)
        except BlockingIOError:
            raise ssl.SSLWantReadError(ssl.SSL_ERROR_WANT_READ, "The operation did not complete (read)") from None
        except TimeoutError:
            raise TimeoutError("The read operation timed out") from None

    def send(self, data: bytearray) -> int:
        try:
            return Socket.send(self.socket, bytes(data))
        except BlockingIOError:
            raise ssl.SSLWantWriteError(ssl.SSL_ERROR_WANT_WRITE, "The operation did not complete (write)") from None
        except TimeoutError:
            raise TimeoutError("The write operation timed out") from None


class _Records:
    """The records of a connection, on what carries them: those to be sent, and those that have come."""

    def __init__(self, carrier: _Memory | _Wire, is_servers: bool) -> None:
        self.carrier = carrier
        self._is_servers = is_servers
        self.has_said_close, self.has_heard_close = False, False
        self._raw, self._unsent = bytearray(), bytearray()

    def put(self, kind: int, data: Any) -> None:
        for start in range(0, len(data), _RECORD_MAX):
            part = data[start : start + _RECORD_MAX]
            self._unsent += _HEADER.pack(kind, _VERSION, len(part))
            self._unsent += part

    def flush(self) -> None:
        while self._unsent:
            del self._unsent[: self.carrier.send(self._unsent)]

    def say(self, kind: int, data: Any) -> None:
        self.put(kind, data)
        self.flush()

    def say_close(self) -> None:
        """Say that this end has nothing more to say; goes on from where it had to wait."""
        if not self.has_said_close:
            self.has_said_close = True
            self.put(_ALERT, _CLOSE)
        self.flush()

    def next(self) -> tuple[int, bytes]:
        """Return the next record, once it is whole."""
        self._fill(_HEADER.size)
        kind, version, size = _HEADER.unpack_from(self._raw)
        if version != _VERSION or kind not in (_ALERT, _HANDSHAKE, _DATA):
            if self._is_servers and bytes(self._raw[:4]) in (b"GET ", b"POST", b"HEAD", b"PUT "):
                raise _ssl_error("HTTP_REQUEST", "http request")
            raise _ssl_error("WRONG_VERSION_NUMBER", "wrong version number")
        self._fill(_HEADER.size + size)
        body = bytes(self._raw[_HEADER.size : _HEADER.size + size])
        del self._raw[: _HEADER.size + size]
        if kind == _ALERT and body == _CLOSE:
            self.has_heard_close = True
        elif kind == _ALERT:
            raise _ssl_error(*json.decode(body, type=Reason))
        return kind, body

    def next_of_handshake(self) -> bytes:
        kind, body = self.next()
        if kind != _HANDSHAKE:
            raise _ended()
        return body

    def _fill(self, size: int) -> None:
        while len(self._raw) < size:
            data = self.carrier.receive()
            if not data:
                raise _ended()
            self._raw += data


def _ended() -> ssl.SSLEOFError:
    return ssl.SSLEOFError(ssl.SSL_ERROR_EOF, "EOF occurred in violation of protocol (_ssl.c:1000)")


# --- One end of a connection ---


class TlsEnd:
    """What `SSLObject` and `SSLSocket` take for OpenSSL's object of a connection."""

    def __init__(self, context: Any, carrier: _Memory | _Wire, server_side: bool, host: str | None, owner: Any) -> None:
        self._context = context
        self._records = _Records(carrier, server_side)
        self.server_side = server_side
        self.server_hostname = host
        self.owner = owner
        self._answer: TlsAnswer | None = None
        self._is_shaken = False  # Whether the handshake is done.
        self._has_said_hello = False
        self._plain = bytearray()
        self._owed = b""  # What was written, and had to wait: it is to be written again.
        self._writing = Lock()  # Threads write in turns: the records of one mustn't get into those of another.
        self._probe: Any = None
        self._alert = _FAILURE

    session = None
    session_reused = False

    @property
    def context(self) -> Any:
        return self._context

    @context.setter
    def context(self, context: Any) -> None:
        self._context = context
        if self._probe is not None:  # A callback chooses another context, by the host's name.
            self._probe.context = context

    # --- The handshake ---

    def do_handshake(self) -> None:
        """Agree with the other end; goes on from where it had to wait."""
        if self._is_shaken:
            return
        self._records.flush()
        if self.server_side:
            self._serve()
        else:
            self._ask()
        self._is_shaken = True

    def _ask(self) -> None:
        context = self._context
        if not self._has_said_hello:
            self._has_said_hello = True
            self._records.say(_HANDSHAKE, json.encode(_offered_by(context, self.server_hostname)))
        self._answer = json.decode(self._records.next_of_handshake(), type=TlsAnswer)
        if context.verify_mode != ssl.CERT_NONE:
            found = _distrust(context, self.server_hostname, self._chain())
            if found is not None:
                reason, problem = found
                self._records.say(_ALERT, json.encode(reason))
                raise problem
        self._records.say(_HANDSHAKE, b"finished")

    def _serve(self) -> None:
        if self._answer is None:
            hello = json.decode(self._records.next_of_handshake(), type=TlsHello)
            if self._context.verify_mode == ssl.CERT_REQUIRED:
                here.computer.refuse(
                    "it asks for a client's certificate, which isn't simulated",
                    "verify_mode = ssl.CERT_NONE on the server's side",
                )
            try:
                self._answer = self._answer_to(hello)
            except ssl.SSLError:
                self._records.say(_ALERT, json.encode(self._alert))
                raise
            self._records.say(_HANDSHAKE, json.encode(self._answer))
        self._records.next_of_handshake()

    def _answer_to(self, hello: TlsHello) -> TlsAnswer:
        """Return what OpenSSL chooses of what a client offers."""
        client = self._meet(_offering(hello), hello.host)
        chain = [bytes(each.public_bytes(ssl._ssl.ENCODING_DER)) for each in client.get_unverified_chain()]  # type: ignore[attr-defined]
        texts = tuple(base64.b64encode(each).decode() for each in chain)
        return TlsAnswer(client.version(), client.cipher(), client.selected_alpn_protocol(), texts)

    def _meet(self, probe: ssl.SSLContext, host: str | None) -> Any:
        """Let a client's context shake hands with this one, really; return the client's end."""
        up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = _real_wrap_bio(probe, down, up, server_side=False, server_hostname=host)
        server = _real_wrap_bio(self._context, up, down, server_side=True, owner=self.owner)
        self._probe = server
        try:
            left = [client, server]
            while left:
                for end in tuple(left):
                    try:
                        end.do_handshake()
                    except ssl.SSLWantReadError:
                        continue
                    except ssl.SSLError:
                        self._alert = _heard_by(client)
                        raise
                    left.remove(end)
        finally:
            self._probe = None
        return client

    # --- Data ---

    def read(self, size: int = 1024, buffer: Any = None) -> Any:
        """Return up to so many bytes, or how many are in a buffer now; none when the other end has closed."""
        self.do_handshake()
        if not size and buffer is None:
            return b""
        while not self._plain and not self._records.has_heard_close:
            kind, body = self._records.next()
            if kind == _DATA:
                self._plain += body
        if buffer is None:
            taken = bytes(self._plain[:size])
        else:
            view = memoryview(buffer).cast("B")
            taken = bytes(self._plain[: min(size, len(view)) if size > 0 else len(view)])
            view[: len(taken)] = taken
        del self._plain[: len(taken)]
        return taken if buffer is None else len(taken)

    def write(self, data: Any) -> int:
        """Send bytes, and return how many; one that has to wait is called again with the same."""
        self.do_handshake()
        with self._writing:
            view = memoryview(data).cast("B")[: 4 * _RECORD_MAX]
            if not self._owed:
                self._records.put(_DATA, view)
                self._owed = bytes(view)
            elif view[: len(self._owed)] != self._owed:
                raise _ssl_error("BAD_LENGTH", "bad length")
            self._records.flush()
            sent, self._owed = len(self._owed), b""
            return sent

    def pending(self) -> int:
        return len(self._plain)

    def shutdown(self) -> Any:
        """Say that this end is done, and wait until the other has said it."""
        with self._writing:
            self._records.say_close()
        while not self._records.has_heard_close:
            self._records.next()
        return self._records.carrier.socket

    # --- What was agreed on ---

    def version(self) -> str | None:
        return None if self._answer is None else self._answer.version

    def cipher(self) -> tuple[str, str, int] | None:
        return None if self._answer is None else self._answer.cipher

    def shared_ciphers(self) -> list[tuple[str, str, int]] | None:
        return [self._answer.cipher] if self.server_side and self._answer is not None else None

    def selected_alpn_protocol(self) -> str | None:
        return None if self._answer is None else self._answer.protocol

    def compression(self) -> None:
        return None

    def get_channel_binding(self, cb_type: str = "tls-unique") -> None:
        if cb_type not in ssl.CHANNEL_BINDING_TYPES:
            raise ValueError(f"{cb_type!r} channel binding type not implemented")

    def getpeercert(self, binary_form: bool = False) -> Any:
        if not self._is_shaken:
            raise ValueError("handshake not done yet")
        if self.server_side:
            return None
        first = self._chain()[0]
        if binary_form:
            return first
        return {} if self._context.verify_mode == ssl.CERT_NONE else _read_certificate(first)

    def _chain(self) -> list[bytes]:
        assert self._answer is not None
        return [base64.b64decode(each) for each in self._answer.certificates]

    def get_unverified_chain(self) -> list[Any] | None:
        return None if self.server_side else [_Certificate(each) for each in self._chain()]

    get_verified_chain = get_unverified_chain

    def verify_client_post_handshake(self) -> None:
        raise _ssl_error("EXTENSION_NOT_RECEIVED", "extension not received")


class _Certificate:
    def __init__(self, content: bytes) -> None:
        self._content = content

    def public_bytes(self, _: int) -> bytes:
        return self._content


# --- What OpenSSL knows ---


class _RealClient:
    """A client's end of OpenSSL's own, in memory, which has said hello."""

    def __init__(self, context: Any, host: str | None) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._end = _real_wrap_bio(context, self._incoming, self._outgoing, server_side=False, server_hostname=host)
        self.hello = self.hear(b"")

    def hear(self, records: bytes) -> bytes:
        """Return what it says to that; or raise what is wrong."""
        self._incoming.write(records)
        try:
            self._end.do_handshake()
        except ssl.SSLWantReadError:
            return self._outgoing.read()
        raise AssertionError("a handshake can't be done without keys")

    def last_words(self) -> bytes:
        return self._outgoing.read()


def _offered_by(context: Any, host: str | None) -> TlsHello:
    """Return what a client's context offers."""
    _, extensions = _read_hello(_RealClient(context, host).hello)
    curve, curves = None, extensions.get(_CURVES, b"")[2:]
    if len(curves) == 2:  # Without `set_ecdh_curve`, there are several.
        curve = _CURVE_NAMES.get(int.from_bytes(curves))
        if curve is None:
            here.computer.refuse("it sets a curve that isn't simulated", f"one of {', '.join(_CURVE_NAMES.values())}")
    # Those of TLS 1.3 are all offered, always.
    ciphers = [each["name"] for each in context.get_ciphers() if each["protocol"] != "TLSv1.3"]
    return TlsHello(
        host,
        _texts(extensions.get(_ALPN, b"")[2:]),
        curve,
        (int(context.minimum_version), int(context.maximum_version)),
        int(context.options),
        ":".join([*ciphers, f"@SECLEVEL={context.security_level}"]),
    )


def _offering(hello: TlsHello) -> ssl.SSLContext:
    """Return a client's context that offers the same, and takes any certificate."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    with warnings.catch_warnings():  # Of versions that are too old: the client has had them already.
        warnings.simplefilter("ignore")
        made.minimum_version, made.maximum_version = map(ssl.TLSVersion, hello.versions)
        made.options = ssl.Options(hello.options)
    made.set_ciphers(hello.ciphers)
    if hello.protocols:
        made.set_alpn_protocols(hello.protocols)
    if hello.curve is not None:
        made.set_ecdh_curve(hello.curve)
    return made


def _read_hello(hello: bytes) -> tuple[set[int], dict[int, bytes]]:
    """Return the ciphers and the extensions of a client's hello, by their numbers."""
    place = 5 + 4 + 2 + 32  # Behind the heads of record and message, the version, and the random number.
    place += 1 + hello[place]  # The session's name,
    (size,) = struct.unpack_from(">H", hello, place)
    ciphers = set(struct.unpack_from(f">{size // 2}H", hello, place + 2))
    place += 2 + size  # ciphers,
    place += 1 + hello[place] + 2  # and compressions; then come the extensions.
    extensions = {}
    while place < len(hello):
        kind, size = struct.unpack_from(">HH", hello, place)
        extensions[kind] = hello[place + 4 : place + 4 + size]
        place += 4 + size
    return ciphers, extensions


def _texts(data: bytes) -> tuple[str, ...]:
    found = []
    while data:
        found.append(data[1 : 1 + data[0]].decode())
        data = data[1 + data[0] :]
    return tuple(found)


def _heard_by(client: Any) -> Reason:
    """Return what a client is told of why a handshake has failed."""
    try:
        client.do_handshake()
    except ssl.SSLError as error:
        return _reason_of(error)
    return _FAILURE


def _reason_of(error: ssl.SSLError) -> Reason:
    if not error.reason:
        return _FAILURE
    return error.reason, str(error.args[1]).partition("] ")[2].rpartition(" (")[0]


def _distrust(context: Any, host: str | None, chain: list[bytes]) -> tuple[Reason, Exception] | None:
    """Return why a client doesn't take a server for the one it wants, if it doesn't; first what it tells the server.

    In TLS 1.2 a client looks at the certificates before anything that takes the server's key.
    """
    with _made_older(context):
        client = _RealClient(context, host)
        offered, _ = _read_hello(client.hello)
        ciphers = [each["id"] & 0xFFFF for each in context.get_ciphers() if each["auth"] in ("auth-rsa", "auth-ecdsa")]
        ciphers = [each for each in ciphers if each in offered]
        if not ciphers:
            here.computer.refuse(
                "it offers no cipher with which a server has a certificate",
                "ciphers with RSA or ECDSA (SSLContext.set_ciphers)",
            )
        try:
            client.hear(_shown(ciphers[0], chain))
        except ssl.SSLCertVerificationError as error:
            return _told(client.last_words()), _unverified(error.verify_code, error.verify_message)
        except ssl.SSLError as error:
            if error.reason != "WRONG_CERTIFICATE_TYPE":  # It isn't one for the cipher, but it is trusted.
                raise
    return None


@contextmanager
def _made_older(context: Any) -> Iterator[None]:
    """Have a client speak TLS 1.2, and not look at dates."""
    kept = context.options, context.verify_flags, context.minimum_version, context.maximum_version
    with warnings.catch_warnings():  # Of versions that are too old: the program has had them already.
        warnings.simplefilter("ignore")
        context.options &= ~ssl.OP_NO_TLSv1_2
        context.verify_flags |= _ANY_TIME
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
        try:
            yield
        finally:
            context.minimum_version, context.maximum_version = kept[2:]
            context.options, context.verify_flags = kept[:2]


def _shown(cipher: int, chain: list[bytes]) -> bytes:
    """Return the records with which a server of TLS 1.2 says hello, and shows its certificates."""
    hello = struct.pack(">H32xBHB", _VERSION, 0, cipher, 0) + _SAFE_RENEGOTIATION
    shown = _sized(b"".join(map(_sized, chain)))
    said = bytes([_SERVER_HELLO]) + _sized(hello) + bytes([_CERTIFICATE]) + _sized(shown)
    parts = [said[start : start + _RECORD_MAX] for start in range(0, len(said), _RECORD_MAX)]
    return b"".join(_HEADER.pack(_HANDSHAKE, _VERSION, len(each)) + each for each in parts)


def _sized(data: bytes) -> bytes:
    return len(data).to_bytes(3) + data


def _told(alert: bytes) -> Reason:
    """Return what OpenSSL says where it is told that."""
    try:
        _RealClient(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), "server").hear(alert)
    except ssl.SSLError as error:
        return _reason_of(error)
    return _FAILURE


def _unverified(code: int, words: str) -> Exception:
    problem = f"certificate verify failed: {words}"
    error = _ssl_error("CERTIFICATE_VERIFY_FAILED", problem, ssl.SSLCertVerificationError)
    error.verify_code, error.verify_message = code, words
    return error  # type: ignore[no-any-return]


def _read_certificate(content: bytes) -> dict[str, Any]:
    with really(), tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(ssl.DER_cert_to_PEM_cert(content))
        file.flush()
        return ssl._ssl._test_decode_cert(file.name)  # type: ignore[attr-defined,no-any-return]


# --- Where programs meet it ---


class TlsSocket(ssl.SSLSocket, Socket):  # type: ignore[misc]
    """Python's own socket with TLS, on a socket of a computer."""


def _check_allowed() -> None:
    if "tls" not in here.computer.workspace.allowed:
        here.computer.refuse(
            "it encrypts, and OpenSSL's random numbers would make every run different",
            'connect without TLS (http:// instead of https://), or allow = ["tls"], which passes it as plain text',
        )


def _wrap_bio(
    self: Any, incoming: Any, outgoing: Any, server_side: bool = False, server_hostname: Any = None, **named: Any
) -> Any:
    if here.computer is None:
        return _real_wrap_bio(
            self, incoming, outgoing, server_side=server_side, server_hostname=server_hostname, **named
        )
    _check_allowed()
    if self.check_hostname and not server_hostname:
        raise ValueError("check_hostname requires server_hostname")
    return TlsEnd(self, _Memory(incoming, outgoing), server_side, server_hostname, named.get("owner"))


def _wrap_socket(self: Any, sock: Any, server_side: bool, server_hostname: Any = None, **named: Any) -> Any:
    if not isinstance(sock, TlsSocket):
        return _real_wrap_socket(self, sock, server_side, server_hostname, **named)
    return TlsEnd(self, _Wire(sock), server_side, server_hostname, named.get("owner"))


def _socket_of(
    self: Any,
    sock: Any,
    server_side: bool = False,
    do_handshake_on_connect: bool = True,
    suppress_ragged_eofs: bool = True,
    server_hostname: str | None = None,
    session: Any = None,
) -> Any:
    kind = self.sslsocket_class
    if here.computer is not None:
        _check_allowed()
        kind = TlsSocket
    return kind._create(
        sock=sock,
        server_side=server_side,
        do_handshake_on_connect=do_handshake_on_connect,
        suppress_ragged_eofs=suppress_ragged_eofs,
        server_hostname=server_hostname,
        context=self,
        session=session,
    )


def install() -> None:
    """Have contexts make sessions where a computer's program uses them."""
    kind: Any = ssl.SSLContext
    kind.wrap_socket, kind._wrap_bio, kind._wrap_socket = _socket_of, _wrap_bio, _wrap_socket
