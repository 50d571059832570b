"""A small consensus: Paxos, with two proposers and three acceptors that agree on one entry of a log after the other.

A proposer asks the acceptors to promise that they won't listen to older ballots, and is told what they have accepted so
far. If a majority promises, it asks them to accept an entry: that of the newest ballot that any of them has accepted,
or its own if there is none. What a majority has accepted is decided for good, whichever node asks afterward.

Acceptors may crash at any time, so they write down what they say before they say it. The classes at the end each get
one thing wrong, and `worldline search` finds all of them: see docs/search.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from worldline import MS, Participant, payload
from worldline.search import Story, always, eventually

PROPOSERS = ("pat", "quinn")
ACCEPTORS = ("ann", "bob", "cy")
PATIENCE = 25 * MS
PAUSE_MAX = 10 * MS


@dataclass
class Said:
    """A question or an answer about a place in the log. A promise tells what was accepted before, in which ballot."""

    place: int
    ballot: int
    value: str = ""
    accepted_in: int = 0


@dataclass
class Vote:
    """What an acceptor has promised and accepted for a place."""

    promised: int = 0
    accepted_in: int = 0
    value: str = ""


class Acceptor:
    """Promises and accepts. What it has said holds after a crash, too."""

    def __init__(self, me: Participant) -> None:
        self.me = me
        self.votes: dict[int, Vote] = me.stable.get("votes", {})

    def run(self) -> None:
        for message in self.me.messages():
            said = payload.from_json(message.payload, Said)
            vote = self.votes.setdefault(said.place, Vote())
            if message.topic == "prepare" and said.ballot > vote.promised:
                vote.promised = said.ballot
                self.answer("promise", Said(said.place, said.ballot, vote.value, vote.accepted_in))
            elif message.topic == "accept" and self.may_accept(said, vote):
                vote.promised = vote.accepted_in = said.ballot
                vote.value = said.value
                self.answer("accepted", said)

    def may_accept(self, said: Said, vote: Vote) -> bool:
        return said.ballot >= vote.promised

    def answer(self, topic: str, said: Said) -> None:
        self.write_down()
        self.me.publish(topic, payload.to_json(said))

    def write_down(self) -> None:
        self.me.stable["votes"] = self.votes


class Proposer:
    """Learns what is at each place of the log. What it proposes is its name."""

    majority = len(ACCEPTORS) // 2 + 1

    def __init__(self, me: Participant) -> None:
        self.me = me

    def run(self) -> None:
        place: int = self.me.stable.get("place", 0)
        while not self.me.ended:
            self.me.advance(by=self.me.random.randrange(PAUSE_MAX))
            value = self.decided(place)
            if value is not None:
                self.hand_out(place, value)
                place += 1

    def hand_out(self, place: int, value: str) -> None:
        """Tell what was learned, once: after a crash in between, it is rather missing than there twice."""
        self.me.stable["place"] = place + 1
        self.tell(place, value)

    def tell(self, place: int, value: str) -> None:
        if not self.me.ended:
            self.me.publish("entry", payload.to_json(Said(place, 0, value)))

    def decided(self, place: int) -> str | None:
        """Go through one ballot, and return what is decided, unless it fails."""
        ballot = self.next_ballot()
        promises = self.ask("prepare", Said(place, ballot), "promise")
        if len(promises) < self.majority:
            return None
        value = self.choose(promises)
        return value if self.is_accepted(Said(place, ballot, value)) else None

    def next_ballot(self) -> int:
        """Return a number that neither another node nor an earlier incarnation has used."""
        tried: int = self.me.stable.get("tried", 0)
        self.me.stable["tried"] = tried + 1
        return (tried + 1) * len(PROPOSERS) + PROPOSERS.index(self.me.name)

    def choose(self, promises: list[Said]) -> str:
        newest = max(promises, key=lambda promise: promise.accepted_in)
        return newest.value or self.me.name

    def is_accepted(self, proposal: Said) -> bool:
        return len(self.ask("accept", proposal, "accepted")) >= self.majority

    def ask(self, topic: str, said: Said, answer: str) -> list[Said]:
        """Ask all acceptors, and return the answers of a majority, or those that come in time."""
        answers: dict[str, Said] = {}
        until = self.me.now + PATIENCE
        if not self.me.ended:
            self.me.publish(topic, payload.to_json(said))
        while len(answers) < self.majority and self.me.now < until and not self.me.ended:
            for message in self.me.next(until=until):
                heard = payload.from_json(message.payload, Said)
                if message.topic == answer and heard.ballot == said.ballot:
                    answers[message.sender] = heard
        return list(answers.values())


@always("no node learns another entry")
def agreement(story: Story) -> bool:
    learned = {(entry.value["place"], entry.value["value"]) for entry in story.sent("entry")}
    return len(learned) == len({place for place, _ in learned})


@always("no node hands out an entry twice")
def once(story: Story) -> bool:
    handed_out = [(entry.who, entry.value["place"]) for entry in story.sent("entry")]
    return len(handed_out) == len(set(handed_out))


@eventually("both proposers learn an entry")
def progress(story: Story) -> bool:
    return {entry.who for entry in story.sent("entry")} == set(PROPOSERS)


def propose(me: Participant) -> None:
    Proposer(me).run()


def accept(me: Participant) -> None:
    Acceptor(me).run()


# -- Mistakes


class Forgetful(Acceptor):
    """Keeps nothing over a crash."""

    def write_down(self) -> None:
        pass


class Late(Acceptor):
    """Writes down what it has said after it has said it."""

    def answer(self, topic: str, said: Said) -> None:
        self.me.publish(topic, payload.to_json(said))
        self.write_down()


class Careless(Acceptor):
    """Accepts whatever it is asked to, and doesn't care what it has promised."""

    def may_accept(self, said: Said, vote: Vote) -> bool:
        return True


class Half(Proposer):
    """Takes the lesser half for a majority."""

    majority = len(ACCEPTORS) // 2


class Stubborn(Proposer):
    """Proposes its own value, whatever was accepted before."""

    def choose(self, promises: list[Said]) -> str:
        return self.me.name


class Hasty(Proposer):
    """Takes a value for decided once it has asked the acceptors to accept it."""

    def is_accepted(self, proposal: Said) -> bool:
        self.ask("accept", proposal, "accepted")
        return True


class Repeating(Proposer):
    """Writes down that it has handed out an entry after it has."""

    def hand_out(self, place: int, value: str) -> None:
        self.tell(place, value)
        self.me.stable["place"] = place + 1


def forgetful(me: Participant) -> None:
    Forgetful(me).run()


def late(me: Participant) -> None:
    Late(me).run()


def careless(me: Participant) -> None:
    Careless(me).run()


def half(me: Participant) -> None:
    Half(me).run()


def stubborn(me: Participant) -> None:
    Stubborn(me).run()


def hasty(me: Participant) -> None:
    Hasty(me).run()


def repeating(me: Participant) -> None:
    Repeating(me).run()
