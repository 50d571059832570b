"""Temporary folders are gone when their process is, or when the next one comes."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from worldline.files.saving import ScratchFolder, sweep_scratch_folders
from worldline.model.errors import LossError

HOLDING = """
import signal, sys
from pathlib import Path
from worldline.files.saving import ScratchFolder
folder = ScratchFolder("test", place=sys.argv[1])
(Path(folder.name) / "inner").mkdir()
(Path(folder.name) / "inner" / "secret").write_text("token")
print(folder.name, flush=True)
signal.pause()
"""


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGQUIT])
def test_what_a_killed_process_has_left_goes_with_the_next_one(sign: signal.Signals, tmp_path: Path) -> None:
    holding = subprocess.Popen([sys.executable, "-c", HOLDING, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    with holding:
        assert holding.stdout is not None
        left = Path(holding.stdout.readline().strip())
        with ScratchFolder(place=str(tmp_path)):
            assert (left / "inner" / "secret").exists()  # It is in use.
        holding.send_signal(sign)
    assert left.exists()
    with ScratchFolder(place=str(tmp_path)) as folder:
        assert list(tmp_path.iterdir()) == [Path(folder)]
    assert list(tmp_path.iterdir()) == []


def test_what_isnt_a_scratch_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "worldline-mine").mkdir()
    (tmp_path / "worldline-file").write_text("")
    (tmp_path / "worldline-link").symlink_to(tmp_path / "worldline-mine")
    (tmp_path / "other").mkdir()
    (tmp_path / "other").chmod(0o1700)
    before = sorted(tmp_path.iterdir())
    sweep_scratch_folders(str(tmp_path))
    sweep_scratch_folders(str(tmp_path / "nowhere"))
    assert sorted(tmp_path.iterdir()) == before


def test_only_the_user_can_open_it_and_nothing_stays_open(tmp_path: Path) -> None:
    files = len(list(Path("/dev/fd").iterdir()))
    folder = ScratchFolder("test", place=str(tmp_path))
    assert Path(folder.name).stat().st_mode & 0o777 == 0o700
    folder.cleanup()
    folder.cleanup()
    assert len(list(Path("/dev/fd").iterdir())) == files


def test_one_that_is_dropped_is_gone_and_leaves_nothing_open(tmp_path: Path) -> None:
    files = len(list(Path("/dev/fd").iterdir()))
    with pytest.warns(ResourceWarning, match="Implicitly cleaning up"):
        ScratchFolder("test", place=str(tmp_path))
    assert len(list(Path("/dev/fd").iterdir())) == files
    assert list(tmp_path.iterdir()) == []


def test_without_a_folder_to_write_to_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr("tempfile.gettempdir", missing)
    with pytest.raises(LossError, match=r"no temporary folder can be made: No usable .*set TMPDIR"):
        ScratchFolder()
