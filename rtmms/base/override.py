"""Decorator of methods that override a method of a base class or of a protocol.

A method with it inherits the docstring (`help` and `inspect.getdoc` find it). A docstring of its own states only what
the inherited one does not. mypy refuses the decorator where no base class has the method.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from typing_extensions import override as override

    Method = TypeVar("Method", bound=Callable[..., Any])
elif sys.version_info >= (3, 12):
    from typing import override as override
else:

    def override(method: Method) -> Method:
        """Mark a method as one that overrides another.

        Parameters
        ----------
        method : Method
            The method.

        Returns
        -------
        Method
            The same method, with the attribute `__override__`, as typing.override of Python 3.12 gives it.
        """
        method.__override__ = True
        return method
