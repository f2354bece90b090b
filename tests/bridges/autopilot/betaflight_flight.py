"""A flight of the genuine Betaflight, in a network of its own because its ports are fixed: the program of the test.

python -m tests.bridges.autopilot.betaflight_flight FIRMWARE FOLDER MODE HOLD_S FLIGHTS

Prints a JSON object: heights in the last hold, m, the heading after the turn, deg, the plant's report, the error of a
flight that did not end, and the longest pause of this process, s, which the machine made. Of two flights the first ends
with `kill -9` of the firmware in the hold.

Each wait has an end. A program that hangs all the same prints its stacks and ends after END_S.
"""

from __future__ import annotations

import faulthandler
import json
import runpy
import socket
import subprocess
import sys
from pathlib import Path
from threading import Lock, Thread, Timer
from time import monotonic, sleep

ROOT = Path(__file__).resolve().parents[3]
LIMIT_S = 420.0
"""Two flights take 75 s of wall time on a machine that keeps up."""
ANSWER_S = 60.0
"""Longest wait for the firmware's CLI, and for the end of the plant."""
END_S = 900.0
STARTS = 20
"""A firmware whose first cycle is late, as on a busy machine, never flies: another one is started."""


class Firmware:
    """The firmware's process. The pilot's thread kills it in flight, and the plant's reader when the bridge asks."""

    def __init__(self, program: str, folder: Path) -> None:
        self._program, self._folder = program, folder
        self._starts, self._ended, self._lock = 0, False, Lock()
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        self._starts += 1
        return subprocess.Popen([self._program], cwd=self._folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def restart(self) -> bool:
        """Kill it and start another one; False if that was done too often."""
        with self._lock:
            if self._ended:
                return True
            self._kill()
            if self._starts < STARTS:
                self.process = self._start()
                return True
            return False

    def end(self) -> None:
        """Kill it, and start no other one."""
        with self._lock:
            self._ended = True
            self._kill()

    def _kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def configure(self, lines: list[str]) -> None:
        """Type lines into its CLI, and wait until it has ended, as it does after `save`."""
        end = monotonic() + ANSWER_S
        while True:
            try:
                line = socket.create_connection(("127.0.0.1", 5761), timeout=ANSWER_S)
                break
            except ConnectionRefusedError:
                if self.process.poll() is not None or monotonic() > end:
                    raise
                sleep(0.01)
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


class Pauses:
    """The longest time by which this process overslept: a yardstick for the machine."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            began = monotonic()
            sleep(0.01)
            self.longest_s = max(self.longest_s, monotonic() - began - 0.01)


def main(program: str, place: str, mode: str, hold_s: float, flights: int) -> None:
    faulthandler.dump_traceback_later(END_S, exit=True)
    folder = Path(place)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    firmware = Firmware(program, folder)
    settings = (ROOT / "bridges/examples/betaflight_quadrotor.txt").read_text().splitlines()
    firmware.configure([line for line in settings if line and not line.startswith("#")])
    report = folder / "report.json"
    with report.open("w") as stdout:
        plant = subprocess.Popen(
            [sys.executable, "-m", "rtmms.cli.main", "run", "quadrotor", "--controller", "none",
             "--set", "wind_x_m_s=0.5", "--mode", mode, "--duration", "3600", "--json", "--bridge",
             "betaflight:rc_listen=9005"],
            cwd=folder, stdout=stdout, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    lines: list[str] = []

    def watch() -> None:
        for line in plant.stderr or ():
            lines.append(line)
            if "restart Betaflight" in line and not firmware.restart():
                lines.append("the firmware sent no motors, however often it was started\n")
                plant.terminate()

    firmware.restart()
    reader = Thread(target=watch, daemon=True)
    reader.start()

    def stop() -> None:
        lines.append("the test ended the plant\n")
        plant.terminate()

    # the pilot looks at its clock when a state comes, so a plant that sends none needs another limit
    limit = Timer(LIMIT_S + ANSWER_S, stop)
    limit.daemon = True
    limit.start()
    pauses = Pauses()
    killed: list[str] = []

    def on_phase(phase: str) -> None:
        print(f"{monotonic():.1f} {phase}", file=sys.stderr, flush=True)
        if phase == "holds" and len(killed) < flights - 1:
            killed.append(phase)
            firmware.restart()

    heights, heading, error = [], 0.0, ""
    try:
        pilot = runpy.run_path(str(ROOT / "examples/quadrotor/betaflight_pilot.py"))
        heights, heading = pilot["fly"](hold_s=hold_s, on_phase=on_phase, limit_s=LIMIT_S)
    except SystemExit as failure:
        error = str(failure)
    finally:
        limit.cancel()
        plant.terminate()
        try:
            plant.wait(ANSWER_S)
        except subprocess.TimeoutExpired:
            lines.append(f"the plant did not end within {ANSWER_S:g} s\n")
            plant.kill()
        firmware.end()
        reader.join(ANSWER_S)
        print("".join(lines), file=sys.stderr, flush=True)
    if error:
        error += "\n" + "".join(lines)
    flight = {
        "heights_m": heights, "heading_deg": heading, "error": error, "longest_pause_s": pauses.longest_s,
        "report": json.loads(report.read_text()),
    }  # fmt: skip
    print(json.dumps(flight))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]), int(sys.argv[5]))
