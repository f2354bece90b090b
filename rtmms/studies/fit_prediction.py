"""Predictions of measurements by a model with some parameters: rollouts of all segments, and instruments."""

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
from rtmms.base.errors import RtmmsError
from rtmms.plant.description import describe_plant
from rtmms.plant.optional_protocols import HasCoordinates, HasFork
from rtmms.plant.protocol import Plant
from rtmms.sensing.readings import MOVING, read_along
from rtmms.studies.fit_unknowns import FirstState, split, start_names, value_of
from rtmms.studies.recordings import Recording

Array = npt.NDArray[np.float64]

MOVE = 1e-3
"""Displacement, rad or m, that a free joint can have."""


@dataclass
class Segment:
    """Part of a recording that is predicted from its own first state.

    Attributes
    ----------
    recording : int
        Index of the recording.
    first, last : int
        Steps, the last one excluded.
    fitted : int
        Steps of it that the fit uses.
    known : bool
        It begins at a reset.
    base : tuple[Array, int] | None, optional
        State of a fork, and step: the first guess of its start. None: at the reset.
    counts_from : int, default 0
        Steps of it that are not compared.
    """

    recording: int
    first: int
    last: int
    fitted: int
    known: bool
    base: tuple[Array, int] | None = None
    counts_from: int = 0


@dataclass(frozen=True)
class Case:
    """Parameters and first states of a prediction.

    Attributes
    ----------
    values : Sequence[Mapping[str, float]]
        Parameters by name, of each recording.
    offsets : Array
        (segments, w) offsets of the segments' starts: of pose and twist 12, of joints' positions and velocities.
    """

    values: Sequence[Mapping[str, float]]
    offsets: Array


class _Worker:
    """Plants of one thread, one for each model of the recordings."""

    def __init__(self, recordings: Sequence[Recording]) -> None:
        self.recordings = recordings
        self._plants: dict[int, tuple[Plant, dict[str, Any]]] = {}
        models = [recording.model for recording in recordings]
        self._first = [k if model is None else models.index(model) for k, model in enumerate(models)]

    def plant(self, number: int, values: Mapping[str, float]) -> Plant:
        """Return the plant of a recording with these values, or raise ModelError where the model cannot have them.

        The values are set where they may change while the plant runs; otherwise the plant is built anew.
        """
        number = self._first[number]
        provided = self._merge_elements(number, values)
        result = self._plants.get(number)
        if result is not None and result[1] == provided:
            return result[0]
        if result is not None:
            about = describe_plant(result[0])
            changed = {key: value for key, value in provided.items() if result[1].get(key) != value}
            alike = result[1].keys() == provided.keys() and set(changed) <= set(about.settable or ())
            if alike and about.set is not None:
                about.set(**changed)
                self._plants[number] = (result[0], provided)
                return result[0]
        plant = self.recordings[number].build(**provided)
        self._plants[number] = (plant, provided)
        return plant

    def _merge_elements(self, number: int, values: Mapping[str, float]) -> dict[str, Any]:
        """Return whole parameters: elements put into their vectors."""
        result: dict[str, Any] = {}
        for name, value in values.items():
            root, element = split(name)
            if element < 0:
                result[root] = value
                continue
            if root not in result:
                result[root] = list(value_of(self._load_default_plant(number), root))
            result[root][element] = value
        return {key: tuple(value) if isinstance(value, list) else value for key, value in result.items()}

    def _load_default_plant(self, number: int) -> Plant:
        if number not in self._plants:
            self._plants[number] = (self.recordings[number].build(), {})
        return self._plants[number][0]


