"""UDP against sockets: JSON and structures both ways, channels, silence on either side, garbage, and a peer's pace."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rtmms
from rtmms.bridging.channels import ChannelMapping
from rtmms.bridging.config import construct
from rtmms.bridging.untrusted import Refusal
from rtmms.plant.protocol import Channel
from rtmms_bridges.lines.packing import Packed, Packer, Unpacker, is_old
from rtmms_bridges.udp import Udp, parse_json
from tests.bridges.by_hand import opened
from tests.bridges.harness import ROOT, Companion, plant_info, state, wait
from tests.bridges.swimmer import Sailing
from tests.cli.shell import finish, start
from tests.wire.bench import PATIENCE_S, Host

FIELDS = ("=43981:u16", "seq:u8", "time:f64", "position[1]:i16:1000", "_:pad", "speed:f32")


@pytest.fixture
def peer() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.bind(("127.0.0.1", 0))
        peer.settimeout(PATIENCE_S)
        yield peer


def udp(peer: socket.socket, **more: Any) -> Udp:
    return Udp(port=peer.getsockname()[1], bind_port=0, **more)


def packed(*text: str) -> tuple[Packed, ...]:
    return tuple(Packed.from_word(word, "x") for word in text)


def test_json_both_ways(peer: socket.socket, make_host: Callable[..., Host]) -> None:
    bridge = udp(peer, claim=("left.*",), outputs=("position", "quaternion"))
    with Companion(bridge, make_host) as extra:
        data, place = peer.recvfrom(65536)
        first = json.loads(data)
        assert list(first) == ["time", "step", "seq", "position", "quaternion"]
        assert first["seq"] == 1
        peer.sendto(b'{"values": {"left.front": 0.5, "left.back": -0.5}, "seq": 1}', place)
        wait(lambda: extra.command[:2] == [0.5, -0.5])
        assert extra.bridged.counts["received"] == 1


def test_json_of_chosen_fields(peer: socket.socket, make_host: Callable[..., Host]) -> None:
    with Companion(udp(peer, state_fields=packed("position[0]", "speed", "time")), make_host):
        assert list(json.loads(peer.recv(65536))) == ["time", "step", "seq", "position[0]", "speed"]


@pytest.mark.parametrize("endian", ["little", "big"])
def test_structures_both_ways(peer: socket.socket, make_host: Callable[..., Host], endian: Any) -> None:
    sign = "<" if endian == "little" else ">"
    bridge = udp(
        peer, claim=("*",), format="struct", endian=endian, state_fields=packed(*FIELDS),
        command_fields=packed("=7:u8", "seq:u8", "left.front:i16:1000", "right.back:f64"),
    )  # fmt: skip
    with Companion(bridge, make_host) as extra:
        data, place = peer.recvfrom(65536)
        mark, seq, time, _, speed = struct.unpack(f"{sign}HBdhxf", data)
        assert (mark, seq) == (43981, 1)
        assert speed == pytest.approx(time, rel=1e-6)
        peer.sendto(struct.pack(f"{sign}BBhd", 7, 1, 250, -0.125), place)
        wait(lambda: extra.command == [0.25, 0.0, 0.0, -0.125])
        moved = wait(lambda: (result := struct.unpack(f"{sign}HBdhxf", peer.recv(100)))[3] == 0 and result)
        assert moved[1] > 1


def test_whole_numbers_are_limited(peer: socket.socket) -> None:
    info = plant_info(Channel("big", "m"))
    pack = Packer(packed("big:i8", "big:u8", "big:f32:1e300", "big:f64"), "little", info, "state_fields")
    assert struct.unpack("<bBfd", pack(state(info, big=1e9), 1)) == (127, 255, pytest.approx(3.4028235e38), 1e9)
    assert struct.unpack("<bBfd", pack(state(info, big=-1e9), 1))[:2] == (-128, 0)


def test_numbers_that_count_begin_anew_where_their_type_ends() -> None:
    info = plant_info(Channel("speed"))
    pack = Packer(packed("seq:i8", "seq:u8", "step:i8", "step:u16", "step:f32"), "little", info, "x")
    assert struct.unpack("<bBbHf", pack(state(info, 65536 + 200, speed=0.0), 130)) == (-126, 130, -56, 200, 65736.0)


def test_a_number_that_is_none_is_not_sent(peer: socket.socket, make_host: Callable[..., Host]) -> None:
    for more in ({}, {"format": "struct", "state_fields": packed("speed:u8")}):
        with Companion(udp(peer, **more), make_host) as extra:
            wait(lambda: extra.bridged.counts["sent"])
            extra.running.host.plant.state[4] = float("nan")
            wait(lambda: extra.bridged.counts["unsendable"])
        assert extra.bridged.fault is None


TYPES = {"i8": (-128, 127), "u8": (0, 255), "i16": (-32768, 32767), "u16": (0, 65535), "i32": (-(2**31), 2**31 - 1),
         "u32": (0, 2**32 - 1), "i64": (-(2**53), 2**53), "u64": (0, 2**53)}  # fmt: skip


@given(
    st.data(), st.sampled_from(["little", "big"]), st.lists(st.sampled_from([*TYPES, "f32", "f64", "pad"]), min_size=1)
)
def test_what_is_packed_is_unpacked(data: st.DataObject, endian: Any, types: list[str]) -> None:
    scales = [data.draw(st.sampled_from([1.0, 0.5, -100.0, 3.0])) for _ in types]
    entries = [Packed(field=f"f{i}", type=t, scale=s) for i, (t, s) in enumerate(zip(types, scales, strict=True))]  # type: ignore[arg-type]
    if all(t == "pad" for t in types):
        with pytest.raises(rtmms.ModelError):
            Unpacker(entries, endian, "x")
        return
    values, exact = {}, {}
    for entry in entries:
        if entry.type == "pad":
            continue
        if entry.bits:
            low, high = TYPES[entry.type]
            exact[entry.field] = 0.5 / abs(entry.scale)
            values[entry.field] = data.draw(st.integers(low, high)) / entry.scale
        else:
            values[entry.field] = data.draw(st.floats(-1e6, 1e6))
            exact[entry.field] = 1e-6 * abs(values[entry.field]) + 1e-36 if entry.type == "f32" else 1e-9
    info = plant_info(*(Channel(name) for name in values))
    packed_up = Packer(entries, endian, info, "x")(state(info, **values), 1)
    back, seq, step = Unpacker(entries, endian, "x")(packed_up)
    assert seq is step is None
    for name, value in values.items():
        assert back[name] == pytest.approx(value, abs=exact[name], rel=1e-12)


def test_channels_with_scale_trim_and_direction(peer: socket.socket, make_host: Callable[..., Host]) -> None:
    channels = (
        ChannelMapping(channel="1", actuator="left.front", scale=0.002, trim=1500.0),
        ChannelMapping(channel="2", actuator="right.front", scale=0.002, trim=1500.0, reversed=True),
    )
    bridge = udp(
        peer, channels=channels, format="json", command_format="struct", command_fields=packed("1:u16", "2:u16")
    )
    with Companion(bridge, make_host) as extra:
        _, place = peer.recvfrom(65536)
        peer.sendto(struct.pack("<HH", 1600, 1600), place)
        wait(lambda: extra.command == pytest.approx([0.2, 0.0, -0.2, 0.0]))
        assert extra.running.host.server.claimed.tolist() == [True, False, True, False]


def test_states_go_to_where_commands_come_from(peer: socket.socket, make_host: Callable[..., Host]) -> None:
    bridge = Udp(port=0, bind_port=0, claim=("*",))
    with Companion(bridge, make_host) as extra:
        wait(lambda: extra.bridged.counts["states"] > 3)
        assert extra.bridged.counts["sent"] == 0
        assert bridge._socket is not None
        peer.sendto(b'{"values": {}}', bridge._socket.getsockname())
        assert json.loads(peer.recv(65536))["seq"] == 1


def test_garbage_is_refused_and_counted(peer: socket.socket, make_host: Callable[..., Host]) -> None:
    channels = (ChannelMapping(channel="a", actuator="left.front"),)
    with Companion(udp(peer, channels=channels), make_host) as extra:
        _, place = peer.recvfrom(65536)
        for data in (b"", b"{", b"[]", b" " * 9000, b'{"values": {"a": NaN}}', b'{"values": {"b": 1}}',
                     b'{"values": {}, "seq": 1.5}'):  # fmt: skip
            peer.sendto(data, place)
        wait(lambda: extra.bridged.counts["refused"] == 7)
        assert extra.bridged.counts.reasons() == {
            "malformed": 2, "wrong_type": 2, "not_finite": 1, "unknown_channel": 1, "oversize": 1,
        }  # fmt: skip
        peer.sendto(b'{"values": {"a": 1}, "seq": 9}', place)
        wait(lambda: extra.command[0] == 1.0)
        peer.sendto(b'{"values": {"a": 0.5}, "seq": 8}', place)
        peer.sendto(b'{"values": {"a": 0.5}, "seq": 9}', place)
        wait(lambda: extra.bridged.counts.reasons().get("old") == 2)
        assert extra.command[0] == 1.0
        assert extra.running.host.rejected == {}


def test_strangers(make_host: Callable[..., Host]) -> None:
    bridge = Udp(host="127.0.0.2", port=1, bind_port=0, claim=("*",))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other, Companion(bridge, make_host) as extra:
        wait(lambda: extra.bridged.counts["states"])
        assert bridge._socket is not None
        other.sendto(b'{"values": {"left.front": 1}}', bridge._socket.getsockname())
        wait(lambda: extra.bridged.counts.reasons() == {"stranger": 1})
        assert extra.command[0] == 0.0


def test_peer_names_who_may_drive(make_host: Callable[..., Host]) -> None:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mine,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other,
    ):
        for item in (mine, other):
            item.bind(("127.0.0.1", 0))
        port = mine.getsockname()[1]
        bridge = Udp(host="127.0.0.2", port=1, bind_port=0, claim=("*",), peer=(f"127.0.0.1:{port}",))
        with Companion(bridge, make_host) as extra:
            wait(lambda: extra.bridged.counts["states"])
            assert bridge._socket is not None
            other.sendto(b'{"values": {"left.front": 1}}', bridge._socket.getsockname())
            wait(lambda: extra.bridged.counts.reasons() == {"stranger": 1})
            mine.sendto(b'{"values": {"left.front": 0.5}}', bridge._socket.getsockname())
            wait(lambda: extra.command[0] == 0.5)


def test_a_silent_plant_and_the_safe_output(peer: socket.socket, make_host: Callable[..., Host]) -> None:
    bridge = udp(peer, claim=("*",), watchdog_periods=50, state_fields=packed("speed", "ok"[:0] or "position[0]"),
                 safe={"position[0]": -9.0})  # fmt: skip
    with Companion(bridge, make_host) as extra:
        peer.recv(65536)
        extra.running.errands.append(lambda: wait(lambda: extra.bridged.counts["silences"]))
        received = wait(lambda: (m := json.loads(peer.recv(65536)))["position[0]"] == -9.0 and m)
        assert received["speed"] > 0  # the rest stays as it was last
        wait(lambda: json.loads(peer.recv(65536))["position[0]"] == 0.0)  # and the plant is back
    peer.settimeout(1.0)
    last = {}
    try:
        while True:
            last = json.loads(peer.recv(65536))
    except TimeoutError:
        assert last["position[0]"] == -9.0, "the end of the plant is a silence, too"


def test_the_safe_output_of_a_constant() -> None:
    """A flag that means that all is well must be able to mean that it is not."""
    info = plant_info(Channel("speed", "m/s"))
    entries = (Packed(field="speed", type="f32"), Packed(field="ok", type="u8", value=1.0))
    pack = Packer(entries, "little", info, "x")
    now = state(info, speed=2.0)
    assert struct.unpack("<fB", pack(now, 0)) == (2.0, 1)
    assert struct.unpack("<fB", pack(now, 0, {"speed": 0.0, "ok": 0.0})) == (0.0, 0)


@pytest.mark.parametrize(("how", "left"), [("hold", 0.75), ("neutral", 0.0)])
def test_a_silent_peer(peer: socket.socket, make_host: Callable[..., Host], how: Any, left: float) -> None:
    bridge = udp(peer, claim=("left.*",), peer_timeout_s=0.2, peer_lost=how)
    with Companion(bridge, make_host) as extra:
        _, place = peer.recvfrom(65536)
        peer.sendto(b'{"values": {"left.front": 0.75}}', place)
        wait(lambda: extra.drove(0.75))
        wait(lambda: extra.bridged.counts["peer_lost"])
        wait(lambda: extra.command[0] == left)
        step = extra.running.host.step
        wait(lambda: extra.running.host.step > step + 5)
        assert extra.command[0] == left
        peer.sendto(b'{"values": {"left.front": 0.5}}', place)
        wait(lambda: extra.drove(0.5))


def test_numbers_that_go_round() -> None:
    assert not is_old(5, None)
    assert is_old(5, 5)
    assert is_old(250, 2, bits=8)
    assert not is_old(2, 250, bits=8)
    assert not is_old(1, 1000), "so far back it is a peer that started anew"


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({"format": "struct"}, "state_fields: expected fields with format=struct"),
        ({"format": "struct", "state_fields": "time:f64", "claim": "left.*"}, "command_fields: expected at least one"),
        ({"state_fields": "time:f65"}, "type: expected one of i8, u8"),
        ({"state_fields": ":f64"}, "state_fields: expected FIELD:TYPE[:SCALE] or =VALUE:TYPE, got ':f64'"),
        ({"state_fields": "time:f64:0"}, "scale: expected a finite number that is not 0"),
        ({"paced": "true"}, "paced: expected a claim"),
        ({"safe": "x=1", "state_fields": "time"}, "safe: 'x' is not a field of state_fields"),
        ({"command_format": "struct", "claim": "a", "command_fields": "1:u8+1:u8"}, "'1' is listed twice"),
    ],
)
def test_wrong_words(parts: dict[str, str], text: str) -> None:
    with pytest.raises(rtmms.ModelError) as result:
        construct(Udp, "bridge", "udp", parts)
    assert text in str(result.value)
    assert str(result.value).startswith("bridge 'udp': ")


@pytest.mark.parametrize(
    ("bridge", "text"),
    [
        (Udp(state_fields=packed("sped:f32")), "state_fields: unknown output 'sped'; did you mean speed"),
        (Udp(channels=(ChannelMapping(channel="1", actuator="left"),), claim=("left.*",)), "unknown actuator 'left'"),
        (Udp(command_format="struct", command_fields=packed("lft:u8"), claim=("*",)), "unknown channel of command_f"),
        (Udp(host="no such host"), "host 'no such host':"),
        (
            Udp(format="struct", state_fields=packed("time", "=300:u8")),
            "[1]: the constant 300 is outside the range of u8",
        ),
        (
            Udp(command_format="struct", command_fields=packed("left.front"), claim=("left.back",)),
            "'left.front' is not claimed",
        ),
        (Udp(bind="192.0.2.1"), "cannot bind 192.0.2.1:9901"),
    ],
)
def test_what_does_not_fit_the_plant(bridge: Udp, text: str, make_host: Callable[..., Host]) -> None:
    with Companion(bridge, make_host) as extra:
        extra.bridged.join()
    assert isinstance(extra.bridged.fault, rtmms.RtmmsError)
    assert text in str(extra.bridged.fault)


def test_a_layout_that_is_too_long() -> None:
    with pytest.raises(rtmms.ModelError, match="expected a message of at most 1400 bytes, got 1600"):
        Unpacker(packed(*(f"{i}:f64" for i in range(200))), "little", "command_fields")


def test_what_json_is_taken() -> None:
    assert parse_json(b'{"values": {"a": 1}}') == ({"a": 1.0}, None, None)
    assert parse_json(b'{"values": {"a": 1}, "seq": 5, "step": 7}') == ({"a": 1.0}, 5, 7)
    for wrong in (
        b"1",
        b"{}",
        b'{"values": {"a": 1}, "seq": true}',
        b'{"values": {"a": 1e999}}',
        b'{"values": {}, "step": "1"}',
    ):
        with pytest.raises(Refusal):
            parse_json(wrong)


def test_the_example_fits_the_manta() -> None:
    manta = rtmms.load("manta", chains=2)
    bridge = construct(Udp, "bridge", "udp", {"config": str(ROOT / "bridges" / "examples" / "udp.toml")})
    info = plant_info(*manta.outputs, actuators=manta.actuators)
    bridge._map.check(info)
    assert Packer(bridge.state_fields, "little", info, "state_fields").size == 38
    assert bridge.claims() == ("left.front", "left.back", "right.front", "right.back")


@pytest.mark.full
def test_in_lockstep_the_peer_sets_the_pace(peer: socket.socket, tmp_path: Path) -> None:
    """Each fourth step of the pendulum's is answered by the peer, from what it received: the same bits again."""
    arguments = f"udp:port={peer.getsockname()[1]},bind_port=0,claim=torque,every=4,paced=true,state_fields=angle+rate"

    def run() -> tuple[list[float], dict[str, Any]]:
        process = start(tmp_path, "run", "pendulum", "--dt", "0.01", "--duration", "2", "--mode", "lockstep", "--quiet",
                        "--json", "--bridge", arguments)  # fmt: skip
        visited, steps = [], 0
        while steps < 196:
            data, place = peer.recvfrom(65536)
            content = json.loads(data)
            steps = content["step"]
            if content["seq"] > len(visited):  # it may come twice
                visited.append(content["angle"])
            values = {"torque": -2.0 * content["angle"] - content["rate"] + 0.1}
            peer.sendto(json.dumps({"values": values}).encode(), place)
        result = finish(process)
        assert result.status == 0, result.err
        return visited, result.report

    observed, report = run()
    assert report["steps"] == 200
    assert report["exchange"]["misses"] == 0
    assert report["bridges"]["udp"]["states"] == 50
    assert len(observed) == 50
    again, _ = run()
    assert again == observed
    assert len(set(observed)) > 40


