"""Compiles the hot modules, if that can be done; everything else is in pyproject.toml.

Without Cython or a C compiler Worldline is installed all the same: the modules are ordinary Python, only slower.
"""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup

HOT = (
    *("kernel/draws", "kernel/queue", "kernel/engine", "kernel/process", "kernel/loop"),
    *(f"spacetime/{name}" for name in ("geometry", "lanes", "stepping", "population", "traffic", "core")),
)


def extensions():
    if os.environ.get("WORLDLINE_UNCOMPILED"):  # Whoever sets this compiles later, or never.
        return []
    try:
        from Cython.Build import cythonize
    except ImportError:
        print("worldline: Cython isn't there, so Worldline will run as plain Python", file=sys.stderr)
        return []
    made = cythonize(
        [
            Extension(
                f"worldline.{room}._{name}",
                [str(Path("src/worldline") / room / f"{name}.py")],
                # No fused multiply-add: it would change the last bit of floats, and with it digests.
                # -O2 was measured to be as fast as -O3, and compiles sooner; debug symbols are a quarter of the time.
                extra_compile_args=["-O2", "-g0", "-ffp-contract=off"],
            )
            for room, name in (module.split("/") for module in HOT)
        ],
        build_dir="build/cython",
        quiet=True,
    )
    for extension in made:
        extension.optional = True  # Here, because cythonize forgets it.
    return made


setup(ext_modules=extensions(), options={"build_ext": {"parallel": os.cpu_count()}})
