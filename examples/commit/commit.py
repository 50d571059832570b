"""Two-phase commit: a coordinator asks three voters, and tells each what was decided.

A voter that has said yes is in doubt until it knows the decision, which may take long: messages get lost, and the
coordinator may crash in between. `vote` asks until it is answered. `hasty` takes a long silence for a no, which is
the mistake that a search is to find: others may have been told to commit.
"""

from __future__ import annotations

from worldline import MS, Participant, payload
from worldline.search import Story, always

VOTERS = ("ann", "bob", "cy")
PATIENCE = 40 * MS
PAUSE = 150 * MS


def coordinate(me: Participant) -> None:
    """Decide one transaction after the other. What was decided is written down before anybody is told."""
    decided: dict[str, bool] = me.stable.get("decided", {})
    number = len(decided)
    while not me.ended:
        me.publish("prepare", payload.to_json(number))
        votes: dict[str, bool] = {}
        until = me.now + PATIENCE
        while me.now < until and len(votes) < len(VOTERS) and not me.ended:
            for message in me.next(until=until):
                said = payload.from_json(message.payload)
                if message.topic == "ask":
                    answer(me, message.sender, said, decided)
                elif said["number"] == number:
                    votes[message.sender] = said["yes"]
        decided[str(number)] = len(votes) == len(VOTERS) and all(votes.values())
        me.stable["decided"] = decided
        for voter in VOTERS:
            answer(me, voter, number, decided)
        number += 1
        until = me.now + PAUSE
        while me.now < until and not me.ended:
            for message in me.next(until=until):
                if message.topic == "ask":
                    answer(me, message.sender, payload.from_json(message.payload), decided)


def answer(me: Participant, voter: str, number: int, decided: dict[str, bool]) -> None:
    """Tell a voter what was decided; what never was is aborted."""
    commit = decided.get(str(number), False)
    me.publish(f"decision/{voter}", payload.to_json({"number": number, "commit": commit}))


def vote(me: Participant, hasty: bool = False) -> None:
    """Vote on what is prepared, and ask for the decision until it comes."""
    doubts: dict[int, int] = {}
    while not me.ended:
        for message in me.next(until=me.now + PATIENCE):
            said = payload.from_json(message.payload)
            if message.topic == "prepare":
                yes = me.random.random() < 0.9
                me.publish("vote", payload.to_json({"number": said, "yes": yes}))
                if yes:
                    doubts[said] = me.now
            elif doubts.pop(said["number"], None) is not None and said["commit"]:
                me.log(f"commits {said['number']}")
        for number, since in list(doubts.items()):
            if me.now < since + 2 * PATIENCE:
                continue
            if hasty:
                del doubts[number]
                me.log(f"aborts {number}")
            elif not me.ended:
                me.publish("ask", payload.to_json(number))


def hasty(me: Participant) -> None:
    """Take a long silence for a no."""
    vote(me, hasty=True)


@always("no participant commits what another aborts")
def agreement(story: Story) -> bool:
    said = [note.text.split() for note in story.noted()]
    return not ({number for verb, number in said if verb == "commits"} & {n for verb, n in said if verb == "aborts"})
