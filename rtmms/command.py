"""The command `rtmms` before anything of it is loaded.

Ctrl-C ends it in silence, whatever is being imported then. Installed as the module rtmms_command, outside the
package, because importing the package is what takes the time.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any


def main() -> None:
    """Run the command; it always ends by SystemExit.

    Raises
    ------
    SystemExit
        Always, with the command's exit status; 130 after Ctrl-C.
    """
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:
        signal.signal(signal.SIGINT, _end)
    from rtmms.cli.main import main as begin

    try:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        begin()
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        # the command is done: Python's own end takes a while, in which it restores the system's handler, and a second
        # Ctrl-C would make a finished run one that a signal killed
        if ours:
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def _end(*_: Any) -> None:
    """End the process at once with status 130, as Ctrl-C does in a shell."""
    os._exit(130)
