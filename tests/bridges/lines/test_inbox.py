"""What other threads put in reaches the loop: the newest, in order, and a file signals them."""

from __future__ import annotations

import select
import threading

from rtmms_bridges.lines.inbox import Inbox


def readable(inbox: Inbox[int]) -> bool:
    return bool(select.select([inbox], [], [], 0)[0])


def test_the_newest_in_order_and_a_file_that_reports_it() -> None:
    inbox: Inbox[int] = Inbox(3)
    assert not readable(inbox)
    assert inbox.take_all() == ([], 0)
    for i in range(5):
        inbox.put(i)
        assert readable(inbox)
    assert inbox.take_all() == ([2, 3, 4], 2)
    assert not readable(inbox)
    inbox.put(5)
    assert inbox.take_all() == ([5], 0)
    inbox.close()
    inbox.close()
    inbox.put(6)


def test_from_several_threads() -> None:
    inbox: Inbox[int] = Inbox(10_000)
    threads = [threading.Thread(target=lambda: [inbox.put(i) for i in range(1000)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    got: list[int] = []
    while len(got) < 4000:
        assert select.select([inbox], [], [], 10.0)[0], "a wake-up was lost"
        got += inbox.take_all()[0]
    for thread in threads:
        thread.join()
    assert sorted(got) == sorted(list(range(1000)) * 4)
    inbox.close()
