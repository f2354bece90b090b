"""Run the command `rtmms` as `python -m rtmms`; it takes nothing from the working directory either."""

import os
import signal
import sys

if not sys.flags.safe_path and sys.path[0] in ("", os.getcwd()):
    del sys.path[0]

from rtmms.cli.main import main

if __name__ == "__main__":
    try:
        main()
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # see rtmms_command
