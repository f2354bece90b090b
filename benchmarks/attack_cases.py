"""The hostile inputs of `rtmms bench attacks`: a family is a function of a folder, a source of chance and a number."""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ESCAPE = "\x1b]0;owned\x07"
HOSTILE: tuple[Any, ...] = (
    None, True, -1, 0, 2**31, 2**70, 1e300, -1e-300, float("nan"), float("inf"), "", "x", ESCAPE,
    "a\nrtmms: all is well", "<script>alert(1)</script>", "[/oops]", "=1+1", "../../precious", "\0", "\ud800",
    "x" * 100_000, [], {}, [[]], [None], [1e300],
    ["x"], {"x": None}, [{}], [[[[]]]], {"x": {"y": [1]}}, list(range(5000)),
)  # fmt: skip
"""In place of any value of a JSON document."""


@dataclass(frozen=True)
class Case:
    """prepare: makes the files; writes: beginnings of names that the command may change; act: what is run in it."""

    name: str
    prepare: Callable[[Path], Any]
    act: Callable[[], Any]
    writes: tuple[str, ...] = ("out",)
    environment: Mapping[str, str] = field(default_factory=dict)


def command(*words: str) -> Callable[[], Any]:
    """`rtmms WORDS` in this process."""

    def act() -> Any:
        from rtmms.cli.main import main

        main(list(words))

    return act


# --- logs -------------------------------------------------------------------------------------------------------------

LOG_COMMANDS: tuple[tuple[str, ...], ...] = (
    ("log", "info", "run.mcap"), ("log", "info", "run.mcap", "--json"), ("log", "csv", "run.mcap", "-o", "out.csv"),
    ("log", "parquet", "run.mcap", "-o", "out.parquet"), ("plot", "run.mcap", "-o", "out.png"),
    ("compare", "run.mcap", "run.mcap"), ("compare", "run.mcap", "other.mcap", "-o", "out.png"),
    ("view", "run.mcap", "--html", "out.html"), ("movie", "run.mcap", "-o", "out.gif"),
    ("replay", "run.mcap", "--check"),
)  # fmt: skip


LOG_PARTS = ("origin.json", "origin.json", "end.json", "/state", "/command", "/outcome", "/timing", "/event")


def logs(source: Path, chance: random.Random, count: int) -> Iterator[Case]:
    """A log with one value of its origin, end or messages changed, its checksums right, into each command for logs."""
    sound = _sound(source)
    for _ in range(count):
        path = sound[chance.choice(list(sound))]
        words = chance.choice(LOG_COMMANDS)
        where = chance.choice(LOG_PARTS)
        unknown = chance.random() < 0.5
        seed = chance.random()
        change = changing(where, random.Random(seed))

        def prepare(folder: Path, path: Path = path, change: Any = change, unknown: bool = unknown) -> None:
            rewrite(path, folder / "run.mcap", change, unknown)
            (folder / "other.mcap").write_bytes(path.read_bytes())

        yield Case(f"{path.stem} {where} {seed} {' '.join(words)}", prepare, command(*words))


def changing(where: str, chance: random.Random) -> Callable[[str, Any], Any]:
    """For `rewrite`: one value of the attachments, or messages, of that name replaced."""
    value = chance.choice(HOSTILE)
    draws = [chance.random() for _ in range(8)]

    def change(name: str, found: Any) -> Any:
        if name != where:
            return found
        return _replaced(found, iter(draws), value)

    return change


def _replaced(found: Any, draws: Iterator[float], value: Any) -> Any:
    """The document with one value, somewhere below, replaced."""
    draw = next(draws, 1.0)
    items = list(found) if isinstance(found, dict) else list(range(len(found))) if isinstance(found, list) else []
    if not items or draw > 0.999:
        return value
    key = items[int(draw * 1e6) % len(items)]
    deeper = next(draws, 1.0) < 0.6 and isinstance(found[key], (dict, list)) and found[key]
    made = dict(found) if isinstance(found, dict) else list(found)
    made[key] = _replaced(found[key], draws, value) if deeper else value
    return made


