"""Python's socket module on a simulated network: the class `socket`, and what is looked up by name."""

from __future__ import annotations

import errno
import gc
import os
import socket as real
import stat
import struct
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from worldline.programs.computer import Computer
from worldline.programs.deadlocks import ANY_THREAD
from worldline.programs.endpoints import DatagramSocket, LocalSocket, PipeEnd, pair
from worldline.programs.ports import ANY, BROADCAST, LOOPBACK, failure, is_address
from worldline.programs.reals import REAL, here, really
from worldline.programs.stack import Endpoint, StreamSocket
from worldline.programs.tcp import ConnectionState

_RealSocket: Any = REAL["socket.socket"]

# As plain numbers: flags that are enumerations take microseconds to be looked at.
_PEEK, _DONTWAIT, _WAITALL = int(real.MSG_PEEK), int(real.MSG_DONTWAIT), int(real.MSG_WAITALL)
_URGENT = int(real.MSG_OOB)

_collecting = False


def _note_collection(phase: str, _: object) -> None:
    global _collecting
    _collecting = phase == "start"


gc.callbacks.append(_note_collection)


class Socket(_RealSocket):  # type: ignore[misc]
    """A socket of the computer whose program makes it; outside of one, a real socket.

    A program that forgets a socket closes it when the last reference is gone. One that is only found by the garbage
    collector stays open until the program ends: when the collector comes by isn't determined.
    """

    def __new__(cls, *given: Any, **named: Any) -> Any:
        if here.computer is None:
            made = _RealSocket.__new__(_RealSocket)
            made.__init__(*given, **named)
            return made
        return _RealSocket.__new__(cls)

    def __init__(
        self,
        family: int = -1,
        type: int = -1,  # noqa: A002 - these are the names that programs use
        proto: int = -1,
        fileno: int | None = None,
        *,
        endpoint: Endpoint | None = None,
    ) -> None:
        computer: Computer = here.computer
        self._computer = computer
        self._closed, self._descriptor = True, -1  # Until it is made.
        self._io_refs = 0
        self._family = real.AF_INET if family == -1 else family
        kind = real.SOCK_STREAM if type == -1 else type
        self._timeout: float | None = computer.workspace.socket_timeout
        if kind & real.SOCK_NONBLOCK:
            self._timeout = 0.0
        self._type = kind & ~(real.SOCK_NONBLOCK | real.SOCK_CLOEXEC)
        self._proto = max(proto, 0)
        if endpoint is None and fileno is not None:
            if fileno < 0:
                raise ValueError("negative file descriptor")
            endpoint = computer.stack.endpoint(fileno)
            self._type = real.SOCK_DGRAM if isinstance(endpoint, DatagramSocket) else real.SOCK_STREAM
            self._family = real.AF_UNIX if isinstance(endpoint, PipeEnd) else real.AF_INET
            self._proto = self._protocol() if proto == -1 else proto
        self._endpoint: Any = _made(computer, self._family, self._type, self._proto) if endpoint is None else endpoint
        self._descriptor = self._endpoint.descriptor if fileno is None else fileno
        if self._timeout is not None:
            self._endpoint.blocks = False
        self._closed = False

    def __del__(self) -> None:
        if not _collecting and getattr(self, "_descriptor", -1) >= 0 and here.computer is self._computer:
            self._real_close()

    def __getstate__(self) -> object:
        raise TypeError(f"cannot pickle {self.__class__.__name__!r} object")

    @property
    def family(self) -> int:
        return real.AddressFamily(self._family)

    @property
    def type(self) -> int:
        return real.SocketKind(self._type)

    @property
    def proto(self) -> int:
        return self._proto

    @property
    def timeout(self) -> float | None:
        return self._timeout

    def fileno(self) -> int:
        return self._descriptor

    # --- How long calls wait ---

    def settimeout(self, value: float | None) -> None:
        if value is not None and value < 0:
            raise ValueError("Timeout value out of range")
        self._check_open()
        self._timeout = None if value is None else float(value)
        self._endpoint.blocks = value is None

    def gettimeout(self) -> float | None:
        return self._timeout

    def setblocking(self, flag: bool) -> None:
        self.settimeout(None if flag else 0.0)

    def getblocking(self) -> bool:
        return self._timeout != 0.0

    def _deadline(self) -> int | None:
        return None if self._timeout is None else self._computer.stack.now + round(self._timeout * 1e9)

    def _done(self, operation: Callable[[], Any], ready: Callable[[], bool], deadline: int | None) -> Any:
        """Return what an operation returns, once it needn't wait."""
        computer = self._computer
        while True:
            if computer.over is not None:
                computer.over.raise_again()
            try:
                return operation()
            except BlockingIOError:
                if self._timeout == 0.0:
                    raise
            if computer.wait(lambda: True if self._descriptor < 0 or ready() else None, deadline, self._inside) is None:
                raise TimeoutError("timed out")
            self._check_open()

    def _inside(self) -> str | None:
        """Say that only the program's own threads can end a wait: it is a pipe between them."""
        return ANY_THREAD if isinstance(self._endpoint, PipeEnd) else None

    def _check_going(self) -> None:
        if self._computer.over is not None:
            self._computer.over.raise_again()

    def _check_open(self) -> None:
        if self._descriptor < 0:  # One that is closed stays open below for the files that were made of it.
            raise failure(errno.EBADF)

    # --- Opening ---

    def bind(self, address: Any) -> None:
        self._check_open()
        target = self._resolved(address, "bind(): ")
        if isinstance(self._endpoint, LocalSocket):
            self._bind_to_file(target)
        else:
            self._endpoint.bind(target)

    def _bind_to_file(self, path: str) -> None:
        """Bind a Unix socket: on the program's own disk there is a file for it, which outlives the socket."""
        computer = self._computer
        place = computer.workspace.place_of(path)
        if place is None and path[:1] != "\0" and not os.path.isdir(os.path.dirname(path) or "."):  # noqa: PTH112, PTH120
            raise failure(errno.ENOENT)
        if place is not None:
            with really():
                if os.path.lexists(place):
                    raise failure(errno.EADDRINUSE)
                os.mknod(place, stat.S_IFSOCK | 0o755)
            computer.stack.paths.pop(place, None)  # Its file has been removed.
        self._endpoint.bind(path, place or path)

    def listen(self, backlog: int = 128) -> None:
        self._check_open()
        if not isinstance(self._endpoint, StreamSocket | LocalSocket):
            raise failure(errno.EOPNOTSUPP)
        self._endpoint.listen(backlog)

    def accept(self) -> tuple[Socket, Any]:
        self._check_open()
        if not isinstance(self._endpoint, StreamSocket | LocalSocket):
            raise failure(errno.EOPNOTSUPP)
        made = self._done(self._endpoint.accept, self._endpoint.is_readable, self._deadline())
        peer = _shown_path(made.peer_path) if isinstance(made, LocalSocket) else made.peer
        return Socket(self._family, self._type, self._proto, endpoint=made), peer

    def connect(self, address: Any) -> None:
        self._check_open()
        target = self._resolved(address, "connect(): ")
        if isinstance(self._endpoint, DatagramSocket):
            self._endpoint.connect(target)
            return
        if isinstance(self._endpoint, LocalSocket):
            place = self._computer.workspace.place_of(target)
            if place is not None and place not in self._computer.stack.paths and os.path.lexists(place):
                raise failure(errno.ECONNREFUSED)
            if place is not None and not os.path.lexists(place):
                raise failure(errno.ENOENT)
            self._endpoint.connect(target, place or target)
            return
        if not self._timeout:
            self._done(lambda: self._endpoint.connect(target), self._endpoint.is_writable, None)
            return
        try:
            self._endpoint.connect(target)
        except BlockingIOError:
            self._done(self._look_for_failure, self._endpoint.is_writable, self._deadline())

    def _look_for_failure(self) -> None:
        """Raise what has become of a connection that was begun: as Python does, when it waits for a limited time."""
        if not self._endpoint.is_writable():
            raise failure(errno.EINPROGRESS)
        if error := self._endpoint.take_error():
            raise failure(error)

    def connect_ex(self, address: Any) -> int:
        try:
            self.connect(address)
        except TimeoutError as error:
            return error.errno or errno.EAGAIN
        except OSError as error:
            if error.errno is None:
                raise
            return error.errno
        return 0

    def _resolved(self, address: Any, call: str = "") -> Any:
        if isinstance(self._endpoint, LocalSocket):
            path = os.fsencode(address)
            if len(path) > _PATH_MAX + (path[:1] == b"\0"):
                raise OSError("AF_UNIX path too long")
            return os.fsdecode(path)
        if not isinstance(address, tuple):
            raise TypeError(f"{call}AF_INET address must be tuple, not {type(address).__name__}")
        if len(address) != 2:
            raise TypeError("AF_INET address must be a pair (host, port)")
        host, port = address
        if not isinstance(port, int):
            raise TypeError(f"'{type(port).__name__}' object cannot be interpreted as an integer")
        if not 0 <= port <= 65_535:
            raise OverflowError(f"{call}port must be 0-65535.")
        return _host_address(self._computer, host), port

    # --- Reading ---

    def recv(self, bufsize: int, flags: int = 0) -> bytes:
        self._check_open()
        if bufsize < 0:
            raise ValueError("negative buffersize in recv")
        if not bufsize:  # As Python does: the system isn't asked.
            return b""
        endpoint, peek = self._endpoint, bool(flags and flags & _PEEK)
        if isinstance(endpoint, DatagramSocket):
            return self._datagram(peek, flags)[0][:bufsize]
        if self._timeout == 0.0 or (flags and flags & _DONTWAIT):
            self._check_going()
            data: bytes = endpoint.receive(bufsize, peek)
            return data
        if flags and flags & _WAITALL and self._timeout is None:
            if not peek:
                return self._recv_all(bufsize)
            if not isinstance(endpoint, PipeEnd):  # As on Linux, where Unix sockets show what there is.
                return self._look_at_all(bufsize)
        return bytes(self._done(lambda: endpoint.receive(bufsize, peek), endpoint.is_readable, self._deadline()))

    def _recv_all(self, size: int) -> bytes:
        taken = bytearray()
        while len(taken) < size and (more := self.recv(size - len(taken))):
            taken += more
        return bytes(taken)

    def _look_at_all(self, size: int) -> bytes:
        endpoint = self._endpoint

        def look() -> bytes:
            found: bytes = endpoint.receive(size, True)
            if len(found) < size and not (endpoint.hears_no_more() or endpoint.is_broken()):
                raise failure(errno.EAGAIN)
            return bytes(found)

        def is_seen() -> bool:
            with suppress(BlockingIOError):
                look()
                return True
            return False

        return self._done(look, is_seen, self._deadline())  # type: ignore[no-any-return]

    def _datagram(self, peek: bool, flags: int = 0) -> tuple[bytes, Any]:
        endpoint = self._endpoint
        if flags & _DONTWAIT:
            return endpoint.receive(peek)  # type: ignore[no-any-return]
        return self._done(lambda: endpoint.receive(peek), endpoint.is_readable, self._deadline())  # type: ignore[no-any-return]

    def recvfrom(self, bufsize: int, flags: int = 0) -> tuple[bytes, Any]:
        self._check_open()
        if isinstance(self._endpoint, DatagramSocket):
            data, address = self._datagram(bool(flags & _PEEK), flags)
            return data[:bufsize], address
        return self.recv(bufsize, flags), None

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        view, size = _room(buffer, nbytes, "recv_into")
        data = self.recv(size, flags)
        view[: len(data)] = data
        return len(data)

    def recvfrom_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> tuple[int, Any]:
        view, size = _room(buffer, nbytes, "recvfrom_into")
        data, address = self.recvfrom(size, flags)
        view[: len(data)] = data
        return len(data), address

    def recvmsg(self, bufsize: int, ancbufsize: int = 0, flags: int = 0) -> tuple[bytes, list[Any], int, Any]:
        if not isinstance(self._endpoint, DatagramSocket):
            return self.recv(bufsize, flags), [], 0, None
        data, address = self._datagram(bool(flags & _PEEK), flags)
        return data[:bufsize], [], int(real.MSG_TRUNC) if len(data) > bufsize else 0, address

    # --- Writing ---

    def send(self, data: Any, flags: int = 0) -> int:
        self._check_open()
        view = data if type(data) is bytes else memoryview(data).cast("B")
        endpoint = self._endpoint
        if isinstance(endpoint, DatagramSocket):
            return endpoint.send(bytes(view))
        if flags and flags & _URGENT:
            self._computer.refuse("it sends urgent data (MSG_OOB), which isn't simulated", "send it as other data")
        if self._timeout == 0.0 or (flags and flags & _DONTWAIT):
            self._check_going()
            sent: int = endpoint.send(view)
            return sent
        return int(self._done(lambda: endpoint.send(view), endpoint.is_writable, self._deadline()))

    def sendall(self, data: Any, flags: int = 0) -> None:
        self._check_open()
        view = memoryview(data).cast("B")
        endpoint, deadline = self._endpoint, self._deadline()
        if isinstance(endpoint, DatagramSocket):
            endpoint.send(bytes(view))
            return
        left = [view]
        while left[0]:
            sent = self._done(lambda: endpoint.send(left[0]), endpoint.is_writable, deadline)
            left[0] = left[0][sent:]

    def sendto(self, data: Any, *rest: Any) -> int:
        self._check_open()
        if not rest:
            raise TypeError("sendto() takes 2 or 3 arguments (1 given)")
        address = rest[-1]
        if not isinstance(self._endpoint, DatagramSocket):
            return self.send(data)
        view, target = bytes(memoryview(data).cast("B")), None if address is None else self._resolved(address)
        if target is not None and target[0] == BROADCAST and not self.getsockopt(real.SOL_SOCKET, real.SO_BROADCAST):
            raise failure(errno.EACCES)
        return self._endpoint.send(view, target)

    def sendmsg(self, buffers: Iterable[Any], ancdata: Any = (), flags: int = 0, address: Any = None) -> int:
        data = b"".join(buffers)
        return self.send(data, flags) if address is None else self.sendto(data, flags, address)

    def sendfile(self, file: Any, offset: int = 0, count: int | None = None) -> int:
        return int(self._sendfile_use_send(file, offset, count))

    # --- Ending ---

    def shutdown(self, how: int) -> None:
        self._check_open()
        if how not in (real.SHUT_RD, real.SHUT_WR, real.SHUT_RDWR):
            raise failure(errno.EINVAL)
        self._endpoint.shut_down(how != real.SHUT_WR, how != real.SHUT_RD)

    def _real_close(self, _: Any = None) -> None:
        if _collecting or self._computer.over is not None or self._descriptor < 0:
            return
        descriptor, self._descriptor = self._descriptor, -1
        self._computer.stack.close(descriptor)

    def detach(self) -> int:
        self._closed = True
        descriptor, self._descriptor = self._descriptor, -1
        return descriptor

    def dup(self) -> Socket:
        self._check_open()
        descriptor = self._computer.stack.claim(self._endpoint)
        made = Socket(self._family, self._type, self._proto, descriptor)
        made.settimeout(self._timeout)
        return made

    # --- What it is ---

    def getsockname(self) -> Any:
        self._check_open()
        if isinstance(self._endpoint, PipeEnd):
            return _shown_path(getattr(self._endpoint, "path", ""))
        return self._computer.stack.local_address(self._endpoint)

    def getpeername(self) -> Any:
        self._check_open()
        if isinstance(self._endpoint, PipeEnd):
            if self._endpoint.other is None:
                raise failure(errno.ENOTCONN)
            return _shown_path(getattr(self._endpoint, "peer_path", ""))
        made = getattr(self._endpoint, "connection", None)
        if self._endpoint.peer is None or (made is not None and made.state in _UNCONNECTED):
            raise failure(errno.ENOTCONN)
        return self._endpoint.peer

    def setsockopt(self, level: int, optname: int, value: Any, optlen: int = 0) -> None:
        self._check_open()
        if level == real.IPPROTO_IP and optname == real.IP_ADD_MEMBERSHIP:
            self._computer.refuse(*_MULTICAST)
        if not isinstance(value, int | None):
            value = bytes(value)
        number = int.from_bytes(value[:4], "little") if isinstance(value, bytes) else int(value or 0)
        self._endpoint.options[level, optname] = value if isinstance(value, bytes) else number
        if (level, optname) == (real.SOL_SOCKET, real.SO_REUSEPORT):
            self._endpoint.shares = bool(number)
        if (level, optname) == (real.SOL_SOCKET, real.SO_REUSEADDR):
            self._endpoint.may_reuse = bool(number)
        if level == real.SOL_SOCKET and optname == real.SO_LINGER and isinstance(value, bytes):
            is_on, seconds = number, int.from_bytes(value[4:8], "little")
            self._endpoint.aborts = bool(is_on and not seconds)

    def getsockopt(self, level: int, optname: int, buflen: int = 0) -> Any:
        self._check_open()
        if level == real.SOL_SOCKET and optname == real.SO_ERROR:
            return self._endpoint.take_error()
        if level == real.SOL_SOCKET and optname == real.SO_TYPE:
            return self._type
        if level == real.SOL_SOCKET and optname == real.SO_DOMAIN:
            return int(self._family)
        if level == real.SOL_SOCKET and optname == real.SO_PROTOCOL:
            return self._protocol()
        usual: int | bytes = _USUAL.get((level, optname), 0)
        if optname == real.SO_ACCEPTCONN and level == real.SOL_SOCKET:
            usual = int(getattr(self._endpoint, "accepted", None) is not None)
        if optname == real.SO_PEERCRED and level == real.SOL_SOCKET and isinstance(self._endpoint, PipeEnd):
            usual = struct.pack("3i", self._computer.pid, os.getuid(), os.getgid())
        kept = self._endpoint.options.get((level, optname), usual)
        if isinstance(kept, bytes):
            return kept[:buflen] if buflen else int.from_bytes(kept[:4], "little")
        size = 8 if (level, optname) == (real.SOL_SOCKET, real.SO_LINGER) else 4
        return kept.to_bytes(size, "little")[:buflen] if buflen else kept

    def _protocol(self) -> int:
        if self._family != real.AF_INET:
            return 0
        return int(real.IPPROTO_TCP if self._type == real.SOCK_STREAM else real.IPPROTO_UDP)

    def get_inheritable(self) -> bool:
        return False

    def set_inheritable(self, inheritable: bool) -> None:
        """Nothing inherits it: there are no other processes."""


