"""How often compiled code asks for memory: `python -m rtmms_benchmarks.allocations` with NUMBA_NRT_STATS=1.

Within the kernels it never should. A call from Python into compiled code makes a small record for each array that it
hands over, whatever the code then does; the two are counted apart.
"""

from __future__ import annotations

import json
import sys


def main() -> int:
    """Print numba's allocations per step as JSON; it counts them only where the variable was set at the start."""
    import numpy as np
    from numba.core.runtime.nrt import rtsys

    from .stepping import compiled_loop, gait, load

    def allocations() -> int:
        return int(rtsys.get_allocation_stats().alloc)

    steps = 1000
    plant = load()
    command = np.full(4, 0.1)
    plant.step(command)
    before = allocations()
    for _ in range(steps):
        plant.step(command)
    called = allocations() - before

    run, one, many = compiled_loop(plant), gait(1e-3, 1), gait(1e-3, 1 + steps)
    run(one)
    before = allocations()
    run(one)
    between = allocations()
    run(many)
    within = (allocations() - between) - (between - before)
    print(json.dumps({"compiled": within / steps, "called": called / steps}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
