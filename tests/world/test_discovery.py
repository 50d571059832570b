"""Peers on a real network: they find each other, and notice who goes."""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from queue import SimpleQueue
from secrets import token_hex

import msgspec
import pytest
import zenoh
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.descendants import Family, family, family_of
from tests.federation.transports import eventually
from tests.world.meeting import NEVER_S, PATIENCE_S, free_place, here
from worldline.model.errors import ConfigurationError, LossError, UsageError
from worldline.world.discovery import DepartedBy, Discovery, DiscoveryOptions, Peer, _understood
from worldline.world.peers import Announcement, PeerRole
from worldline.world.zenoh_network import ZenohNetwork

ADDRESS = "tcp://127.0.0.1:7000"


@pytest.fixture
def place() -> str:
    return free_place()


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def primary(place: str, name: str = "p", federation: str = "f", stale_s: float = NEVER_S) -> Discovery:
    return Discovery(federation, "primary", name, address=ADDRESS, options=here(place, stale_s))


def secondary(place: str, name: str, federation: str = "f") -> Discovery:
    return Discovery(federation, "secondary", name, options=here(place))


def program(place: str, role: str, name: str, count: int = 0) -> AbstractContextManager[Family]:
    module = "tests.world.lone_peer"
    return family_of(sys.executable, "-m", module, place, "f", role, name, str(count))


# --- Finding ---


@pytest.mark.parametrize("order", ["pab", "apb", "abp"])
def test_peers_find_each_other_in_any_order(place: str, stack: ExitStack, order: str) -> None:
    peers = {name: stack.enter_context(primary(place) if name == "p" else secondary(place, name)) for name in order}
    assert [each.name for each in peers["p"].wait_for_secondaries(2, PATIENCE_S)] == ["a", "b"]
    for name in "ab":
        assert peers[name].find_primary(PATIENCE_S) == peers["p"].me


def test_so_do_programs_and_secondaries_may_be_first(place: str, stack: ExitStack) -> None:
    a, b = (stack.enter_context(program(place, "secondary", name)) for name in "ab")
    p = stack.enter_context(program(place, "primary", "p", count=2))
    assert p.await_line("found") == "a b"
    assert a.await_line("found") == b.await_line("found") == "p"


def test_newcomers_are_found_after_the_first_has_gone(place: str, stack: ExitStack) -> None:
    first = stack.enter_context(secondary(place, "first"))
    p = stack.enter_context(primary(place))
    a = stack.enter_context(secondary(place, "a"))
    p.wait_for_secondaries(2, PATIENCE_S)
    first.close()
    assert p.wait_for_departure(first.me.instance, PATIENCE_S).how is DepartedBy.ANNOUNCEMENT
    b = stack.enter_context(secondary(place, "b"))
    assert b.find_primary(PATIENCE_S).name == a.find_primary(PATIENCE_S).name == "p"
    assert [each.name for each in p.wait_for_secondaries(2, PATIENCE_S)] == ["a", "b"]


def test_somebody_takes_over_the_meeting_point(place: str, stack: ExitStack) -> None:
    """Otherwise, those who come while its holder goes would never meet."""
    host, _, port = place.removeprefix("tcp/").partition(":")
    with socket.create_server((host, int(port))):
        a, p = stack.enter_context(secondary(place, "a")), stack.enter_context(primary(place))
        assert a.present() == p.present() == ()
    assert a.find_primary(PATIENCE_S).name == "p"


def test_federations_keep_apart(place: str, stack: ExitStack) -> None:
    federations = ["f", "g/*", "g/**"]
    primaries = [stack.enter_context(primary(place, f"of {each}", each)) for each in federations]
    for own, federation in zip(primaries, federations, strict=True):
        a = stack.enter_context(secondary(place, "a", federation))
        assert a.find_primary(PATIENCE_S).name == own.me.name
        assert own.wait_for_secondaries(1, PATIENCE_S) == (a.me,)
    assert [len(each.present()) for each in primaries] == [1, 1, 1]
    assert [each.conflicts() for each in primaries] == [(), (), ()]


