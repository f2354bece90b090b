"""Bridges from words and files: what is read, and every way to be wrong, refused with its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

import rtmms
from rtmms.bridging.channels import ChannelMapping
from rtmms.bridging.config import construct


@dataclass(frozen=True, kw_only=True)
class Part:
    lat_deg: float = 0.0
    name: str = "here"

    def __post_init__(self) -> None:
        if abs(self.lat_deg) > 90:
            raise rtmms.ModelError(f"lat_deg: expected a number from -90 to 90, got {self.lat_deg}")


@dataclass(kw_only=True)
class Thing(rtmms.Bridge):
    port: int = 1
    host: str = "127.0.0.1"
    variant: Literal["json", "struct"] = "json"
    gain: float | None = None
    on: bool = False
    names: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    safe: dict[str, float] = field(default_factory=dict)
    channels: tuple[ChannelMapping, ...] = ()
    home: Part = field(default_factory=Part)
    other: Part | None = None
    place: Part = field(default_factory=lambda: Part(lat_deg=47.0, name="Zurich"))


@dataclass(kw_only=True)
class Needy(rtmms.Bridge):
    port: int


def thing(**text: str) -> Thing:
    return construct(Thing, "bridge", "thing", {key.replace("__", "."): word for key, word in text.items()})


@pytest.fixture
def file(tmp_path: Path):  # type: ignore[no-untyped-def]
    def write(text: str) -> str:
        (tmp_path / "thing.toml").write_text(text)
        return str(tmp_path / "thing.toml")

    return write


def test_words_are_read_as_the_parameters_types() -> None:
    built = thing(port="7", variant="struct", gain="2.5", on="yes", names="a.*+b", sizes="1+2", safe="x=1+y=-2",
                 home__lat_deg="47.5", rate_hz="10", claim="left.*+right.*", watchdog_periods="5")  # fmt: skip
    assert (built.port, built.variant, built.gain, built.on, built.names, built.sizes) == (
        7, "struct", 2.5, True, ("a.*", "b"), (1, 2),
    )  # fmt: skip
    assert built.safe == {"x": 1.0, "y": -2.0}
    assert built.home == Part(lat_deg=47.5)
    assert (built.rate_hz, built.claims(), built.watchdog_periods) == (10.0, ("left.*", "right.*"), 5)
    assert thing(gain="none").gain is None
    assert thing(other__lat_deg="3").other == Part(lat_deg=3.0)
    assert thing().other is None
    assert thing(host="a=b").host == "a=b"


def test_parts_that_are_not_given_keep_their_defaults(file: Callable[[str], str]) -> None:
    assert thing(place__name="there").place == Part(lat_deg=47.0, name="there")
    path = file('[place]\nname = "there"\n')
    assert thing(config=path).place == Part(lat_deg=47.0, name="there")
    assert thing(config=path, place__lat_deg="46").place == Part(lat_deg=46.0, name="there")
    path = file('place = "there"\n')
    with pytest.raises(rtmms.ModelError, match="place: expected a table, got 'there'"):
        thing(config=path, place__lat_deg="46")


def test_channels_in_a_word() -> None:
    built = thing(channels="1:left.front:0.002:1500:reversed+2:left.back")
    assert built.channels == (
        ChannelMapping(channel="1", actuator="left.front", scale=0.002, trim=1500.0, reversed=True),
        ChannelMapping(channel="2", actuator="left.back"),
    )


def test_a_file_and_words_over_it(file) -> None:  # type: ignore[no-untyped-def]
    path = file("""
        port = 9
        gain = 3
        names = ["a", "b"]
        claim = ["*"]
        [home]
        lat_deg = 10.0
        name = "there"
        [safe]
        x = 1
        [[channels]]
        channel = 1
        actuator = "left.front"
        reversed = true
        [[channels]]
        channel = "throttle"
        actuator = "right.front"
        trim = 1100
    """)
    built = thing(config=path, port="10", home__lat_deg="11")
    assert (built.port, built.gain, built.names, built.claims()) == (10, 3.0, ("a", "b"), ("*",))
    assert built.home == Part(lat_deg=11.0, name="there")
    assert [entry.channel for entry in built.channels] == ["1", "throttle"]
    assert built.channels[1].trim == 1100.0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"prt": "1"}, "unknown parameter of bridge 'thing' 'prt'; did you mean port"),
        ({"port": "x"}, "bridge 'thing': port: expected a whole number, got 'x'"),
        ({"port": "1.5"}, "expected a whole number"),
        ({"gain": "nan"}, "bridge 'thing': gain: expected a number, got 'nan'"),
        ({"on": "maybe"}, "expected true or false"),
        ({"variant": "xml"}, "bridge 'thing': variant: expected one of json, struct; got 'xml'"),
        ({"sizes": "1+b"}, "sizes: expected a whole number, got 'b'"),
        ({"safe": "x"}, "safe: expected KEY=VALUE, separated by '+', got 'x'"),
        ({"safe": "x=y"}, "safe.x: expected a number, got 'y'"),
        ({"channels": "1"}, "channels: expected CHANNEL:ACTUATOR[:SCALE[:TRIM[:reversed]]], got '1'"),
        ({"channels": "1:a:zero"}, "expected CHANNEL:ACTUATOR"),
        ({"channels": "1:a:0"}, "channel '1': scale must be finite and not 0, got 0.0"),
        ({"home": "x"}, "home: expected a table, got a single value"),
        ({"home__lat": "1"}, "unknown parameter of bridge 'thing': home 'lat'; did you mean lat_deg"),
        ({"home__lat_deg": "91"}, "bridge 'thing': home: lat_deg: expected a number from -90 to 90, got 91.0"),
        ({"port__x": "1"}, "port.x: 'port' is not a table"),
        ({"every": "0"}, "bridge 'thing': every: expected a whole number from 1 to 10000, got 0"),
        ({"rate_hz": "-1"}, "rate_hz: expected a number >= 0, got -1.0"),
        ({"watchdog_periods": "-1"}, "watchdog_periods: expected a whole number >= 0"),
        ({"filter": "median"}, "filter: expected one of none, mean, lowpass; got 'median'"),
        ({"config": "/nowhere.toml"}, "/nowhere.toml: there is no such file"),
    ],
)
def test_wrong_words(arguments: dict[str, str], text: str) -> None:
    with pytest.raises(rtmms.ModelError) as result:
        thing(**arguments)
    assert text in str(result.value)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("prt = 1", "thing.toml: unknown key 'prt'; did you mean port"),
        ("port = 'x'", "thing.toml: port: expected a whole number, got 'x'"),
        ("port = true", "port: expected a whole number, got True"),
        ("gain = inf", "gain: expected a number, got 'inf'"),
        ("gain = '3'", "gain: expected a number, got '3'"),
        ("on = 1", "on: expected true or false, got 1"),
        ("names = 'a'", "names: expected a list of str, got 'a'"),
        ("names = [[]]", "names[0]: expected text, got []"),
        ("safe = 1", "safe: expected a table of float, got 1"),
        ("safe = {x = 'a'}", "safe.x: expected a number, got 'a'"),
        ("variant = 'xml'", "variant: expected one of json, struct; got 'xml'"),
        ("[[channels]]\nchannel = 1", "channels[0]: needs actuator"),
        ("channels = [1]", "channels[0]: expected a table, got 1"),
        ("[[channels]]\nchannel = 1\nactuator = 'a'\nscale = 'x'", "channels[0].scale: expected a number, got 'x'"),
        ("[[channels]]\nchannel = 1\nactuator = 'a'\nsale = 1", "channels[0]: unknown key 'sale'; did you mean scale"),
        ("[home]\nlat_deg = 100", "thing.toml: home: lat_deg: expected a number from -90 to 90, got 100.0"),
        ("port = ", "thing.toml: not TOML:"),
    ],
)
def test_wrong_files(file, content: str, text: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(rtmms.ModelError) as result:
        thing(config=file(content))
    assert text in str(result.value)
    assert "thing.toml" in str(result.value)


def test_what_must_be_given() -> None:
    with pytest.raises(rtmms.ModelError, match="bridge 'needy': needs port"):
        construct(Needy, "bridge", "needy", {})
    assert construct(Needy, "bridge", "needy", {"port": "3"}).port == 3
