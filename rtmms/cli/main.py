"""The command `rtmms`: finds the requested command, loads that one alone, and turns faults into exit statuses.

0 done; 1 the run failed; 2 the words were wrong; 130 Ctrl-C or SIGTERM before the end. None of them shows a traceback.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from rtmms.base.errors import ModelError, RtmmsError, UnknownNameError, limit_reached, safe_text
from rtmms.base.processes import end_with_parent
from rtmms.base.terminal import print_text, stdout_is_closed
from rtmms.base.trust import named_on_command_line
from rtmms.cli.running.process import heeding_interrupts, heeding_termination

COMMANDS = {
    "run": "rtmms.cli.run:run",
    "serve": "rtmms.cli.run:serve",
    "control": "rtmms.cli.control:control",
    "bridge": "rtmms.cli.bridge:bridge",
    "status": "rtmms.cli.live:status",
    "set": "rtmms.cli.live:set_",
    "pause": "rtmms.cli.live:pause",
    "resume": "rtmms.cli.live:resume",
    "reset": "rtmms.cli.live:reset",
    "stop": "rtmms.cli.live:stop",
    "list": "rtmms.cli.list:list_",
    "replay": "rtmms.cli.log:replay",
    "log": "rtmms.cli.log:log",
    "plot": "rtmms.cli.log:plot",
    "view": "rtmms.cli.view:view",
    "movie": "rtmms.cli.view:movie",
    "compare": "rtmms.cli.compare:compare",
    "reproduce": "rtmms.cli.reproduce:reproduce",
    "trim": "rtmms.cli.trim:trim",
    "gaits": "rtmms.cli.gaits:gaits",
    "sweep": "rtmms.cli.sweep:sweep",
    "envelope": "rtmms.cli.envelope:envelope",
    "identify": "rtmms.cli.identify:identify",
    "new": "rtmms.cli.new:new",
    "export-fmu": "rtmms.cli.export_fmu:export_fmu",
    "bench": "rtmms.cli.bench:bench",
    "keys": "rtmms.cli.keys:keys",
    "doctor": "rtmms.cli.doctor:doctor",
}

EXAMPLES = {
    "run": "rtmms run manta --controller gait:amplitude_deg=30 --duration 10 --figure run.png",
    "serve": "rtmms serve manta --log run.mcap",
    "control": "rtmms control gait:frequency_hz=0.5",
    "bridge": "rtmms bridge udp:port=9000",
    "status": "rtmms status --json",
    "set": "rtmms set drag_coefficient=2.0 heading.heading_deg=90",
    "pause": "rtmms pause",
    "resume": "rtmms resume",
    "reset": "rtmms reset --seed 1",
    "stop": "rtmms stop",
    "list": "rtmms list manta",
    "replay": "rtmms replay run.mcap --check",
    "log": "rtmms log info run.mcap",
    "plot": "rtmms plot run.mcap -o run.svg",
    "view": "rtmms view run.mcap",
    "movie": "rtmms movie run.mcap -o run.mp4",
    "compare": "rtmms compare before.mcap after.mcap -o both.png",
    "reproduce": "rtmms reproduce qu2024 -o figures",
    "trim": "rtmms trim manta --speed 0.3 --turn-rate 5",
    "gaits": "rtmms gaits purcell --gait circle:a=1 -o figures",
    "envelope": "rtmms envelope examples/scenarios/hold_depth_and_heading.toml -o envelope",
    "sweep": "rtmms sweep manta --vary gait.frequency_hz=0.4:1.0:7 -o speeds.parquet --figure speeds.png",
    "identify": "rtmms identify run.mcap --fit drag_coefficient,joint_damping_n_m_s --write fitted.toml",
    "new": "rtmms new controller mine",
    "export-fmu": "rtmms export-fmu manta -o manta.fmu",
    "bench": "rtmms bench plant",
    "keys": "rtmms keys keys",
    "doctor": "rtmms doctor",
}
"""Example at the end of each command's help; of a group, of each of its commands."""


OLD_OPTIONS: Mapping[str, str] = {"--over": "--vary", "--tracking-from": "--tracking-start"}
"""Old names of options, which work for one minor version."""


def current_options(args: Sequence[str]) -> list[str]:
    """Return the arguments of a command with the present names of its options; an old name prints a warning.

    Parameters
    ----------
    args : Sequence[str]
        Arguments.

    Returns
    -------
    list[str]
        The same with present names.
    """
    result: list[str] = []
    for k, arg in enumerate(args):
        if arg == "--":
            return [*result, *args[k:]]
        option, equals, value = arg.partition("=")
        if option in OLD_OPTIONS:
            new = OLD_OPTIONS[option]
            print_text(f"rtmms: {option} is {new} now; the next version removes the old name", err=True)
            arg = new + equals + value
        result.append(arg)
    return result


class Lazy(click.Group):
    """Group whose commands are loaded when they are named: `rtmms control` must not load `rtmms run`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands.

        Parameters
        ----------
        ctx : click.Context
            Context of click.

        Returns
        -------
        list[str]
            In the order of the help.
        """
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command.

        Parameters
        ----------
        ctx : click.Context
            Context of click.
        cmd_name : str
            Name of the command.

        Returns
        -------
        click.Command | None
            None for an unknown name.
        """
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        if cmd_name in EXAMPLES:
            command.epilog = f"Example: {EXAMPLES[cmd_name]}"
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of the arguments; an unknown name raises an error with near misses.

        Parameters
        ----------
        ctx : click.Context
            Context of click.
        args : list[str]
            Arguments.

        Returns
        -------
        tuple[str | None, click.Command | None, list[str]]
            Name, command, and its own arguments.

        Raises
        ------
        UsageError
            There is no such command, or an option of one path is given twice.
        """
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise click.UsageError(str(UnknownNameError("command", args[0], COMMANDS)))
        name, command, remaining = super().resolve_command(ctx, args)
        remaining = current_options(remaining)
        if command is not None and not ctx.resilient_parsing:
            _refuse_repeated(click.Context(command, ctx, info_name=name, **command.context_settings), remaining)
        return name, command, remaining


