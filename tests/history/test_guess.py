"""What may be behind a cause."""

from __future__ import annotations

import pytest

from worldline.history.account import ActionKind, MemberAction
from worldline.history.difference import guess
from worldline.history.observer import LOG
from worldline.history.parting import Origin, Parting, Reason
from worldline.model.payload import to_json


def sent(payload: object, at: int = 5, *, reordered: bool = False) -> MemberAction:
    return MemberAction(at, ActionKind.SENDS, at, topic="x", payload=to_json(payload), reordered=reordered)


def guessed(
    a: MemberAction | None,
    b: MemberAction | None,
    headers: tuple[str, ...] = (),
    later: tuple[tuple[float, float], ...] = (),
) -> str:
    reason = Reason(Parting("ann", a, b), Origin.ITSELF)
    return guess(reason, headers, [(to_json({"mm": x}), to_json({"mm": y})) for x, y in later])


def test_another_order() -> None:
    text = guessed(sent("x", reordered=True), sent("y", reordered=True))
    assert text.startswith("the same messages in another order: perhaps the order of a set")


def test_what_is_no_message_isnt_called_one() -> None:
    assert guessed(sent("x"), sent("x", at=6)) == "the same message at another time"
    a, b = (sent("x", at=at)._replace(topic="worldline/process") for at in (5, 6))
    assert guessed(a, b) == "the same at another time"


def test_another_order_within_a_message() -> None:
    a, b = sent({"names": [{"n": [1, 2]}, "x"]}), sent({"names": ["x", {"n": [2, 1]}]})
    assert guessed(a, b).startswith("the same values in another order: perhaps the order of a set")
    assert "order" not in guessed(a, sent({"names": ["x", {"n": [2, 2]}]}))


def test_what_isnt_decoded_is_no_order() -> None:
    a, b = (sent("")._replace(payload=text) for text in (b'{"a":1,"b":[1]}', b'{"b":[1],"a":1}'))
    assert guessed(a, b).startswith("the same values in another order")
    a, b = (a._replace(payload=text) for text in (b"[1]", b"[ 1]"))
    assert "order" not in guessed(a, b)


def test_addresses() -> None:
    for one, other in ((94_390_898_345_120, 94_692_775_596_000), ("<A at 0x7f12a0b3c4d0>", "<A at 0x7f99a0b3c4d0>")):
        assert guessed(sent(one), sent(other)).startswith("perhaps the address of an object, from id() or a repr")
        assert "address" not in guessed(sent([one, 1]), sent([one, 2]))
    assert "address" not in guessed(sent(94_390_898_345_121), sent(94_692_775_596_001))


def test_rounding() -> None:
    a, b = sent({"mm": 0.1 + 0.2}), sent({"mm": 0.3})
    assert guessed(a, b) == "floats in their last places: perhaps a sum in another order, or another library"
    assert "two machines compute" in guessed(a, b, ("float_fingerprint",))


def test_the_wall_clock() -> None:
    assert "wall clock" in guessed(sent({"when": 1_790_000_000.5}), sent({"when": 1_790_000_003.5}))
    assert "wall clock" in guessed(sent({"when": 1_790_000_000 * 10**9}), sent({"when": 1_790_000_001 * 10**9}))


A, B = sent({"mm": 1.0}), sent({"mm": 2.0})


def test_a_constant_goes_one_way() -> None:
    later = tuple((float(number), number * 1.04 + 0.1) for number in range(10))
    assert guessed(A, B, later=later) == (
        "from here on the values are higher in B: perhaps a constant in the code, or a parameter"
    )


def test_nothing_is_guessed_of_values_that_go_both_ways() -> None:
    """Other draws do so, and so does a controller with another gain."""
    later = tuple((0.5, 0.5 + (-1) ** number / 7) for number in range(10))
    assert guessed(A, B, later=later) == "from here on some values are higher in B, and some lower"


def test_what_is_the_same_afterwards() -> None:
    later = ((1.0, 2.0), *((float(number), float(number)) for number in range(9)))
    assert guessed(A, B, later=later) == "of the next 9 on this topic, 9 are the same in both"


def test_a_text_that_differs_and_another_field_that_does_are_no_sign_of_what_is_the_same() -> None:
    parted = Reason(Parting("ann", sent({"who": "x", "n": 0}), sent({"who": "y", "n": 0})), Origin.ITSELF)
    later = [(to_json({"who": f"x{n}", "n": n}), to_json({"who": f"y{n}", "n": n})) for n in range(10)]
    assert guess(parted, (), later) == "perhaps code, a parameter or a draw"
    later = [(to_json({"who": "z", "n": n}), to_json({"who": "z", "n": n + 1})) for n in range(10)]
    assert guess(parted, (), later) == "perhaps code, a parameter or a draw"


def test_with_little_to_go_by_it_says_little() -> None:
    assert guessed(A, B, later=((1.0, 2.0),)) == "perhaps code, a parameter or a draw"


def test_the_seed_and_the_environment() -> None:
    assert guessed(A, B, ("seed",)) == "the seeds differ, perhaps that is why"
    assert guessed(A, B, ("python", "end")).endswith("perhaps the environment: the headers differ in python")


def test_what_one_run_doesnt_send() -> None:
    assert guessed(A, None) == "only A does this"
    assert guessed(None, B) == "only B does this"
    assert guessed(A, A._replace(at=7)) == "the same message at another time"
    assert guessed(A, A._replace(to=("bob",))) == "the same, to another member"
    assert guessed(A, B._replace(at=7)) == "another message at another time"


@pytest.mark.parametrize(
    ("origin", "headers", "words"),
    [
        (Origin.NETWORK, ("network",), "the networks of the two plans differ"),
        (Origin.NETWORK, ("seed",), "the network draws from them"),
        (Origin.NETWORK, (), "did otherwise with the same message"),
        (Origin.LISTENING, (), "it didn't listen"),
        (Origin.PRESENCE, (), "one of the runs only"),
        (Origin.END, (), "ends earlier"),
    ],
)
def test_causes_outside_of_a_member(origin: Origin, headers: tuple[str, ...], words: str) -> None:
    assert words in guess(Reason(Parting("ann", A, None), origin), headers)


def logged(text: str, at: int = 5, kind: str = "fault") -> MemberAction:
    return sent({"text": text, "kind": kind}, at)._replace(topic=LOG)


@pytest.mark.parametrize("other", [None, sent("x"), sent("x", at=6), logged("fault: hello", kind="")])
def test_a_fault_that_only_one_has(other: MemberAction | None) -> None:
    fault = logged("fault: 5ms hang ann 1s")
    assert guessed(fault, other) == "only A has the fault 5ms hang ann 1s"
    assert guessed(other, fault) == "only B has the fault 5ms hang ann 1s"


def test_a_fault_that_comes_later_is_no_cause() -> None:
    assert guessed(sent("x"), logged("fault: 5ms hang ann 1s", at=6)) == "only A does this"


def test_a_line_of_a_program_is_no_fault() -> None:
    line = sent({"text": "fault: 5ms hang ann 1s"})._replace(
        topic=LOG
    )  # As older recordings have those of faults, too.
    assert guessed(line, None) == "only A does this"


def test_two_faults() -> None:
    a, b = (logged(f"fault: 5ms {verb} ann 1s") for verb in ("hang", "crash"))
    assert guessed(a, b) == "only A has the fault 5ms hang ann 1s; only B has the fault 5ms crash ann 1s"
