"""No parameter of a bridge or a controller is a file, an address, a command or free words without being declared so."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import importlib
import inspect
import re
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rtmms.base.errors import ModelError, RtmmsError
from rtmms.base.local_addresses import address_parameters
from rtmms.bridging.bridge import Bridge
from rtmms.bridging.config import bridge_files, bridges, construct, hints, load_bridge
from rtmms.wire.peer.plugins import build, controller_files, controllers, load_controller
from rtmms.wire.peer.plugins import parameters as controller_parameters
from rtmms_bridges.helics import Helics
from rtmms_bridges.lcm import Lcm

FILES = {
    "can": {"dbc": "input"},
    "estimator": {"sensors": "input"},
    "foxglove": {"tls_cert": "input", "tls_key": "input"},
    "helics": {"encryption_config": "input"},
    "mavlink": {"key": "input"},
    "mqtt": {"password_file": "input", "ca_file": "input", "cert_file": "input", "key_file": "input"},
    "nmea": {"to": "device", "pd6": "device"},
    "serial": {"device": "device"},
    "zenoh": {"zenoh_config": "input"},
}
"""Parameters of bridges that name a file or a device; each bridge has `config` beside these."""

CONTROLLER_FILES = {
    "predictive": {"cost": "code", "model": "code", "preset": "input"},
    "shape": {"gait": "input", "file": "input"},
}

ADDRESSES = {
    "ardupilot": ("host",), "betaflight": ("host", "peer"), "estimator": ("to",),
    "foxglove": ("host",), "helics": ("broker", "local_interface"),
    "imc": ("network", "nodes"), "mavlink": ("stations", "host"), "mosaik": ("host",), "mqtt": ("host",),
    "nmea": ("to", "listen", "pd6"), "px4": ("host", "ground"), "udp": ("host", "bind"), "view": ("host",),
    "zenoh": ("listen", "connect"),
}  # fmt: skip

PLAIN = {
    "ardupilot": ("peer", "parameter_channels", "more"),
    "betaflight": ("rc",),
    "can": ("interface", "channel", "options", "signals", "counter", "checksum"),
    "dds": ("interface", "namespace", "odom", "body"),
    "foxglove": ("world", "body", "origins"),
    "helics": ("federate", "core", "broker_key", "core_words", "subscribe", "partners"),
    "imc": ("system", "peer", "parameter_channels"),
    "lcm": ("url", "prefix"),
    "mavlink": ("parameter_channels", "values"),
    "mqtt": ("topic", "client_id", "user"),
    "nmea": ("peer", "sentences", "water_speed", "epoch", "set_points", "parameter_channels", "lost"),
    "px4": ("peer", "parameter_channels"),
    "serial": ("safe",),
    "udp": ("peer", "safe"),
    "view": ("telemetry",),
    "zenoh": ("prefix",),
}
"""Other texts. Whoever adds one here has looked at what the bridge's library makes of it: it opens no file, starts no
program, and reaches no other machine by it, or `beyond` of the bridge reports it."""

PLAIN_OF_CONTROLLERS = {
    "path": ("course", "waypoints"), "predictive": ("course", "waypoints", "method"),
}  # fmt: skip

OWN_CONTROLLERS = sorted(name for name, point in controllers().items() if point.value.startswith("rtmms_controllers."))
OWN_BRIDGES = sorted(
    name for name, point in bridges().items() if point.value.startswith(("rtmms_bridges.", "rtmms.view"))
)
LIBRARY = {"nmea": pytest.mark.full}
"""Bridges that need their library already when they are made."""
CREATED = [pytest.param(name, marks=LIBRARY.get(name, ())) for name in OWN_BRIDGES]


def is_text(hint: Any) -> bool:
    if dataclasses.is_dataclass(hint):
        return False
    return hint is str or any(is_text(part) for part in typing.get_args(hint) if not isinstance(part, str))


@pytest.mark.parametrize("name", OWN_BRIDGES)
def test_each_text_of_a_bridge_is_a_file_an_address_or_plain(name: str) -> None:
    bridge = load_bridge(name)
    files = bridge_files(bridge)
    addresses = address_parameters(typing.get_type_hints(bridge, include_extras=True))
    assert files == FILES.get(name, {}) | {"config": "input"}
    assert set(addresses) == set(ADDRESSES.get(name, ()))
    shared = hints(Bridge)
    texts = {key for key, hint in hints(bridge).items() if is_text(hint) and key not in shared}
    assert texts - {*files, *addresses} == set(PLAIN.get(name, ())), "declare a new parameter, or look at its use"


@pytest.mark.parametrize("name", OWN_CONTROLLERS)
def test_each_text_of_a_controller_is_a_file_or_plain(name: str) -> None:
    controller = load_controller(name)
    files = controller_files(controller)
    assert files == CONTROLLER_FILES.get(name, {})
    texts = {
        key
        for key, controller_parameter in controller_parameters(controller).items()
        if re.search(r"\bstr\b", controller_parameter.kind)
    }
    assert texts - set(files) == set(PLAIN_OF_CONTROLLERS.get(name, ()))


# --- What is opened while they are made.

_opened: list[str] | None = None


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if _opened is not None and event in ("open", "os.listdir", "os.scandir", "subprocess.Popen", "ctypes.dlopen"):
        _opened.append(f"{event} {arguments[0]!r}")


sys.addaudithook(_note)


@contextlib.contextmanager
def noting(word: str) -> Iterator[list[str]]:
    """Within: what is opened; afterwards the list has those with the word in their names."""
    global _opened
    _opened = result = []
    try:
        yield result
    finally:
        _opened = None
        result[:] = [item for item in result if word in item]


PROBE = "probe-of-a-name"
PROBES = ("{}", "{}.toml", "{}.csv", "{}.dbc", "{}.json", "{}.py:make", "{}/x", "file://{}", "spy://{}")


def attempts(folder: Path) -> list[str]:
    return [form.format(place) for form in PROBES for place in (folder / PROBE, PROBE)]


def make_probes(folder: Path) -> None:
    for form in PROBES[:5]:
        (folder / form.format(PROBE)).write_text("")


@pytest.mark.parametrize("name", CREATED)
def test_a_bridge_opens_nothing_by_a_text_that_is_not_declared(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_probes(tmp_path)
    bridge = load_bridge(name)
    first = {"serial": {"device": "/dev/null", "state_fields": "time:f64"}}.get(name, {})
    for key in PLAIN.get(name, ()):
        for text in attempts(tmp_path):
            for word in (text, f"a={text}", f"{text}=a"):
                with noting(PROBE) as result, contextlib.suppress(RtmmsError, OSError):
                    construct(bridge, "bridge", name, first | {key: word})
                assert result == [], f"{name}: {key}={word}"


@pytest.mark.parametrize("name", OWN_CONTROLLERS)
def test_a_controller_opens_nothing_by_a_text_that_is_not_declared(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_probes(tmp_path)
    for key in PLAIN_OF_CONTROLLERS.get(name, ()):
        for text in attempts(tmp_path):
            with noting(PROBE) as result, contextlib.suppress(RtmmsError, OSError):
                build(f"{name}:{key}={text}")
            assert result == [], f"{name}: {key}={text}"


def test_what_is_opened_is_noted(tmp_path: Path) -> None:
    """The two tests above would see it."""
    (tmp_path / f"{PROBE}.toml").write_text('profile = "typical"\n')
    with noting(PROBE) as result:
        construct(load_bridge("estimator"), "bridge", "estimator", {"sensors": str(tmp_path / f"{PROBE}.toml")})
    assert result


# --- What the source opens later, in `open` or `start`.

OPENERS = {
    "open", "Path", "read_toml", "read_key", "_key", "load", "load_file", "from_file", "from_urdf", "tls_set",
    "load_cert_chain", "read_preset", "gait_path", "load_named", "SerialLine", "Serial", "CDLL", "Popen",
    "genfromtxt", "loadtxt",
}  # fmt: skip
"""Functions that read, write or load the file that an argument names."""


def named_in_openers(source: str) -> set[str]:
    """Names x of each `self.x` within the arguments of an opener."""
    result = set()
    for call in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)):
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        if name in OPENERS:
            for part in ast.walk(ast.Module([ast.Expr(arg) for arg in call.args], [])):
                if isinstance(part, ast.Attribute) and getattr(part.value, "id", "") == "self":
                    result.add(part.attr)
    return result


@pytest.mark.parametrize("name", [*OWN_BRIDGES, *OWN_CONTROLLERS])
def test_what_the_source_opens_is_declared(name: str) -> None:
    if name in OWN_BRIDGES:
        item: Any = load_bridge(name)
        known, files = set(hints(item)), bridge_files(item)
        plain: tuple[str, ...] = PLAIN.get(name, ())
    else:
        item = load_controller(name)
        known, files = set(controller_parameters(item)), controller_files(item)
        plain = PLAIN_OF_CONTROLLERS.get(name, ())
    source = Path(inspect.getfile(item)).read_text(encoding="utf-8")
    assert {key for key in named_in_openers(source) & known if key in plain} == set()
    assert set(files) - {"config"} <= known


def test_the_source_check_sees_an_opener() -> None:
    assert named_in_openers("Path(self.dbc).expanduser(); read_toml(f'{self.x}')") == {"dbc", "x"}


# --- Each library's own ways to a file.


def test_helics_takes_no_free_words() -> None:
    with pytest.raises(ModelError) as output:
        Helics(core_words="--profiler=/home/me/.bashrc")
    for key in ("broker_key", "local_port", "timeout_s", "encryption_config"):
        assert key in str(output.value)
        assert key in hints(Helics)


NAMES = ("a b", "a\nb", "--logfile=x", "a--b", "-x", "evil.json", "evil.toml", "{robot}\n", "a;b", "a`b", "x" * 200, "")


@pytest.mark.parametrize("name", NAMES)
def test_helics_names_are_one_plain_word(name: str) -> None:
    with pytest.raises(ModelError, match="federate: expected"):
        Helics(federate=name)
    with pytest.raises(ModelError, match=r"subscribe: expected"):
        Helics(subscribe={name: "left.front"})


@pytest.mark.parametrize("key", ["broker", "broker_key", "local_interface", "encryption_config"])
def test_helics_words_are_one_each(key: str) -> None:
    for text in ("a --logfile=/tmp/x", "a\t--profiler=x", 'a"b', "a'b", "--config=/tmp/x", "a=b", "[a", "a\nb"):
        arguments: dict[str, Any] = {key: text}
        with pytest.raises(ModelError, match=key):
            Helics(**arguments)


def test_helics_core_gets_its_words_from_typed_keys_alone() -> None:
    built = Helics(
        broker="127.0.0.1:23404", broker_key="secret", local_interface="127.0.0.1", local_port=24000, timeout_s=1.5,
        network_timeout_s=2.0, heartbeat_s=0.5, slow_responding=True,
    )  # fmt: skip
    assert built._core_words().split() == [
        "--federates=1", "--loglevel=no_print", "--config=/dev/null", "--broker_address=127.0.0.1",
        "--brokerport=23404", "--brokerkey=secret", "--local_interface=127.0.0.1", "--localport=24000",
        "--timeout=1500ms", "--networktimeout=2000ms", "--tick=500ms", "--slowresponding",
    ]  # fmt: skip


@pytest.mark.full
def test_helics_reads_no_configuration_of_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HELICS reads helics_config.toml of the working directory by itself, and writes the file that it names."""
    helics = pytest.importorskip("helics")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "helics_config.toml").write_text(f'logfile = "{tmp_path}/log.txt"\nloglevel = "trace"\n')
    parts = Helics(core="inproc")._core_words()
    core = helics.helicsCreateCore("inproc", "of-a-test", f"{parts} --autobroker")
    assert helics.helicsCoreIsValid(core)
    helics.helicsCoreDisconnect(core)
    helics.helicsCoreFree(core)
    helics.helicsCloseLibrary()
    assert not (tmp_path / "log.txt").exists()


