"""What bridges share: rates and filters, channel map, fields, back-off, queue, watchdog, counters, untrusted text."""

from __future__ import annotations

from math import cos, pi, sin, sqrt

import pytest

import rtmms
from rtmms.bridging.channels import ChannelMap, ChannelMapping, field, fields
from rtmms.bridging.counters import Counters, read_line
from rtmms.bridging.peer_watch import Watchdog
from rtmms.bridging.rates import Decimator
from rtmms.bridging.sending import Backoff, Outbox
from rtmms.bridging.untrusted import Refusal, finite, numbers, read_json
from rtmms.plant.protocol import Channel
from tests.bridges.harness import plant_info, state

INFO = plant_info(
    Channel("angle", "rad"), Channel("position", "m", (3,), "world"), Channel("thrust", "N", (2, 6)),
    actuators=(Channel("left", "rad"), Channel("right", "rad")),
)  # fmt: skip


def sent(decimator: Decimator, signal, steps: int = 4000, stride: int = 1):  # type: ignore[no-untyped-def]
    """(time, value) of what goes out, of a signal of time sampled at 1 kHz / stride."""
    out = []
    for k in range(0, steps, stride):
        due = decimator.feed(state(INFO, k, angle=signal(k * 1e-3)))
        if due is not None:
            out.append((due.time, due.outputs["angle"]))
    return out


def test_every_state_without_a_rate() -> None:
    assert len(sent(Decimator(0.0), lambda t: t, 10)) == 10


@pytest.mark.parametrize(("rate", "number"), [(1000.0, 1000), (100.0, 100), (30.0, 30), (1.0, 1), (7.5, 8)])
def test_the_rate_is_kept_on_average_and_without_drift(rate: float, number: int) -> None:
    out = sent(Decimator(rate), lambda t: t, 1000)
    assert len(out) == number
    for i, (time, _) in enumerate(out):
        assert i / rate - 1e-9 <= time < i / rate + 1.001e-3


def test_gaps_do_not_lead_to_bursts() -> None:
    decimator = Decimator(100.0)
    times = [k for k in [*range(0, 20), *range(500, 520)] if decimator.feed(state(INFO, k, angle=0.0)) is not None]
    assert times == [0, 10, 500, 510]


def test_a_reset_begins_anew() -> None:
    decimator = Decimator(10.0, "mean")
    for k in range(150):
        decimator.feed(state(INFO, k, angle=1.0))
    due = decimator.feed(state(INFO, 0, angle=5.0))
    assert due is not None
    assert due.outputs["angle"] == 5.0


def amplitude(filter: str, hertz: float) -> float:
    """What of a sine of height 1 is left in states at 50 Hz."""
    out = sent(Decimator(50.0, filter), lambda t: sin(2 * pi * hertz * t))  # type: ignore[arg-type]
    settled = [value for time, value in out if time > 1.0]
    return max(abs(value) for value in settled)


def test_without_a_filter_a_fast_signal_comes_out_as_a_slow_one() -> None:
    assert amplitude("none", 51.0) > 0.95  # at 50 Hz it looks like 1 Hz


def test_the_mean_takes_out_what_would_fold() -> None:
    assert amplitude("mean", 50.0) < 1e-9
    assert amplitude("mean", 51.0) < 0.03
    assert amplitude("mean", 100.0) < 1e-9
    assert amplitude("mean", 1.0) > 0.98


def test_the_low_pass_follows_its_formula() -> None:
    for hertz in (1.0, 10.0, 51.0):
        share = 1 - pow(2.718281828459045, -2 * pi * 0.2 * 50.0 * 1e-3)
        # y_k = y_{k-1} + a (x_k - y_{k-1}):  H(z) = a / (1 - (1 - a) / z)
        angle = 2 * pi * hertz * 1e-3
        gain = share / sqrt((1 - (1 - share) * cos(angle)) ** 2 + ((1 - share) * sin(angle)) ** 2)
        assert amplitude("lowpass", hertz) == pytest.approx(gain, rel=0.05)
    assert amplitude("lowpass", 51.0) < 0.25


def test_a_constant_stays_what_it_is() -> None:
    for filter in ("mean", "lowpass"):
        assert all(value == pytest.approx(3.0) for _, value in sent(Decimator(20.0, filter), lambda t: 3.0))


def test_attitudes_are_averaged_as_attitudes() -> None:
    decimator, out = Decimator(10.0, "mean"), []
    for k in range(301):
        sign = -1.0 if k % 2 else 1.0  # q and -q are the same
        half = 0.5 * 0.2 * k * 1e-3
        due = decimator.feed(state(INFO, k, quaternion=[sign * cos(half), 0.0, 0.0, sign * sin(half)], huge=[0.0] * 99))
        if due is not None:
            out.append(due)
    assert len(out) == 4
    for due in out[1:]:
        q = due.outputs["quaternion"]
        assert sum(x * x for x in q) == pytest.approx(1.0)
        yaw = 2 * pi * 0 + 2.0 * abs(q[3] / q[0])
        assert yaw == pytest.approx(0.2 * (due.time - 0.05), abs=2e-4)
        assert len(due.outputs["huge"]) == 99


def test_channels() -> None:
    entry = ChannelMapping(channel="1", actuator="left", scale=0.002, trim=1500.0, reversed=True)
    assert entry.to_actuator(1600.0) == pytest.approx(-0.2)
    table = ChannelMap([entry, ChannelMapping(channel="2", actuator="right")])
    assert table.to_actuators({"1": 1500.0, "3": 9.0}) == {"left": 0.0}
    assert table.actuators == ("left", "right")
    table.check(INFO)
    with pytest.raises(ValueError, match="not finite"):
        table.to_actuators({"2": float("nan")})


