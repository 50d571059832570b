"""SimPy's own tests, examples and documentation, against ours. `make test` fetches them with SimPy's sources."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from worldline.targets import RunOptions, prepare
from worldline.targets.simpy import standing_in

SOURCES = Path(sys.prefix) / "simpy-sdist"
HERE = str(Path(__file__).resolve().parent)

pytestmark = pytest.mark.skipif(not SOURCES.is_dir(), reason="SimPy's sources aren't here: `make test` fetches them")

FAIL = {
    "test_exception_chaining": "it compares the text of a traceback, with the lines of SimPy's own files",
    "test_resource_sim": "it fails with SimPy, too: it expects another number of events",
    "test_container_sim": "it fails with SimPy, too: it expects another number of events",
}
DOCUMENTS = [
    "index.rst",
    *(f"simpy_intro/{name}.rst" for name in ("basic_concepts", "process_interaction", "shared_resources")),
    *(
        f"topical_guides/{name}.rst"
        for name in ("environments", "events", "monitoring", "process_interaction", "resources", "simpy_basics")
    ),
]
EXAMPLES = [
    *("bank_renege", "carwash", "gas_station_refuel", "latency", "machine_shop", "movie_renege"),
    "process_communication",
]


@pytest.mark.once
def test_own_tests_of_simpy() -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "own_tests", "-p", "no:cacheprovider", "-p", "no:benchmark"),
            *("-o", "addopts=", "-n", "0", "--rootdir", ".", "tests"),
        ],
        cwd=SOURCES,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([HERE, os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
    )
    failed = {each.rpartition("::")[2] for each in re.findall(r"^FAILED (\S+)", done.stdout, re.MULTILINE)}
    assert failed == set(FAIL), done.stdout[-3000:]
    assert f"{len(FAIL)} failed, {151 - len(FAIL)} passed" in done.stdout


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_prints_the_same(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = SOURCES / "docs" / "examples" / "code"
    outcome = prepare(str(code / f"{name}.py"), RunOptions()).run()
    assert capsys.readouterr().out == (code / f"{name}.out").read_text(encoding="utf-8")
    assert outcome.events > 0


@pytest.mark.parametrize("document", DOCUMENTS)
def test_examples_in_documentation(document: str) -> None:
    text = (SOURCES / "docs" / document).read_text(encoding="utf-8")
    text = text.replace("<class 'simpy.events.", "<class 'worldline.simpy.engine.")  # Where our classes are.
    with standing_in():
        test = doctest.DocTestParser().get_doctest(text, {}, document, document, 0)
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
        said: list[str] = []
        result = doctest.DocTestRunner(optionflags=flags).run(test, out=said.append, clear_globs=False)
    assert result.attempted > 0
    assert result.failed == 0, "".join(said)
