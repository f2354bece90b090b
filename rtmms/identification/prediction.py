"""What a model with some parameters says that would have been measured: rollouts of all segments, and instruments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from queue import SimpleQueue
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.analysis.rollouts import Rollout
from rtmms.base.errors import ModelError, RtmmsError
from rtmms.identification.recording import Recording
from rtmms.identification.unknowns import split, value_of
from rtmms.plant.protocol import Coordinated, Forking, Plant, describe_plant
from rtmms.sensing.readings import MOVING, read_along

Array = npt.NDArray[np.float64]

MOVE = 1e-3
"""rad or m: a joint that is free can be placed so far away."""


@dataclass
class Segment:
    """A stretch of a recording that is predicted from its own first state.

    recording   its number;  first, last  steps, the last one excluded;  fitted  steps of it that the fit sees
    known       it begins at a reset
    base        state as a fork has it, and step: the first guess of where it begins; None: at the reset
    """

    recording: int
    first: int
    last: int
    fitted: int
    known: bool
    base: tuple[Array, int] | None = None


@dataclass(frozen=True)
class Case:
    """One set of parameters (by name) and of offsets of the segments' starts (segments, w):
    of pose and twist 12, of joints' positions and velocities."""

    values: Mapping[str, float]
    offsets: Array


class _Worker:
    """Plants of one thread, one for each recording."""

    def __init__(self, recordings: Sequence[Recording]) -> None:
        self.recordings = recordings
        self._plants: dict[int, tuple[Plant, dict[str, Any]]] = {}

    def plant(self, number: int, values: Mapping[str, float]) -> Plant:
        """Of a recording, with these values: set where it may change while it runs, else built anew. ModelError where
        the model cannot have them."""
        given = self._given(number, values)
        found = self._plants.get(number)
        if found is not None and found[1] == given:
            return found[0]
        if found is not None:
            about = describe_plant(found[0])
            changed = {key: value for key, value in given.items() if found[1].get(key) != value}
            alike = found[1].keys() == given.keys() and set(changed) <= set(about.settable or ())
            if alike and about.set is not None:
                about.set(**changed)
                self._plants[number] = (found[0], given)
                return found[0]
        plant = self.recordings[number].build(**given)
        self._plants[number] = (plant, given)
        return plant

    def _given(self, number: int, values: Mapping[str, float]) -> dict[str, Any]:
        """Whole parameters: elements put into their vectors."""
        found: dict[str, Any] = {}
        for name, value in values.items():
            root, element = split(name)
            if element < 0:
                found[root] = value
                continue
            if root not in found:
                found[root] = list(value_of(self._usual(number), root))
            found[root][element] = value
        return {key: tuple(value) if isinstance(value, list) else value for key, value in found.items()}

    def _usual(self, number: int) -> Plant:
        if number not in self._plants:
            self._plants[number] = (self.recordings[number].build(), {})
        return self._plants[number][0]