def test_a_wrong_channel_map() -> None:
    item = ChannelMapping(channel="1", actuator="left")
    with pytest.raises(rtmms.ModelError, match="channel '1' is listed twice"):
        ChannelMap([item, ChannelMapping(channel="1", actuator="right")])
    with pytest.raises(rtmms.ModelError, match="actuator 'left' is listed twice"):
        ChannelMap([item, ChannelMapping(channel="2", actuator="left")])
    with pytest.raises(rtmms.ModelError, match="unknown actuator 'lft'; did you mean left"):
        ChannelMap([ChannelMapping(channel="1", actuator="lft")]).check(INFO)


def test_fields_by_name() -> None:
    now = state(INFO, 5, angle=0.5, position=[1.0, 2.0, 3.0], thrust=[float(i) for i in range(12)])
    for name, value in [("angle", 0.5), ("position[2]", 3.0), ("thrust[1,2]", 8.0), ("thrust[7]", 7.0),
                        ("time", 0.005), ("step", 5.0)]:  # fmt: skip
        assert field(name, INFO, "fields")(now) == value
    assert [item(now) for item in fields(("position", "angle"), INFO, "fields")] == [1.0, 2.0, 3.0, 0.5]
    assert [item.name for item in fields(("position",), INFO, "x")] == ["position[0]", "position[1]", "position[2]"]


@pytest.mark.parametrize(
    ("name", "text"),
    [("angel", "did you mean angle"), ("position", "expected position\\[2\\] at most"), ("position[3]", "shape"),
     ("angle[0]", "expected angle without an index"), ("thrust[2,0]", "thrust"), ("a[b]", "expected OUTPUT"),
     ("", "expected OUTPUT")],
)  # fmt: skip
def test_wrong_fields(name: str, text: str) -> None:
    with pytest.raises(rtmms.ModelError, match=f"fields\\[0\\]: .*{text}"):
        field(name, INFO, "fields[0]")


def test_back_off() -> None:
    backoff = Backoff(0.1, 0.5)
    assert backoff.due(0.0)
    pauses = [backoff.failed(10.0) for _ in range(5)]
    assert pauses == [0.1, 0.2, 0.4, 0.5, 0.5]
    assert not backoff.due(10.4)
    assert backoff.due(10.5)
    backoff.succeeded()
    assert backoff.due(0.0)
    assert backoff.failed(0.0) == 0.1


def test_a_full_queue_drops_its_oldest_and_counts() -> None:
    counts = Counters()
    box: Outbox[int] = Outbox(3, counts)
    for i in range(5):
        box.put(i)
    assert (len(box), counts["dropped"]) == (3, 2)
    assert [box.take(), box.take(), box.take(), box.take()] == [2, 3, 4, None]
    box.put(1)
    box.clear()
    assert (len(box), counts["dropped"]) == (0, 3)


def test_the_watchdog_trips_once() -> None:
    dog = Watchdog(0.5)
    assert not dog.trips(100.0)  # nothing came yet
    assert dog.left_s(0.0) is None
    dog.fed(10.0)
    assert dog.left_s(10.2) == pytest.approx(0.3)
    assert not dog.trips(10.5)
    assert dog.trips(10.6)
    assert not dog.trips(20.0)
    dog.fed(21.0)
    assert not dog.tripped
    assert dog.trips(22.0)
    off = Watchdog(0.0)
    off.fed(0.0)
    assert not off.trips(1e9)


def test_counters() -> None:
    counts = Counters()
    counts.add("sent")
    counts.add("sent", 2)
    counts.refuse("malformed")
    counts.refuse("malformed")
    assert (counts["sent"], counts["received"], counts["refused"]) == (3, 0, 2)
    assert read_line("rtmms bridge: x: " + counts.line()) == {"sent": 3, "refused": {"malformed": 2}}
    assert read_line("counts nothing") is None
    assert read_line("something else") is None


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"{", "malformed"), (b"\xff", "malformed"), (b"[" * 5000, "malformed"), (b"NaN", "not_finite"),
     (b"[Infinity]", "not_finite"), (b" " * 101 + b"1", "oversize"), (b"1" * 90, "")],
)  # fmt: skip
def test_untrusted_text(data: bytes, reason: str) -> None:
    longest = 100 if len(data) < 200 else 10_000
    if not reason:
        assert read_json(data, longest) == int(data)
        return
    with pytest.raises(Refusal) as result:
        read_json(data, longest)
    assert result.value.reason == reason


@pytest.mark.parametrize(
    ("value", "reason"),
    [(None, "wrong_type"), (True, "wrong_type"), ("1", "wrong_type"), (10**400, "not_finite"),
     (float("inf"), "not_finite")],
)  # fmt: skip
def test_untrusted_numbers(value: object, reason: str) -> None:
    with pytest.raises(Refusal) as result:
        finite(value, "x")
    assert result.value.reason == reason
    assert finite(3, "x") == 3.0
    assert numbers({"a": 1}, "x") == {"a": 1.0}
    with pytest.raises(Refusal):
        numbers({"a": value}, "x")
    with pytest.raises(Refusal):
        numbers({str(i): 1.0 for i in range(5)}, "x", 4)
