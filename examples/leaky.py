"""A federation that is wrong on purpose: two participants share a variable behind Worldline's back.

`worldline check examples/leaky.py` finds it, and says where it first shows.
"""

from __future__ import annotations

from worldline import Federation, Network, Participant, Program, link, run

NEXT_ID = 0


def worker(self: Participant) -> None:
    """Gives its jobs numbers from a counter that all share: who comes first depends on luck."""
    global NEXT_ID  # The mistake that this example shows.
    for _ in range(3):
        NEXT_ID += 1
        self.publish("job", f"{self.name} takes number {NEXT_ID % 6}".encode())
        self.advance(by="10ms")


def printer(self: Participant) -> None:
    for job in self.messages(until="100ms"):
        print(self.now, job.payload.decode())


model = Federation(
    {
        "left": Program(worker, publishes=["job"]),
        "right": Program(worker, publishes=["job"]),
        "printer": Program(printer, publishes=[], subscribes=["job"]),
    },
    network=Network(default=link("1ms")),
)

if __name__ == "__main__":
    print("digest", run(model).digest.hex())