class Predictor:
    """Predictions for all segments of some recordings; a context manager that owns threads and plants.

    Parameters
    ----------
    recordings : Sequence[Recording]
        Recordings of one robot.
    segments : Sequence[Segment]
        Their segments.
    threads : int
        Number of threads.
    """

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
        """Return the predictor itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the threads; predictions that have not begun are cancelled."""
        self._pool.shutdown(cancel_futures=True)

    def many(self, cases: Sequence[Case]) -> Iterator[list[dict[str, Array]]]:
        """Predict several cases on the threads.

        Parameters
        ----------
        cases : Sequence[Case]
            The cases.

        Yields
        ------
        list[dict[str, Array]]
            The result of `predict` for each case, in order.
        """
        yield from self._pool.map(self._predict_case, cases)

    def predict(self, case: Case) -> list[dict[str, Array]]:
        """Predict one case on the caller's thread.

        Parameters
        ----------
        case : Case
            Parameters and first states.

        Returns
        -------
        list[dict[str, Array]]
            {channel: (steps, w)} of each segment at the end of each step; nan from where the model failed.
        """
        return self._predict_case(case)

    def anchor(self, values: Sequence[Mapping[str, float]]) -> None:
        """Set the first guess of each segment's start from a run of the model from the recording's beginning.

        Pose and twist are the measured ones, where they were measured.

        Parameters
        ----------
        values : Sequence[Mapping[str, float]]
            Parameters by name, of each recording.
        """
        worker = self._workers.get()
        try:
            for number, recording in enumerate(self.recordings):
                recording_segments = [segment for segment in self.segments if segment.recording == number]
                plant = worker.plant(number, values[number])
                plant.reset(recording.seed)
                if not recording_segments[0].known:
                    _place(plant, {name: rows[0] for name, rows in recording.states.items()})
                    recording_segments[0].base = _present(plant)
                before = plant.snapshot()
                with Rollout(plant, 1) as pool:
                    for last, item in pairwise(recording_segments):
                        commands = recording.commands[None, last.first : item.first]
                        runs = pool(commands, before, outputs=())
                        before = runs.final[0]
                        plant.restore(before)
                        observed = {name: rows[item.first] for name, rows in recording.states.items() if name in MOVING}
                        _place(plant, observed)
                        item.base = _present(plant)
                        before = plant.snapshot()
        finally:
            self._workers.put(worker)

    def _predict_case(self, case: Case) -> list[dict[str, Array]]:
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
            plant = worker.plant(number, case.values[number])
        except RtmmsError:
            return [_nothing(recording, segment) for segment in self.segments if segment.recording == number]
        wanted = _outputs(recording, plant)
        numbered_segments = [(k, segment) for k, segment in enumerate(self.segments) if segment.recording == number]
        longest = max(entry.last - entry.first for _, entry in numbered_segments)
        commands = np.stack(
            [_padded(recording.commands[entry.first : entry.last], longest) for _, entry in numbered_segments]
        )
        initial = [self._start(plant, recording, entry, case.offsets[k]) for k, entry in numbered_segments]
        with Rollout(plant, 1) as pool:
            runs = pool(commands, initial, outputs=wanted)
        time = recording.dt * np.arange(1, longest + 1)
        result = []
        for row, (_, item) in enumerate(numbered_segments):
            steps = item.last - item.first
            outputs = {name: values[row, :steps] for name, values in runs.outputs.items()}
            motion = np.concatenate([outputs[name] for name in MOVING], axis=1) if set(MOVING) <= set(outputs) else None
            predicted = {}
            for series in recording.series:
                if series.feature is not None:
                    samples = {name: outputs[name].reshape(steps, -1) for name in series.feature.outputs}
                    predicted[series.channel] = series.feature.of(time[:steps], series.feature.signal(samples))[0][
                        None, :
                    ]
                elif series.instrument is None:
                    predicted[series.channel] = outputs[series.channel].reshape(steps, series.width)
                else:
                    moved = np.zeros((steps, 13)) if motion is None else motion
                    predicted[series.channel] = read_along(series.instrument, moved, outputs, plant, recording.dt)
            result.append(predicted)
        return result

    def refusal(self, case: Case) -> str:
        """Return why the model of one of the recordings cannot be built.

        Parameters
        ----------
        case : Case
            Parameters.

        Returns
        -------
        str
            The reason; '' where all can be built.
        """
        worker = self._workers.get()
        try:
            for number, values in enumerate(case.values):
                if number == 0 or values != case.values[0]:
                    worker.plant(number, values)
        except RtmmsError as fault:
            return str(fault)
        finally:
            self._workers.put(worker)
        return ""

    def failures(self, case: Case) -> list[str]:
        """Return the recordings in which the model fails, and why.

        Parameters
        ----------
        case : Case
            Parameters and first states.

        Returns
        -------
        list[str]
            'NAME: reason' of each.
        """
        worker, result = self._workers.get(), list[str]()
        try:
            for number, recording in enumerate(self.recordings):
                try:
                    plant = worker.plant(number, case.values[number])
                except RtmmsError as fault:
                    result.append(f"{recording.name}: {fault}")
                    continue
                for k, segment in enumerate(self.segments):
                    if segment.recording != number:
                        continue
                    start = self._start(plant, recording, segment, case.offsets[k])
                    with Rollout(plant, 1) as pool:
                        runs = pool(recording.commands[None, segment.first : segment.last], start, outputs=())
                    if runs.status[0]:
                        result.append(f"{recording.name}: {runs.reason(0)}")
                        break
        finally:
            self._workers.put(worker)
        return result

    def _start(self, plant: Plant, recording: Recording, segment: Segment, offset: Array) -> bytes:
        if segment.base is None:
            plant.reset(recording.seed)
        else:
            assert isinstance(plant, HasFork)
            plant.put(segment.base[0].copy(), segment.base[1])
        if offset.any():
            _shift(plant, offset)
        return plant.snapshot()

    def _warm(self, plant: Plant, recording: Recording) -> None:
        with Rollout(plant, 1) as pool:
            pool(recording.commands[None, :2], outputs=_outputs(recording, plant))


