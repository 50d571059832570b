"""Compiles the hot modules, if that can be done; everything else is in pyproject.toml.

Without Cython or a C compiler Worldline is installed all the same: the modules are ordinary Python, only slower.
"""

import os
import re
import runpy
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

HOT = (
    *("kernel/draws", "kernel/queue", "kernel/engine", "kernel/process", "kernel/loop"),
    *(f"spacetime/{name}" for name in ("geometry", "lanes", "stepping", "population", "traffic", "core")),
)
# Ordinary Python; all C types are in the .pxd beside each.
BUILDS = runpy.run_path("src/worldline/builds.py")

# What nothing here uses, and what would take a fifth of the time: functions that know their own source, and pickling.
LEAN = {"binding": False, "auto_pickle": False, "emit_code_comments": False}


def extensions():
    if BUILDS["is_unwanted"]():  # Whoever wants that compiles later, or never.
        return []
    try:
        from Cython.Build import cythonize
    except ImportError:
        print("worldline: Cython isn't there, so Worldline will run as plain Python", file=sys.stderr)
        return []
    print("Translating the hot modules into C", flush=True)
    made = [
        *cythonize(
            [
                # -O2 was measured to be as fast as -O3, and compiles sooner.
                _extension(f"worldline.{room}._{name}", f"{room}/{name}.py", "-O2")
                for room, name in (module.split("/") for module in HOT)
            ],
            build_dir="build/cython",
            nthreads=os.cpu_count(),
            quiet=True,
            compiler_directives=LEAN,
        ),
        *cythonize(
            [_extension(name, f"{name.partition('.')[2].replace('.', '/')}.py", "-O1") for name in BUILDS["COMPILED"]],
            build_dir="build/cython",
            nthreads=os.cpu_count(),
            quiet=True,
            # Annotations are for readers and mypy: one such as `type` or `tuple` would refuse what derives from it.
            compiler_directives={"language_level": 3, "annotation_typing": False, **LEAN},
        ),
    ]
    for extension in made:
        extension.optional = True  # Here, because cythonize forgets it.
    return sorted(made, key=lambda extension: -Path(extension.sources[0]).stat().st_size)  # So that none is left alone.


def _extension(name, source, level):
    return Extension(
        name,
        [str(Path("src/worldline") / source)],
        # No fused multiply-add: it would change the last bit of floats, and with it digests. Debug symbols are a quarter
        # of the time.
        extra_compile_args=[level, "-g0", "-ffp-contract=off"],
    )


class Compiling(build_ext):
    """Says how far it is, and spends its time on what is hot."""

    def build_extensions(self):
        self._begun = 0
        super().build_extensions()

    def build_extension(self, extension):
        self._begun += 1
        print(f"[{self._begun}/{len(self.extensions)}] Compiling {extension.name}", flush=True)
        if extension.name in BUILDS["COMPILED"]:
            _optimize_hot_functions(Path(extension.sources[0]))
        super().build_extension(extension)


def _optimize_hot_functions(translation):
    """Have gcc optimize the C functions that a .pxd declares, which are the hot ones, and leave the others as they are.

    Those that Python alone can call are nine tenths of the code, and optimizing them would double the time. (The -f
    options stay in force: gcc counts the levels of single functions as if they came last on the command line.)
    """
    text = translation.read_text()
    for kind, level in (("f", "O2"), ("p[fw]", "O0")):
        declared = rf"^static (.*(?<!\(\*)__pyx_{kind}_\w+\(.*\)); ?/\* ?proto ?\*/$"
        text = re.sub(declared, rf'static __attribute__((optimize("{level}"))) \1;', text, flags=re.MULTILINE)
    translation.write_text(text)


setup(
    ext_modules=extensions(),
    cmdclass={"build_ext": Compiling},
    options={"build_ext": {"parallel": os.cpu_count()}},
)