class Predictor:
    """Predictions for all segments of some recordings; a context manager that keeps threads and plants."""

    def __init__(self, recordings: Sequence[Recording], segments: Sequence[Segment], threads: int) -> None:
        self.recordings, self.segments = recordings, segments
        self._workers: SimpleQueue[_Worker] = SimpleQueue()
        self.count = threads
        first = _Worker(recordings)
        for number, recording in enumerate(recordings):
            self._warm(first.plant(number, {}), recording)  # compiled once, before any thread asks for it
        self._workers.put(first)
        for _ in range(threads - 1):
            self._workers.put(_Worker(recordings))
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="identify")

    def __enter__(self) -> Predictor:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def many(self, cases: Sequence[Case]) -> Iterator[list[dict[str, Array]]]:
        """Of each case what `one` gives, in order."""
        yield from self._pool.map(self._one, cases)

    def one(self, case: Case) -> list[dict[str, Array]]:
        """Of each segment {channel: (steps, w)} at the end of each step; nan from where the model failed."""
        return self._one(case)

    def anchor(self, values: Mapping[str, float]) -> None:
        """Put the first guess of each segment's start to where a run of the model from the recording's beginning comes
        to, with pose and twist as they were measured, where they were."""
        worker = self._workers.get()
        try:
            for number, recording in enumerate(self.recordings):
                own = [one for one in self.segments if one.recording == number]
                plant = worker.plant(number, values)
                plant.reset(recording.seed)
                if not own[0].known:
                    _place(plant, {name: rows[0] for name, rows in recording.states.items()})
                    own[0].base = _present(plant)
                before = plant.snapshot()
                with Rollout(plant, 1) as pool:
                    for last, one in pairwise(own):
                        commands = recording.commands[None, last.first : one.first]
                        runs = pool(commands, before, outputs=())
                        before = runs.final[0]
                        plant.restore(before)
                        told = {name: rows[one.first] for name, rows in recording.states.items() if name in MOVING}
                        _place(plant, told)
                        one.base = _present(plant)
                        before = plant.snapshot()
        finally:
            self._workers.put(worker)

    def _one(self, case: Case) -> list[dict[str, Array]]:
        worker = self._workers.get()
        try:
            return [
                part for number in range(len(self.recordings)) for part in self._recording(worker, number, case)
            ]  # fmt: skip
        finally:
            self._workers.put(worker)

    def _recording(self, worker: _Worker, number: int, case: Case) -> list[dict[str, Array]]:
        recording = self.recordings[number]
        try:
            plant = worker.plant(number, case.values)
        except ModelError:
            return [_nothing(recording, one) for one in self.segments if one.recording == number]
        wanted = _outputs(recording, plant)
        own = [(k, one) for k, one in enumerate(self.segments) if one.recording == number]
        longest = max(one.last - one.first for _, one in own)
        commands = np.stack([_padded(recording.commands[one.first : one.last], longest) for _, one in own])
        initial = [self._start(plant, recording, one, case.offsets[k]) for k, one in own]
        with Rollout(plant, 1) as pool:
            runs = pool(commands, initial, outputs=wanted)
        found = []
        for row, (_, one) in enumerate(own):
            steps = one.last - one.first
            outputs = {name: values[row, :steps] for name, values in runs.outputs.items()}
            motion = np.concatenate([outputs[name] for name in MOVING], axis=1) if set(MOVING) <= set(outputs) else None
            told = {}
            for series in recording.series:
                if series.instrument is None:
                    told[series.channel] = outputs[series.channel].reshape(steps, series.width)
                else:
                    moved = np.zeros((steps, 13)) if motion is None else motion
                    told[series.channel] = read_along(series.instrument, moved, outputs, plant, recording.dt)
            found.append(told)
        return found

    def _start(self, plant: Plant, recording: Recording, one: Segment, offset: Array) -> bytes:
        if one.base is None:
            plant.reset(recording.seed)
        else:
            assert isinstance(plant, Forking)
            plant.put(one.base[0].copy(), one.base[1])
        if offset.any():
            _shift(plant, offset)
        return plant.snapshot()

    def _warm(self, plant: Plant, recording: Recording) -> None:
        with Rollout(plant, 1) as pool:
            pool(recording.commands[None, :2], outputs=_outputs(recording, plant))


def _outputs(recording: Recording, plant: Plant) -> tuple[str, ...]:
    """Names of the plant's outputs that predictions are made from."""
    names = [one.channel if one.instrument is None else one.instrument.of for one in recording.series]
    body = any(one.instrument is not None and not one.instrument.of for one in recording.series)
    return tuple(dict.fromkeys([*(MOVING if body else ()), *(name for name in names if name)]))


def _nothing(recording: Recording, one: Segment) -> dict[str, Array]:
    return {series.channel: np.full((one.last - one.first, series.width), np.nan) for series in recording.series}


