"""Room for labels."""

from __future__ import annotations

from worldline.pictures.labels import LabelSpace, text_discs


def test_room_that_is_taken_is_not_free() -> None:
    room = LabelSpace()
    room.take(text_discs((100.0, 100.0), 60, 10))
    assert not room.is_free(text_discs((125.0, 104.0), 20, 10))
    assert room.is_free(text_discs((100.0, 116.0), 60, 10))
    assert room.is_free(text_discs((100.0, 140.0), 60, 10, (0.0, 1.0)))
    assert not room.is_free(text_discs((100.0, 120.0), 60, 10, (0.0, 1.0)))
