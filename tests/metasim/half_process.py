"""One half in a process of its own: what it has seen comes out as a line of JSON."""

from __future__ import annotations

import json
import sys
import time
from random import Random

from tests.metasim.halves import CHANNELS, Pair, continuous, controller, discrete, multibody, take_part
from worldline.metasim import MetasimClient

CASES = {
    "discrete": Pair(discrete(), discrete(turn=0.2)),
    "multibody": Pair(multibody(), controller(), "3.7ms", "10ms"),
    "continuous": Pair(continuous(), controller(), "23ms", "3.7ms"),
}


def main(address: str, name: str, case: str, way: str, delays: str) -> None:
    random = None if delays == "None" else Random(f"{delays}{name}")
    dawdle = (lambda: None) if random is None else (lambda: time.sleep(random.random() * 0.002))
    client = MetasimClient(address, name)
    print(json.dumps(take_part(client, CASES[case].half(name), *CHANNELS[name], way=way, dawdle=dawdle)))


if __name__ == "__main__":
    main(*sys.argv[1:])
