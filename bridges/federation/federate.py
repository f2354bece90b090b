"""Federate of HELICS in its own thread, where alone requests for time block."""

from __future__ import annotations

import contextlib
import json
import threading
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Literal

from rtmms.bridging.untrusted import MAX_JSON_BYTES

WATCH_S = 0.2
MAX_PARTNERS = 64
_MAX_GRANT_S = 1e9
"""Time beyond which a grant of HELICS means that the federation has ended, s."""


@dataclass(frozen=True)
class Port:
    """Publication or input of a federate.

    Parameters
    ----------
    key : str
        Key in the federation.
    unit : str
        Unit of the values.
    dimensions : int, default 0
        Number of dimensions; 0 for a scalar.
    default : float, default 0.0
        Value of an input before the first one, in its unit.
    target : str, default ''
        Publication to which an input subscribes; empty for none.
    """

    key: str
    unit: str
    dimensions: int = 0
    default: float = 0.0
    target: str = ""


@dataclass(frozen=True)
class FederateConfig:
    """Configuration of a federate.

    Parameters
    ----------
    name : str
        Its name.
    core : str
        Type of the core.
    core_words : str
        Arguments of the core.
    publications, inputs : tuple[Port, ...]
        Its ports.
    endpoint : str
        Key of its endpoint; empty for none.
    realtime : bool
        Whether it is a real-time federate.
    rt_lag_s, rt_lead_s : float
        Most lag and lead of a grant against the wall clock, s.
    """

    name: str
    core: str
    core_words: str
    publications: tuple[Port, ...]
    inputs: tuple[Port, ...]
    endpoint: str
    realtime: bool
    rt_lag_s: float
    rt_lead_s: float


@dataclass
class Event:
    """Event of the federate's thread.

    Parameters
    ----------
    kind : Literal['joined', 'granted', 'failed', 'over']
        Kind of the event.
    text : str, default ''
        Explanation of joined, failed and over.
    time_s : float, default 0.0
        Requested time, s.
    granted_s : float, default 0.0
        Granted time, s.
    late_s : float, default 0.0
        Wall time that the grant took, s.
    inputs : list[float], optional
        Values of the inputs.
    messages : list[bytes], optional
        Messages of the endpoint.
    """

    kind: Literal["joined", "granted", "failed", "over"]
    text: str = ""
    time_s: float = 0.0
    granted_s: float = 0.0
    late_s: float = 0.0
    inputs: list[float] = field(default_factory=list)
    messages: list[bytes] = field(default_factory=list)


