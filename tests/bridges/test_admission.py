"""Who may drive through a bridge: addresses in words, and what a user reads."""

from __future__ import annotations

import pytest

import rtmms
from rtmms.bridging.untrusted import Admission


@pytest.mark.parametrize(
    ("word", "address", "admitted"),
    [
        ("127.0.0.1", ("127.0.0.1", 5000), True),
        ("127.0.0.1", ("127.0.0.2", 5000), False),
        ("127.0.0.1:5000", ("127.0.0.1", 5000), True),
        ("127.0.0.1:5000", ("127.0.0.1", 5001), False),
        ("localhost:5000", ("127.0.0.1", 5000), True),
        ("192.168.4.0/24", ("192.168.4.77", 1), True),
        ("192.168.4.7/24", ("192.168.5.77", 1), False),
        ("[::1]:77", ("::1", 77, 0, 0), True),
        ("::1", ("::1", 9, 0, 0), True),
        ("::1", ("fe80::1%eth0", 9, 0, 2), False),
        ("10.0.0.1", ("::ffff:10.0.0.1", 9, 0, 0), True),
        ("10.0.0.1", ("", 9), False),
    ],
)
def test_an_address_is_held_against_the_words(word: str, address: tuple[str, int], admitted: bool) -> None:
    assert Admission((word,)).admits(address) is admitted
    assert Admission(("203.0.113.9", word)).admits(address) is admitted


def test_without_words_everyone_is_admitted_and_the_user_is_notified() -> None:
    assert Admission(()).admits(("8.8.8.8", 1))
    assert Admission(()).sentence("UDP 127.0.0.1:9002") == (
        "every program that reaches UDP 127.0.0.1:9002 can drive the robot; give peer=HOST:PORT to admit only that one"
    )
    assert Admission(("127.0.0.1:1",)).sentence("UDP x") == "only 127.0.0.1:1 may drive the robot through UDP x"


@pytest.mark.parametrize("word", ["", "1.2.3.4:", "1.2.3.4:0", "1.2.3.4:70000", "1.2.3.4/99", "[::1", "[::1]x", "a/b"])
def test_words_that_make_no_sense_are_refused(word: str) -> None:
    with pytest.raises(rtmms.ModelError, match=r"^peer: expected HOST, HOST:PORT or NETWORK/BITS, got"):
        Admission((word,))


def test_a_name_without_an_address_is_refused() -> None:
    with pytest.raises(rtmms.ModelError, match=r"^peer: 'nowhere\.invalid' has no address"):
        Admission(("nowhere.invalid",))