@pytest.mark.parametrize("how", ["slow", "lossy", "slower, reports", "away"])
def test_each_step_gets_the_answer_to_itself(peer: socket.socket, how: str) -> None:
    """From a peer that answers every datagram, one after the other, and once takes long enough to be asked again; from
    one that some do not reach; from one that takes longer than may be guessed, and states what it answers; and from one
    that is away for a while."""
    with Sailing(udp(peer, claim=("thrust",), paced=True)) as sailing:
        steps = received = 0
        while steps < 60:
            data, place = peer.recvfrom(65536)
            received += 1
            if received == 20:
                time.sleep(0.35 if how == "slow" else 2.5 if how == "away" else 0.0)
                if how == "away":  # what came meanwhile is lost
                    peer.settimeout(0.01)
                    with contextlib.suppress(TimeoutError):
                        while peer.recv(65536):
                            pass
                    peer.settimeout(PATIENCE_S)
                    continue
            if how == "slower, reports" and received < 3:
                time.sleep(1.5)
            if how == "lossy" and received % 9 == 0:
                continue
            steps = json.loads(data)["step"]
            message: dict[str, Any] = {"values": {"thrust": 0.01 * steps}}
            if how == "slower, reports":
                message["step"] = steps
            peer.sendto(json.dumps(message).encode(), place)
        wait(lambda: len(sailing.plant.commands) > 60)
        result = [thrust for thrust, _ in sailing.plant.commands]
        assert result[:60] == pytest.approx([0.01 * k for k in range(60)])
        assert sailing.bridged.counts["sent_again"] >= 1


