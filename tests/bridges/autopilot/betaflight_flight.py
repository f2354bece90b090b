"""A flight of the genuine Betaflight, in a network of its own because its ports are fixed: the program of the test.

python -m tests.bridges.autopilot.betaflight_flight FIRMWARE FOLDER MODE HOLD_S FLIGHTS

Prints a JSON object: heights in the last hold, m, the heading after the turn, deg, the plant's report, and the error of
a flight that did not end. Of two flights the first ends with `kill -9` of the firmware in the hold.
"""

from __future__ import annotations

import json
import runpy
import socket
import subprocess
import sys
import threading
from pathlib import Path

from tests.wire.bench import PATIENCE_S

ROOT = Path(__file__).resolve().parents[3]
LIMIT_S = 420.0
"""Two flights take 75 s of wall time on a machine that keeps up."""
STARTS = 20
"""A firmware whose first cycle is late, as on a busy machine, never flies: another one is started."""


class Firmware:
    """The firmware's process, which is started again when the bridge asks for it."""

    def __init__(self, program: str, folder: Path) -> None:
        self._program, self._folder = program, folder
        self._starts = 0
        self.start()

    def start(self) -> None:
        self._starts += 1
        if self._starts > STARTS:
            raise SystemExit("the firmware sent no motors, however often it was started")
        self.process = subprocess.Popen(
            [self._program], cwd=self._folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def configure(self, lines: list[str]) -> None:
        """Type lines into its CLI, and wait until it has ended, as it does after `save`."""
        while True:
            try:
                line = socket.create_connection(("127.0.0.1", 5761), timeout=PATIENCE_S)
                break
            except ConnectionRefusedError:
                if self.process.poll() is not None:
                    raise
        with line:
            line.sendall(b"#")
            for text in [*lines, ""]:
                answer = b""
                while not answer.endswith(b"# "):
                    received = line.recv(4096)
                    if not received:
                        return
                    answer += received
                if b"ERROR" in answer or b"INVALID" in answer:
                    raise SystemExit(f"the firmware refused a setting: {answer.decode()}")
                line.sendall(text.encode() + b"\n")


def main(program: str, place: str, mode: str, hold_s: float, flights: int) -> None:
    folder = Path(place)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    firmware = Firmware(program, folder)
    settings = (ROOT / "bridges/examples/betaflight_quadrotor.txt").read_text().splitlines()
    firmware.configure([line for line in settings if line and not line.startswith("#")])
    firmware.kill()
    plant = subprocess.Popen(
        [sys.executable, "-m", "rtmms.cli.main", "run", "quadrotor", "--controller", "none",
         "--set", "wind_x_m_s=0.5", "--mode", mode, "--duration", "3600", "--json", "--bridge",
         "betaflight:rc_listen=9005"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert plant.stderr is not None
    lines: list[str] = []

    def watch() -> None:
        for line in plant.stderr or ():
            lines.append(line)
            if "restart Betaflight" in line:
                firmware.kill()
                firmware.start()

    firmware.start()
    threading.Thread(target=watch, daemon=True).start()
    killed: list[str] = []

    def on_phase(phase: str) -> None:
        print(phase, file=sys.stderr, flush=True)
        if phase == "holds" and len(killed) < flights - 1:
            killed.append(phase)
            firmware.kill()
            firmware.start()

    heights, heading, error = [], 0.0, ""
    try:
        pilot = runpy.run_path(str(ROOT / "examples/quadrotor/betaflight_pilot.py"))
        heights, heading = pilot["fly"](hold_s=hold_s, on_phase=on_phase, limit_s=LIMIT_S)
    except SystemExit as failure:
        error = f"{failure}\n{''.join(lines)}"
    except BaseException:
        print("".join(lines), file=sys.stderr)
        raise
    finally:
        plant.terminate()
        report, _ = plant.communicate(timeout=PATIENCE_S)
        firmware.kill()
    flight = {"heights_m": heights, "heading_deg": heading, "error": error, "report": json.loads(report)}
    print(json.dumps(flight))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]), int(sys.argv[5]))