LCM = (
    "file:///tmp/precious?mode=w", "file:///tmp/log", "tcpq://127.0.0.1:7700", "memq://", "udpm://239.255.76.67:7667?x=y",
    "udpm://239.255.76.67:7667?ttl=0&file=/tmp/x", "/tmp/precious", "",
)  # fmt: skip


@pytest.mark.parametrize("url", LCM)
def test_lcm_takes_multicast_groups_alone(url: str) -> None:
    with pytest.raises(ModelError, match="url: expected udpm://"):
        Lcm(url=url)


CAN = {
    "a library": ({"interface": "usb2can", "options": "dll=/tmp/evil.dll"}, "unknown option of CAN 'dll'"),
    "a URL that writes": (
        {"interface": "slcan", "channel": "spy:///dev/ttyS0?file=/tmp/x"}, "channel: expected a serial line"),
    "a URL of a socket": (
        {"interface": "serial", "channel": "socket://evil.example:1"}, "channel: expected a serial line"),
    "an alternative": ({"interface": "robotell", "channel": "alt:///dev/x"}, "channel: expected a serial line"),
    "a file": ({"interface": "slcan", "channel": "/dev/../home/me/.bashrc"}, "channel: expected a serial line"),
    "a path": ({"interface": "pcan", "channel": "/tmp/x"}, "channel: expected the name of a channel"),
    "another interface": ({"interface": "mine"}, "unknown interface of CAN 'mine'"),
    "a path in an option": ({"options": "app_name=/tmp/x"}, "options.app_name: expected a number"),
    "a configuration": ({"options": "config_context=x"}, "unknown option of CAN 'config_context'"),
}  # fmt: skip


