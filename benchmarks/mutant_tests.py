"""A warm process that tries mutants: a plugin of pytest, with the libraries and all tests of a room loaded once.

In place of the tests' own loop it answers requests, lines of JSON on two pipes (`PIPES` names them). Each is worked off
by a fork: `map` runs one test and tells which lines it executed and how long it took; `try` puts a mutant's code in the
place of the functions that it changes, and runs tests until one fails. A test that takes longer than its limit is
ended. The tests run without the compiler, which is quicker than to compile each mutant.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import coverage
import pytest
from _pytest.runner import runtestprotocol

PIPES = "RTMMS_MUTANTS_PIPES"
Tell = Callable[[dict[str, Any]], None]
_importing: list[coverage.Coverage] = []


def _recorder() -> coverage.Coverage:
    return coverage.Coverage(data_file=None, config_file=False, include=[str(Path.cwd() / "rtmms" / "*")])


def _lines(recorder: coverage.Coverage) -> dict[str, list[int]]:
    data, here = recorder.get_data(), Path.cwd()
    return {str(Path(file).relative_to(here)): sorted(data.lines(file) or ()) for file in data.measured_files()}


def pytest_configure() -> None:
    """What runs on import alone is found: a mutant of that cannot be put in place afterwards."""
    _importing.append(_recorder())
    _importing[0].start()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """Answer until the requests end."""
    _importing[0].stop()
    asked, told = (int(word) for word in os.environ[PIPES].split(","))
    items = {item.nodeid: item for item in session.items}
    functions: dict[str, list[FunctionType]] = {}
    here = str(Path.cwd() / "rtmms")
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType) and thing.__code__.co_filename.startswith(here):
            functions.setdefault(thing.__code__.co_filename, []).append(thing)
    with os.fdopen(asked) as requests, os.fdopen(told, "w", buffering=1) as answers:
        print(json.dumps({"tests": list(items), "imported": _lines(_importing[0])}), file=answers)
        for line in requests:
            request = json.loads(line)
            begun = time.monotonic()
            heard, ended = _forked(partial(_work, request, items, functions))
            last: dict[str, Any] = heard[-1] if heard else {}
            if "verdict" not in last:
                late = os.WIFSIGNALED(ended) and os.WTERMSIG(ended) == signal.SIGALRM
                last = {"verdict": "late" if late else "killed", "by": last.get("on", "")}
            print(json.dumps(last | {"seconds": time.monotonic() - begun}), file=answers)
    return True


def _forked(work: Callable[[Tell], None]) -> tuple[list[dict[str, Any]], int]:
    """What a child tells while it works, and its wait status."""
    end, begin = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setpgid(0, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            work(lambda words: void(os.write(begin, json.dumps(words).encode() + b"\n")))
        except BaseException as fault:
            os.write(begin, json.dumps({"verdict": "killed", "by": repr(fault)}).encode() + b"\n")
        finally:
            os._exit(0)
    os.close(begin)
    with os.fdopen(end) as lines:
        heard = [json.loads(line) for line in lines]
    ended = os.waitpid(child, 0)[1]
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what a test started and could not end
    return heard, ended


def void(_: object) -> None:
    """For the sake of its argument."""


def _work(request: dict[str, Any], items: dict[str, Any], functions: dict[str, list[FunctionType]], tell: Tell) -> None:
    if "map" in request:
        recorder = _recorder()
        recorder.start()
        verdict = _ran([items[request["map"]]], [request["limit_s"]], tell)
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        recorder.stop()
        tell({"verdict": verdict, "lines": _lines(recorder)})
        return
    path = str(Path.cwd() / request["file"])
    if not exchanged(request["before"], request["after"], path, functions.get(path)):
        tell({"verdict": "fresh"})
        return
    tests = [items[test] for test, _ in request["tests"]]
    verdict = _ran(tests, [limit for _, limit in request["tests"]], tell)
    if verdict == "survived":
        tell({"verdict": "survived", "by": ""})


def _ran(items: list[Any], limits: list[float], tell: Tell) -> str:
    """'survived', or 'killed' and told by which."""
    for item, limit, following in zip(items, limits, [*items[1:], None], strict=True):
        tell({"on": item.nodeid})
        signal.setitimer(signal.ITIMER_REAL, limit)
        if any(report.failed for report in runtestprotocol(item, log=False, nextitem=following)):
            tell({"verdict": "killed", "by": item.nodeid})
            return "killed"
    return "survived"


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def exchanged(before: str, after: str, path: str, functions: list[FunctionType] | None) -> bool:
    """Put the changed code into the functions of a file; False where that cannot be. A file that nobody has imported
    yet is right as it is: it is changed on disk."""
    if functions is None:
        return True
    old, new = (list(_codes(compile(text, path, "exec", dont_inherit=True))) for text in (before, after))
    if [code.co_qualname for code in old] != [code.co_qualname for code in new]:
        return False
    changed = [(was, now) for was, now in zip(old, new, strict=True) if was != now and was.co_name != "<module>"]
    found = False
    for function in functions:
        for was, now in changed:
            if function.__code__ == was:
                if was.co_freevars != now.co_freevars:
                    return False
                function.__code__, found = now, True
    return found
