"""Descriptors, pipes, epoll and signals: what a program sees on a machine is what it sees on Linux."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pickle
import queue
import select
import selectors
import signal
import socket
import stat
import struct
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.programs.test_surroundings import seen_by
from worldline import Federation, Machine, WorldlineError, run

SETTLE_S = 0.01  # On the real loopback everything has arrived long before.


def listening(option: int = socket.SO_REUSEADDR, port: int = 0) -> socket.socket:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, option, 1)
    try:
        made.bind(("127.0.0.1", port))
        made.listen()
    except OSError:
        made.close()
        raise
    return made


def connected() -> tuple[socket.socket, socket.socket]:
    with listening() as server:
        one = socket.create_connection(server.getsockname())
        return one, server.accept()[0]


def failure(action: Callable[[], Any]) -> Any:
    try:
        return action()
    except Exception as error:
        return type(error), getattr(error, "errno", None), str(error)


def two_share_a_port() -> Any:
    one = listening(socket.SO_REUSEPORT)
    other = listening(socket.SO_REUSEPORT, one.getsockname()[1])
    alone = failure(lambda: listening(socket.SO_REUSEADDR, one.getsockname()[1]))
    with socket.create_connection(one.getsockname()):
        return len(select.select([one, other], [], [], 1)[0]), alone, one.close(), other.close()


def ports_with_both_options() -> Any:
    def try_with(*options: tuple[int, int]) -> Any:
        one, other = (socket.socket(), socket.socket())
        with one, other:
            for each in (one, other):
                for option, value in options:
                    each.setsockopt(socket.SOL_SOCKET, option, value)
            one.bind(("127.0.0.1", 0))
            return failure(lambda: other.bind(one.getsockname())), failure(one.listen), failure(other.listen)

    address, port = socket.SO_REUSEADDR, socket.SO_REUSEPORT
    return [
        found if any(found) else None
        for found in (
            try_with((port, 1), (address, 1)),
            try_with((address, 1), (port, 1)),
            try_with((port, 1), (address, 0)),
            try_with((port, 1), (port, 0)),
            try_with((port, 1)),
            try_with((address, 1))[:1],
            try_with((address, 1), (port, 0))[:1],
        )
    ]


def epoll_by_level() -> Any:
    one, other = connected()
    with one, other, select.epoll() as watching:
        watching.register(other, select.EPOLLIN)
        found = [watching.poll(0)]
        one.send(b"x")
        found += [[events for _, events in watching.poll(1)] for _ in range(2)]
        other.recv(1)
        found.append(watching.poll(0))
        watching.modify(other, select.EPOLLIN | select.EPOLLOUT | select.EPOLLONESHOT)
        found += [[events for _, events in watching.poll(wait)] for wait in (1, 0)]
        one.close()
        watching.modify(other, select.EPOLLIN)
        found.append([events for _, events in watching.poll(1)])
        watching.unregister(other)
        again = failure(lambda: watching.unregister(other))
    return found, again, watching.closed, failure(watching.poll)


def epoll_of_one_at_a_time() -> Any:
    pairs = [socket.socketpair() for _ in range(3)]
    with select.epoll() as watching:
        for one, other in pairs:
            watching.register(one, select.EPOLLIN)
            other.send(b"x")
        found = [fd for _ in range(6) for fd, _ in watching.poll(1, 1)]
        seen = [[one.fileno() for one, _ in pairs].index(fd) for fd in found], failure(lambda: watching.poll(0, 0))
    for each in (*pairs[0], *pairs[1], *pairs[2]):
        each.close()
    return seen


def named_arguments() -> Any:
    one, other = socket.socketpair()
    with one, other, tempfile.TemporaryFile() as file:
        file.write(b"abc")
        file.flush()
        sent = os.sendfile(out_fd=one.fileno(), in_fd=file.fileno(), offset=0, count=3)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytearray(8))
        os.close(fd=os.dup(one.fileno()))
        return sent, other.recv(9), one.getsockopt(socket.SOL_SOCKET, socket.SO_DOMAIN) == socket.AF_UNIX


def epoll_by_edge() -> Any:
    one, other = connected()
    with one, other, select.epoll() as watching:
        watching.register(other, select.EPOLLIN | select.EPOLLET)
        told = []
        for data in (b"xy", b"", b"z"):
            one.sendall(data)
            told.append(len(watching.poll(0.01)))
        return told


def poll_of_a_reset() -> Any:
    one, other = connected()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    one.close()
    watching = select.poll()
    watching.register(other, select.POLLIN)
    return [events for _, events in watching.poll(1000)], failure(lambda: other.recv(1)), other.close()


def sockets_by_number() -> Any:
    one, other = connected()
    with one, other:
        os.write(one.fileno(), b"hello")
        read = os.read(other.fileno(), 10)
        os.set_blocking(other.fileno(), False)
        flags = fcntl.fcntl(other, fcntl.F_GETFL) & os.O_NONBLOCK, fcntl.fcntl(other, fcntl.F_GETFD)
        would_block = failure(lambda: os.read(other.fileno(), 10))
        kind = stat.S_ISSOCK(os.fstat(one.fileno()).st_mode), os.isatty(one.fileno()), os.get_blocking(one.fileno())
        return read, flags, would_block, kind


def copies_of_a_socket() -> Any:
    one, other = connected()
    copies = one.dup(), socket.fromfd(one.fileno(), socket.AF_INET, socket.SOCK_STREAM)
    numbers = len({one.fileno(), *(each.fileno() for each in copies)})
    with os.fdopen(os.dup(one.fileno()), "wb") as file:
        file.write(b"file")
    one.close()
    one.close()
    copies[0].close()
    copies[1].send(b" and copy")
    copies[1].close()
    with other, other.makefile("rb") as heard:
        return heard.read(), numbers


def descriptors_of_a_chosen_number() -> Any:
    one, other = socket.socketpair()
    third, fourth = socket.socketpair()
    number = os.dup(third.fileno())
    same = os.dup2(one.fileno(), number) == number
    os.write(number, b"by its number")
    third.close()  # The copy was closed by what took its place.
    seen = same, other.recv(100), fourth.recv(100), os.dup2(number, number) == number
    one.close()
    os.close(number)
    seen = *seen, other.recv(100), failure(lambda: os.dup2(number, 3)), failure(lambda: os.dup2(other.fileno(), -1))
    other.close()
    fourth.close()
    return seen


def data_in_pieces() -> Any:
    one, other = socket.socketpair()
    sent = os.writev(one.fileno(), [b"one", bytearray(b"two"), memoryview(b"three")])
    first, second, third = bytearray(4), bytearray(4), bytearray(4)
    read = os.readv(other.fileno(), [first, second, third])
    nowhere = [
        failure(partial(call, *given))
        for call, given in (
            (os.pread, (one.fileno(), 1, 0)),
            (os.pwrite, (one.fileno(), b"x", 0)),
            (os.preadv, (one.fileno(), [first], 0)),
            (os.lseek, (one.fileno(), 0, os.SEEK_SET)),
        )
    ]
    one.close()
    other.close()
    return sent, read, first, second, third, nowhere


def epoll_in_epoll() -> Any:
    one, other = socket.socketpair()
    with one, other, select.epoll() as inner, select.epoll() as outer:
        outer.register(inner, select.EPOLLIN | select.EPOLLET)
        before = outer.poll(0)
        inner.register(other, select.EPOLLIN)
        silent = outer.poll(0)
        one.send(b"x")
        heard = [events for _, events in outer.poll(1)], [events for _, events in inner.poll(0)]
        readable = select.select([inner], [], [], 0) == ([inner], [], [])
        other.recv(1)
        return before, silent, heard, readable, select.select([inner], [], [], 0), outer.poll(0)


def numbers_that_stand_for_something_else() -> Any:
    one, other = socket.socketpair()
    with one, other, select.epoll() as watching, selectors.DefaultSelector() as selector:
        first, second = socket.socketpair()
        watching.register(first, select.EPOLLIN)
        selector.register(first, selectors.EVENT_READ)
        one.send(b"x")
        os.dup2(other.fileno(), first.fileno())
        seen = [watching.poll(0), selector.select(0), failure(lambda: watching.unregister(first))]
        watching.register(first, select.EPOLLIN)
        seen.append([events for _, events in watching.poll(0)])
        os.dup2(second.fileno(), first.fileno())
        selector.unregister(first)
        watching.close()
        return seen, first.close(), second.close()


def epoll_in_a_circle() -> Any:
    with select.epoll() as one, select.epoll() as other, select.epoll() as third:
        one.register(other)
        other.register(third)
        wrong = one.register, one.modify, other.register, third.register
        seen = [failure(lambda act=act: act(one, select.EPOLLIN)) for act in wrong]
        return seen, failure(lambda: one.unregister(one)), failure(lambda: one.register(other)), one.poll(0)


def data_looked_at_in_whole() -> Any:
    look, seen = socket.MSG_PEEK | socket.MSG_WAITALL, []
    for one, other in (connected(), socket.socketpair()):
        with one, other:
            one.send(b"ab")
            late = threading.Timer(SETTLE_S, lambda one=one: one.send(b"cd"))
            late.start()
            seen += [other.recv(4, look), other.recv(1), other.recv(3, look)]
            late.join()
            one.close()
            seen += [other.recv(9, look), other.recv(9), other.recv(9, look)]
    return seen


def pipes() -> Any:
    reading, writing = os.pipe()
    threading.Timer(0.01, lambda: os.write(writing, b"late")).start()
    late = os.read(reading, 10)
    os.write(writing, b"more")
    ready = select.select([reading], [], [], 1)[0] == [reading]
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        return late, ready, stat.S_ISFIFO(os.fstat(reading).st_mode), file.read()


def pipes_that_block_or_do_not() -> Any:
    reading, writing = os.pipe2(os.O_NONBLOCK)
    seen = [os.get_blocking(reading), os.get_blocking(writing), failure(lambda: os.read(reading, 1))]
    os.close(reading)
    os.close(writing)
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(5)
    try:
        reading, writing = os.pipe()
        threading.Timer(0.01, lambda: os.write(writing, b"late")).start()
        seen += [os.read(reading, 10), os.get_blocking(reading)]
        os.fdopen(writing, "wb").close()
        os.close(reading)
    finally:
        socket.setdefaulttimeout(before)
    return seen


def pipes_that_are_full() -> Any:
    reading, writing = os.pipe()
    heard: list[int] = []

    def read() -> None:
        while data := os.read(reading, 50_000):
            heard.append(len(data))

    reader = threading.Thread(target=read)
    reader.start()
    written = os.write(writing, bytes(1_000_000))
    os.close(writing)
    reader.join()
    os.close(reading)
    return written, sum(heard)


def files_that_leave_a_descriptor_open() -> Any:
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb", closefd=False) as file:
        file.write(b"a")
    os.write(writing, b"b")
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        return file.read()


def sockets_of_files() -> Any:
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        path, file = f"{folder}/socket", Path(folder, "socket")
        client, again, seen = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX), []
        seen.append(failure(lambda: client.connect(path)))
        server.bind(path)
        server.listen()
        file.chmod(0o600)
        seen += [stat.S_ISSOCK(file.stat().st_mode), failure(lambda: again.bind(path))]
        client.connect(path)
        server.accept()[0].close()
        seen.append((client.recv(1), client.close()))
        server.close()
        with socket.socket(socket.AF_UNIX) as late:
            seen += [file.exists(), failure(lambda: late.connect(path)), failure(lambda: again.bind(path))]
        file.unlink()
        seen.append((again.bind(path), again.close()))
        return seen


def files_sent_by_number() -> Any:
    one, other = connected()
    with one, other, tempfile.TemporaryFile() as file:
        file.write(b"x" * 1000)
        file.flush()
        seen = [os.sendfile(one.fileno(), file.fileno(), 10, 900), len(other.recv(900, socket.MSG_WAITALL))]
        file.truncate(10_000_000)
        one.setblocking(False)
        file.seek(5)
        sent = os.sendfile(one.fileno(), file.fileno(), None, 10_000_000)
        return seen, sent < 9_999_995, os.lseek(file.fileno(), 0, os.SEEK_CUR) == sent + 5


def datagrams() -> Any:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one, socket.socket(type=socket.SOCK_DGRAM) as other:
        one.bind(("127.0.0.1", 0))
        other.sendto(b"0123456789", one.getsockname())
        cut = one.recvmsg(4)
        return cut[0], cut[2], failure(lambda: other.sendto(b"", ("255.255.255.255", 9)))


def signals() -> Any:
    heard: list[Any] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: heard.append((number, type(number) is int)))
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
        heard.append(signal.sigpending())
        heard.append(signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1}))
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
        signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    wrong: tuple[tuple[int, Any], ...] = ((signal.SIGKILL, print), (99, print), (signal.SIGTERM, 3.5))
    heard += [failure(lambda pair=pair: signal.signal(*pair)) for pair in wrong]
    thread = threading.Thread(target=lambda: heard.append(failure(lambda: signal.signal(signal.SIGTERM, print))))
    thread.start()
    thread.join()
    return heard


def signals_that_threads_block() -> Any:
    heard: list[Any] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: heard.append(number))
    blocked = threading.Event()

    def work() -> None:
        heard.append(signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGRTMIN + 1}))
        heard.append(signal.pthread_sigmask(signal.SIG_SETMASK, []))
        heard.append(signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1}))
        blocked.set()
        time.sleep(0.02)

    thread = threading.Thread(target=work)
    try:
        thread.start()
        blocked.wait()
        os.kill(os.getpid(), signal.SIGUSR1)
        heard.append(signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals()))
        heard.append(signal.pthread_sigmask(signal.SIG_SETMASK, []))
        heard.append(failure(lambda: signal.pthread_sigmask(99, [])))
    finally:
        signal.signal(signal.SIGUSR1, before)
        thread.join()
    return heard


def signals_waited_for() -> Any:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGUSR2})
    try:
        signal.raise_signal(signal.SIGUSR1)
        seen: list[Any] = [signal.sigwait({signal.SIGUSR1, signal.SIGUSR2}), signal.sigpending()]
        main = threading.get_ident()
        thread = threading.Thread(target=lambda: (time.sleep(SETTLE_S), signal.pthread_kill(main, signal.SIGUSR2)))
        thread.start()
        seen.append(signal.sigwaitinfo([signal.SIGUSR2]).si_signo)
        thread.join()
        seen += [signal.sigtimedwait([signal.SIGUSR2], SETTLE_S), signal.sigtimedwait([signal.SIGUSR2], 0)]
        return seen, failure(lambda: signal.sigtimedwait([signal.SIGUSR2], -1))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Named:
    """Has functions by names of its own: those of C become no methods."""

    lock, rlock, clock, sleep = threading.Lock, threading.RLock, time.monotonic, time.sleep
    ready, name, draw, local = select.select, socket.gethostname, os.urandom, threading.local


def functions_of_a_class() -> Any:
    with Named().lock() as taken:
        locks = taken, isinstance(Named.lock(), type(threading.Lock())), type(threading.RLock()).__module__
    Named.local().value = 1
    return locks, Named().clock() > 0, Named().sleep(0), Named().ready([], [], [], 0), len(Named().draw(3))


def listeners_that_are_shut_down() -> Any:
    with listening() as server, socket.create_connection(server.getsockname()) as client:
        seen = [failure(lambda: server.shutdown(socket.SHUT_WR)), server.accept()[0].close()]
        waiting = socket.create_connection(server.getsockname())
        thread = threading.Thread(target=lambda: (time.sleep(0.02), server.shutdown(socket.SHUT_RDWR)))
        server.settimeout(2)
        server.accept()[0].close()
        thread.start()
        seen.append(failure(server.accept))
        thread.join()
        seen += [[len(each) for each in select.select([server], [], [], 0)], failure(server.accept)]
        seen += [server.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)]
        seen += [failure(lambda: socket.create_connection(server.getsockname())), failure(server.listen)]
        waiting.close()
        client.close()
        return seen


def room_for_data() -> Any:
    one, other = connected()
    with one, other:
        one.send(b"abcdef")
        time.sleep(SETTLE_S)
        room = bytearray(3)
        wrong: list[tuple[Any, ...]] = [(room, -1), (room, 4), (b"fixed",)]
        seen = [failure(lambda given=given: other.recv_into(*given)) for given in wrong]
        seen += [failure(lambda given=given: other.recvfrom_into(*given)) for given in wrong[:1]]
        seen += [other.recv(0), other.recv_into(room), bytes(room), other.recv_into(room, 1), bytes(room)]
        other.settimeout(0.01)
        one.send(b"gh")
        time.sleep(SETTLE_S)
        seen += [other.recv(5, socket.MSG_WAITALL), failure(lambda: other.recv(1))]
    with socket.socket() as fresh:
        return [*seen, fresh.recv(0), [len(each) for each in select.select([fresh], [fresh], [], 0)]]


def addresses_in_other_words() -> Any:
    asked: list[tuple[Any, ...]] = [
        *((host, 80) for host in ("0", "127.1", "0x7f.1", "1.2.3.4.5", "", " ", 7)),
        *(("127.0.0.1", port) for port in (65_536 + 7, -1, "65543", b"80", "nosuch", [])),
        (None, None),
        (None, 80),
    ]
    stream = socket.AF_INET, socket.SOCK_STREAM
    found = [failure(lambda each=each: socket.getaddrinfo(*each, *stream)) for each in asked]
    found.append(failure(lambda: socket.gethostbyname(f"{'a' * 64}.org"))[0])
    return found, [
        failure(lambda flags=flags: socket.getnameinfo(("127.0.0.1", 80), flags))
        for flags in (0, socket.NI_NUMERICHOST, socket.NI_NUMERICSERV)
    ]


def options_that_were_not_set() -> Any:
    one, other = connected()
    copy, paired = socket.socket(fileno=os.dup(one.fileno())), socket.socketpair()
    with one, other, copy, socket.socket(type=socket.SOCK_DGRAM) as told:
        level = socket.SOL_SOCKET
        seen = [each.getsockopt(level, socket.SO_PROTOCOL) for each in (one, told, *paired)]
        seen += [copy.proto, struct.unpack("ii", one.getsockopt(level, socket.SO_LINGER, 8))]
        seen += [len(paired[0].getsockopt(level, socket.SO_PEERCRED, struct.calcsize("3i")))]
        seen += [told.getsockopt(socket.IPPROTO_IP, each) for each in (socket.IP_MULTICAST_TTL, socket.IP_TTL)]
    for each in paired:
        each.close()
    return seen, repr(one), one.proto


def ends_that_are_watched_for() -> Any:
    one, other = connected()
    with one, other:
        watching, seen = select.poll(), []
        watching.register(other, select.POLLIN | select.POLLRDHUP)
        watching.register(98_765)
        for step in (lambda: one.send(b"x"), lambda: one.shutdown(socket.SHUT_WR), lambda: other.recv(1)):
            step()
            time.sleep(SETTLE_S)
            seen.append([events for _, events in watching.poll(10)])
        return seen, failure(lambda: watching.register("text"))


def datagrams_to_any_address() -> Any:
    one, other = socket.socket(type=socket.SOCK_DGRAM), socket.socket(type=socket.SOCK_DGRAM)
    with one, other:
        one.bind(("127.0.0.1", 0))
        other.settimeout(1)
        other.sendto(b"there", ("0.0.0.0", one.getsockname()[1]))
        said, back = one.recvfrom(9)
        other.connect(("0.0.0.0", one.getsockname()[1]))
        one.sendto(b"back", back)
        return said, other.recv(9), other.getpeername()[0], failure(lambda: other.sendto(b"x", ("127.0.0.1", 0)))


def datagrams_no_more() -> Any:
    one, other = socket.socket(type=socket.SOCK_DGRAM), socket.socket(type=socket.SOCK_DGRAM)
    with one, other:
        one.bind(("127.0.0.1", 0))
        other.connect(one.getsockname())
        other.shutdown(socket.SHUT_WR)
        return failure(lambda: other.send(b"x")), failure(lambda: other.sendto(b"x", one.getsockname()))


def accepted_when_it_is_over() -> Any:
    with listening() as server:
        client = socket.create_connection(server.getsockname())
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        time.sleep(SETTLE_S)
        server.settimeout(1)
        with server.accept()[0] as accepted:
            return failure(lambda: accepted.recv(1))


def tasks_by_name() -> Any:
    async def main() -> Any:
        task, future = asyncio.current_task(), asyncio.get_running_loop().create_future()
        return type(task).__name__, type(future).__qualname__, repr(future)

    return asyncio.run(main())


def connections_tried_again() -> Any:
    with listening() as server:
        address = server.getsockname()
    with socket.socket() as patient:
        patient.settimeout(1)
        return [failure(lambda: patient.connect(address)) for _ in range(4)]


def unix_sockets_at_odd_places() -> Any:
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as other:
        wrong = "/no/such/folder/socket", "x" * 108
        seen = [failure(lambda path=path: one.bind(path)) for path in wrong]
        one.bind(f"\0{os.getpid()}")
        one.listen()
        other.connect(one.getsockname())
        accepted, peer = one.accept()
        accepted.close()
        return seen, type(one.getsockname()), other.getpeername() == one.getsockname(), peer


def mistakes() -> Any:
    closed, fresh = socket.socket(), socket.socket()
    closed.close()
    with fresh:
        return [
            failure(action)
            for action in (
                lambda: select.select([closed], [], [], 0),
                lambda: select.select([], [], [], -1),
                lambda: fresh.connect(("127.0.0.1", 99_999)),
                lambda: fresh.bind(("127.0.0.1", -1)),
                lambda: fresh.connect("127.0.0.1"),
                lambda: os.read(closed.fileno(), 1),
                lambda: closed.settimeout(1),
                lambda: fresh.bind(("127.0.0.1",)),
                lambda: socket.socket(type=77),
                lambda: socket.socket(proto=socket.IPPROTO_UDP),
                lambda: socket.socket(fileno=-1),
                lambda: pickle.dumps(fresh),
            )
        ]


@pytest.mark.parametrize(
    "program",
    [
        two_share_a_port,
        ports_with_both_options,
        epoll_by_level,
        epoll_by_edge,
        epoll_of_one_at_a_time,
        named_arguments,
        poll_of_a_reset,
        sockets_by_number,
        copies_of_a_socket,
        descriptors_of_a_chosen_number,
        data_in_pieces,
        epoll_in_epoll,
        epoll_in_a_circle,
        numbers_that_stand_for_something_else,
        data_looked_at_in_whole,
        pipes,
        pipes_that_block_or_do_not,
        pipes_that_are_full,
        files_that_leave_a_descriptor_open,
        files_sent_by_number,
        sockets_of_files,
        datagrams,
        signals,
        signals_that_threads_block,
        signals_waited_for,
        functions_of_a_class,
        listeners_that_are_shut_down,
        room_for_data,
        addresses_in_other_words,
        options_that_were_not_set,
        ends_that_are_watched_for,
        datagrams_to_any_address,
        datagrams_no_more,
        accepted_when_it_is_over,
        tasks_by_name,
        connections_tried_again,
        unix_sockets_at_odd_places,
        mistakes,
    ],
)
@pytest.mark.filterwarnings("ignore:Passing arguments to RLock")
def test_a_machine_shows_what_linux_shows(program: Callable[[], Any]) -> None:
    assert seen_by(program) == program()


def test_a_number_that_a_program_has_chosen_is_not_given_again() -> None:
    def program() -> int:
        with socket.socket() as first:
            chosen = [os.dup2(first.fileno(), first.fileno() + step) for step in (1, 3)]
            made = [socket.socket() for _ in range(3)]
            return len({*chosen, *(each.fileno() for each in made)})

    assert seen_by(program) == 5


def test_what_a_library_keeps_of_a_program_can_be_closed_when_the_run_is_over() -> None:
    kept = seen_by(lambda: os.pipe()[0])
    os.close(kept)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.close(99_999)


def test_a_multicast_group_is_refused_by_name() -> None:
    def program() -> None:
        with socket.socket(type=socket.SOCK_DGRAM) as made, suppress(OSError):
            made.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, bytes(8))

    with pytest.raises(WorldlineError, match="joins a multicast group, which isn't simulated"):
        run(Federation({"a": Machine(program)}))


def test_urgent_data_is_refused_by_name() -> None:
    def program() -> None:
        one, _ = connected()
        one.send(b"!", socket.MSG_OOB)

    with pytest.raises(WorldlineError, match=r"sends urgent data \(MSG_OOB\), which isn't simulated"):
        run(Federation({"a": Machine(program)}))


def classes_used_as_such() -> Any:
    class Kept(queue.SimpleQueue[int]):
        def put_twice(self, item: int) -> None:
            self.put(item)
            self.put(item)

    class Own(selectors.DefaultSelector):
        is_own = True

    kept = Kept()
    kept.put_twice(7)
    with Own() as selector:
        own = selector.is_own, selector.select(0)
    is_one = isinstance(queue.SimpleQueue(), queue.SimpleQueue)
    return str(queue.SimpleQueue[int]), is_one, kept.get(), kept.qsize(), own


def test_what_stands_in_for_a_class_can_be_subscripted_and_derived_from() -> None:
    seen: list[Any] = []
    run(Federation({"box": Machine(lambda: seen.append(classes_used_as_such()))}))
    assert seen == [("_queue.SimpleQueue[int]", True, 7, 1, (True, []))]
