"""A test over many cases that share their set-up: one test, which names each case that fails."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def every(names: str, cases: Iterable[Any], ids: Callable[[Any], str] = repr) -> Callable[[Callable[..., None]], Any]:
    """Call the test once per case, as `pytest.mark.parametrize` does, but within one test.

    names   arguments of the test that a case fills, separated by commas
    cases   a value per case, or a tuple where there are several names
    ids     names a case in the failure
    """
    arguments, cases = [name.strip() for name in names.split(",")], list(cases)
    assert cases, "expected at least one case"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        def over_all(**fixtures: Any) -> None:
            failures: list[Exception] = []
            for case in cases:
                values = case if len(arguments) > 1 else (case,)
                try:
                    test(**dict(zip(arguments, values, strict=True)), **fixtures)
                except (Exception, pytest.fail.Exception) as failure:
                    failed = failure if isinstance(failure, Exception) else AssertionError(str(failure))
                    failed.add_note(f"case: {ids(case)}")
                    failures.append(failed)
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(cases)} cases", failures)

        stored = [p for name, p in inspect.signature(test).parameters.items() if name not in arguments]
        over_all.__signature__ = inspect.Signature(stored)  # type: ignore[attr-defined]
        over_all.__name__, over_all.__doc__, over_all.__module__ = test.__name__, test.__doc__, test.__module__
        return over_all

    return decorate
