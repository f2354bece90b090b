"""The processes that a run starts: controllers, bridges and the display. They live and die with it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from rtmms.bridging.counters import read_line
from rtmms.user_file import called, split_word

_PR_SET_PDEATHSIG = 1
LAST_WORDS = 4096


class Child:
    """One process.

    name   for messages, as 'controller gait'
    peer   name it says hello by; '' for one that does not
    words  its standard error and output together, a file without a name: a pipe nobody reads would stop it
    """

    def __init__(
        self, name: str, peer: str, arguments: Sequence[str], *, words: IO[bytes] | None,
        pass_fds: Sequence[int] = (),
    ) -> None:  # fmt: skip
        self.name, self.peer, self.words = name, peer, words
        self.told = False
        family = {"RTMMS_CHILD": "1", "RTMMS_PARENT": str(os.getpid())}
        with _deaf_to_interrupts():
            self.process = subprocess.Popen(
                [sys.executable, "-P", *arguments],  # what lies in the working directory is not imported
                stdin=subprocess.DEVNULL, stdout=words if words is not None else subprocess.DEVNULL, stderr=words,
                env=os.environ | family, pass_fds=tuple(pass_fds),
            )  # fmt: skip

    def death(self) -> str:
        """A sentence, once, when it has ended otherwise than by itself and well; '' else."""
        status = self.process.poll()
        if status is None or self.told:
            return ""
        self.told = True
        return "" if status == 0 else self.obituary(status)

    def obituary(self, status: int) -> str:
        """What it was and how it ended; if by itself, then with the last line it wrote."""
        if status < 0:
            return f"{self.name} was ended by {signal.Signals(-status).name}"
        last = self.last_line()
        return f"{self.name} ended with exit status {status}" + (f": {last}" if last else "")

    def last_line(self) -> str:
        """The last line that it wrote, '' for none."""
        lines = self.last_lines()
        return lines[-1].strip() if lines else ""

    def last_lines(self) -> list[str]:
        """The last lines that it wrote."""
        if self.words is None or self.words.closed:
            return []
        at = max(0, os.fstat(self.words.fileno()).st_size - LAST_WORDS)
        if hasattr(os, "pread"):  # it may still be writing, and shares our place in the file
            tail = os.pread(self.words.fileno(), LAST_WORDS, at)
        else:
            self.words.seek(at)
            tail = self.words.read(LAST_WORDS)
        return [line for line in tail.decode(errors="replace").splitlines() if line.strip()]


@contextlib.contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Ctrl-C is the run's to handle. A process started in here keeps SIGINT blocked; to us it is given afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def settle() -> None:
    """In a child, first of all: end when the run ends, however it ends. Does nothing in any other process."""
    parent = os.environ.get("RTMMS_PARENT", "")
    if not parent or sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != int(parent):  # it ended before we asked
        sys.exit(1)


class Children:
    """All processes of a run."""

    def __init__(self) -> None:
        self.all: list[Child] = []
        self.bridges: list[Child] = []
        self.bridge_counts: dict[str, dict[str, Any] | None] = {}

    def start_controller(self, word: str, exchange: str, keys: Path | None = None) -> Child:
        """`rtmms control WORD` against the exchange endpoint, with a folder of keys where the plant asks for them."""
        return self._start("controller", "control", word, exchange, keys)

    def start_bridge(self, word: str, exchange: str, keys: Path | None = None) -> Child:
        """`rtmms bridge WORD`, likewise."""
        child = self._start("bridge", "bridge", word, exchange, keys)
        self.bridges.append(child)
        return child

    def _start(self, kind: str, command: str, word: str, exchange: str, keys: Path | None) -> Child:
        name = called(split_word(word)[0])
        same = sum(child.peer.split("-")[0] == name for child in self.all)
        peer = f"{name}-{same + 1}" if same else name
        words = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - lives as long as the child
        arguments = ["-m", "rtmms.cli.main", command, word, "--exchange", exchange, "--name", peer]
        arguments += [] if keys is None else ["--keys", str(keys)]
        child = Child(f"{kind} {peer}", peer, arguments, words=words)
        self.all.append(child)
        return child

    def watch(self, holders: Callable[[], set[str]]) -> tuple[list[str], list[str]]:
        """A sentence for each that died since the last call: those that held an actuator, and the others.

        holders   the names of the peers that hold one
        """
        died = [(child.peer, sentence) for child in self.all if (sentence := child.death())]
        if not died:
            return [], []
        holding = holders()
        return [text for peer, text in died if peer in holding], [text for peer, text in died if peer not in holding]

    def refused(self) -> str:
        """A sentence of a bridge whose words were wrong, as it found when it knew the plant; '' for none."""
        wrong = (child for child in self.bridges if child.process.poll() == 2)
        return next((child.obituary(2) for child in wrong), "")

    def ended(self) -> list[Child]:
        """Those that are no longer running, however they ended."""
        return [child for child in self.all if child.process.poll() is not None]

    def close(self, patience_s: float = 1.0) -> list[str]:
        """Wait for those that end by themselves at the plant's bye; then ask, then make them: a sentence for each.

        What the bridges counted is then in `bridge_counts`, None for one that could not tell."""
        stuck: list[Child] = []
        for order, patience in (("", patience_s), ("terminate", 0.5), ("kill", 0.5)):
            alive = [child for child in self.all if child.process.poll() is None]
            if not alive:
                break
            for child in alive:
                if order:
                    getattr(child.process, order)()
            stuck = alive if order == "kill" else []
            _wait(alive, patience)
        for child in self.bridges:
            self.bridge_counts[child.peer] = next(filter(None, map(read_line, reversed(child.last_lines()))), None)
        for child in self.all:
            if child.words is not None:
                child.words.close()
        return [f"{child.name} did not end when it was asked to, and was killed" for child in stuck]


def _wait(children: Sequence[Child], patience_s: float) -> None:
    until = time.monotonic() + patience_s
    while time.monotonic() < until and any(child.process.poll() is None for child in children):
        time.sleep(0.005)
