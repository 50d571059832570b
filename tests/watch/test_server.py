"""The page's server: it answers its own page, and nothing else in the browser or on the network."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.launch.test_lcm_types import generate
from tests.watch.test_tape import told
from worldline.launch.file.topics import lcm_topic
from worldline.model import plan
from worldline.recording import Recorder, Recording, Schema
from worldline.watch.recorded import recorded_show
from worldline.watch.server import PageServer
from worldline.watch.show import numbers_in

HOSTILE = "</script><script>alert(1)</script>"


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    path = tmp_path / "run.mcap"
    recorder = Recorder(path, plan(["ann", "bob"]), federation=HOSTILE)
    for name in ("ann", "bob"):
        recorder.began(name, 0)
    for number in range(50):
        recorder.sent(
            "ann", number, "pose", number * 10, b'{"x":%d,"legs":[%d]}' % (number, 2 * number), number * 10 + 5
        )
        recorder.arrives("ann", number, "bob", number * 10 + 5, 0, "down" if number % 5 == 0 else None)
    recorder.noted("bob", "worldline/log", 77, json.dumps({"text": HOSTILE}).encode())
    for name in ("ann", "bob"):
        recorder.ended(name, 1000, b"\x01")
    recorder.passed(2000)
    recorder.close()
    return Recording(path)


@pytest.fixture
def server(recording: Recording) -> Iterator[PageServer]:
    show = recorded_show(recording)
    assert show.reading is not None
    show.reading.join()
    with PageServer([show]) as serving:
        yield serving


def ask(server: PageServer, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes, dict[str, str]]:
    """Ask as a client that may say anything in its headers."""
    where = urlsplit(server.url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port or 0, timeout=10)
    body = headers.pop("body", None)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path if path.startswith("//") else where.path + path, body, named)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, content, dict(answer.getheaders())


def test_a_message_is_told_whole(server: PageServer) -> None:
    status, content, _ = ask(server, "message?row=7")
    found = json.loads(content)
    assert status == 200
    assert (found["sender"], found["receiver"], found["sent"], found["arrival"]) == ("ann", "bob", 70, 75)
    assert json.loads(found["payload"]) == {"x": 7, "legs": [14]}


def test_signals_have_the_names_of_fields(server: PageServer) -> None:
    assert json.loads(ask(server, "fields")[1]) == {"fields": {"pose": ["x", "legs[0]"]}, "lively": ["pose", "x"]}
    line = json.loads(ask(server, "signal?topic=pose&field=legs[0]")[1])["lines"][0]
    assert (line["who"], line["times"][:3], line["values"][:3]) == ("ann", [0, 10, 20], [0, 2, 4])
    status, content, _ = ask(server, "signal?topic=pose&field=legz[0]")
    assert status == 409
    assert "legs[0]" in json.loads(content)["error"]


def test_news_has_what_was_sent_and_how_it_ended(server: PageServer) -> None:
    head, rows = told(ask(server, "news?rows=0")[1])
    assert len(rows) == 50
    assert head["losses"] == [["down", 10]]
    assert head["status"]["phase"] == "over"
    assert head["notes"][0][0] == 77


@pytest.mark.parametrize(
    ("path", "method", "headers"),
    [
        ("//wrong/", "GET", {}),
        ("", "GET", {"Host": "evil.example"}),
        ("news", "GET", {"Origin": "http://evil.example"}),
        ("news", "GET", {"Sec_Fetch_Site": "cross-site"}),
        ("order", "POST", {"body": "{}", "Content_Type": "application/json"}),
        ("order", "POST", {"body": "{}", "Content_Type": "text/plain", "Origin": "http://evil.example"}),
    ],
)
def test_strangers_are_refused(server: PageServer, path: str, method: str, headers: dict[str, str]) -> None:
    assert ask(server, path, method, **headers)[0] == 403


@pytest.mark.parametrize("path", ["message?row=nine", "message", "news?show=9", "signal?topic=x"])
def test_questions_that_mean_nothing_are_refused(server: PageServer, path: str) -> None:
    status, content, _ = ask(server, path)
    assert status == 400
    assert content.startswith(b"it can't be read")


def test_numbers_have_the_names_that_all_commands_use() -> None:
    found = dict(numbers_in({"pose": {"x": 1.5, "legs": [2, None, True]}, "name": "a"}))
    assert found == {"pose.x": 1.5, "pose.legs[0]": 2.0, "pose.legs[2]": 1.0}


def test_signals_are_read_by_the_definition_in_the_recording(tmp_path: Path) -> None:
    lab = generate("package lab; struct pose_t { double x; }", tmp_path / "types", "lab")
    topic = lcm_topic(lab.pose_t)
    schema = Schema(topic.schema_name, topic.schema_encoding, topic.schema)
    path = tmp_path / "run.mcap"
    recorder = Recorder(path, plan(["ann"]), encodings={"pose": "lcm"}, schemas={"pose": schema})
    recorder.began("ann", 0)
    for number in range(3):
        made = lab.pose_t()
        made.x = number / 2
        recorder.sent("ann", number, "pose", number, made.encode(), number)
    recorder.ended("ann", 9, b"\x01")
    recorder.passed(10)
    recorder.close()
    show = recorded_show(Recording(path))
    assert show.reading is not None
    show.reading.join()
    assert show.fields().fields == {"pose": ["x"]}
    assert show.signal("pose", "x")["lines"][0]["values"] == [0.0, 0.5, 1.0]
    assert "0.5" in show.message(1)["payload"]


def test_a_recording_cannot_be_driven(server: PageServer) -> None:
    origin = server.url.rpartition("/")[0].rpartition("/")[0]
    status, content, _ = ask(
        server, "order", "POST", body='{"order":"pause"}', Content_Type="application/json", Origin=origin
    )
    assert status == 409
    assert "recording" in json.loads(content)["error"]


def test_nothing_in_a_run_can_run_as_script(server: PageServer, recording: Recording) -> None:
    status, content, headers = ask(server, "")
    show = recorded_show(recording)
    file = show.page()
    assert status == 200
    assert "'unsafe-inline'" not in headers["Content-Security-Policy"]
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'sha256-")
    for page in (content.decode(), file):
        assert HOSTILE not in page
        assert page.count("<script") == 2  # The data, and the page's own.
        assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
        assert "https://" not in page


def test_a_taken_port_is_replaced(recording: Recording) -> None:
    with PageServer([recorded_show(recording)]) as first:
        port = urlsplit(first.url).port or 0
        with PageServer([recorded_show(recording)], port=port) as second:
            assert urlsplit(second.url).port != port
            assert ask(second, "")[0] == 200