def test_peers_find_each_other_by_multicast(stack: ExitStack) -> None:
    federation = token_hex(8)  # All tests on this machine have one multicast group.
    options = DiscoveryOptions(interface="lo", multicast=True, stale_s=NEVER_S)
    a = stack.enter_context(Discovery(federation, "secondary", "a", options=options))
    stack.enter_context(Discovery(federation, "primary", "p", address=ADDRESS, options=options))
    assert a.find_primary(PATIENCE_S).name == "p"


def test_peers_find_each_other_at_given_endpoints(place: str, stack: ExitStack) -> None:
    a = stack.enter_context(Discovery("f", "secondary", "a", options=DiscoveryOptions(connect=[place])))
    listening = DiscoveryOptions(listen=[place])
    stack.enter_context(Discovery("f", "primary", "p", address=ADDRESS, options=listening))
    assert a.find_primary(PATIENCE_S).name == "p"


# --- Going ---


def test_a_killed_program_is_missed_without_waiting_for_its_silence(place: str) -> None:
    with primary(place) as p, program(place, "secondary", "a") as a:
        (peer,) = p.wait_for_secondaries(1, PATIENCE_S)
        a.program.kill()
        assert p.wait_for_departure(peer.instance, PATIENCE_S).how is DepartedBy.CONNECTION


def test_a_stopped_program_is_missed_and_stays_gone_when_it_goes_on(place: str, stack: ExitStack) -> None:
    p = stack.enter_context(primary(place, stale_s=1.0))
    a = stack.enter_context(program(place, "secondary", "a"))
    (peer,) = p.wait_for_secondaries(1, PATIENCE_S)
    a.await_line("found")
    a.program.send_signal(signal.SIGSTOP)
    assert p.wait_for_departure(peer.instance, PATIENCE_S).how is DepartedBy.SILENCE
    a.program.send_signal(signal.SIGCONT)
    # It speaks again, as somebody can tell who didn't know it before.
    witness = stack.enter_context(secondary(place, "witness"))
    assert witness.wait_for_secondaries(1, PATIENCE_S) == (peer,)
    p.wait_for_secondaries(1, PATIENCE_S)
    assert p.present() == (witness.me,)


def test_a_program_that_ends_in_order_says_so(place: str) -> None:
    with primary(place) as p, program(place, "secondary", "a") as a:
        (peer,) = p.wait_for_secondaries(1, PATIENCE_S)
        a.await_line("found")
        a.program.terminate()
        assert p.wait_for_departure(peer.instance, PATIENCE_S).how is DepartedBy.ANNOUNCEMENT
        assert a.stderr() == ""
        assert a.program.returncode == 0


def test_departures_are_told(place: str) -> None:
    told: SimpleQueue[tuple[Peer, DepartedBy]] = SimpleQueue()
    with Discovery(
        "f", "primary", "p", address=ADDRESS, options=here(place), on_departure=lambda *what: told.put(what)
    ) as p:
        with secondary(place, "a") as a:
            p.wait_for_secondaries(1, PATIENCE_S)
        assert told.get(timeout=PATIENCE_S) == (a.me, DepartedBy.ANNOUNCEMENT)
        assert [(each.peer, each.how) for each in p.gone()] == [(a.me, DepartedBy.ANNOUNCEMENT)]


def test_what_the_listener_raises_comes_out(place: str) -> None:
    def on_departure(peer: Peer, how: DepartedBy) -> None:
        raise ValueError(f"{peer.name} by {how}")

    p = Discovery("f", "primary", "p", address=ADDRESS, options=here(place), on_departure=on_departure)
    with secondary(place, "a"):
        p.wait_for_secondaries(1, PATIENCE_S)
    with pytest.raises(ValueError, match="a by announcement"):
        p.wait_for_secondaries(2, PATIENCE_S)
    p.close()