def _outputs(recording: Recording, plant: Plant) -> tuple[str, ...]:
    """Return the plant's outputs that predictions are made from."""
    names = [
        name for item in recording.series for name in (
            item.feature.outputs if item.feature is not None else (item.channel,) if item.instrument is None
            else (item.instrument.of,)
        )
    ]  # fmt: skip
    body = any(item.instrument is not None and not item.instrument.of for item in recording.series)
    return tuple(dict.fromkeys([*(MOVING if body else ()), *(name for name in names if name)]))


def _nothing(recording: Recording, segment: Segment) -> dict[str, Array]:
    return {
        series.channel: np.full((segment.last - segment.first if series.feature is None else 1, series.width), np.nan)
        for series in recording.series
    }


def _padded(commands: Array, length: int) -> Array:
    return np.concatenate([commands, np.repeat(commands[-1:], length - len(commands), axis=0)])


def _present(plant: Plant) -> tuple[Array, int]:
    assert isinstance(plant, HasFork)
    return plant.present()


def _place(plant: Plant, observed: Mapping[str, Array]) -> None:
    """Place the plant at the measured pose and twist, as far as they are known and possible."""
    values = {name: value for name, value in observed.items() if np.isfinite(value).all()}
    if "quaternion" in values:
        values["quaternion"] = values["quaternion"] / np.linalg.norm(values["quaternion"])
    pose = {name: value for name, value in values.items() if name in MOVING}
    for subset in (values, pose):
        try:
            if subset:
                plant.place(**subset)  # type: ignore[attr-defined]
            return
        except RtmmsError:
            continue


def can_be_placed(plant: Plant) -> bool:
    """Return whether a plant's pose and twist can be changed.

    Parameters
    ----------
    plant : Plant
        The plant.

    Returns
    -------
    bool
        False where it has no `place`, no fork or no complete pose and twist.
    """
    if not isinstance(plant, HasFork) or not hasattr(plant, "place"):
        return False
    outputs = plant.observe()
    if not set(MOVING) <= outputs.keys():
        return False
    try:
        plant.place(**{name: outputs[name] for name in MOVING})
    except RtmmsError:
        return False
    return True


def free_start(plant: Plant, commands: Array | None = None) -> FirstState:
    """Return the coordinates of a plant's first state that can be changed.

    Coordinates that the mechanism holds cannot: a pose or twist that contacts exclude, and a joint whose motion is
    imposed. A joint whose rate is commanded (JointSpeed) has a start of its own.

    Parameters
    ----------
    plant : Plant
        The plant; it is at its reset afterwards.
    commands : Array | None, optional
        (steps, n_actuators) of the recording: they show the directions in which the base moves where contacts hold it.

    Returns
    -------
    FirstState
        Names of the coordinates, and whether each can be changed.
    """
    free = not isinstance(plant, HasCoordinates) or plant.coordinates().pose >= 0
    plant.reset()
    outputs = plant.observe()
    base = _movable_base(plant, commands) if free and can_be_placed(plant) else (False,) * 12
    plant.reset()
    if not {"joint_position", "joint_velocity"} <= outputs.keys():
        return FirstState(start_names(()), base, known=False)
    before, position = plant.snapshot(), np.ravel(outputs["joint_position"])
    joints = []
    for joint in range(len(position)):
        movable = False
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
                movable = True
                break
        joints.append(movable)
    names = tuple(getattr(getattr(plant, "model", None), "joint_names", ()))
    names = names if len(names) == len(position) else ("",) * len(position)
    return FirstState(start_names(names), (*base, *joints, *joints), known=False)


