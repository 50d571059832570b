"""Who is drawn how: by class, by what agents say, or each in a color of its own; always in the same way."""

from __future__ import annotations

from typing import Any

from tests.pictures.spacetime.runs import straight
from worldline.pictures.spacetime.happenings import Looks, SpacetimePicture, told
from worldline.pictures.svg import KINDS_MAX, PALETTE, SOFT
from worldline.spacetime import AgentRecord


def shown(name: str, time: float, text: str, number: int = 1) -> AgentRecord:
    return AgentRecord(name, number, "shown", (time, 0.0), time, what=text)


def lived(name: str, *looks: tuple[float, str], kind: str = "Person", end: float = 9.0) -> list[AgentRecord]:
    """Return the records of an agent at rest that is shown as this and that."""
    changes = [shown(name, time, text, number) for number, (time, text) in enumerate(looks, 1)]
    born = AgentRecord(name, 0, "born", (0.0, 0.0), 0.0, what=kind, velocity=(1.0, 0.0))
    return [born, *changes, AgentRecord(name, len(looks) + 1, "ended", (end, 0.0), end)]


def story(*lives: list[AgentRecord], until: float | None = None) -> SpacetimePicture:
    return told([record for life in lives for record in life], 2, until, None)


def explained(*lives: list[AgentRecord], **options: Any) -> dict[str, str]:
    return {text: look.color for text, look in Looks(story(*lives, **options)).kinds}


def test_agents_of_one_class_have_colors_of_their_own() -> None:
    found = story(lived("a"), lived("b"))
    looks = Looks(found)
    assert looks.kinds == []
    assert [looks.at(life, 1.0).color for life in found.lives] == list(PALETTE[:2])


def test_agents_of_several_classes_are_drawn_by_class() -> None:
    found = story(lived("a", kind="Base"), lived("b", kind="Probe"), lived("c", kind="Base"))
    looks = Looks(found)
    assert [text for text, _ in looks.kinds] == ["Base", "Probe"]
    assert [looks.at(life, 1.0).color for life in found.lives] == [PALETTE[0], PALETTE[1], PALETTE[0]]


def test_what_they_say_counts_even_if_it_is_the_same() -> None:
    assert list(explained(lived("a", (0.0, "well")), lived("b", (0.0, "well")))) == ["well"]


def test_older_records_have_no_class() -> None:
    assert Looks(story(straight("a", (0, 0), (9, 0)), straight("b", (0, 1), (9, 1)))).kinds == []
    assert list(explained(straight("a", (0, 0), (9, 0)), lived("b", (3.0, "ill")))) == ["agent", "Person", "ill"]


def test_colors_go_by_what_appears_first_so_that_what_comes_later_changes_none() -> None:
    lives = lived("p2", (0.0, "well"), (2.0, "ill")), lived("p10", (0.0, "ill"), (5.0, "immune"))
    assert explained(*lives) == dict(zip(["well", "ill", "immune"], PALETTE, strict=False))
    assert explained(*lives, until=4.0) == dict(zip(["well", "ill"], PALETTE, strict=False))
    assert explained(*reversed(lives)) == explained(*lives)


def test_a_look_counts_from_where_it_was_noted() -> None:
    found = story(lived("a", (0.0, "well"), (2.0, "ill"), (5.0, "")))
    assert found.lives[0].looks == [((0.0, 0.0), "well"), ((2.0, 0.0), "ill"), ((5.0, 0.0), "Person")]
    looks = Looks(found)
    assert [looks.at(found.lives[0], time).color for time in (-1.0, 0.0, 1.9, 2.0, 4.9, 5.0, 99.0)] == [
        PALETTE[place] for place in (0, 0, 0, 1, 1, 2, 2)
    ]
    assert looks.change
    assert not Looks(story(lived("a", (0.0, "well")))).change


def test_who_is_set_up_by_a_jump_was_never_anything_else() -> None:
    born = AgentRecord("m/c", 0, "born", (1.0, 0.0), 0.0, what="Child", peer="m")
    jumped = AgentRecord("m/c", 1, "jumped", (3.0, 0.0), 0.0, emitted=(1.0, 0.0))
    ill = AgentRecord("m/c", 2, "shown", (3.0, 0.0), 0.0, what="ill")
    (life,) = story([born, jumped, ill]).lives
    assert life.looks == [((1.0, 0.0), "ill")]


def test_what_is_taken_back_at_once_is_no_change() -> None:
    records = lived("a", (0.0, "well"), (2.0, "ill"), (2.0, "well"), (4.0, "ill"))
    assert [text for _, text in story(records).lives[0].looks] == ["well", "ill"]


def test_more_looks_than_can_be_told_apart_are_drawn_alike() -> None:
    every = [lived(f"a{number}", (0.0, f"state {number}")) for number in range(KINDS_MAX + 10)]
    found = story(*every)
    looks = Looks(found)
    assert len(looks.kinds) == KINDS_MAX
    assert len({look for _, look in looks.kinds}) == KINDS_MAX
    assert (looks.kinds[-1][0], looks.kinds[-1][1].color) == ("11 others", SOFT)
    assert {looks.at(life, 0.0).color for life in found.lives[KINDS_MAX - 1 :]} == {SOFT}
    assert "others" not in Looks(story(*every[:KINDS_MAX])).kinds[-1][0]
