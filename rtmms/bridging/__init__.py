"""What every bridge stands on: its base class, its loop, and the parts that bridges share. Loads no numpy."""