def _movable_base(plant: Plant, commands: Array | None) -> tuple[bool, ...]:
    """Return which of the 12 coordinates of pose and twist can be changed.

    The plant is at its reset, and stays there.

    Notes
    -----
    Contacts restrict the twist: the twists that `place` reaches from the unit twists span the free ones. The pose can
    move in the Lie algebra that these twists generate, with those of a run. A wheel cannot slide, but gets to its side
    all the same; heave, roll and pitch of a planar robot belong to no such motion.
    """
    if not set(MOVING) <= plant.observe().keys():
        return (True,) * 12
    before, twists, movable = plant.snapshot(), list[Array](), list[bool]()

    def twist() -> Array:
        outputs = plant.observe()
        return np.concatenate([outputs["velocity"], outputs["angular_velocity"]])

    present_twist = twist()
    for k in range(6):
        moved = present_twist.copy()
        moved[k] += MOVE
        try:
            plant.place(velocity=moved[:3], angular_velocity=moved[3:])  # type: ignore[attr-defined]
            reached = (twist() - present_twist) / MOVE
        except (RtmmsError, TypeError, AttributeError):
            reached = np.zeros(6)
        finally:
            plant.restore(before)
        movable.append(bool(reached[k] > 0.5))
        twists.append(reached)
    if all(movable):
        return (True,) * 12
    if commands is not None:
        with Rollout(plant, 1) as pool:
            runs = pool(commands[None, :PROBED], outputs=("velocity", "angular_velocity"))
        rows = np.concatenate([runs.outputs["velocity"][0], runs.outputs["angular_velocity"][0]], axis=1)
        twists += list(rows[np.isfinite(rows).all(axis=1)])
    closure = _algebra(np.array(twists))
    pose = tuple(bool(np.linalg.norm(closure[k]) > 1e-6) for k in range(6)) if closure.size else (True,) * 6
    return (*pose, *movable)


PROBED = 2000
"""Steps of a recording that show the directions in which a base that contacts hold moves."""


def _algebra(twists: Array) -> Array:
    """Return (6, d) an orthonormal basis of the Lie algebra that twists (k, 6) generate; v and w in body axes."""
    basis = _span(twists)
    while True:
        more = [
            np.concatenate([np.cross(a[3:], b[:3]) - np.cross(b[3:], a[:3]), np.cross(a[3:], b[3:])])
            for a in basis.T for b in basis.T
        ]  # fmt: skip
        larger = _span(np.concatenate([basis.T, np.array(more).reshape(-1, 6)]))
        if larger.shape[1] == basis.shape[1]:
            return basis
        basis = larger


def _span(rows: Array) -> Array:
    """Return (6, d) an orthonormal basis of the span of rows (k, 6)."""
    if not len(rows):
        return np.zeros((6, 0))
    _, sizes, vectors = np.linalg.svd(rows, full_matrices=False)
    is_movable = sizes > 1e-6 * max(float(sizes.max(initial=0.0)), 1e-9)
    result: Array = vectors[is_movable].T
    return result


def _shift(plant: Plant, offset: Array) -> None:
    """Shift pose and twist by an offset in the body's axes, and the joints' positions and velocities."""
    observed, joints = plant.observe(), offset[12:]
    if joints.any():
        count = np.size(observed["joint_position"])
        moves = np.concatenate([joints, np.zeros(2 * count - len(joints))])  # the last joints may be imposed
        plant.place(  # type: ignore[attr-defined]
            joint_position=np.ravel(observed["joint_position"]) + moves[:count],
            joint_velocity=np.ravel(observed["joint_velocity"]) + moves[count:],
        )
    if not offset[:12].any():
        return
    w, x, y, z = observed["quaternion"]
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
        position=observed["position"] + p + w * t + np.cross(u, t), quaternion=quaternion / np.linalg.norm(quaternion),
        velocity=observed["velocity"] + offset[6:9], angular_velocity=observed["angular_velocity"] + offset[9:12],
    )  # fmt: skip
