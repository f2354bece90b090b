"""A bridge beside a plant that steps on, both in threads of the test; and bridges as a user starts them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rtmms.bridging.bridge import Bridge
from rtmms.bridging.runner import Runner
from rtmms.plant.protocol import Channel
from rtmms.wire.protocol.received_state import PlantInfo, State
from tests.wire.bench import PATIENCE_S, Host
from tests.wire.looping import Looping

ROOT = Path(__file__).resolve().parents[2]


def wait(done: Callable[[], Any]) -> Any:
    """Until done() is true; what it returned."""
    end = time.monotonic() + PATIENCE_S
    while not (result := done()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(1e-3)
    return result


class Bridged:
    """Runs a bridge in a thread against an exchange endpoint, until the plant ends or `stop` is called.

    reason   why it ended; fault: what it raised; messages: the lines that it logged
    """

    def __init__(self, bridge: Bridge, exchange: str, *, stay_s: float = 0.0, name: str = "bridge") -> None:
        self.bridge = bridge
        self.messages: list[str] = []
        self.reason = ""
        self.fault: Exception | None = None
        self.runner = Runner(bridge, exchange, name, None, self.messages.append)
        self._stay_s = stay_s
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Bridged:
        return self.start()

    def start(self) -> Bridged:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End it as a Ctrl-C would."""
        tick = self.bridge.tick

        def end(now: float) -> None:
            self.bridge.tick = tick  # type: ignore[method-assign]
            raise KeyboardInterrupt

        self.bridge.tick = end  # type: ignore[method-assign]
        self.join()

    def join(self) -> None:
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "the bridge did not end"

    @property
    def counts(self) -> Any:
        return self.runner.counts

    def _run(self) -> None:
        try:
            self.reason = self.runner.run(PATIENCE_S, self._stay_s)
        except KeyboardInterrupt:
            self.reason = "interrupted"
        except Exception as fault:
            self.fault = fault


class Companion:
    """A toy plant (four rods, some outputs; see tests/wire/bench.py) and a bridge beside it."""

    def __init__(self, bridge: Bridge, make_host: Callable[..., Host], *, stay_s: float = 0.0, **options: Any) -> None:
        host = make_host(token=None, **options)
        self.commands: list[list[float]] = []
        """The command of each step, which stays when the next one has replaced it."""
        step = host.plant.step

        def noted(command: Any) -> None:
            self.commands.append([float(value) for value in command])
            step(command)

        host.plant.step = noted  # type: ignore[method-assign]
        self.running = Looping(host)
        self.bridged = Bridged(bridge, self.running.host.exchange, stay_s=stay_s)

    @property
    def command(self) -> list[float]:
        return [float(value) for value in self.running.host.command]

    def drove(self, value: float, since: int = 0) -> bool:
        """There was a step with it in the first actuator, since that one."""
        return any(command[0] == value for command in self.commands[since:])

    def __enter__(self) -> Companion:
        self.running.__enter__()
        self.bridged.__enter__()
        return self

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        self.running.end()
        self.bridged.stop() if self.bridged._stay_s else self.bridged.join()
        if error is not None:
            error.add_note(f"the bridge logged {self.bridged.messages} and {self.bridged.counts.line()}")
            if self.bridged.fault is not None:
                raise self.bridged.fault  # most likely why the test failed


def plant_info(*outputs: Channel, actuators: tuple[Channel, ...] = (), robot: str = "toy") -> PlantInfo:
    """A plant as its welcome would describe it."""
    return PlantInfo(robot, 1e-3, "realtime", 1e-3, 5e-4, actuators, outputs)


def state(info: PlantInfo, step: int = 0, **outputs: Any) -> State:
    """A state as it would come over the wire."""
    return State({"step": step, "timestamp": step * info.dt, "outputs": outputs}, info)