def _padded(commands: Array, length: int) -> Array:
    return np.concatenate([commands, np.repeat(commands[-1:], length - len(commands), axis=0)])


def _present(plant: Plant) -> tuple[Array, int]:
    assert isinstance(plant, Forking)
    return plant.present()


def _place(plant: Plant, told: Mapping[str, Array]) -> None:
    """Where it was measured to be, as far as it was and as it can stand there."""
    given = {name: value for name, value in told.items() if np.isfinite(value).all()}
    if "quaternion" in given:
        given["quaternion"] = given["quaternion"] / np.linalg.norm(given["quaternion"])
    pose = {name: value for name, value in given.items() if name in MOVING}
    for some in (given, pose):
        try:
            if some:
                plant.place(**some)  # type: ignore[attr-defined]
            return
        except RtmmsError:
            continue


def can_be_placed(plant: Plant) -> bool:
    """Whether its pose and twist can be put to others."""
    if not isinstance(plant, Forking) or not hasattr(plant, "place"):
        return False
    told = plant.observe()
    if not set(MOVING) <= told.keys():
        return False
    try:
        plant.place(**{name: told[name] for name in MOVING})
    except RtmmsError:
        return False
    return True


def free_start(plant: Plant) -> tuple[bool, tuple[int, ...], int]:
    """Which parts of a plant's state may be another at the start: whether its base is free, which of its joints are,
    and how many joints it has. A joint whose motion is imposed is not free."""
    free = not isinstance(plant, Coordinated) or plant.coordinates().pose >= 0
    told = plant.observe()
    if not {"joint_position", "joint_velocity"} <= told.keys():
        return free, (), 0
    plant.reset()
    before, position = plant.snapshot(), np.ravel(plant.observe()["joint_position"])
    joints = []
    for joint in range(len(position)):
        for move in (MOVE, -MOVE):  # a joint may begin at a limit
            moved = position.copy()
            moved[joint] += move
            try:
                plant.place(joint_position=moved)  # type: ignore[attr-defined]
                reached = np.ravel(plant.observe()["joint_position"])[joint]
            except (RtmmsError, TypeError, AttributeError):
                continue
            finally:
                plant.restore(before)
            if abs(reached - moved[joint]) < 0.5 * MOVE:
                joints.append(joint)
                break
    return free, tuple(joints), len(position)


def _shift(plant: Plant, offset: Array) -> None:
    """Pose by an offset in the body's axes, twist by one; joints' positions and velocities."""
    told, joints = plant.observe(), offset[12:]
    if joints.any():
        count = np.size(told["joint_position"])
        moves = np.concatenate([joints, np.zeros(2 * count - len(joints))])  # the last joints may be imposed
        plant.place(  # type: ignore[attr-defined]
            joint_position=np.ravel(told["joint_position"]) + moves[:count],
            joint_velocity=np.ravel(told["joint_velocity"]) + moves[count:],
        )
    if not offset[:12].any():
        return
    w, x, y, z = told["quaternion"]
    p, turn = offset[:3], offset[3:6]
    half = 0.5 * float(np.linalg.norm(turn))
    a, b, c = turn * (0.5 if half < 1e-9 else 0.5 * np.sin(half) / half)
    s = float(np.cos(half))
    u = np.array([x, y, z])
    t = 2.0 * np.cross(u, p)
    quaternion = np.array([
        w * s - x * a - y * b - z * c, w * a + x * s + y * c - z * b,
        w * b - x * c + y * s + z * a, w * c + x * b - y * a + z * s,
    ])  # fmt: skip
    plant.place(  # type: ignore[attr-defined]
        position=told["position"] + p + w * t + np.cross(u, t), quaternion=quaternion / np.linalg.norm(quaternion),
        velocity=told["velocity"] + offset[6:9], angular_velocity=told["angular_velocity"] + offset[9:],
    )  # fmt: skip
