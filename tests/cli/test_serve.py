"""`worldline serve`: participants that somebody else starts, and how it ends without them."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_run import Command, digest_in, worldline
from tests.federation.transports import PATIENCE_S, PROMPT_S, Strand, make_certificate
from worldline import Federation, Network, Participant, Program, connect, link, run
from worldline.federation.environment import OPERATOR_TOKEN, TOKEN
from worldline.model import LossError, UsageError
from worldline.recording import Condition, Recording

__all__ = ["worldline"]

FILE = """
name = "tennis"
[link]
latency = "uniform(5ms, 9ms)"
[[participants]]
names = ["ann", "bob"]
"""


def player(self: Participant) -> None:
    if self.name == "ann":
        self.publish("ball", b"serve")
    for ball in self.messages(until="100ms"):
        self.publish("ball", ball.payload + b"!")


PROGRAM = Program(player, publishes=["ball"], subscribes=["ball"])


@contextlib.contextmanager
def serving(
    folder: Path, *options: str, files: int | None = None, **environment: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start the command, which may have so many open files; return its process and the address that it says."""
    (folder / "tennis.toml").write_text(FILE)
    limit = [] if files is None else ["sh", "-c", f'ulimit -n {files}; exec "$0" "$@"']
    command = [*limit, sys.executable, "-m", "worldline", "serve", "tennis.toml", *options]
    child = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert child.stdout is not None
    with child.stdout:
        try:
            line = child.stdout.readline()
            found = re.fullmatch(r"tennis on (\S+), waiting for ann, bob\n", line)
            assert found, line
            yield child, found[1]
        finally:
            child.kill()
            child.wait(PATIENCE_S)


def test_it_says_which_faults_it_drew(tmp_path: Path) -> None:
    with serving(tmp_path, "--listen", "tcp://127.0.0.1:0", "--no-record", "--until", "1s", "--faults", "hang=1") as (
        child,
        _,
    ):
        assert child.stdout is not None
        assert re.fullmatch(r"drawn: \S+ hang (ann|bob) \S+\n", child.stdout.readline())


def test_too_few_files_are_named_at_once(tmp_path: Path) -> None:
    options = ["--listen", "tcp://127.0.0.1:0", "--no-record"]
    with serving(tmp_path, *options, files=15) as (child, _):
        assert child.stdout is not None
        said = child.stdout.readline()
        assert re.match(
            r"2 participants need about \d+ open files, and this process may have 15: raise the limit", said
        )


def play(address: str, name: str, **options: Any) -> Callable[[], None]:
    def act() -> None:
        with connect(address, name, publishes=["ball"], subscribes=["ball"], **options) as me:
            player(me)

    return act


