"""The plant's side: what the loop sees as its Exchange, and who may drive it.

Every call is made by the loop's own thread, and none waits past the instant it is given."""
