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

# Ordinary Python; all C types are in the .pxd beside each.
BUILDS = runpy.run_path("src/worldline/builds.py")

# Observers are asked how many arguments their methods take. Other functions needn't know that: a sixth of the time.
OBSERVERS = (
    *("worldline.history.observer", "worldline.history.guarding"),
    *("worldline.recording.pending", "worldline.recording.writer", "worldline.watch.reel"),
)

# Of these, what only Python calls is hot, too.
CALLED_BY_PROGRAMS = (
    *("worldline.federation.participant.participant", "worldline.federation.inprocess.run"),
    *("worldline.kernel.", "worldline.simpy.", "worldline.spacetime."),
)

# The loops that all simulations of the kernel and of SimPy run through, which gain 2 to 4 % from all of -O2, and those
# of all recordings.
LOOPS = (
    *("worldline.kernel.engine", "worldline.kernel.process", "worldline.kernel.waiting", "worldline.kernel.heap"),
    *("worldline.simpy.engine", "worldline.simpy.agenda"),
    *("worldline.recording.pending", "worldline.recording.chunks", "worldline.recording.writer"),
)

# What a message between processes runs through: once, and then another process has the caches. There it matters how
# -O2 orders code, which gains a tenth; its dearest passes gain nothing.
HOP = (
    *("worldline.lock.", "worldline.wire.", "worldline.history.journal", "worldline.model.frames"),
    *("worldline.federation.calls", "worldline.federation.participant.", "worldline.federation.inprocess."),
    "worldline.federation.server.",
)
LINEAR = (
    *("-O2", "-fno-tree-pta", "-fno-tree-pre", "-fno-tree-vrp", "-fno-gcse", "-fno-code-hoisting"),
    *("-fno-tree-dominator-opts", "-fno-ipa-cp", "-fno-ipa-icf"),
)

# With gcc, what -O2 gains elsewhere is mostly its inlining, and the rest of it takes as long again. In what is called
# millions of times a second it is also where code is placed: error paths out of the way. Most of what is left are calls
# of Python, about which points-to analysis and jump threading know nothing: they would be a ninth of the time. Clang
# has other levels.
IS_GCC = sys.platform != "darwin"
INLINING = ("-finline-functions", "-finline-small-functions", "-fpartial-inlining", "-foptimize-sibling-calls")
CHEAP = ("-O1", *INLINING, "-fstrict-aliasing", "-fcaller-saves", "-fipa-ra")
PLACING = (
    *("-falign-functions", "-falign-jumps", "-falign-loops"),
    *("-freorder-blocks-and-partition", "-freorder-functions"),
)
IN_VAIN = ("-fno-tree-pta", "-fno-tree-dominator-opts")
UNOPTIMIZED = '__attribute__((optimize("O0")))'


def level_of(name):
    """Return the flags that say how much a module is to be optimized."""
    if not IS_GCC:
        return ["-O2"]
    if name in LOOPS:
        return ["-O2"]
    runs_once = f"-DCYTHON_SMALL_CODE={UNOPTIMIZED}"  # What imports a module.
    if name.startswith(("worldline.kernel.", "worldline.simpy.")):
        return [*CHEAP, *PLACING, runs_once]
    if name.startswith(HOP):
        return [*LINEAR, runs_once]
    return [*CHEAP, *IN_VAIN, runs_once]


def extensions():
    if BUILDS["is_unwanted"]():  # Whoever wants that compiles later, or never.
        return []
    try:
        from Cython.Build import cythonize
    except ImportError:
        print("worldline: Cython isn't there, so Worldline will run as plain Python", file=sys.stderr)
        return []

    def translated(names, **directives):
        return cythonize(
            [_extension(name) for name in names],
            build_dir="build/cython",
            nthreads=os.cpu_count(),
            quiet=True,
            # Nothing that is compiled is pickled by its fields, except observers, which say so: a tenth of all code.
            compiler_directives={
                "auto_pickle": False,
                "emit_code_comments": False,
                "optimize.unpack_method_calls": False,
                **directives,
            },
        )

    print("Translating the hot modules into C", flush=True)
    # Annotations are for readers and mypy: one such as `type` or `tuple` would refuse what derives from it. The kernel
    # and spacetime say themselves that theirs count, which name the C types of variables.
    as_they_are = {"language_level": 3, "annotation_typing": False}
    made = [
        *translated(OBSERVERS, **as_they_are),
        *translated((name for name in BUILDS["COMPILED"] if name not in OBSERVERS), binding=False, **as_they_are),
    ]
    for extension in made:
        extension.optional = True  # Here, because cythonize forgets it.
    return sorted(made, key=lambda extension: -Path(extension.sources[0]).stat().st_size)  # Small ones fill the gaps.


def _extension(name):
    place = Path("src", *name.split("."))
    return Extension(
        name,
        [str(next(source for source in (place.with_suffix(".py"), place.with_suffix(".pyx")) if source.exists()))],
        # No fused multiply-add: it would change the last bit of floats, and with it digests. Debug symbols would take a
        # quarter of the time, and warnings, which Python's own flags ask for, a sixth.
        extra_compile_args=[
            *level_of(name),
            "-g0",
            "-Wno-all",
            "-ffp-contract=off",
        ],
    )


class Compiling(build_ext):
    """Says how far it is, and spends no time on what is cold."""

    def build_extensions(self):
        self._begun = 0
        super().build_extensions()

    def build_extension(self, extension):
        self._begun += 1
        # In one piece, since two are compiled at a time.
        print(f"[{self._begun}/{len(self.extensions)}] Compiling {extension.name}\n", end="", flush=True)
        if IS_GCC and not extension.name.startswith(CALLED_BY_PROGRAMS):
            _leave_cold_functions(Path(extension.sources[0]))
        super().build_extension(extension)


def _leave_cold_functions(translation):
    """Have gcc optimize the functions that a .pxd declares, and what these call, but none that only Python calls.

    Those are cold, and most of the code: optimizing them, too, would double the time.
    """
    declared = r"^static (?!__attribute__)(?=.*[ *]__pyx_(p[fw]|gb)_\w+\(.*\); ?/\* ?proto ?\*/$)"
    text = translation.read_text(encoding="utf-8")
    marked = re.sub(declared, f"static {UNOPTIMIZED} ", text, flags=re.MULTILINE)
    if marked != text:  # What was compiled already would be older than it.
        translation.write_text(marked, encoding="utf-8")


setup(
    ext_modules=extensions(),
    cmdclass={"build_ext": Compiling},
    options={"build_ext": {"parallel": os.cpu_count()}},
)
