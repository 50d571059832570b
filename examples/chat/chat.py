"""A chat of twenty people over a bad network: each sees it differently, and every run is the same.

A line takes 30 to 900 ms to each reader, and now and then never comes; from 8 to 11 s the two halves of the chat are
cut off from each other. Zoe comes after 5 s, because Ann has invited her. What people say depends on what they have
read: who has just seen a question answers it. So if the lines came in another order, it would be another conversation.

Ann and Ben read a few lines aloud: not the same ones, nor in the same order. At the end each sums up what it has
seen, with a short hash of it. No two of the twenty hashes are equal, and each is the same in every run.
"""

from __future__ import annotations

from hashlib import blake2b

from worldline import MS, Message, Participant

HELLO = b"hello"
THOUGHTS = (
    "what a day",
    "I have a new bicycle",
    "has anybody seen my umbrella?",
    "it rains here",
    "who comes along for lunch?",
    "the cat sits on my keyboard again",
    "is it Friday yet?",
    "the train was late",
)
ANSWERS = ("yes", "no", "perhaps", "who knows", "ask me tomorrow")


def person(self: Participant, aloud: int = 0) -> None:
    """Reads for a while, says something, reads on; and may read some lines aloud."""
    temper = self.stream("temper")
    patience = temper.randrange(2_000, 8_000)  # Some can't keep quiet, others mostly listen.
    seen: list[Message] = []
    self.publish("chat", HELLO)
    while not self.ended:
        pause = temper.randrange(500, patience) * MS
        for line in self.messages(until=self.now + pause):
            seen.append(line)
            if aloud and line.payload != HELLO:
                print(f"reads {text_of(line)}")
                aloud -= 1
        if not self.ended:
            self.publish("chat", remark(self, seen).encode())
    print(summary(seen))


def remark(self: Participant, seen: list[Message]) -> str:
    """Return what comes to its mind: an answer if the last line was a question."""
    words = self.stream("words")
    if seen and seen[-1].payload.endswith(b"?"):
        return f"{words.choice(ANSWERS)}, {seen[-1].sender}"
    return words.choice(THOUGHTS)


def text_of(line: Message) -> str:
    return f"{line.sender}: {line.payload.decode()}"


def summary(seen: list[Message]) -> str:
    """Tell how many lines came and how many didn't, who was seen first, and a hash of all of it."""
    counts: dict[str, int] = {}
    for line in seen:  # A sender's lines are numbered from 0, so gaps show.
        counts[line.sender] = max(counts.get(line.sender, 0), line.sequence + 1)
    missed = sum(counts.values()) - len(seen)
    whole = blake2b(digest_size=4)
    for line in seen:
        whole.update(f"{text_of(line)}\n".encode())
    first = ", ".join(list(counts)[:3])
    return f"saw {len(seen)} lines, missed {missed}; first came {first}; hash {whole.hexdigest()}"


def reader(self: Participant) -> None:
    """Reads six lines aloud, once all have said hello."""
    person(self, aloud=6)


def host(self: Participant) -> None:
    """Reads aloud too, and has asked a guest to come along."""
    self.invite("zoe", at="5s")
    print("has invited zoe for 5s")
    reader(self)