def test_a_listener_may_close(place: str) -> None:
    p = Discovery("f", "primary", "p", address=ADDRESS, options=here(place), on_departure=lambda *what: p.close())
    with secondary(place, "b") as b:
        b.find_primary(PATIENCE_S)
        with secondary(place, "a"):
            p.wait_for_secondaries(2, PATIENCE_S)
        assert b.wait_for_departure(p.me.instance, PATIENCE_S).how is DepartedBy.ANNOUNCEMENT
    p.close()


def test_a_program_that_forgets_to_close_ends_all_the_same(place: str) -> None:
    code = (
        "import sys; from worldline.world.discovery import *\n"
        "d = Discovery('f', 'secondary', 'a', options=DiscoveryOptions(meeting_point=sys.argv[1]))"
    )
    with family(code, place) as forgetful:
        assert forgetful.stderr() == ""
        assert forgetful.program.returncode == 0


# --- What goes wrong ---


def test_a_missing_primary(place: str, stack: ExitStack) -> None:
    a, b = (stack.enter_context(secondary(place, name)) for name in "ab")
    b.wait_for_secondaries(1, PATIENCE_S)
    with pytest.raises(LossError) as caught:
        b.find_primary(0.01)
    assert str(caught.value) == (
        "no primary of federation 'f' after 0.01 seconds; seen: secondary a "
        f"(start what is missing; all must name the same federation and meet at {place})"
    )
    a.close()
    b.wait_for_departure(a.me.instance, PATIENCE_S)
    with pytest.raises(LossError, match=r"seen: none; gone: secondary a \(announcement\) "):
        b.find_primary(0.0)


def test_missing_secondaries(place: str, stack: ExitStack) -> None:
    p = stack.enter_context(primary(place))
    for name in "ba":
        stack.enter_context(secondary(place, name))
    p.wait_for_secondaries(2, PATIENCE_S)
    with pytest.raises(LossError, match=r"^2 of 3 secondaries of federation 'f' after 0 seconds; seen: secondary b, "):
        p.wait_for_secondaries(3, 0.0)


def test_a_second_primary_is_refused_and_reported(place: str, stack: ExitStack) -> None:
    p, a = stack.enter_context(primary(place)), stack.enter_context(secondary(place, "a"))
    assert a.find_primary(PATIENCE_S).name == "p"
    with primary(place, "q") as q:
        with pytest.raises(ConfigurationError, match=r"has a primary already: p \(tcp://127.0.0.1:7000\)"):
            q.wait_for_secondaries(1, PATIENCE_S)
        stack.enter_context(secondary(place, "b"))
        p.wait_for_secondaries(2, PATIENCE_S)  # The elder goes on.
        with secondary(place, "c") as c:
            c.wait_for_secondaries(2, PATIENCE_S)
            eventually(lambda: c.conflicts())
            with pytest.raises(ConfigurationError, match=r"has 2 primaries: p \(.*\), q \(.*\)"):
                c.find_primary(PATIENCE_S)
    p.wait_for_departure(q.me.instance, PATIENCE_S)
    assert p.conflicts() == ()


def test_the_later_of_two_peers_of_one_name_is_refused(place: str, stack: ExitStack) -> None:
    p, elder = stack.enter_context(primary(place)), stack.enter_context(secondary(place, "a"))
    p.wait_for_secondaries(1, PATIENCE_S)
    with secondary(place, "a") as later:
        with pytest.raises(ConfigurationError, match="has a secondary named 'a' already"):
            later.wait_for_secondaries(2, PATIENCE_S)
        assert p.wait_for_secondaries(1) == (elder.me,)
    elder.find_primary(PATIENCE_S)


def say_until(heard: Callable[[], bool], network: ZenohNetwork, said: bytes) -> None:
    """Repeat it, as peers do: what is said before a peer has found the sender counts for nothing."""
    while not heard():
        network.send(said)
        network.receive(0.1)


