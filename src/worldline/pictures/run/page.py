"""Makes a page that plays a recorded run, whichever room has made it: a lane for each member, messages between them.

What can't be looked at isn't shown: of a large run the first messages, and the page says so.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from worldline.history.diff.account import NOTES, named
from worldline.history.diff.values import payload_text
from worldline.history.observer import OUTSIDE
from worldline.model.text import counted
from worldline.model.time import FOREVER, format_time
from worldline.pictures.player import Page, player_page
from worldline.recording.reader import Recording, intact, recorded_account, shortcoming

MEMBERS_MAX = 200
MESSAGES_MAX = 20_000
NOTES_MAX = 5_000


class _Numbers:
    """Numbers texts, so that each is in the page once."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}

    def of(self, text: str) -> int:
        return self.places.setdefault(text, len(self.places))

    def texts(self) -> list[str]:
        return list(self.places)


def run_page(recording: Recording, *, topics: Collection[str] = (), title: str = "") -> Page:
    """Return the page of a recorded run, of some topics or of all. It needs nothing from elsewhere."""
    account = recorded_account(intact(recording))
    members, kinds, texts = _Numbers(), _Numbers(), _Numbers()
    for name in sorted(account.stays, key=lambda name: (account.stays[name].began, name)):
        if name != OUTSIDE:  # That has a lane only if something came from there.
            members.of(name)
    messages: list[list[int]] = []
    notes: list[list[int]] = []
    end, left_out = 0, 0
    for at, sender, topic, payload, fates, _ in account.sendings:
        end = max(end, at, *(fate[0] for fate in fates))
        if topics and topic not in topics:
            continue
        text = texts.of(payload_text(payload or b""))
        if not fates:
            if len(notes) < NOTES_MAX:
                notes.append([at, members.of(sender), kinds.of(NOTES.get(topic, topic)), text])
            else:
                left_out += 1
            continue
        for arrival, receiver, _, lost in fates:
            if len(messages) < MESSAGES_MAX:
                reason = -1 if lost is None else texts.of(lost)
                messages.append([at, arrival, members.of(sender), members.of(receiver), kinds.of(topic), text, reason])
            else:
                left_out += 1
    names = members.texts()
    alarms = [f"{counted(left_out, 'message')} after the first ones aren't shown."] if left_out else []
    if len(names) > MEMBERS_MAX:
        alarms.append(f"Of {len(names):,} members, the first {MEMBERS_MAX} are shown.")
        messages = [each for each in messages if max(each[2], each[3]) < MEMBERS_MAX]
        notes = [each for each in notes if each[1] < MEMBERS_MAX]
        names = names[:MEMBERS_MAX]
    if missing := shortcoming(recording):
        alarms.append(missing)
    content: dict[str, Any] = {
        "members": [_member(name, account.stays.get(name), end) for name in names],
        "topics": kinds.texts(),
        "texts": texts.texts(),
        "messages": messages,
        "notes": notes,
        "end": end,
    }
    switches = {"notes": "Notes", "lost": "Lost messages", "names": "Names of topics"}
    return player_page(
        "run",
        title or recording.header.federation or recording.path.name,
        _summary(recording, sum(name != OUTSIDE for name in account.stays), end),
        content,
        switches,
        alarms=alarms,
        time_label="simulated time",
        is_still=end == 0,
    )


def _member(name: str, stay: Any, end: int) -> list[Any]:
    ended = end if stay is None or stay.ended is None or stay.ended >= FOREVER else min(stay.ended, end)
    return [named(name), 0 if stay is None else min(stay.began, end), ended]


def _summary(recording: Recording, members: int, end: int) -> str:
    digest = "" if recording.outcome is None or not recording.outcome.digest else f", digest {recording.outcome.digest}"
    return f"seed {recording.header.seed}, {counted(members, 'member')}, until {format_time(end)}{digest}"