@pytest.mark.parametrize(("parts", "message"), CAN.values(), ids=CAN)
def test_can_names_no_file_library_or_url(parts: dict[str, str], message: str) -> None:
    with pytest.raises(ModelError) as output:
        construct(load_bridge("can"), "bridge", "can", parts)
    assert message in str(output.value)


def test_zenoh_endpoints_have_no_options_of_their_own() -> None:
    zenoh: Any = load_bridge("zenoh")
    for key in ("listen", "connect"):
        with pytest.raises(ModelError, match=f"{key}: expected SCHEME/ADDRESS without '#'"):
            zenoh(**{key: ("tls/127.0.0.1:1#listen_private_key_file=/home/me/.ssh/id_rsa",)})


@pytest.mark.full
def test_zenoh_loads_no_plugins(tmp_path: Path) -> None:
    pytest.importorskip("zenoh")
    file = tmp_path / "z.json5"
    file.write_text('{plugins_loading: {enabled: true, search_dirs: ["."]}, plugins: {evil: {}}}')
    zenoh: Any = load_bridge("zenoh")
    with pytest.raises(ModelError, match="plugins_loading: expected enabled = false"):
        zenoh(zenoh_config=str(file))._config()


def test_dds_names_an_interface() -> None:
    dds: Any = load_bridge("dds")
    for text in ("${HOME}", "file:///x", "a b", "", '"/><Tracing>'):
        with pytest.raises(ModelError, match="interface: expected the name or address"):
            dds(interface=text)