def test_a_primary_waits_for_whoever_its_secondaries_hear(place: str, stack: ExitStack) -> None:
    p = stack.enter_context(primary(place))
    a = msgspec.structs.replace(p.me, role="secondary", name="a", instance="of-a", address="")
    network = ZenohNetwork("f", "of-a", here(place))
    stack.callback(network.close)
    said = msgspec.json.encode(Announcement(kind="alive", peer=a, hears=("p", "q")))
    say_until(lambda: a in p.present(), network, said)
    with pytest.raises(LossError, match=r"1 of 1 secondaries .* others see, but we don't: q"):
        p.wait_for_secondaries(1, 0.0)
    network.send(msgspec.json.encode(Announcement(kind="alive", peer=a, hears=("p",))))
    assert p.wait_for_secondaries(1, PATIENCE_S) == (a,)


def test_whoever_others_count_as_gone_is_told(place: str, stack: ExitStack) -> None:
    a = stack.enter_context(secondary(place, "a"))
    p = msgspec.structs.replace(a.me, role="primary", name="p", instance="of-p")
    network = ZenohNetwork("f", "of-p", here(place))
    stack.callback(network.close)
    say_until(lambda: p in a.present(), network, msgspec.json.encode(Announcement(kind="alive", peer=p)))
    network.send(b"something else")
    said = msgspec.json.encode(Announcement(kind="alive", peer=p, gone=(a.me.instance,)))
    network._put(said, zenoh.CongestionControl.BLOCK)
    with pytest.raises(LossError, match="primary p of federation 'f' counted this peer as gone"):
        a.wait_for_secondaries(1, PATIENCE_S)


def test_what_can_t_be_read_is_counted(place: str, stack: ExitStack) -> None:
    a = stack.enter_context(secondary(place, "a"))
    network = ZenohNetwork("f", "of-p", here(place))
    stack.callback(network.close)
    assert network.receive(PATIENCE_S) is not None
    announcement = msgspec.to_builtins(Announcement(kind="alive", peer=a.me))
    announcement["peer"] |= {"name": "b", "instance": "of-b"}
    network.send(b"something else")
    network.send(msgspec.json.encode(announcement | {"version": 2}))

    def are_counted() -> bool:
        with pytest.raises(LossError) as error:
            a.find_primary(0.0)
        return "announcements that can't be read, as those of another version: 2 " in str(error.value)

    eventually(are_counted)


FORGED = Peer(federation="f", role=PeerRole.PRIMARY, name="p", instance="forged", since_ns=0, address=ADDRESS)


@pytest.mark.parametrize(
    "payload",
    [
        b'{"x":' + b"[" * 100_000,
        b'{"version":1,"kind":"\xff"}',
        msgspec.json.encode(msgspec.to_builtins(Announcement(kind="alive", peer=FORGED)) | {"hears": ["\xff" * 300]}),
        msgspec.json.encode(Announcement(kind="alive", peer=FORGED)),
        msgspec.json.encode(Announcement(kind="leave", peer=FORGED)),
    ],
    ids=["deep", "not-utf-8", "long", "elder", "leave"],
)
def test_a_forged_announcement_is_refused_and_the_primary_goes_on(place: str, stack: ExitStack, payload: bytes) -> None:
    p, a = stack.enter_context(primary(place)), stack.enter_context(secondary(place, "a"))
    network = ZenohNetwork("f", "stranger", here(place))
    stack.callback(network.close)
    honest = msgspec.structs.replace(a.me, name="b", instance="stranger")
    say_until(lambda: honest in p.present(), network, msgspec.json.encode(Announcement(kind="alive", peer=honest)))
    assert p.wait_for_secondaries(2, PATIENCE_S) == (a.me, honest)
    gone = msgspec.json.encode(Announcement(kind="alive", peer=FORGED, gone=(p.me.instance,)))
    for instance in ("stranger", "forged", a.me.instance):
        network._key = f"worldline/discovery/f/{instance}"
        network._put(payload, zenoh.CongestionControl.BLOCK)
        network._put(gone, zenoh.CongestionControl.BLOCK)
    network._key = "worldline/discovery/f/stranger"
    network.leave(msgspec.json.encode(Announcement(kind="leave", peer=honest)))
    p.wait_for_departure("stranger", PATIENCE_S)  # All that was sent before has been read.
    p.check()
    assert p.conflicts() == ()
    assert [each.peer for each in p.gone()] == [honest]