# Options that aren't 0 unless they are set.
_USUAL = {
    (real.SOL_SOCKET, real.SO_RCVBUF): 256 * 1024,
    (real.SOL_SOCKET, real.SO_SNDBUF): 256 * 1024,
    (real.IPPROTO_TCP, real.TCP_KEEPIDLE): 7_200,
    (real.IPPROTO_TCP, real.TCP_KEEPINTVL): 75,
    (real.IPPROTO_TCP, real.TCP_KEEPCNT): 9,
    (real.IPPROTO_IP, real.IP_TTL): 64,
    (real.IPPROTO_IP, real.IP_MULTICAST_TTL): 1,
    (real.IPPROTO_IP, real.IP_MULTICAST_LOOP): 1,
}
_PATH_MAX = 107
_MULTICAST = (
    "it joins a multicast group, which isn't simulated",
    "send to each participant by its name, or to all with <broadcast>",
)
_UNCONNECTED = (ConnectionState.OPENING, ConnectionState.CLOSED, ConnectionState.WAITING)


Socket.__module__, Socket.__name__, Socket.__qualname__ = "socket", "socket", "socket"  # As its repr shows.


def _room(buffer: Any, size: int, call: str) -> tuple[memoryview, int]:
    """Return where bytes are to be put, and how many."""
    view = memoryview(buffer).cast("B")
    if view.readonly:
        raise TypeError(f"{call}() argument 1 must be read-write bytes-like object, not {type(buffer).__name__}")
    if size < 0:
        raise ValueError(f"negative buffersize in {call}")
    if size > len(view):
        raise ValueError("buffer too small for requested bytes")
    return view, size or len(view)


