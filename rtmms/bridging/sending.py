"""Messages to a peer: those that wait, the time of the next attempt, and one message at a time with its answer."""

from __future__ import annotations

from collections import deque
from time import monotonic
from typing import Generic, TypeVar

from rtmms.bridging.counters import Counters

T = TypeVar("T")


class Outbox(Generic[T]):
    """Queue of messages to a slow peer, which drops and counts its oldest entry when it is full.

    Parameters
    ----------
    limit : int
        Most messages.
    counts : Counters
        Counters of the bridge.

    Examples
    --------
    >>> counts = Counters()
    >>> outbox = Outbox(1, counts)
    >>> outbox.put("old"), outbox.put("new"), outbox.take(), counts["dropped"]
    (None, None, 'new', 1)
    """

    def __init__(self, limit: int, counts: Counters) -> None:
        self._waiting: deque[T] = deque()
        self._limit, self._counts = max(1, limit), counts

    def put(self, message: T) -> None:
        """Add a message.

        Parameters
        ----------
        message : T
            The message.
        """
        if len(self._waiting) >= self._limit:
            self._waiting.popleft()
            self._counts.add("dropped")
        self._waiting.append(message)

    def take(self) -> T | None:
        """Remove the oldest message.

        Returns
        -------
        T | None
            The message; None for none.
        """
        return self._waiting.popleft() if self._waiting else None

    def clear(self) -> None:
        """Drop all messages."""
        self._counts.add("dropped", len(self._waiting)) if self._waiting else None
        self._waiting.clear()

    def __len__(self) -> int:
        """Return the number of messages."""
        return len(self._waiting)


class Backoff:
    """Pauses between attempts: first_s, then twice as long each time, at most most_s.

    `due` is true when the next attempt may be made; call `failed` or `succeeded` after it.

    Parameters
    ----------
    first_s : float, default 0.1
        First pause, s.
    most_s : float, default 5.0
        Longest pause, s.

    Examples
    --------
    >>> backoff = Backoff(1.0)
    >>> backoff.failed(now=0.0), backoff.due(now=0.5), backoff.due(now=1.0)
    (1.0, False, True)
    """

    def __init__(self, first_s: float = 0.1, most_s: float = 5.0) -> None:
        self.first_s, self.most_s = first_s, most_s
        self._pause_s, self._at = first_s, 0.0

    def due(self, now: float | None = None) -> bool:
        """Return whether the next attempt may be made.

        Parameters
        ----------
        now : float | None, optional
            Monotonic time, s; None: the present.

        Returns
        -------
        bool
            True if it may.
        """
        return (monotonic() if now is None else now) >= self._at

    def failed(self, now: float | None = None) -> float:
        """Record that the attempt failed, or that its connection is gone.

        Parameters
        ----------
        now : float | None, optional
            Monotonic time, s; None: the present.

        Returns
        -------
        float
            Pause until the next attempt, s.
        """
        pause = self._pause_s
        self._at = (monotonic() if now is None else now) + pause
        self._pause_s = min(self.most_s, 2.0 * pause)
        return pause

    def succeeded(self) -> None:
        """Record that the attempt succeeded."""
        self._pause_s, self._at = self.first_s, 0.0


MAX_RESEND_S = 0.5
DOUBT_S = 1.0


class Turns:
    """Messages to a peer that answers each, over a channel that may lose them.

    Without an answer the same message is sent again after `patience_s`, then after twice that, and so on, up to
    MAX_RESEND_S apart. A peer that was merely slow answers each copy. A remaining answer would be taken for one to the
    next message, and all later ones be late by one. A peer may state which message it answers. With others, a turn with
    copies ends when all of them are answered, or when nothing more has come for a while. This is as long as the peer
    usually needs, or has needed since the last copy. While nothing is known of the peer, it is longer than its first
    answer took, up to DOUBT_S. So a peer that takes longer than that at its first answer should state what it answers.
    Patience follows the peer, by the turns in which nothing was lost: twice its longest time, reduced by a tenth a
    turn.

    Parameters
    ----------
    least_s : float
        Least patience, s.

    Attributes
    ----------
    message : bytes
        Message that is to be answered; b'' for none.
    patience_s : float
        Time until the first copy, s.
    """

    def __init__(self, least_s: float) -> None:
        self._least_s = self.patience_s = least_s
        self.message = b""
        """Message that is to be answered; b'' for none."""
        self._copies = 0  # under way, as far as is known
        self._answered = self._known = False
        self._begun = self._sent = self._again = self._gap = self._took = 0.0

    def ask(self, message: bytes, now: float) -> None:
        """Record that a message was sent.

        Parameters
        ----------
        message : bytes
            The message.
        now : float
            Monotonic time, s.
        """
        left = max(0, self._copies) if self.message else 0  # of one that was never answered: the peer may yet do it
        self.message, self._copies, self._answered = message, left + 1, False
        self._begun = self._sent = now
        self._gap = self.patience_s
        self._again = now + self._gap

    def due(self, now: float) -> bytes:
        """Return the message if it is to be sent again now, and count it as sent.

        Parameters
        ----------
        now : float
            Monotonic time, s.

        Returns
        -------
        bytes
            The message, else b''.
        """
        if not self.message or self._answered or now < self._again:
            return b""
        self._copies += 1
        self._gap = min(2.0 * self._gap, max(MAX_RESEND_S, self.patience_s))
        self._sent, self._again = now, now + self._gap
        return self.message

    def answered(self, now: float, surely: bool = False) -> bool:
        """Record an answer.

        Parameters
        ----------
        now : float
            Monotonic time, s.
        surely : bool, default False
            Whether the peer states that it is to this message.

        Returns
        -------
        bool
            Whether the turn ends with it.
        """
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
        """Return whether a turn ends because no more answers come to the copies.

        Parameters
        ----------
        now : float
            Monotonic time, s.

        Returns
        -------
        bool
            True once.
        """
        if not (self.message and self._answered and now >= self._again):
            return False
        self.patience_s = max(self._least_s, 0.9 * self.patience_s)
        self.message = b""
        return True

    def forget(self) -> None:
        """Discard the message, because nobody can answer it."""
        self.message = b""