SOUND = msgspec.json.encode(Announcement(kind="alive", peer=FORGED, hears=("a",), gone=("b",)))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 400), st.integers(0, 20), st.binary(max_size=20))
def test_any_bytes_are_an_announcement_or_none(start: int, length: int, inserted: bytes) -> None:
    for payload in (inserted, SOUND[:start] + inserted + SOUND[start + length :]):
        assert isinstance(_understood(payload), Announcement | None)


def test_nobody_is_found_at_a_port_that_isn_t_zenoh_s(place: str) -> None:
    """And closing doesn't wait for an answer from there for long."""
    host, _, port = place.removeprefix("tcp/").partition(":")
    with socket.create_server((host, int(port))), secondary(place, "a") as a, pytest.raises(LossError):
        a.find_primary(0.0)


def test_a_closed_discovery_finds_nobody(place: str) -> None:
    a = secondary(place, "a")
    a.close()
    a.close()
    with pytest.raises(UsageError, match="discovery is closed"):
        a.find_primary()


def test_without_zenoh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "worldline.world.zenoh_network")
    monkeypatch.setitem(sys.modules, "zenoh", None)
    with pytest.raises(UsageError) as caught:
        Discovery("f", "secondary", "a")
    assert str(caught.value) == "zenoh isn't installed (make extras WITH=zenoh in the clone of Worldline)"


@pytest.mark.parametrize(
    ("federation", "role", "name", "address", "told"),
    [
        ("", "secondary", "a", "", "the federation of a peer can't be ''"),
        ("f", "secondary", "", "", "the name of a peer can't be ''"),
        ("f", "secondary", "n" * 256, "", "the name of a peer can't be"),
        ("f", "secondary", None, "", "the name of a peer can't be None"),
        ("f", "tertiary", "a", "", "there is no role 'tertiary'"),
        ("f", "secondary", "a", ADDRESS, "secondaries connect to the primary"),
        ("f", "primary", "p", "", "a primary must say where secondaries connect"),
        ("f", "primary", "p", "nowhere", "isn't an address"),
        ("f", "primary", "p", "tcp://0.0.0.0:7000", "no peer can connect to 'tcp://0.0.0.0:7000'"),
        ("f", "primary", "p", "tcp://[::]:7000", "no peer can connect"),
        ("f", "primary", "p", "tcp://cell.example:0", "no peer can connect"),
    ],
)
def test_who_can_t_be(federation: str, role: str, name: str, address: str, told: str) -> None:
    with pytest.raises(UsageError, match=told.replace("[", r"\[")):
        Discovery(federation, role, name, address=address)


@pytest.mark.parametrize("listen", ["tcp/203.0.113.9:7000", "nonsense/203.0.113.9:7000", "tcp/0.0.0.0:0#iface=nosuch0"])
def test_endpoints_that_can_t_be_used(listen: str) -> None:
    with pytest.raises(ConfigurationError, match="Zenoh can't be opened") as caught:
        Discovery("f", "secondary", "a", options=DiscoveryOptions(listen=[listen]))
    assert ".rs" not in str(caught.value)


def test_the_meeting_point_is_free_again_if_another_endpoint_can_t_be_used(place: str) -> None:
    options = DiscoveryOptions(meeting_point=place, listen=["tcp/203.0.113.9:7000"])
    with pytest.raises(ConfigurationError, match="Zenoh can't be opened"):
        Discovery("f", "secondary", "a", options=options)
    host, _, port = place.removeprefix("tcp/").partition(":")
    socket.create_server((host, int(port))).close()
