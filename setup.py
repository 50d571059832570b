"""Compiles the hot modules, if that can be done; everything else is in pyproject.toml.

Without Cython or a C compiler Worldline is installed all the same: the modules are ordinary Python, only slower.
"""

import os
import runpy
import sys
from pathlib import Path

from setuptools import Extension, setup

HOT = (
    *("kernel/draws", "kernel/queue", "kernel/engine", "kernel/process", "kernel/loop"),
    *(f"spacetime/{name}" for name in ("geometry", "lanes", "stepping", "population", "traffic", "core")),
)
# Ordinary Python; all C types are in the .pxd beside each.
BUILDS = runpy.run_path("src/worldline/builds.py")


def extensions():
    if BUILDS["is_unwanted"]():  # Whoever wants that compiles later, or never.
        return []
    try:
        from Cython.Build import cythonize
    except ImportError:
        print("worldline: Cython isn't there, so Worldline will run as plain Python", file=sys.stderr)
        return []
    made = [
        *cythonize(
            [
                _extension(f"worldline.{room}._{name}", f"{room}/{name}.py")
                for room, name in (module.split("/") for module in HOT)
            ],
            build_dir="build/cython",
            nthreads=os.cpu_count(),
            quiet=True,
        ),
        *cythonize(
            [_extension(name, f"{name.partition('.')[2].replace('.', '/')}.py") for name in BUILDS["COMPILED"]],
            build_dir="build/cython",
            nthreads=os.cpu_count(),
            quiet=True,
            # Annotations are for readers and mypy: one such as `type` or `tuple` would refuse what derives from it.
            compiler_directives={"language_level": 3, "annotation_typing": False},
        ),
    ]
    for extension in made:
        extension.optional = True  # Here, because cythonize forgets it.
    return made


def _extension(name, source):
    return Extension(
        name,
        [str(Path("src/worldline") / source)],
        # No fused multiply-add: it would change the last bit of floats, and with it digests.
        # -O2 was measured to be as fast as -O3, and compiles sooner; -O1 takes two thirds of that, and is five percent
        # slower. Debug symbols are a quarter of the time.
        extra_compile_args=["-O2", "-g0", "-ffp-contract=off"],
    )


setup(ext_modules=extensions(), options={"build_ext": {"parallel": os.cpu_count()}})