def _shown_path(path: str) -> str | bytes:
    return os.fsencode(path) if path[:1] == "\0" else path


def _made(computer: Computer, family: int, kind: int, protocol: int) -> Endpoint:
    if family == real.AF_UNIX and kind == real.SOCK_STREAM:
        return LocalSocket(computer.stack)
    if family != real.AF_INET:
        raise failure(errno.EAFNOSUPPORT)
    if kind not in (real.SOCK_STREAM, real.SOCK_DGRAM):
        raise failure(errno.EPERM if kind == real.SOCK_RAW else errno.EINVAL)
    if protocol not in (0, real.IPPROTO_TCP if kind == real.SOCK_STREAM else real.IPPROTO_UDP):
        raise failure(errno.EPROTONOSUPPORT)
    return StreamSocket(computer.stack) if kind == real.SOCK_STREAM else DatagramSocket(computer.stack)


# --- Names ---


def _host_address(computer: Computer, host: Any) -> str:
    """Return the address of a host as `bind` and `connect` take it, looked up if it is a name."""
    text = host.decode() if isinstance(host, bytes | bytearray) else host
    if text is None or text == "":
        return ANY
    if not isinstance(text, str):
        raise TypeError(f"str, bytes or bytearray expected, not {type(text).__name__}")
    if text == "<broadcast>":
        return BROADCAST
    return looked_up(computer, text)