def test_in_lockstep_a_peer_that_stops_is_in_the_report(peer: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run ends because the plant waited for it; its steps are those that were simulated, and none is stale."""
    with Sailing(udp(peer, claim=("thrust",), paced=True, peer_period_s=0.01)) as sailing:
        for _ in range(20):
            _, place = peer.recvfrom(65536)
            time.sleep(0.02)  # slower than its period: in lockstep the plant waits
            peer.sendto(b'{"values": {"thrust": 0.5}}', place)
        wait(lambda: len(sailing.plant.commands) == 20)
        monkeypatch.setattr("rtmms.loop.modes.SILENT_NS", 1_500_000_000)
        wait(lambda: sailing.outcome is not None)
        assert "sent no command for step 20" in sailing.outcome.message
        wait(lambda: sailing.server.final_reports()[0]["silences"])
        (result,) = sailing.server.report()["peers"]
        assert [item["begin_step"] for item in result["silences"]] == [19]
        assert result["steps"] == {"applied": 20, "stale": 0, "missed": 0}


def test_a_structure_reports_which_step_it_answers(peer: socket.socket) -> None:
    bridge = udp(peer, claim=("thrust",), paced=True, format="struct", state_fields=packed("step:u8", "time:f64"),
                 command_fields=packed("step:u8", "thrust:f32"))  # fmt: skip
    with Sailing(bridge) as sailing:
        for k in range(300):  # beyond what the field holds
            while True:
                data, place = peer.recvfrom(100)
                step = struct.unpack("<Bd", data)[0]
                if step == k % 256:
                    break
            peer.sendto(struct.pack("<Bf", (step - 1) % 256, 9.0), place)
            peer.sendto(struct.pack("<Bf", step, 1e-3 * k), place)
        wait(lambda: len(sailing.plant.commands) == 300)
        assert [thrust for thrust, _ in sailing.plant.commands] == pytest.approx([1e-3 * k for k in range(300)])
        assert sailing.bridged.counts.reasons()["old"] >= 299


def test_a_look_takes_a_few_datagrams_and_bytes(peer: socket.socket) -> None:
    """The state that comes meanwhile waits for no more than that, whatever lies in the socket."""
    bridge = opened(udp(peer, claim=("*",)), plant_info())
    assert bridge._socket is not None
    place = bridge._socket.getsockname()
    for output, maximum in ((b"x", 8), (b"x" * 5000, 2), (b"x" * 60_000, 1)):
        for _ in range(3):
            peer.sendto(output, place)
        while not bridge._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
            pass
        before = bridge.counts["refused"]
        bridge._on_readable()
        assert bridge.counts["refused"] - before == min(3, maximum)
        for _ in range(4):
            bridge._on_readable()
    assert set(bridge.counts.reasons()) == {"malformed", "oversize"}
    bridge.close("done")


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        (
            {"state_fields": (Packed.from_word("position[2]:f32:1000", "x"),)},
            "position.2.: expected the name",
        ),
        ({"state_fields": (Packed.from_word("time:f64", "x"),)}, "state_fields: time: expected the name alone"),
        ({"command_fields": (Packed.from_word("a:i16", "x"),)}, "command_fields: expected none with commands in JSON"),
        ({"endian": "big"}, "endian: expected format=struct with big"),
    ],
)
def test_json_refuses_the_layout_of_structures(parameters: dict[str, Any], text: str) -> None:
    with pytest.raises(rtmms.ModelError, match=text):
        Udp(**parameters)
