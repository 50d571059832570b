"""A robot cell on a bad day: a late boot, a crash and a restart, a hang, corrupted pictures, and an emergency stop.

The camera boots at a drawn time. The planner crashes and is started again; what it had stored is still there. Pictures
have a checksum, so those that arrive damaged are thrown away. The arm hangs for a while, after a message rather than at
a time. In the end the camera drops out, and the watchdog calls an emergency stop, about which each does what it must.

What goes wrong is written in the file, not here: these programs only cope with it.
"""

from __future__ import annotations

from zlib import crc32

from worldline import MS, EmergencyStop, Participant

BELT_MM_PER_S = 250
AGE_MAX = 120 * MS
SILENCE_MAX = 100 * MS


def camera(self: Participant) -> None:
    """Takes a picture of the belt every 20 ms, and adds a checksum."""
    print(f"up at {self.now / MS:.1f} ms")
    try:
        while True:
            picture = f"{self.now} {BELT_MM_PER_S * self.now // 10**9}".encode()
            self.publish("image", crc32(picture).to_bytes(4, "big") + picture)
            self.advance(by="20ms")
    except EmergencyStop:
        self.estop_done("lamp off")


def planner(self: Participant) -> None:
    """Tells the arm where the belt was last seen, and stores how many pictures it has used."""
    used, damaged = self.stable.get("used", 0), 0
    if self.incarnation:
        print(f"started again, with {used} pictures used so far")
    for image in self.messages():
        checksum, picture = image.payload[:4], image.payload[4:]
        if crc32(picture).to_bytes(4, "big") != checksum:
            damaged += 1
            print(f"throws away a damaged picture, number {damaged} since it was started")
            continue
        used += 1
        self.stable["used"] = used
        self.publish("target", picture)


def arm(self: Participant) -> None:
    """Follows the belt, and tells how old the news is that it acts on; brakes in an emergency."""
    seen, before = 0, 0
    try:
        while True:
            for target in self.advance(by="10ms"):
                seen = int(target.payload.split()[0])
            if self.now - before > 10 * MS:
                print(f"couldn't move for {(self.now - before) / MS:.0f} ms")
            before = self.now
            self.publish("pose", str(self.now - seen).encode())
    except EmergencyStop as stop:
        self.estop_done(f"brakes on, {(self.now - stop.at) / MS:.0f} ms after the call")
        print(f"brakes, because {stop.reason}")


def watchdog(self: Participant) -> None:
    """Calls an emergency stop when the arm is silent, or has acted on old news for long."""
    old_since = None
    while not self.ended:
        poses = self.next(until=self.now + SILENCE_MAX)
        is_old = any(int(pose.payload) > AGE_MAX for pose in poses)
        old_since = (old_since or self.now) if is_old else None
        if not poses or (old_since is not None and self.now - old_since > 2 * AGE_MAX):
            reason = "the arm is silent" if not poses else "the arm is blind"
            told_by = self.estop(reason)
            print(f"{reason}: all are told by {told_by / MS:.0f} ms")
            return