def looked_up(computer: Computer, host: str) -> str:
    """Return the address of a host, or raise that there is none of that name."""
    if is_address(host):
        return host
    if host in ("localhost", "localhost.localdomain"):
        return LOOPBACK
    found = computer.stack.directory.address(host) or _short_address(host)
    if found is None:
        host.encode("idna")  # As Python does: what can't be a name isn't looked up.
        raise real.gaierror(real.EAI_NONAME, "Name or service not known")
    return found


def _short_address(text: str) -> str | None:
    """Return an address that is written in another way than with four decimal numbers, as "127.1"."""
    if not text[:1].isdecimal() or not text.replace(".", "").isalnum():
        return None
    try:
        return real.inet_ntoa(real.inet_aton(text))
    except OSError:
        return None


_SERVICES = {"http": 80, "https": 443, "ssh": 22, "smtp": 25, "domain": 53, "redis": 6379, "postgresql": 5432}


def getaddrinfo(
    host: Any,
    port: Any,
    family: int = 0,
    type: int = 0,  # noqa: A002 - as in the module that this stands in for
    proto: int = 0,
    flags: int = 0,
) -> list[tuple[Any, Any, int, str, Any]]:
    """Look a host up; there is IPv4 only."""
    computer = here.computer
    if computer is None:
        return REAL["socket.getaddrinfo"](host, port, family, type, proto, flags)  # type: ignore[no-any-return]
    if isinstance(host, bytes):
        host = host.decode()
    if host is not None and not isinstance(host, str):
        raise TypeError("getaddrinfo() argument 1 must be string or None")
    if host == "" or (host is None and port is None):
        raise real.gaierror(real.EAI_NONAME, "Name or service not known")
    if host is None:
        address = ANY if flags & real.AI_PASSIVE else LOOPBACK
    elif flags & real.AI_NUMERICHOST and not is_address(host) and not _short_address(host):
        raise real.gaierror(real.EAI_NONAME, "Name or service not known")
    else:
        if ":" in host and family != real.AF_INET6:
            raise real.gaierror(real.EAI_ADDRFAMILY, "Address family for hostname not supported")
        address = looked_up(computer, host)
    if family not in (0, real.AF_INET):
        raise real.gaierror(real.EAI_ADDRFAMILY, "Address family for hostname not supported")
    number = _port_number(port)
    kinds = [(real.SOCK_STREAM, real.IPPROTO_TCP), (real.SOCK_DGRAM, real.IPPROTO_UDP)]
    found = [each for each in kinds if type in (0, each[0]) and proto in (0, each[1])]
    if not found:
        raise real.gaierror(real.EAI_SOCKTYPE, "ai_socktype not supported")
    name = host if flags & real.AI_CANONNAME and host else ""
    return [(real.AF_INET, kind, protocol, name, (address, number)) for kind, protocol in found]


