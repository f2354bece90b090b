"""Binary of an FMU through fmpy: its life from instantiation to its end, and its variables as one float64 array."""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import weakref
from collections import deque
from collections.abc import Sequence
from functools import partial
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import numpy.typing as npt

from rtmms.fmi.archive import UnpackedFmu, import_library

Array = npt.NDArray[np.float64]


class FmuFault(Exception):
    """Failure of an FMU, or of fmpy."""


FAULTS = (FmuFault, OSError)
MAX_MESSAGES = 5
RELEASE = "finalizePythonInterpreter"
_FMI3_TYPES: dict[str, Any] = {
    "Float64": ctypes.c_double, "Float32": ctypes.c_float, "Int8": ctypes.c_int8, "UInt8": ctypes.c_uint8,
    "Int16": ctypes.c_int16, "UInt16": ctypes.c_uint16, "Int32": ctypes.c_int32, "UInt32": ctypes.c_uint32,
    "Int64": ctypes.c_int64, "UInt64": ctypes.c_uint64, "Boolean": ctypes.c_bool, "Enumeration": ctypes.c_int64,
}  # fmt: skip
_FMI2_TYPES: dict[str, Any] = {
    "Real": ctypes.c_double,
    "Integer": ctypes.c_int,
    "Boolean": ctypes.c_int,
    "Enumeration": ctypes.c_int,
}


class Library:
    """One instance of an FMU.

    Parameters
    ----------
    path : str
        The file, for errors.
    unpacked : UnpackedFmu
        Its folder.
    description : Any
        Its model description.

    Attributes
    ----------
    messages : deque of str
        Its last warnings and errors.
    keeps_state : bool
        It can return its state as bytes.

    Raises
    ------
    FmuFault
        It cannot be instantiated; the caller then removes the folder, else the library does.
    """

    def __init__(self, path: str, unpacked: UnpackedFmu, description: Any) -> None:
        """Instantiate the FMU."""
        simulation = description.coSimulation
        self.is_3 = description.fmiVersion.startswith("3.")
        self.keeps_state = bool(simulation.canGetAndSetFMUstate and simulation.canSerializeFMUstate)
        self.messages: deque[str] = deque(maxlen=MAX_MESSAGES)
        arguments = {
            "guid": description.guid, "unzipDirectory": str(unpacked.folder), "instanceName": description.modelName,
            "modelIdentifier": simulation.modelIdentifier,
        }  # fmt: skip
        self._call = _named(_call, path)
        try:
            module = import_library("fmpy.fmi3" if self.is_3 else "fmpy.fmi2", "an FMU")
            kind = module.FMU3Slave if self.is_3 else module.FMU2Slave
            with contextlib.chdir(os.getcwd()):  # fmpy goes to the binary's folder, and stays if it cannot be loaded
                self.slave: Any = kind(**arguments)
            self._callbacks: Any = None
            self._instantiate(module)
        except Exception as fault:
            text = f"cannot be instantiated: {fault}".replace(str(unpacked.folder), path)
            raise FmuFault(text) from fault
        # an instance must be freed before its library and its callbacks are: also when a fault drops the plant
        self._end = weakref.finalize(self, partial(_free, self.slave, self.is_3, self._callbacks, unpacked))
        self._fresh = True

    def _instantiate(self, module: Any) -> None:
        if self.is_3:
            self._call(self.slave.instantiate, logMessage=self._receive)
            return

        def receive(_: Any, __: bytes, status: int, ___: bytes, text: bytes) -> None:
            self._receive(None, status, b"", text)

        callbacks = module.fmi2CallbackFunctions()
        callbacks.logger = module.fmi2CallbackLoggerTYPE(receive)
        callbacks.allocateMemory = module.fmi2CallbackAllocateMemoryTYPE(module.calloc)
        callbacks.freeMemory = module.fmi2CallbackFreeMemoryTYPE(module.free)
        self._callbacks = callbacks  # kept: the FMU calls them
        self._call(self.slave.instantiate, callbacks=callbacks)

    def _receive(self, _: Any, status: int, __: bytes, text: bytes | None) -> None:
        if status:
            self.messages.append((text or b"").decode(errors="replace").strip())

    # --- life ---------------------------------------------------------------------------------------------------------

    def restart(self) -> None:
        """Return to the state after the instantiation."""
        self.messages.clear()
        if not self._fresh:
            self._call(self.slave.reset)
        self._fresh = False

    def initialise(self) -> None:
        """Initialise the FMU with its parameters, for the first step, at t = 0."""
        if self.is_3:
            self._call(self.slave.enterInitializationMode, startTime=0.0)
        else:
            self._call(self.slave.setupExperiment, startTime=0.0)
            self._call(self.slave.enterInitializationMode)
        self._call(self.slave.exitInitializationMode)

    def do_step(self, time: float, dt: float) -> bool:
        """Advance by a step.

        Parameters
        ----------
        time : float
            Start of the step, s.
        dt : float
            Time step, s.

        Returns
        -------
        bool
            False when the FMU requests the end.

        Raises
        ------
        FmuFault
            The FMU returned early.
        """
        if self.is_3:
            _, terminate, early, reached = self._call(self.slave.doStep, time, dt)
            if early and reached < time + dt - 1e-9 * dt:
                raise FmuFault(
                    f"the FMU ended a step early: at {reached:g} s, expected {time + dt:g} s (the step began "
                    f"at {time:g} s)"
                )
            return not terminate
        self._call(self.slave.doStep, time, dt)
        return True

    def state(self) -> bytes:
        """Return the FMU's serialised state.

        Returns
        -------
        bytes
            Bytes for `set_state`.
        """
        slave = self.slave
        state = self._call(slave.getFMUState)
        try:
            return bytes(self._call(slave.serializeFMUState, state))
        finally:
            slave.freeFMUState(state)

    def set_state(self, blob: bytes) -> None:
        """Restore a serialised state.

        Parameters
        ----------
        blob : bytes
            Bytes from `state`.
        """
        slave = self.slave
        state = self._call(slave.deserializeFMUState, blob)
        try:
            self._call(slave.setFMUState, state)
        finally:
            slave.freeFMUState(state)

    def set_parameter(self, variable: Any, place: int, value: float) -> None:
        """Set one element of a parameter; the others keep their values.

        Parameters
        ----------
        variable : Any
            The variable.
        place : int
            Index of the element.
        value : float
            The value.
        """
        item = Values(self, [variable], np.zeros(math.prod(variable.shape or ())))
        if item.values.size > 1:
            item.read()
        item.values[place] = value
        item.write()

    def close(self) -> None:
        """Terminate and free the FMU, and remove its folder."""
        self._end()