class Federate:
    """Federate that requests the time of each frame, publishes, and reads the inputs.

    Parameters
    ----------
    words : FederateConfig
        Its configuration.
    report : Callable[[Event], None]
        Called with events, in its thread.

    Attributes
    ----------
    joined : bool
        Whether it has joined the federation.
    partners : dict of str to Partner
        The other federates.
    """

    def __init__(self, federate_config: FederateConfig, report: Callable[[Event], None]) -> None:
        import helics

        self._h: Any = helics
        self._config, self._report = federate_config, report
        self._frame: tuple[float, list[Any]] | None = None
        self._wake = threading.Condition()
        self._leave = False
        self.joined = False
        self.partners: dict[str, Partner] = {}
        self._thread = threading.Thread(target=self._run, name="helics federate", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def frame(self, time_s: float, values: list[Any]) -> None:
        """Request a time, then publish values.

        Parameters
        ----------
        time_s : float
            The time, s.
        values : list[Any]
            One value for each publication; None: not this time.
        """
        with self._wake:
            self._frame = (time_s, values)
            self._wake.notify()

    def end(self, wait_s: float) -> None:
        """Leave the federation, and wait for that for a limited time, because it may hang.

        Parameters
        ----------
        wait_s : float
            Longest wait, s.
        """
        with self._wake:
            self._leave = True
            self._wake.notify()
        for partner in self.partners.values():
            partner.over = True
        if self._thread.is_alive():
            self._thread.join(wait_s)

    # --- in the thread ------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        h, federate = self._h, None
        try:
            federate = self._create_federate()
            self._core = h.helicsFederateGetCore(federate)
            fault = self._version_fault()
            if fault:
                self._report(Event("failed", fault))
                return
            ports = self._register(federate)
            h.helicsFederateEnterExecutingMode(federate)
            self._meet()
            self.joined = True
            self._report(Event("joined"))
            self._take_frames(federate, *ports)
        except h.HelicsException as fault:
            self._report(Event("over" if self.joined else "failed", _plain(str(fault))))
        finally:
            if federate is not None:
                with contextlib.suppress(h.HelicsException):  # the broker is gone
                    h.helicsFederateDisconnect(federate)

    def _create_federate(self) -> Any:
        h, config = self._h, self._config
        info = h.helicsCreateFederateInfo()
        h.helicsFederateInfoSetCoreTypeFromString(info, config.core)
        # without a name of its own, a core that the process has already would be shared
        h.helicsFederateInfoSetCoreName(info, f"{config.name}-{uuid.uuid4().hex[:8]}")
        h.helicsFederateInfoSetCoreInitString(info, config.core_words)
        federate = h.helicsCreateCombinationFederate(config.name, info)
        h.helicsFederateSetFlagOption(federate, h.HELICS_FLAG_UNINTERRUPTIBLE, True)
        if config.realtime:
            h.helicsFederateSetFlagOption(federate, h.HELICS_FLAG_REALTIME, True)
            h.helicsFederateSetTimeProperty(federate, h.HELICS_PROPERTY_TIME_RT_LAG, config.rt_lag_s)
            h.helicsFederateSetTimeProperty(federate, h.HELICS_PROPERTY_TIME_RT_LEAD, config.rt_lead_s)
        return federate

    def _version_fault(self) -> str:
        ours, theirs = str(self._h.helicsGetVersion()), str(self._asked("root", "version"))
        if theirs.split(".")[0] == ours.split(".")[0]:
            return ""
        return f"the broker has HELICS {theirs.split(' ')[0]:.40}, expected {ours.split('.')[0]}.x as here ({ours:.20})"

    def _register(self, federate: Any) -> tuple[list[Any], list[Any], Any]:
        h, config = self._h, self._config
        publications = [
            h.helicsFederateRegisterGlobalPublication(
                federate,
                port.key,
                h.HELICS_DATA_TYPE_VECTOR if port.dimensions else h.HELICS_DATA_TYPE_DOUBLE,
                port.unit,
            )
            for port in config.publications
        ]
        inputs = []
        for port in config.inputs:
            built = h.helicsFederateRegisterGlobalInput(federate, port.key, h.HELICS_DATA_TYPE_DOUBLE, port.unit)
            if port.target:
                h.helicsInputAddTarget(built, port.target)
            h.helicsInputSetDefaultDouble(built, port.default)
            inputs.append(built)
        endpoint = h.helicsFederateRegisterGlobalEndpoint(federate, config.endpoint, "") if config.endpoint else None
        return publications, inputs, endpoint

    def _take_frames(self, federate: Any, publications: list[Any], inputs: list[Any], endpoint: Any) -> None:
        h, granted = self._h, 0.0
        while True:
            with self._wake:
                while self._frame is None and not self._leave:
                    self._wake.wait()
                if self._leave:
                    return
                assert self._frame is not None
                (time_s, values), self._frame = self._frame, None
            begun = monotonic()
            if time_s > granted:
                granted = float(h.helicsFederateRequestTime(federate, time_s))
                if granted > _MAX_GRANT_S:
                    self._report(Event("over", "the federation has ended"))
                    return
            for publication, value in zip(publications, values, strict=True):
                if isinstance(value, list):
                    h.helicsPublicationPublishVector(publication, value)
                elif value is not None:
                    h.helicsPublicationPublishDouble(publication, value)
            took = monotonic() - begun
            read = [float(h.helicsInputGetDouble(item)) for item in inputs]
            self._report(Event("granted", "", time_s, granted, took, read, self._messages(endpoint)))

    def _messages(self, endpoint: Any) -> list[bytes]:
        h, result = self._h, []
        while endpoint is not None and h.helicsEndpointHasMessage(endpoint):
            message = h.helicsEndpointGetMessage(endpoint)
            result.append(bytes(h.helicsMessageGetBytes(message))[: MAX_JSON_BYTES + 1])
        return result

    # --- the others ---------------------------------------------------------------------------------------------------

    def _meet(self) -> None:
        """Watch the federates that are there when the federation begins."""
        names = self._asked("root", "federates")
        for name in names if isinstance(names, list) else ():
            if name != self._config.name and len(self.partners) < MAX_PARTNERS:
                self.partners[name] = Partner(name, self._asked)
        for partner in self.partners.values():
            partner.start()

    def _asked(self, target: str, what: str) -> Any:
        """Return the answer to a query; None if there is none."""
        h = self._h
        query = h.helicsCreateQuery(target, what)
        try:
            result = h.helicsQueryCoreExecute(query, self._core)
        except h.HelicsException:
            return None
        finally:
            h.helicsQueryFree(query)
        if isinstance(result, str):
            try:
                return json.loads(result)
            except ValueError:
                return result
        return result


class Partner:
    """Another federate, whose time a thread requests repeatedly; a core that is dead or stopped does not answer.

    Parameters
    ----------
    name : str
        Its name.
    ask : Callable[[str, str], Any]
        Function of target and query.

    Attributes
    ----------
    time_s : float
        Last granted time, s.
    over : bool
        Whether it has left, or is not watched any more.
    """

    def __init__(self, name: str, ask: Callable[[str, str], Any]) -> None:
        self.name, self.time_s, self.over = name, 0.0, False
        self._ask, self._since = ask, 0.0
        self._thread = threading.Thread(target=self._run, name=f"helics watch {name}"[:60], daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def unanswered_s(self, now: float) -> float:
        """Return for how long it has not answered.

        Parameters
        ----------
        now : float
            Monotonic time, s.

        Returns
        -------
        float
            Time, s; 0 without a pending query.
        """
        return 0.0 if self.over or not self._since else now - self._since

    def _run(self) -> None:
        pause = threading.Event()
        while not self.over:
            self._since = monotonic()
            result = self._ask(self.name, "current_time")
            time_s = result.get("granted_time") if isinstance(result, dict) else None
            if isinstance(result, dict) and "error" in result:
                if result["error"].get("code") != 504:  # 504: no answer; anything else: it has left
                    self.over = True
                continue
            self._since = 0.0
            if isinstance(time_s, int | float):
                self.time_s = float(time_s)
            pause.wait(WATCH_S)


def behind(partners: Sequence[Partner], time_s: float, now: float, limit_s: float) -> list[str]:
    """Return a sentence on each partner that delays a time: it does not answer, or is at an earlier time.

    Parameters
    ----------
    partners : Sequence[Partner]
        The partners.
    time_s : float
        The time, s.
    now : float
        Monotonic time, s.
    limit_s : float
        Longest time without an answer, s.

    Returns
    -------
    list[str]
        The sentences.
    """
    result = []
    for partner in partners:
        silent = partner.unanswered_s(now)
        if silent > limit_s:
            result.append(f"'{partner.name}' does not answer for {silent:.2g} s")
        elif not partner.over and partner.time_s < time_s:
            result.append(f"'{partner.name}' is at t = {partner.time_s:.6g} s")
    return result


def _plain(text: str) -> str:
    """Return the text of HELICS's exception without its number."""
    head, _, remaining = text.partition("] ")
    return (remaining if head.startswith("[") else text).strip()
