"""For tests that must hold on either kind of strands."""

from __future__ import annotations

import pytest

from worldline.federation.inprocess import strand


@pytest.fixture(params=["greenlets", "threads"])
def either_kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the test with programs as greenlets, and again with programs as threads."""
    if request.param == "greenlets" and not strand._GREENLETS:
        pytest.skip("greenlet isn't installed")
    monkeypatch.setenv(strand.THREADS, str(int(request.param == "threads")))
    return str(request.param)
