"""Finds out what everybody is doing, for an operator: for how long, in which process, and what is in the way."""

from __future__ import annotations

from worldline.federation.host import Host
from worldline.federation.milestones import Milestones
from worldline.federation.other_end import OtherEnd
from worldline.federation.peer_process import condition_of
from worldline.federation.session import Session
from worldline.lock.situation import Activity
from worldline.lock.states import ASKING, State

_UNREAD_MUCH = 2**16


def activities_of(host: Host, milestones: Milestones, now: float) -> dict[str, Activity]:
    """Return what is known of everybody who is connected, or was lost and may come back, or whose process runs.

    The system is asked only about those who compute: the others wait, and that is all they do.
    """
    in_the_way = {
        **dict.fromkeys(host.hasty(), "it sends too many frames, and is slowed down"),
        **dict.fromkeys(host.ahead(), "it is far ahead of the others, and held back"),
        **dict.fromkeys(host.returning(), "it has come back, and does again what it had done"),
    }
    unconnected = {name: Activity(remark=remark) for name, remark in host.unconnected.items()}
    lost = {name: Activity(seconds=missed_s, lost=cause) for name, (cause, missed_s) in host.lost().items()}
    return (
        unconnected
        | lost
        | {
            name: _activity(session, milestones, now, in_the_way.get(name, ""))
            for name, session in host.sessions.items()
        }
    )


def _activity(session: Session, milestones: Milestones, now: float, remark: str) -> Activity:
    member = session.member
    if member is None:
        return Activity(remark="it waits to be invited" if session.joining is not None else remark)
    if len(session.out) > _UNREAD_MUCH:
        remark = f"it hasn't read {len(session.out):,} bytes"
    if member.state in ASKING:
        began = milestones.when(member.since)
        return Activity(seconds=0.0 if began is None else max(0.0, now - began), remark=remark)
    if member.state is not State.COMPUTING:
        return Activity(remark=remark)
    found: OtherEnd = session.owner.other_end()
    return Activity(
        seconds=None if found.since is None else max(0.0, now - found.since),
        process=found.process,
        condition=condition_of(found.process),
        remark="; ".join(filter(None, (found.remark, remark))),
        behind=found.behind,
    )
