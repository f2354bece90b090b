"""What a run tells while it goes: its phase and messages, to the display or, without one, to standard error."""

from __future__ import annotations

import sys

from rtmms.cli.running.board import Board

MOST_MESSAGES = 50


class Teller:
    """phase   what the run is about;  messages  those that the display shows

    silent  there is no display
    """

    def __init__(self, *, silent: bool) -> None:
        self.board, self.silent, self.phase = Board(), silent, "starting"
        self.messages: list[str] = []

    def tell(self, phase: str, message: str = "") -> None:
        """Another phase, '' for the same, and a message."""
        self.phase = phase or self.phase
        self.note([message] if message else [])
        self.board.write({"phase": self.phase, "messages": self.messages})

    def note(self, messages: list[str]) -> None:
        """Messages for the display, bounded: a fault that repeats must not fill the memory. Without one, they are
        written here, but within the run."""
        self.messages.extend(messages[: MOST_MESSAGES - len(self.messages)])
        if self.silent and self.phase != "running":
            self.write_messages()

    def write_messages(self) -> None:
        """All there are, to standard error."""
        for message in self.messages:
            print(message, file=sys.stderr)
        self.messages.clear()