def _call(function: Any, *arguments: Any, **named: Any) -> Any:
    """Call a function of fmpy, whose plain exceptions become FmuFault."""
    try:
        return function(*arguments, **named)
    except Exception as fault:
        raise FmuFault(str(fault)) from fault


def _named(function: Any, path: str) -> FunctionType:
    """Return a copy of the function whose file is the FMU's.

    faulthandler then reports a crash in it, which has only files, lines and functions.
    """
    code: CodeType = function.__code__.replace(co_filename=path, co_name="the_code_in_this_FMU", co_firstlineno=1)
    return FunctionType(code, function.__globals__, function.__name__)


class Values:
    """Some variables of an FMU as one array, read and written with a call for each type.

    Parameters
    ----------
    library : Library
        The FMU.
    variables : Sequence[Any]
        The variables.
    values : Array
        (n,) float64, arrays flattened row-major, in the order of the variables.
    """

    def __init__(self, library: Library, variables: Sequence[Any], values: Array) -> None:
        self.values = values
        self._library = library
        types = _FMI3_TYPES if library.is_3 else _FMI2_TYPES
        places: dict[str, list[tuple[int, int, int]]] = {}
        at = 0
        for variable in variables:
            size = math.prod(variable.shape or ())
            places.setdefault(variable.type, []).append((variable.valueReference, at, size))
            at += size
        self._groups = []
        for name, members in places.items():
            references = (ctypes.c_uint32 * len(members))(*(reference for reference, _, _ in members))
            index = np.concatenate([np.arange(start, start + size) for _, start, size in members])
            buffer = (types[name] * len(index))()
            view = np.frombuffer(buffer, dtype=np.dtype(types[name]))
            self._groups.append((name, references, index, buffer, view))

    def read(self) -> None:
        """Read the variables into the array."""
        for name, references, index, buffer, view in self._groups:
            self._move("Get", name, references, buffer)
            self.values[index] = view

    def write(self) -> None:
        """Write the array into the variables."""
        for name, references, index, buffer, view in self._groups:
            values = self.values[index]
            if name == "Boolean":
                view[:] = values >= 0.5
            else:
                view[:] = values if name in ("Float64", "Float32", "Real") else np.rint(values)
            self._move("Set", name, references, buffer)

    def _move(self, access: str, name: str, references: Any, buffer: Any) -> None:
        slave, is_3 = self._library.slave, self._library.is_3
        if name == "Enumeration":
            name = "Int64" if is_3 else "Integer"
        function = getattr(slave, f"fmi{3 if is_3 else 2}{access}{name}")
        sizes = (len(references), buffer, len(buffer)) if is_3 else (len(references), buffer)
        self._library._call(function, slave.component, references, *sizes)


def _free(slave: Any, is_3: bool, callbacks: Any, unpacked: UnpackedFmu) -> None:
    """Terminate and free the instance.

    The library itself stays loaded: unloading one of two FMUs that embed Python corrupts the memory of the other.
    """
    free = slave.fmi3FreeInstance if is_3 else slave.fmi2FreeInstance
    for end, arguments in ((slave.terminate, ()), (free, (slave.component,))):
        with contextlib.suppress(Exception):  # it may have failed before; fmpy raises whatever there is
            end(*arguments)
    release = getattr(slave.dll, RELEASE, None)
    if release is not None:  # an FMU of pythonfmu3's: see RobotSlave.terminate
        release()
    unpacked.remove()
