"""Waiting on descriptors, also on those that select(2) does not know."""

from __future__ import annotations

import fcntl
import os
import resource
import select
import socket
from collections.abc import Iterator

import pytest

from rtmms.wire.peer.client import DescriptorWait


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    here, there = socket.socketpair()
    yield here, there
    here.close()
    there.close()


@pytest.mark.parametrize("poll", [True, False])
def test_it_reports_which_of_them_can_be_read(
    pair: tuple[socket.socket, socket.socket], poll: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not poll:
        monkeypatch.delattr(select, "poll")
    here, there = pair
    both, awaiting = (here.fileno(), there.fileno()), DescriptorWait()
    assert awaiting.readable(both, 0.001) == []
    there.send(b"1")
    assert awaiting.readable(both, 10.0) == [here.fileno()]
    here.send(b"2")
    assert sorted(awaiting.readable(both, 10.0)) == sorted(both)
    here.recv(1)
    assert awaiting.readable((here.fileno(),), 0.0) == []
    there.close()
    assert awaiting.readable((here.fileno(),), 10.0) == [here.fileno()]


def test_descriptors_from_1024_on_are_as_good_as_others(pair: tuple[socket.socket, socket.socket]) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2000:
        pytest.skip(f"only {hard} files may be open here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2000), hard))
    high = fcntl.fcntl(pair[0].fileno(), fcntl.F_DUPFD, 1500)
    try:
        pair[1].send(b"1")
        assert DescriptorWait().readable((high,), 10.0) == [high]
    finally:
        os.close(high)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
