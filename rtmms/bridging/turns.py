"""One message at a time to a peer that answers each: again when no answer comes, and no answer taken for another's."""

from __future__ import annotations

LONGEST_S = 0.5
DOUBT_S = 1.0


class Turns:
    """What is asked of the peer, over a channel that may lose it.

    Without an answer the same goes out again, after `patience_s`, twice that, and so on, up to LONGEST_S apart. A peer
    that was merely slow answers each copy, and an answer that is left over would be taken for one to the next message,
    and all later ones be late by one. A peer that says what it answers is believed. With others a turn in which copies
    were sent is over when all of them are answered, or when nothing more has come for a while: for as long as it
    usually takes the peer, or has taken it since the last copy; and while nothing is known of it, for longer than its
    first answer took, up to DOUBT_S. (So a peer that takes longer than that at its first answer should say what it
    answers.) Patience follows the peer, by the turns in which nothing was lost: twice the longest time that it took,
    forgotten by a tenth a turn.
    """

    def __init__(self, least_s: float) -> None:
        self._least_s = self.patience_s = least_s
        self.message = b""
        """That is to be answered; b'' for none."""
        self._copies = 0  # under way, as far as is known
        self._answered = self._known = False
        self._begun = self._sent = self._again = self._gap = self._took = 0.0

    def ask(self, message: bytes, now: float) -> None:
        """It was sent now."""
        left = max(0, self._copies) if self.message else 0  # of one that was never answered: the peer may yet do it
        self.message, self._copies, self._answered = message, left + 1, False
        self._begun = self._sent = now
        self._gap = self.patience_s
        self._again = now + self._gap

    def due(self, now: float) -> bytes:
        """The message if it is to be sent again now, else b''. Counts it as sent."""
        if not self.message or self._answered or now < self._again:
            return b""
        self._copies += 1
        self._gap = min(2.0 * self._gap, max(LONGEST_S, self.patience_s))
        self._sent, self._again = now, now + self._gap
        return self.message

    def answered(self, now: float, surely: bool = False) -> bool:
        """An answer has come; True when the turn is over with it. surely: the peer says that it is to this message."""
        if not self.message:
            return True
        self._copies -= 1
        if not self._answered:
            self._answered, self._took = True, now - self._begun
        quiet = max(self.patience_s, 1.5 * (now - self._sent))
        self._again = now + (quiet if self._known else max(quiet, min(1.5 * self._took, DOUBT_S)))
        if self._copies <= 0:
            self._known = True
            self.patience_s = max(self._least_s, 2.0 * self._took, 0.9 * self.patience_s)
        if self._copies > 0 and not surely:
            return False
        self.message = b""
        return True

    def settled(self, now: float) -> bool:
        """True once when a turn is over because no more answers come to the copies."""
        if not (self.message and self._answered and now >= self._again):
            return False
        self.patience_s = max(self._least_s, 0.9 * self.patience_s)
        self.message = b""
        return True

    def forget(self) -> None:
        """There is nobody who could answer."""
        self.message = b""
