"""python -m rtmms: the command `rtmms`, which takes nothing from the working directory either."""

import os
import sys

if not sys.flags.safe_path and sys.path[0] in ("", os.getcwd()):
    del sys.path[0]

from rtmms.command import main

if __name__ == "__main__":
    main()
