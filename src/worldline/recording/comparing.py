"""Compares two recordings: of any room, whole, cut off or broken off.

What both files hold in equal chunks isn't even unpacked (see `scan`); the rest is read once, in step, by
`history.parting`, as far as each tells everything (see `reader`).
"""

from __future__ import annotations

from itertools import islice
from os import PathLike

import msgspec

from worldline.history.account import Account, ActionKind
from worldline.history.difference import Difference, Later, guess
from worldline.history.fields import FieldDifference, field_differences
from worldline.history.link_draws import RunDraws
from worldline.history.parting import Causes, Origin, Partings, explain, part, unseen_before
from worldline.model.draws.distributions import Distribution, DrawnValue, value_text
from worldline.model.time import format_time
from worldline.recording.reader import Recording, intact, is_complete, is_cut_off, recorded_account, story
from worldline.recording.scan import equal_chunks, sendings

_LATER_MAX = 24  # How many messages a guess is made from,
_LOOK_MAX = 200_000  # and how far they are looked for.
_ROSTERS = ("roster", "guests")  # Who takes part in one only is said elsewhere.


def compare_recordings(a: str | PathLike[str], b: str | PathLike[str], *, to: str | None = None) -> Difference:
    """Compare two recordings. `to` is the member to whom the chain from the first cause is to lead."""
    one, other = intact(Recording(a)), intact(Recording(b))
    skip = equal_chunks(one.scan, other.scan)
    if not (is_complete(one) and is_complete(other)):  # How far a file goes is seen at its end.
        skip = max(0, min(skip, len(one.scan.chunks) - 2, len(other.scan.chunks) - 2))
    accounts = recorded_account(one, skip), recorded_account(other, skip)
    partings = part(*accounts)
    headers = _headers(one, other)
    names = {difference.path.partition(".")[0] for difference in headers}
    causes = explain(partings, same_network=not names & {"network", "seed", "draws"})
    ends = _end(one, accounts[0]), _end(other, accounts[1])
    draws, unlisted = _replaced_draws(one, other) if "draws" in names else ([], 0)
    difference = Difference(
        partings,
        causes,
        headers,
        ends,
        cut_off=tuple(is_cut_off(each) for each in (one, other)),
        same_ends=ends == (None, None) or (None not in ends and _fate(one, accounts[0]) == _fate(other, accounts[1])),
        unseen_before=_unseen_before(causes, partings, one),
        guess=_guess(causes, sorted(names), one, other, skip),
        to=to,
        names=(str(one.path), str(other.path)),
        draws=draws,
        draws_unlisted=unlisted,
    )
    difference.chain()  # Refuses a name that isn't there before anything is said.
    return difference


def _headers(a: Recording, b: Recording) -> list[FieldDifference]:
    """Return what the recorders knew before the runs began, and isn't the same."""
    return field_differences(*(msgspec.json.encode(_compared_header(each)) for each in (a, b)))


def _compared_header(recording: Recording) -> dict[str, object]:
    header = msgspec.to_builtins(recording.header)
    settings = {name: value for name, _, value in (each.partition("=") for each in recording.header.settings)}
    draws = {row.name: row.replacement() for row in recording.header.draws}
    compared = {name: value for name, value in header.items() if name not in _ROSTERS}
    return {**compared, "settings": settings, "draws": draws}


def _replaced_draws(a: Recording, b: Recording) -> tuple[list[tuple[str, str, str]], int]:
    """Return which draws of links have another value in the other run because a table replaced them.

    And how many can't be told: those that a function made. It may not even be here, and a recording isn't trusted to
    name any.
    """
    by_function: set[str] = set()

    def note(name: str, _: Distribution, value: DrawnValue) -> DrawnValue:
        by_function.add(name)
        return value

    one, other = (
        RunDraws(recorded_account(each).sendings, each.header.plan(), load=lambda _: note).effects for each in (a, b)
    )
    found = []
    for name, (drawn, _) in one.items():
        if name in by_function:
            continue
        also = other[name].drawn if name in other else drawn
        if drawn.value != also.value and (drawn.value != drawn.natural or also.value != also.natural):
            then, now = (value_text(each.distribution, each.value) for each in (drawn, also))
            found.append((name, then, now))
    return found, len(by_function)


def _end(recording: Recording, account: Account) -> str | None:
    """Say how a recording ended before its time, None if it didn't."""
    if account.is_complete:
        return None
    if is_cut_off(recording):
        return f"cut off: everything sent before {format_time(account.until)} is there"
    assert recording.outcome is not None
    return f"broken off: {story(recording.outcome)}"


def _fate(recording: Recording, account: Account) -> object:
    """Return what tells two runs apart that didn't come to their ends. Where exactly a run breaks off is luck."""
    outcome = recording.outcome
    if outcome is None or not recording.scan.whole:
        return account.until
    return outcome.cause, outcome.participant, outcome.at


def _unseen_before(causes: Causes, partings: Partings, recording: Recording) -> list[str]:
    """Return from whom the first cause may have what differs. Both recordings have it, so either tells."""
    if not causes.first or not (partings.unseen or partings.renumbered):
        return []
    told = recorded_account(recording, skip=0).sendings
    return unseen_before(causes.reasons[causes.first[0]], partings, told)


def _guess(causes: Causes, headers: list[str], a: Recording, b: Recording, skip: int) -> str:
    if not causes.first:
        return ""
    reason = causes.reasons[causes.first[0]]
    later: Later = ()
    first = reason.parting.first
    if reason.origin is Origin.ITSELF and first.act is ActionKind.SENDS and reason.parting.a and reason.parting.b:
        later = list(
            zip(*(_payloads(each, skip, reason.parting.member, first.topic, first.at) for each in (a, b)), strict=False)
        )
    return guess(reason, headers, later)


def _payloads(recording: Recording, skip: int, sender: str, topic: str, start: int) -> list[bytes]:
    """Return the next few payloads that a member sent on a topic."""
    near = islice((each for each in sendings(recording.scan, skip) if each[0] >= start), _LOOK_MAX)
    found = (each[3] or b"" for each in near if each[1] == sender and each[2] == topic)
    return list(islice(found, _LATER_MAX))
