"""A robot cell: a camera watches a belt, a planner follows the parts on it, an arm picks them up, a watchdog minds it.

Pictures take 4 to 9 ms to the planner, and one in ten is lost. So what the planner knows is always old, and it sends
the arm not only where a part was and when, but also how fast it goes; the arm reaches for where the part must be now.
At 1.29 s the camera's cable breaks. The arm still picks up the part that it was following, out of its memory, and then
the watchdog finds that the arm's news is too old, and stops the cell.

Delays, losses and the camera's blur are drawn from the seed. So every run tells the same story, to the nanosecond.
"""

from __future__ import annotations

from dataclasses import dataclass

from worldline import MS, SECOND, Participant, payload

BELT_MM_PER_S = 250.0
PART_EVERY = 400 * MS  # So often a part is put on the belt, at 0 mm.
TRAY_MM = 90.0  # Where the arm puts the parts, and where it waits.
REACH_MM = 3.0  # How far the arm gets in one step of 5 ms.
GRIPPER_MM = 2.5  # A part that lies farther off its middle slips away.
THINKING = 3 * MS
SILENCE_MAX = 30 * MS
AGE_MAX = 150 * MS


@dataclass
class Sighting:
    """A part in a picture."""

    part: int
    mm: float


@dataclass
class Target:
    """A part as the planner knows it: where it was at a time, and how fast it goes."""

    part: int
    seen: int
    mm: float
    mm_per_s: float

    def at(self, time: int) -> float:
        return self.mm + self.mm_per_s * (time - self.seen) / SECOND


@dataclass
class Pose:
    """Where the arm is, and how old the news is that it acts on."""

    mm: float
    news_age: int


def part_on_belt(time: int) -> tuple[int, float]:
    """Return the newest part's number and place. The belt's physics: the same for all, so it needn't be sent."""
    parts, since = divmod(time, PART_EVERY)
    return parts + 1, BELT_MM_PER_S * since / SECOND


def camera(self: Participant) -> None:
    """Takes a picture every 20 ms and finds the part in it, to half a millimetre."""
    blur = self.stream("blur")
    in_view = 0
    while not self.ended:
        part, mm = part_on_belt(self.now)
        if part != in_view:
            print(f"part {part} comes into view")
            in_view = part
        seen = Sighting(part, round(mm + blur.uniform(-0.5, 0.5), 3))
        self.publish("image", payload.to_json(seen))
        self.advance(by="20ms")


def planner(self: Participant) -> None:
    """Follows the newest part through blurred pictures, some of which never come."""
    track: Target | None = None
    pictures = 0
    for image in self.messages():
        seen = payload.from_json(image.payload, Sighting)
        if track is not None and image.sent <= track.seen:
            continue  # A newer picture has overtaken it.
        if track is None or seen.part != track.part:
            if track is not None:
                print(f"part {track.part}: {pictures} of 20 pictures came, the belt moves at {track.mm_per_s:.0f} mm/s")
            # A new part lies on the same belt: what was learned about its speed holds.
            track = Target(seen.part, image.sent, seen.mm, track.mm_per_s if track else 0.0)
            pictures = 1
            continue
        track = corrected(track, image.sent, seen.mm)
        pictures += 1
        self.publish("target", payload.to_json(track), at=self.now + THINKING)


def corrected(track: Target, time: int, mm: float) -> Target:
    """Move the track on to a picture's time and some way toward what the picture shows (an alpha-beta filter)."""
    surprise = mm - track.at(time)
    speed = track.mm_per_s + 0.3 * surprise * SECOND / (time - track.seen)
    return Target(track.part, time, round(track.at(time) + 0.7 * surprise, 3), round(speed, 3))


def arm(self: Participant) -> None:
    """Moves along with the part until it is steadily above it, grips it, and brings it to the tray."""
    mm, target = TRAY_MM, Target(0, 0, 0.0, 0.0)
    done = steady = 0  # The last part it gripped at; the steps for which it has been above the next one.
    while True:
        for message in self.advance(by="5ms"):
            target = payload.from_json(message.payload, Target)
        if self.ended:
            break
        goal = TRAY_MM if target.part == done else target.at(self.now)
        mm += max(-REACH_MM, min(REACH_MM, goal - mm))
        steady = steady + 1 if target.part != done and abs(goal - mm) < 0.1 else 0
        if steady == 8:
            done = target.part
            off = mm - part_on_belt(self.now)[1]
            deed = "grips" if abs(off) < GRIPPER_MM else "misses"
            age = (self.now - target.seen) / MS
            print(f"{deed} part {done} at {mm:.1f} mm, {off:+.1f} mm off its middle, by news {age:.0f} ms old")
        self.publish("pose", payload.to_json(Pose(round(mm, 3), self.now - target.seen)))


def watchdog(self: Participant) -> None:
    """Stops the cell when the arm is silent, or acts on news that is too old."""
    print("on guard")
    while True:
        poses = self.next(until=self.now + SILENCE_MAX)
        if self.ended:
            return
        age = max((payload.from_json(pose.payload, Pose).news_age for pose in poses), default=None)
        if age is None or age > AGE_MAX:
            reason = "the arm is silent" if age is None else f"the arm acts on news {age / MS:.0f} ms old"
            print(f"{reason}: the cell stops in 10 ms")
            self.stop(at=self.now + 10 * MS)
            return