def rewrite(sound: Path, path: Path, change: Callable[[str, Any], Any], unknown: bool = False) -> None:
    """The log with what `change` makes of each attachment and message (by attachment's name or topic).

    unknown   the robot is called as none is that is installed
    """
    from mcap.reader import make_reader
    from mcap.writer import Writer

    with sound.open("rb") as file, path.open("wb") as out:
        reader, writer = make_reader(file), Writer(out)
        writer.start()
        summary = reader.get_summary()
        assert summary is not None
        schemas = {k: writer.register_schema(s.name, s.encoding, s.data) for k, s in summary.schemas.items()}
        channels = {
            k: writer.register_channel(c.topic, c.message_encoding, schemas[c.schema_id])
            for k, c in summary.channels.items()
        }
        for found in reader.iter_attachments():
            data = found.data
            if found.name.endswith(".json"):
                read = json.loads(data)
                if unknown and found.name == "origin.json":
                    read["robot"] = "theirs"
                made = change(found.name, read)
                data = made if isinstance(made, bytes) else _json(made)
            writer.add_attachment(found.create_time, found.log_time, found.name, found.media_type, data)
        for _, channel, message in reader.iter_messages():
            made = change(channel.topic, json.loads(message.data))
            for one in made if isinstance(made, tuple) else (made,):
                data = one if isinstance(one, bytes) else _json(one)
                writer.add_message(channels[channel.id], message.log_time, data, message.publish_time, message.sequence)
        writer.finish()  # type: ignore[no-untyped-call]