@pytest.mark.parametrize("name", OWN_BRIDGES)
def test_names_are_printable(name: str) -> None:
    bridge: Any = load_bridge(name)
    first = {"serial": {"device": "/dev/null", "state_fields": ()}}.get(name, {})
    for key, hint in hints(bridge).items():
        if is_text(hint):
            value: Any = {str: "a\nb", tuple: ("a\x1bb",), dict: {"a\rb": "c"}}.get(typing.get_origin(hint) or hint)
            with pytest.raises(ModelError, match="printable"):
                bridge(**first | {key: value})


# --- What reaches beyond this machine.

BEYOND = {
    "ardupilot": {"host": "0.0.0.0"}, "can": {"interface": "socketcan", "channel": "can0"},
    "dds": {"interface": "eth0"}, "estimator": {"to": "10.0.0.1:1"}, "foxglove": {"host": "::"},
    "helics": {"broker": "10.0.0.1:1"}, "imc": {"network": "10.0.0.1"},
    "lcm": {"url": "udpm://239.255.76.67:7667?ttl=1"}, "mavlink": {"stations": "10.0.0.1:14550"},
    "mosaik": {"host": "0.0.0.0"}, "mqtt": {"host": "broker.example"}, "nmea": {"to": "tcp://0.0.0.0:10110"},
    "px4": {"ground": "10.0.0.1:1"}, "serial": {"device": "/dev/ttyUSB0", "state_fields": "time:f64"},
    "udp": {"bind": "0.0.0.0"}, "view": {"host": "0.0.0.0"}, "zenoh": {"listen": "tcp/[::]:7447"},
}  # fmt: skip
OPTIONAL_PARTS = [
    ("can", {"interface": "udp_multicast", "channel": "239.74.163.2", "far": "true"}),
    ("can", {"interface": "udp_multicast", "channel": "239.74.163.2", "options": "hop_limit=9"}),
    ("dds", {"interface": "auto"}),
    ("foxglove", {"origins": "https://evil.example"}),
    ("helics", {"local_interface": "0.0.0.0"}),
    ("imc", {"nodes": "10.0.0.1:6002"}),
    ("mavlink", {"host": "0.0.0.0"}),
    ("nmea", {"pd6": "udp://10.0.0.1:1"}),
    ("nmea", {"to": "/dev/ttyUSB0@4800"}),
    ("nmea", {"listen": "udp://0.0.0.0:10111"}),
    ("px4", {"host": "0.0.0.0"}),
    ("udp", {"host": "10.0.0.1"}),
    ("zenoh", {"connect": "tcp/router.example:7447"}),
    ("zenoh", {"scouting": "true"}),
]


@pytest.mark.parametrize(
    ("name", "parts"),
    [pytest.param(name, parts, marks=LIBRARY.get(name, ())) for name, parts in (*BEYOND.items(), *OPTIONAL_PARTS)],
)
def test_a_bridge_reports_what_reaches_beyond_this_machine(name: str, parts: dict[str, str]) -> None:
    built = construct(load_bridge(name), "bridge", name, parts)
    assert built.beyond(), parts


HERE = {
    "can": {"interface": "udp_multicast", "channel": "239.74.163.2"},
    "helics": {"core": "ipc", "broker": "mine"},
}


@pytest.mark.parametrize("name", [item for item in CREATED if item.values != ("serial",)])  # a line leaves the machine
def test_by_default_a_bridge_stays_on_this_machine(name: str) -> None:
    parts = HERE.get(name, {})
    importlib.import_module(load_bridge(name).__module__)
    assert construct(load_bridge(name), "bridge", name, parts).beyond() == {}