def _refuse_repeated(ctx: click.Context, args: list[str]) -> None:
    """Raise UsageError for an option of one path that the arguments contain twice.

    The last value of an option counts, so that a script can override its defaults. But a second --log would silently
    leave the first one unwritten.
    """
    command = ctx.command
    _, remaining, order = command.make_parser(ctx).parse_args(list(args))
    for option, count in Counter(order).items():
        if count > 1 and isinstance(option, click.Option) and isinstance(option.type, click.Path):
            word = max(option.opts, key=len)
            raise click.UsageError(f"Option '{word}' is given {count} times; expected it once.", ctx)
    inner = command.get_command(ctx, remaining[0]) if isinstance(command, click.Group) and remaining else None
    if inner is not None:
        _refuse_repeated(click.Context(inner, ctx, info_name=remaining[0], **inner.context_settings), remaining[1:])


@click.group(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="rtmms", prog_name="rtmms")
def rtmms() -> None:
    """Real-time mobile multibody systems: robots with soft appendages, simulated on a deadline."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command; it always ends by SystemExit.

    Parameters
    ----------
    arguments : list[str] | None, optional
        Arguments; None: those of the process.
    """
    _open_descriptors()
    try:
        end_with_parent()
        _refuse_environment()
        _put_warnings_in_sentences()
    except ModelError as fault:
        print_text(f"rtmms: {fault}", err=True)
        sys.exit(2)
    status = _status(arguments)
    gc.freeze()  # there is nothing left to collect for: the interpreter's last collection would take 0.2 s after numba
    sys.exit(status)


NUMBAS_FILE = ".numba_config.yaml"
"""File that numba reads in the working directory."""


def _refuse_environment() -> None:
    """Refuse settings that change numba or matplotlib from outside.

    They are a file that numba reads in the working directory, which may be anybody's, and variables that one of the two
    cannot read. Both libraries read them at their import, wherever that is.

    Raises
    ------
    ModelError
        The message names the file or the variable.
    """
    if os.path.lexists(NUMBAS_FILE):
        raise ModelError(
            f"{NUMBAS_FILE}: expected no such file in the working directory, as it changes what numba "
            "compiles; remove it, and set environment variables (NUMBA_...) instead"
        )
    numbas = [name for name in os.environ if name.startswith("NUMBA_") and name != "NUMBA_CACHE_DIR"]
    for library, names in (("numba", numbas), ("matplotlib", [name for name in ("MPLBACKEND",) if name in os.environ])):
        if not names:
            continue
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                import_module(library)
            except ValueError as fault:
                raise ModelError(
                    f"{', '.join(names)}: the library {library} refuses this value: {fault!s:.80}"
                ) from None
        for item in caught:
            if str(item.message).startswith("Environment variable"):
                raise ModelError(f"{library}: {str(item.message).splitlines()[0]}")


def _put_warnings_in_sentences() -> None:
    """Print our own warnings as our other lines; those of libraries stay as Python has them."""
    default, package_folder = warnings.formatwarning, str(Path(__file__).parents[1])

    def formatted(message: Any, category: Any, filename: str, lineno: int, line: str | None = None) -> str:
        if filename.startswith(package_folder):
            return f"rtmms: {safe_text(message)}\n"
        return default(message, category, filename, lineno, line)

    warnings.formatwarning = formatted


def _open_descriptors() -> None:
    """Open missing standard streams (`2>&-`) to nowhere: else the next file that is opened is standard error."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            try:
                os.fstat(number)
            except OSError:
                os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
                if name == "stdout":
                    stdout_is_closed()
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115


def _indented(fault: Exception) -> str:
    """Return a fault's text; foreign text in it cannot begin a line of ours."""
    return str(fault).replace("\n", "\n    ")


def _status(arguments: list[str] | None) -> int:
    try:
        named = sys.argv[1:] if arguments is None else arguments
        with named_on_command_line(named, "--trust-log" in named), heeding_interrupts(), heeding_termination():
            result = rtmms.main(args=arguments, prog_name="rtmms", standalone_mode=False)
    except click.ClickException as fault:
        fault.show()
        return fault.exit_code
    except click.exceptions.Exit as done:
        return done.exit_code
    except (KeyboardInterrupt, click.Abort):
        return 130
    except ModelError as fault:
        print_text(f"rtmms: {_indented(fault)}", err=True)
        return 2
    except RtmmsError as fault:
        print_text(f"rtmms: {_indented(fault)}", err=True)
        return 1
    except BrokenPipeError:  # the reader of our standard output has gone, as with `| head`
        sys.stderr.close()
        return 0
    except (OSError, MemoryError) as fault:
        limit = limit_reached(fault)
        if not limit:
            raise
        print_text(f"rtmms: {limit}", err=True)
        return 1
    return result if isinstance(result, int) else 0


if __name__ == "__main__":
    try:
        main()
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # see rtmms_command