def _json(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")


# --- films ------------------------------------------------------------------------------------------------------------

FILM_COMMANDS = (
    ("plot", "run.mcap", "-o", "out.png"), ("view", "run.mcap", "--html", "out.html"),
    ("movie", "run.mcap", "-o", "out.gif"), ("log", "csv", "run.mcap", "-o", "out.csv"),
)  # fmt: skip


def films(source: Path, chance: random.Random, count: int) -> Iterator[Case]:
    """Logs whose drawing, poses, times and sizes no run has, into the commands that draw."""
    sound = _sound(source)
    made: list[tuple[str, dict[str, Any]]] = [
        ("dt", {"dt": 1e6}), ("links", {"description": {"joints": 10**9}}),
        ("half a link", {"description": {"joints": 0.5}}),
        ("size", {"description": {"joints": 12, "half_width_m": 1e300}}),
        ("parts", {"shape": {"parts": [{"name": f"p{k}", "kind": "box", "size": [1, 1, 1]} for k in range(9_999)]}}),
        ("million parts", {"shape": {"parts": [{"name": "p", "kind": "box", "size": [1, 1, 1]}] * 10**6}}),
        ("skins", {"shape": {"skins": [{"name": "s", "points": "position", "triangles": [0, 1, 2] * 10**5}] * 100}}),
        ("html", {"robot": "<script>alert(1)</script>", "shape": {"parts": [
            {"name": "</script><script>alert(1)//", "kind": "box", "size": [1, 1, 1]}, {"name": "../..", "kind": "box",
             "size": [1e308, 1, 1]}]}}),
        ("channels", {"outputs": [{"name": f"o{k}", "unit": "m", "shape": [], "frame": ""} for k in range(100_000)]}),
        ("formula", {"robot": "=1+1", "outputs": [{"name": "=cmd|' /C calc'!A0", "unit": "", "shape": [3]}]}),
        ("width", {"outputs": [{"name": "position", "unit": "m", "shape": [3, 300_000], "frame": "world"}]}),
        ("empty", {"outputs": [{"name": "position", "unit": "m", "shape": [0], "frame": "world"}]}),
        ("nothing", {"outputs": [], "actuators": []}),
    ]  # fmt: skip
    numbers = (float("nan"), float("inf"), -1e308, 1e38, 0.0, None)
    steps = (-1, 2**53, 5_000_000, 0)
    for _ in range(count):
        words = chance.choice(FILM_COMMANDS)
        kind = chance.choice(("origin", "numbers", "steps"))
        path = chance.choice(list(sound.values()))
        name, told = chance.choice(made) if kind == "origin" else (kind, {})
        value, step, unknown = chance.choice(numbers), chance.choice(steps), chance.random() < 0.5
        every = chance.choice((1, 3))

        def change(
            part: str, found: Any, told: Any = told, kind: str = kind, value: Any = value, step: int = step,
            every: int = every,
        ) -> Any:  # fmt: skip
            if part == "origin.json":
                return {**found, **told}
            if kind == "numbers" and part == "/state" and found["step"] % every == 0:
                return {**found, "outputs": _filled(found["outputs"], value)}
            if kind == "steps" and part.startswith("/") and "step" in found and found["step"] > 2:
                return {**found, "step": found["step"] + step}
            return found

        def prepare(folder: Path, path: Path = path, change: Any = change, unknown: bool = unknown) -> None:
            rewrite(path, folder / "run.mcap", change, unknown)

        yield Case(f"{path.stem} {name} {value} {step} {every} {unknown} {' '.join(words)}", prepare, command(*words))


def _filled(found: Any, value: Any) -> Any:
    if isinstance(found, dict):
        return {key: _filled(one, value) for key, one in found.items()}
    return [_filled(one, value) for one in found] if isinstance(found, list) else value


def _sound(source: Path) -> dict[str, Path]:
    """Short logs of two robots, once."""
    from rtmms.cli.main import rtmms

    found = {}
    for robot in ("eel", "quadrotor"):
        path = source / f"{robot}.mcap"
        words = ["run", robot, "--controller", "none", "--duration", "0.02", "--mode", "lockstep", "--quiet", "--log"]
        with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
            rtmms.main(args=[*words, str(path)], prog_name="rtmms", standalone_mode=False)
        found[robot] = path
    return found


# --- studies and scenarios --------------------------------------------------------------------------------------------

STUDY = {
    "robot": "quadrotor", "duration": 0.02, "dt": 0.002,
    "sweep": {"method": "grid", "samples": 0, "seed": 0, "columns": ["final.position[2]"],
              "over": {"mass_kg": [0.9, 1.0]}},
}  # fmt: skip
WORDS: tuple[Any, ...] = (
    True, -1, 2**70, 1e300, float("nan"), float("inf"), "", "x", "../../precious", "\u001b]0;owned\u0007", "a\nb", [],
    {}, [[]], ["x"], [1, "x"], {"x": {"y": 1}}, "0:1:3", "0:1e18:2", "1:0:3", "0:1:99999999", [1] * 5000, ["a", "b"],
    "theirs.py:robot", "file:///etc/passwd", "quadrotor", "/etc/passwd",
)  # fmt: skip


def studies(source: Path, chance: random.Random, count: int) -> Iterator[Case]:
    """A study or scenario with one value changed, or a key more, into `rtmms sweep` and `rtmms run --dry-run`."""
    for _ in range(count):
        seed = chance.random()
        text = _toml(_replaced(STUDY, iter([random.Random(seed).random() for _ in range(8)]), chance.choice(WORDS)))
        if chance.random() < 0.3:
            text = f"{chance.choice(EXTRA)}\n{text}"

        def prepare(folder: Path, text: str = text) -> None:
            (folder / "study.toml").write_text(text)
            (folder / "theirs.py").write_text("open('ran', 'w')\ndef robot(dt=None): return 1\n")
            (folder / "theirs.py").chmod(0o666)
            (folder / "precious").write_text("precious")

        words = ("sweep", "study.toml", "-o", "out.parquet", "--threads", "1", "--quiet")
        yield Case(f"study {seed}: {text!r:.300}", prepare, command(*words))


EXTRA = (
    'log = "precious"', 'trace = "precious"', 'figure = "precious"', 'preset = "/etc/passwd"', 'sensors = "precious"',
    "x = 1", "[[event]]\nat_s = 0.01\nop = 'stop'", "[[bridge]]\nname = 'udp'", "dt = 1e-300", "duration = 1e300",
    "[parameters]\ndt = 3", "[expect]\n'final.x' = 'import os'", "[sensors.imu]\nkind = 'imu'", "seed = -1",
)  # fmt: skip


def _toml(table: Any, path: str = "") -> str:
    if not isinstance(table, dict):
        return f"robot = {_value(table)}\n"
    plain = "".join(f"{json.dumps(key)} = {_value(one)}\n" for key, one in table.items() if not isinstance(one, dict))
    below = [(f"{path}.{json.dumps(key)}" if path else json.dumps(key), one) for key, one in table.items()
             if isinstance(one, dict)]  # fmt: skip
    return plain + "".join(f"[{name}]\n{_toml(one, name)}" for name, one in below)


def _value(value: Any) -> str:
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, list):
        return f"[{', '.join(_value(one) for one in value)}]"
    return json.dumps(value) if not isinstance(value, dict) else "{}"