def _port_number(port: Any) -> int:
    if port is None or port == "":
        return 0
    if not isinstance(port, int | str | bytes):
        raise OSError("Int or String expected")
    text = port.decode() if isinstance(port, bytes) else str(port)
    if text.isdecimal():
        return int(text) & 0xFFFF  # As the system does.
    if text in _SERVICES:
        return _SERVICES[text]
    raise real.gaierror(real.EAI_SERVICE, "Servname not supported for ai_socktype")


def socketpair(family: int | None = None, type: int = real.SOCK_STREAM, proto: int = 0) -> Any:  # noqa: A002
    """Return two sockets that are connected with each other."""
    computer = here.computer
    if computer is None:
        return REAL["socket.socketpair"](family, type, proto)
    if type & ~(real.SOCK_NONBLOCK | real.SOCK_CLOEXEC) != real.SOCK_STREAM:
        raise failure(errno.EOPNOTSUPP)
    ends = pair(computer.stack)
    return tuple(Socket(real.AF_UNIX, real.SOCK_STREAM, 0, endpoint=end) for end in ends)


def gethostbyname(computer: Computer, host: str) -> str:
    """Return a host's address."""
    return looked_up(computer, host) if host else ANY


def gethostbyaddr(computer: Computer, address: str) -> tuple[str, list[str], list[str]]:
    """Return the name of the computer that has an address."""
    found = looked_up(computer, address)
    name = _name_of(computer, found)
    if name is None:
        raise real.herror(1, "Unknown host")
    return name, [], [found]


def _name_of(computer: Computer, address: str) -> str | None:
    return "localhost" if address == LOOPBACK else computer.stack.directory.name(address)


def getnameinfo(computer: Computer, address: Any, flags: int) -> tuple[str, str]:
    """Return the name and the port of an address."""
    found, port = looked_up(computer, address[0]), address[1]
    name = None if flags & real.NI_NUMERICHOST else _name_of(computer, found)
    if name is None and flags & real.NI_NAMEREQD:
        raise real.gaierror(real.EAI_NONAME, "Name or service not known")
    services = {} if flags & real.NI_NUMERICSERV else {number: service for service, number in _SERVICES.items()}
    return name or found, services.get(port, str(port))