def test_two_that_were_started_by_hand_give_the_same_as_in_one_process(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    (tmp_path / "token").write_text("secret\n")
    options = ["--listen", "tls://127.0.0.1:0", "--certificate", str(certificate), "--key", str(key)]
    with serving(tmp_path, *options, "--token-file", "token") as (child, address):
        assert address.startswith("tls://127.0.0.1:")
        with pytest.raises(UsageError, match="the token is wrong, or missing"):
            connect(address, "ann", authority=certificate)
        players = [
            Strand(play(address, name, token="secret", federation="tennis", authority=certificate))
            for name in ("bob", "ann")
        ]
        for strand in players:
            strand.result()
        assert child.wait(PATIENCE_S) == 0
        assert child.stdout is not None
        digest = digest_in(child.stdout.read())
    network = Network(default=link("uniform(5ms, 9ms)"))
    assert digest == run(Federation({"ann": PROGRAM, "bob": PROGRAM}, network=network)).digest.hex()
    recorded = Recording(tmp_path / "tennis.mcap")
    assert recorded.verify().condition is Condition.INTACT
    assert recorded.outcome is not None
    assert recorded.outcome.digest == digest


def test_each_has_a_token_and_a_certificate_and_only_the_file_gives_control(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    (tmp_path / "tokens").mkdir()
    for name in ("ann", "bob"):
        (tmp_path / "tokens" / name).write_text(f"of {name}\n")
    options = ["--listen", "tls://127.0.0.1:0", "--certificate", str(certificate), "--key", str(key)]
    options += ["--authority", str(certificate), "--token-directory", "tokens", "--no-record"]
    shown: Any = {"authority": certificate, "certificate": certificate, "key": key}
    with serving(tmp_path, *options) as (child, address):
        with pytest.raises(LossError, match="no trusted connection"):
            connect(address, "bob", authority=certificate, token="of bob")
        with pytest.raises(UsageError, match="the token is wrong, or missing"):
            connect(address, "bob", token="of ann", **shown)
        with (
            pytest.raises(UsageError, match="declares controls = true"),
            connect(address, "bob", token="of bob", controls=True, **shown),
        ):
            pytest.fail("it was let in")
        players = [Strand(play(address, name, token=f"of {name}", **shown)) for name in ("bob", "ann")]
        for strand in players:
            strand.result()
        assert child.wait(PATIENCE_S) == 0
        assert child.stdout is not None
        said = child.stdout.read()
    assert "refused 'bob': the token is wrong, or missing\n" in said
    assert "refused 'bob': it declares controls = true, and the federation's file says false" in said
    assert re.search("a connection ended before it was admitted: TLS failed: .*certificate", said)


def test_participants_cant_operate_and_operators_elsewhere_have_a_token_of_their_own(
    worldline: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("shared")
    (tmp_path / "operators").write_text("operators")
    options = ["--listen", "tcp://127.0.0.1:0", "--token-file", "token", "--no-record"]
    with serving(tmp_path, *options, "--operator-token-file", "operators") as (_, address):
        assert "paused at 0" in worldline("pause", "tennis")[1]  # Its user types nothing.
        assert "paused at 0" in worldline("pause", address)[1]
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))  # As another user, or on another machine.
        for token in ([], ["--token-file", str(tmp_path / "token")]):
            code, _, err = worldline("pause", address, *token)
            assert code == 2
            assert "an operator needs the operator's token; a participant's isn't enough" in err
        assert "paused at 0" in worldline("pause", address, "--token-file", str(tmp_path / "operators"))[1]


def test_where_others_can_reach_it_the_operators_token_is_printed(
    worldline: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(tmp_path, "--listen", "tcp://0.0.0.0:0", "--no-record", **{TOKEN: "shared"}) as (child, address):
        assert child.stdout is not None
        printed = re.fullmatch(rf"for operators on other machines: {OPERATOR_TOKEN}=(\w+)\n", child.stdout.readline())
        assert printed
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
        monkeypatch.setenv(OPERATOR_TOKEN, printed[1])
        assert "paused at 0" in worldline("pause", address.replace("0.0.0.0", "127.0.0.1"))[1]


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_server_tells_those_who_wait(sign: signal.Signals, tmp_path: Path) -> None:
    with serving(tmp_path, "--listen", f"unix://{tmp_path}/socket", **{TOKEN: "secret"}) as (child, address):
        ann = connect(address, "ann", token="secret")
        waiting = Strand(ann.__enter__)
        with pytest.raises(UsageError, match="unexpected participant 'cleo'; expected: "):
            connect(address, "cleo", token="secret")
        child.send_signal(sign)
        assert f"interrupted by {sign.name}" in str(waiting.failure(PROMPT_S))
        assert child.wait(PATIENCE_S) == 130
        assert child.stdout is not None
        assert f"worldline: interrupted by {sign.name}" in child.stdout.read()
    assert not list(tmp_path.glob("*.mcap"))  # It never began.
    assert not (tmp_path / "socket").exists()


def test_what_cant_be_served_is_refused(worldline: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN, raising=False)
    file = str(tmp_path / "tennis.toml")
    (tmp_path / "tennis.toml").write_text(FILE)
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "latin").write_bytes(b"gr\xfc\xdfe\n")
    (tmp_path / "tokens").mkdir()
    (tmp_path / "tokens" / "ann").write_text("of ann\n")
    for options, words in (
        (["--listen", "tcp://0.0.0.0:0"], "can be reached from other machines, and there is no token"),
        (["--token-file", str(tmp_path / "missing")], "the token can't be read from"),
        (["--token-file", str(tmp_path / "empty")], "is empty"),
        (["--token-file", str(tmp_path / "latin")], "isn't UTF-8 text (a token is one line of text)"),
        (["--token-directory", str(tmp_path / "tokens")], "tokens/bob: No such file or directory"),
        (["--token-directory", str(tmp_path / "empty")], "empty isn't a directory"),
        (["--token-directory", str(tmp_path), "--token-file", str(tmp_path / "empty")], "one for each (use one)"),
        (["--authority", str(tmp_path / "empty")], "an authority for clients goes with tls://"),
        (["--listen", "tls://127.0.0.1:0"], "a certificate goes with an address tls://"),
        (["--listen", "nowhere"], "'nowhere' isn't an address"),
        (["--realtime", "0"], "a pace of 0.0 isn't possible"),
    ):
        code, _, err = worldline("serve", file, "--no-record", *options)
        assert code == 2
        assert words in err