# --- parts of sweeps --------------------------------------------------------------------------------------------------


def parts(source: Path, chance: random.Random, count: int) -> Iterator[Case]:
    """Files that somebody put where a sweep that was broken off has its parts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from rtmms.sweep.table import seal_part, unseal_part

    over = ("sweep", "quadrotor", "--over", "mass_kg=0.9,1.0,1.1", "--duration", "20", "--threads", "1", "--quiet")
    act = command(*over, "-o", "out.parquet")
    sent = _cut(source, over)
    table = pq.read_table(pa.BufferReader(unseal_part(sent.read_bytes(), sent.name)[1]))

    def write(table: Any, file: Path, **options: Any) -> None:
        """With a checksum that is right: what stands in it is judged then."""
        stream = pa.BufferOutputStream()
        pq.write_table(table, stream, **options)
        file.write_bytes(seal_part(stream.getvalue().to_pybytes(), sent.name, {}))

    kinds: dict[str, Callable[[Path], Any]] = {
        "cut": lambda file: file.write_bytes(sent.read_bytes()[: chance.randrange(sent.stat().st_size)]),
        "flipped": lambda file: file.write_bytes(flipped(sent.read_bytes(), chance)),
        "noise": lambda file: file.write_bytes(b"PAR1" + chance.randbytes(4096) + b"PAR1"),
        "escape": lambda file: write(_column(table, "ended", ESCAPE), file),
        "reason": lambda file: write(_column(table, "reason", ESCAPE * 1000), file),
        "other values": lambda file: write(_column(table, "mass_kg", 7.0), file),
        "nan": lambda file: write(_column(table, table.column_names[2], float("nan")), file),
        "other schema": lambda file: write(pa.table({"run": [0], "x": ["=1+1"]}), file),
        "pipe": os.mkfifo,
        "folder": lambda file: file.mkdir(),
        "link": lambda file: file.symlink_to("../precious"),
        "link to nothing": lambda file: file.symlink_to("../nowhere"),
        "link to itself": lambda file: file.symlink_to(file.name),
        "bomb": lambda file: write(pa.concat_tables([_column(table, "reason", "x" * 10_000)] * 20_000), file,
                                   compression="zstd"),
    }  # fmt: skip
    for number in range(count):
        kind = list(kinds)[number % len(kinds)]

        def prepare(folder: Path, kind: str = kind) -> None:
            (folder / "out.parquet.parts").mkdir()
            (folder / "precious").write_text("precious")
            (folder / "out.parquet.parts" / "part-00000.parquet").write_text("precious")
            kinds[kind](folder / "out.parquet.parts" / sent.name)

        yield Case(kind, prepare, act, ("out.parquet.parts/part-" + sent.name.split("-")[1],))


def _cut(source: Path, over: tuple[str, ...]) -> Path:
    """A part that a sweep left."""
    from rtmms.cli.main import rtmms
    from rtmms.sweep import table as made

    join = made.Parts.join

    def broken(self: Any, path: Path) -> Any:
        raise KeyboardInterrupt

    made.Parts.join = broken  # type: ignore[method-assign]
    try:
        with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere), suppress(KeyboardInterrupt, BaseException):
            rtmms.main(args=[*over, "-o", str(source / "out.parquet")], prog_name="rtmms", standalone_mode=False)
    finally:
        made.Parts.join = join  # type: ignore[method-assign]
    return min((source / "out.parquet.parts").iterdir())


def _column(table: Any, name: str, value: Any) -> Any:
    import pyarrow as pa

    at = table.schema.get_field_index(name)
    return table.set_column(at, table.schema.field(at), pa.array([value] * len(table), table.schema.field(at).type))


def flipped(data: bytes, chance: random.Random) -> bytes:
    made = bytearray(data)
    for _ in range(chance.randint(1, 8)):
        made[chance.randrange(len(made))] ^= 1 << chance.randrange(8)
    return bytes(made)


# --- environment ------------------------------------------------------------------------------------------------------

PLACES = ("", "/dev/null/x", "/dev/null", "/proc", "\n", "/etc/passwd", "relative", "x" * 5000, "~", "/dev/full")
ENVIRONMENT: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("HOME", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "NUMBA_CACHE_DIR",
                     "MPLCONFIGDIR"), PLACES),
    "COLUMNS": ("0", "-1", "x", "99999999999999999999"), "LINES": ("0", "x"), "TERM": ("", "dumb", ESCAPE, "x" * 5000),
    "RTMMS_PARENT": ("", "x", "-1", "0", "1", "99999999999999999999"), "RTMMS_CHILD": ("1", "x"), "LANG": ("C", "x"),
    "PYTHONIOENCODING": ("ascii", "x"), "PYTHONUTF8": ("0", "x"), "LC_ALL": ("C", "POSIX", "x"),
    "NUMBA_DISABLE_JIT": ("x", "-1"), "NUMBA_NUM_THREADS": ("0", "-1", "x", "99999"), "NUMBA_CPU_NAME": ("x",),
    "NUMBA_OPT": ("x", "9"), "OMP_NUM_THREADS": ("x", "-1"), "NO_COLOR": ("1",),
    "MPLBACKEND": ("x", "TkAgg"), "TZ": ("x", ":/etc/passwd"), "SOURCE_DATE_EPOCH": ("x",), "PYTHONHASHSEED": ("0",),
}  # fmt: skip


def environments(source: Path, chance: random.Random, count: int) -> Iterator[Case]:
    """A variable with a value that nobody means, around commands that compile nothing."""
    sound = _sound(source)["quadrotor"]
    commands = (
        ("list",), ("log", "info", "run.mcap"), ("status",), ("--help",), ("compare", "run.mcap", "run.mcap"),
        ("log", "csv", "run.mcap", "-o", "out.csv"),
    )  # fmt: skip
    for _ in range(count):
        name = chance.choice(list(ENVIRONMENT))
        value, words = chance.choice(ENVIRONMENT[name]), chance.choice(commands)
        if words == ("status",):
            words = ("status", "--exchange", "tcp://127.0.0.1:39871")

        def prepare(folder: Path) -> None:
            (folder / "run.mcap").write_bytes(sound.read_bytes())
            (folder / "relative").mkdir()

        yield Case(
            f"{name}={value!r:.60} {' '.join(words)}", prepare, _started(words), ("out", "relative"), {name: value}
        )


def _started(words: tuple[str, ...]) -> Callable[[], Any]:
    """`rtmms WORDS` in an interpreter of its own: most variables are read when it starts."""
    return lambda: os.execv(sys.executable, [sys.executable, "-P", "-m", "rtmms.cli.main", *words])


FILES: Mapping[str, Callable[[Path, random.Random, int], Iterator[Case]]] = {
    "logs": logs, "films": films, "studies": studies, "parts": parts, "environments": environments,
}  # fmt: skip
