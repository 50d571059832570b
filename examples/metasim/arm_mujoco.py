"""An arm in MuJoCo, which knows nothing of Drake: it publishes its state, and takes torques."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
from drake import lcmt_drake_signal
from messages import signal_of

from worldline import MS, SECOND, Message, Participant
from worldline.metasim import Send, drive

MODEL = Path(__file__).parent / "arm.xml"
STEP = 1 * MS
PERIOD = 4 * MS


class Arm:
    """The arm as a `MessageSimulator`: it takes steps of its own, and publishes once in a period."""

    def __init__(self) -> None:
        self.model = mujoco.MjModel.from_xml_path(str(MODEL))
        self.data = mujoco.MjData(self.model)
        self.model.opt.timestep = STEP / SECOND
        self._now = 0
        self._due = PERIOD

    def begin(self, now: int, send: Send) -> None:
        self._send = send
        self._publish(now)

    def due(self) -> int:
        """Return when it publishes next: until then no participant needs to wait for it."""
        return self._due

    def advance_to(self, time: int) -> None:
        while self._now + STEP <= time:
            mujoco.mj_step(self.model, self.data)
            self._now += STEP
        if time == self._due:
            self._publish(time)
            self._due += PERIOD

    def receive(self, messages: list[Message]) -> None:
        """Take the newest torques: they hold from the next step on."""
        self.data.ctrl[:] = lcmt_drake_signal.decode(messages[-1].payload).val

    def _publish(self, now: int) -> None:
        state = np.concatenate([self.data.qpos, self.data.qvel])
        self._send("arm", signal_of(state, now / SECOND).encode(), now)


def plant(me: Participant) -> None:
    """The arm's process."""
    arm = Arm()
    drive(me, arm)
    shoulder, elbow = np.degrees(arm.data.qpos)
    print(f"shoulder at {shoulder:.1f}°, elbow at {elbow:.1f}°")
