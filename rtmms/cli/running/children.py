"""Processes that a run starts, controllers, bridges and the display: start, admission, cores, end."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from rtmms.base.errors import RtmmsError
from rtmms.base.processes import start_python
from rtmms.base.trust import peer_name, plugin_name, split_word
from rtmms.bridging.counters import read_line
from rtmms.bridging.untrusted import DRIVES
from rtmms.wire.peer.core_affinity import MAY_MOVE

if TYPE_CHECKING:
    from subprocess import Popen

    from rtmms.loop.machine import Readiness
    from rtmms.wire.plant.server import Server


MAX_OUTPUT_BYTES = 4096


_SECRET = re.compile(r"RTMMS_([A-Z0-9]+)_(?:PASSWORD|SECRET|TOKEN)")
_removed_secrets: dict[str, str] = {}


def environment_for(bridge: str = "") -> dict[str, str]:
    """Return the environment of a child.

    Secrets (RTMMS_BRIDGE_PASSWORD, ..._SECRET, ..._TOKEN) are the named bridge's alone. This process deletes them from
    its own environment, as it runs the plant, which may be a user's file.

    Parameters
    ----------
    bridge : str, default ''
        Name of the bridge; '' for another child.

    Returns
    -------
    dict[str, str]
        Variables.
    """
    for name in [name for name in os.environ if _SECRET.fullmatch(name)]:
        _removed_secrets[name] = os.environ.pop(name)
    secrets = {name: value for name, value in _removed_secrets.items() if bridge and _owner(name) == bridge.upper()}
    return dict(os.environ) | secrets


def _owner(name: str) -> str:
    match = _SECRET.fullmatch(name)
    return "" if match is None else match[1]


def without_own_name(name: str, line: str) -> str:
    """Return a child's line without its command and its name, which the message about the child has already.

    Parameters
    ----------
    name : str
        Name of the child.
    line : str
        Its line.

    Returns
    -------
    str
        The rest of the line.
    """
    kind = name.partition(" ")[0]
    line = line.removeprefix("rtmms control: ").removeprefix("rtmms bridge: ")
    return re.sub(rf"^(?:{re.escape(kind)} '[^']*': )+", "", line)


class Child:
    """A process of a run.

    Parameters
    ----------
    name : str
        Name for messages, as 'controller gait'.
    peer : str
        Name in its hello; '' for a process that sends none.
    arguments : Sequence[str]
        Arguments of Python.
    output_file : IO[bytes] | None
        Its standard error and output together, a file without a name: an unread pipe would stop it.
    pass_fds : Sequence[int], default ()
        File descriptors that it inherits.
    environment : Mapping[str, str] | None, optional
        Its environment; None: that of `environment_for`.

    Attributes
    ----------
    crash : str
        How it ended, where it failed and `death` found it; '' else.
    """

    def __init__(
        self, name: str, peer: str, arguments: Sequence[str], *, output_file: IO[bytes] | None,
        pass_fds: Sequence[int] = (), environment: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.name, self.peer, self.output_file = name, peer, output_file
        self.reported, self.crash = False, ""
        child_environment = {**(environment_for() if environment is None else environment), "RTMMS_CHILD": "1"}
        with _deaf_to_interrupts():
            self.process = start_python(
                arguments, child_environment, stdin=subprocess.DEVNULL, stderr=output_file, pass_fds=tuple(pass_fds),
                stdout=output_file if output_file is not None else subprocess.DEVNULL,
            )  # fmt: skip

    def death(self) -> str:
        """Return a sentence, once, when the process has failed.

        Returns
        -------
        str
            '' else.
        """
        status = self.process.poll()
        if status is None or self.reported:
            return ""
        self.reported = True
        self.crash = "" if status == 0 else self.obituary(status)
        return self.crash

    def obituary(self, status: int) -> str:
        """Return how the process ended, with its last line where it ended by itself.

        Parameters
        ----------
        status : int
            Its exit status.

        Returns
        -------
        str
            A sentence.
        """
        if status < 0:
            return f"{self.name} was ended by {signal.Signals(-status).name}"
        last = without_own_name(self.name, self.last_line())
        return f"{self.name} ended with exit status {status}" + (f": {last}" if last else "")

    def compiling(self) -> bool:
        """Return whether it reported that it compiles (rtmms.base.jit.compile_progress), and not yet that it is done.

        Returns
        -------
        bool
            True while it compiles.
        """
        lines = self.last_lines()
        begun, done = (sum(line.startswith(f"rtmms: {word} ") for line in lines) for word in ("compiling", "compiled"))
        return begun > done

    def last_line(self) -> str:
        """Return the last line that it wrote.

        Returns
        -------
        str
            '' for none.
        """
        lines = self.last_lines()
        return lines[-1].strip() if lines else ""

    def last_lines(self) -> list[str]:
        """Return the last lines that it wrote.

        Returns
        -------
        list[str]
            Without empty ones.
        """
        if self.output_file is None or self.output_file.closed:
            return []
        at = max(0, os.fstat(self.output_file.fileno()).st_size - MAX_OUTPUT_BYTES)
        if hasattr(os, "pread"):  # it may still be writing, and shares our place in the file
            tail = os.pread(self.output_file.fileno(), MAX_OUTPUT_BYTES, at)
        else:
            self.output_file.seek(at)
            tail = self.output_file.read(MAX_OUTPUT_BYTES)
        return [line for line in tail.decode(errors="replace").splitlines() if line.strip()]


@contextlib.contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Block SIGINT while a process starts, so that the run alone handles Ctrl-C; a pending one arrives afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Children:
    """All processes of a run.

    Parameters
    ----------
    may_move : bool, default False
        Controllers may leave the core on which they are placed (rtmms.wire.peer.client).
    """

    def __init__(self, may_move: bool = False) -> None:
        self._may_move = may_move
        self.all: list[Child] = []
        self.bridges: list[Child] = []
        self.bridge_counts: dict[str, dict[str, Any] | None] = {}
        self.unmet: list[str] = []

    def start_controller(self, word: str, exchange: str, keys: Path | None = None) -> Child:
        """Start `rtmms control WORD`.

        Parameters
        ----------
        word : str
            Word of the controller.
        exchange : str
            Exchange endpoint of the plant.
        keys : Path | None, optional
            Folder of keys where the plant requires them.

        Returns
        -------
        Child
            The process.
        """
        return self._start("controller", "control", word, exchange, keys)

    def start_bridge(self, word: str, exchange: str, keys: Path | None = None, *, secrets: bool = True) -> Child:
        """Start `rtmms bridge WORD`.

        Parameters
        ----------
        word : str
            Word of the bridge.
        exchange : str
            Exchange endpoint of the plant.
        keys : Path | None, optional
            Folder of keys where the plant requires them.
        secrets : bool, default True
            It gets its own secrets from the environment; not where a scenario, whose author may be anybody, sets their
            destination.

        Returns
        -------
        Child
            The process.
        """
        child = self._start("bridge", "bridge", word, exchange, keys, secrets=secrets)
        self.bridges.append(child)
        return child

    def _start(
        self, kind: str, command: str, word: str, exchange: str, keys: Path | None, *, secrets: bool = False
    ) -> Child:
        name = peer_name(word) if kind == "controller" else plugin_name(split_word(word)[0])
        same = sum(child.peer.split("-")[0] == name for child in self.all)
        peer = f"{name}-{same + 1}" if same else name
        output_file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - lives as long as the child
        arguments = ["-m", "rtmms.cli.main", command, word, "--exchange", exchange, "--name", peer]
        arguments += [] if keys is None else ["--keys", str(keys)]
        child_environment = environment_for(name if secrets else "") | ({MAY_MOVE: "1"} if self._may_move else {})
        child = Child(f"{kind} {peer}", peer, arguments, output_file=output_file, environment=child_environment)
        self.all.append(child)
        return child

    def watch(self, holders: Callable[[], set[str]]) -> tuple[list[str], list[str]]:
        """Return a sentence for each process that failed since the last call: claimants, and others.

        Parameters
        ----------
        holders : Callable[[], set[str]]
            Returns the names of the claimants.

        Returns
        -------
        tuple[list[str], list[str]]
            Sentences about claimants, and about others.
        """
        died = [(child.peer, sentence) for child in self.all if (sentence := child.death())]
        if not died:
            return [], []
        holding = holders()
        return [text for peer, text in died if peer in holding], [text for peer, text in died if peer not in holding]

    def who_may_drive(self) -> list[str]:
        """Return the bridges' reports of who may drive the robot through them (rtmms.bridging.untrusted).

        Returns
        -------
        list[str]
            A sentence for each bridge with such a report.
        """
        lines = [(child.name, line) for child in self.bridges for line in child.last_lines()]
        return [f"{name}: {line}" for name, line in lines if DRIVES in line]

    def failures(self, peers: Iterable[Mapping[str, Any]]) -> list[str]:
        """Return a sentence for each process that crashed, and each whose commands were all refused.

        Parameters
        ----------
        peers : Iterable[Mapping[str, Any]]
            Peers of the exchange's report.

        Returns
        -------
        list[str]
            Sentences.
        """
        died = {child.peer: child.crash for child in self.all if child.crash}
        mute = {
            peer["name"]: f"all {peer['rejected']} commands of {child.name} were refused: {peer['refusal']}"
            for peer in peers for child in self.all
            if child.peer == peer["name"] and peer["claim"] and peer["rejected"] and not peer["commands"]
        }  # fmt: skip
        return [*(mute | died).values()]

    def refused(self) -> str:
        """Return a sentence of a bridge that refused its words once it had the plant's description.

        Returns
        -------
        str
            '' for none.
        """
        wrong = (child for child in self.bridges if child.process.poll() == 2)
        return next((child.obituary(2) for child in wrong), "")

    def ended(self) -> list[Child]:
        """Return the processes that no longer run.

        Returns
        -------
        list[Child]
            However they ended.
        """
        return [child for child in self.all if child.process.poll() is not None]

    def close(self, patience_s: float = 1.0) -> list[str]:
        """Wait for the processes that end by themselves at the plant's bye; then terminate them, then kill them.

        The counts of the bridges are then in `bridge_counts`, None for one without a report. `unmet` has a sentence for
        each that ended with an error after the plant's bye, such as one whose partner never connected.

        Parameters
        ----------
        patience_s : float, default 1.0
            Wait, s. 0: there was no bye, the run ended early, and they may still be starting; nothing is reported.

        Returns
        -------
        list[str]
            A sentence for each killed process.
        """
        stuck: list[Child] = []
        for order, patience in (("", patience_s), ("terminate", 0.5), ("kill", 0.5)):
            alive = [child for child in self.all if child.process.poll() is None]
            if not alive:
                break
            for child in alive:
                if order:
                    getattr(child.process, order)()
            stuck = alive if order == "kill" and patience_s else []
            _wait(alive, patience)
        for child in self.all:  # a killed process ends; only its exit status may come late, on a busy machine
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.process.wait(KILLED_S)
        self.unmet = [child.obituary(1) for child in self.bridges if child.process.poll() == 1 and not child.reported]
        for child in self.bridges:
            self.bridge_counts[child.peer] = next(filter(None, map(read_line, reversed(child.last_lines()))), None)
        for child in self.all:
            if child.output_file is not None:
                child.output_file.close()
        return [f"{child.name} did not end when it was asked to, and was killed" for child in stuck]


KILLED_S = 10.0
"""Longest wait for the exit status of a killed process, s."""


def _wait(children: Sequence[Child], patience_s: float) -> None:
    until = time.monotonic() + patience_s
    while time.monotonic() < until and any(child.process.poll() is None for child in children):
        time.sleep(0.005)


# --- The wait for the processes that a run starts: step 0 is theirs, too.

ADMISSION_S = 10.0
"""Wait for a hello, s."""
STARVED_S = 50.0
"""Longer wait for a hello, s, by the time that its sender was ready to run without a core."""
COMPILING_S = 300.0
"""Longer wait for a hello, s, by the time that its sender compiles, if it reports that."""
STARVED_REPORT_S = 3.0


class StartError(RtmmsError):
    """Error of a run that could not begin.

    Parameters
    ----------
    text : str
        The message.
    status : int, default 1
        Exit status of the command.
    """

    def __init__(self, text: str, status: int = 1) -> None:
        super().__init__(text)
        self.status = status


def await_peers(
    server: Server, children: Children, for_claim: bool, report: Callable[[str], None],
    stopped: Callable[[], bool] = lambda: False,
) -> None:  # fmt: skip
    """Wait until every started process is admitted and warm, or the run is stopped.

    Parameters
    ----------
    server : Server
        The plant's server.
    children : Children
        The processes.
    for_claim : bool
        Also wait until a peer claims an actuator.
    report : Callable[[str], None]
        Receives the present wait.
    stopped : Callable[[], bool], optional
        Performs the requests that came meanwhile, and returns whether one of them stopped the run.

    Raises
    ------
    StartError
        A process ended, or sent no hello in time; the message names it.
    """
    expected = {child.peer for child in children.all}
    if expected:
        report("waiting for " + ", ".join(sorted(expected)))
    elif for_claim:
        report("waiting for a controller to claim an actuator")
    begun, announced = time.monotonic(), False
    latest, compiled = begun + COMPILING_S, True
    while True:
        server.serve(time.monotonic_ns() + 2_000_000)
        if stopped():
            return
        if expected <= server.admitted() and (not for_claim or bool(server.claimed.any())):
            return
        for child in children.ended():
            status = child.process.returncode
            raise StartError(child.obituary(status), 2 if status == 2 else 1)
        if expected and time.monotonic() > begun + ADMISSION_S:
            here = server.admitted()
            silent = [child for child in children.all if child.peer not in here]
            if any(child.compiling() for child in silent) and time.monotonic() < latest:
                begun = time.monotonic() - ADMISSION_S + 1.0  # look again in a second
                compiled = False
                continue
            if not compiled:
                begun, compiled = time.monotonic(), True
                continue
            names = ", ".join(child.name for child in silent)
            starved = max(waited_s(child.process.pid) for child in silent)
            if time.monotonic() > begun + ADMISSION_S + min(starved, STARVED_S):
                why = f"; it was ready to run for {starved:.1f} s and got no core" if starved > STARVED_REPORT_S else ""
                raise StartError(f"{names} sent no hello within {time.monotonic() - begun:.0f} s{why}")
            if not announced and starved > STARVED_REPORT_S:
                announced = True
                report(
                    f"waiting for {names}: ready to run for {starved:.1f} s without a core, which other processes have"
                )
            time.sleep(0.01)
        time.sleep(0.0005)


def waited_s(pid: int) -> float:
    """Return the time for which a process was ready to run and had no core, since its start.

    Parameters
    ----------
    pid : int
        Number of the process.

    Returns
    -------
    float
        s; 0 where the system does not report it.
    """
    try:
        return 1e-9 * int(Path(f"/proc/{pid}/schedstat").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0.0


# --- The processes of a run onto their cores and priorities.


def keep_off(processes: Iterable[Popen[bytes] | None], ready: Readiness) -> None:
    """Move new processes, which inherit the loop's core, to the other cores.

    Children load there, and observers and writers stay there.

    Parameters
    ----------
    processes : Iterable[Popen[bytes] | None]
        The processes.
    ready : Readiness
        Set-up of the machine; failures are noted in it.
    """
    from rtmms.loop.machine import pin

    for process in processes:
        if process is not None:
            failed = pin(process.pid, ready.cores.others)
            ready.failed.extend([failed] if failed else [])


def put_together(children: Iterable[Child], ready: Readiness) -> None:
    """Put the loop and a single controller of a lockstep run on one core.

    The two alternate, so that neither waits for another core to wake up, which takes five times as long as all the
    rest. Other threads of the controller may run anywhere.

    Parameters
    ----------
    children : Iterable[Child]
        The processes.
    ready : Readiness
        Set-up of the machine; failures are noted in it.
    """
    import os

    from rtmms.loop.machine import Cores, allowed_cores

    pids, cores = [child.process.pid for child in children], allowed_cores()
    if len(pids) != 1 or len(cores) < 2 or not hasattr(os, "sched_setaffinity"):
        return
    core = cores[-1]
    try:
        os.sched_setaffinity(pids[0], {core})
        os.sched_setaffinity(0, {core})
    except OSError as error:
        ready.failed.append(f"plant and controller on core {core}: {error.strerror}")
        return
    ready.cores, ready.affinity = Cores(core, (core,), tuple(c for c in cores if c != core)), [core]
    ready.done.append(f"plant and controller on core {core}")


def place_controllers(children: Iterable[Child], ready: Readiness, priority: str) -> None:
    """Move loaded, warm controllers to their core, with the priority of the run.

    Their priority is raised only where a number was requested, and favoured where the loop's is.

    Parameters
    ----------
    children : Iterable[Child]
        The controllers.
    ready : Readiness
        Set-up of the machine; failures are noted in it.
    priority : str
        Word of --priority.
    """
    from rtmms.loop.machine import CHILD_BELOW, favour_child, parse_priority, pin, raise_child, scheduling

    number, explicit = parse_priority(priority)
    for child in children:
        failed = pin(child.process.pid, ready.cores.controllers)
        if not explicit and ready.asked is not None:
            favour_child(child.process.pid)
        if not failed and explicit and ready.asked is not None and number is not None:
            failed = raise_child(child.process.pid, number - CHILD_BELOW)
        ready.failed.extend([failed] if failed else [])
        ready.children.append({"name": child.peer, **scheduling(child.process.pid)})
