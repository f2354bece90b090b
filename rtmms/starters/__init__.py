"""What `rtmms new` writes: one folder a kind, its files with $name, $title and $kind to be filled in."""
