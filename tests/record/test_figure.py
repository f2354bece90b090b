"""What a figure gets from a log is what it gets from the run itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rtmms.loop.trace import Recent, Trace
from rtmms.record.log import open_log
from rtmms.record.rerun import SAMPLE_S, gather
from tests.pendulum import Pendulum
from tests.record.runs import loop_of, recorder


@pytest.mark.full
def test_samples_last_seconds_and_timings_are_those_of_the_run(tmp_path: Path) -> None:
    plant, path, steps = Pendulum(), tmp_path / "run.mcap", 900
    trace = Trace(plant.outputs, plant.trace_outputs, plant.dt, None, apart_s=SAMPLE_S)
    recent = Recent(plant.outputs, plant.recent_outputs, plant.dt)
    stored = recorder(path, plant)
    loop = loop_of(plant, stored, steps)
    loop.view.observers = (trace, recent, stored)
    try:
        outcome = loop.run()
        stored.finish({"ended": outcome.ended, "message": "", "steps": steps}, None)
    finally:
        stored.close()
    result = gather(open_log(path), Pendulum())
    for item, other in ((trace, result.trace), (recent, result.recent)):
        assert np.array_equal(item.read()[0], other.read()[0])
        for name, values in item.read()[1].items():
            assert values.tobytes() == other.read()[1][name].tobytes()
    assert result.statistics.counters() == loop.statistics.counters()
    assert result.statistics.timing_us()["plant"]["max"] == loop.statistics.timing_us()["plant"]["max"]
