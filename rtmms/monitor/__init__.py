"""How wrong the steps of a run are: measured on some of them, beside the plant, and judged. Knows no robot and no
loop; a plant offers a `Twin` (rtmms.plant), whoever steps it calls `Monitor.look`."""
