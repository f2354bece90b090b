"""Chunks of a study on processes of this machine, or on the workers of a Dask cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rtmms.base.errors import ModelError, RtmmsError, UnknownNameError
from rtmms.base.install import install_command
from rtmms.base.processes import process_pool
from rtmms.base.toml_file import read_toml
from rtmms.base.trust import asked_by_process, permitted_files
from rtmms.studies.case import Runner
from rtmms.studies.sweep_files import input_files, opened_files, refuse_changed, refuse_stale_modules
from rtmms.studies.sweep_study import Study
from rtmms.studies.sweep_table import Parts, rows_table
from rtmms.version import VERSION

if TYPE_CHECKING:
    from rtmms.studies.sweep_rows import Form, Table

Done = Callable[[int], None]
Chunk = tuple[int, int]

_runner: Runner | None = None
_cases: list[tuple[Any, ...]] = []
_opened: dict[str, str] = {}


def probe(study: Study) -> tuple[Study, dict[str, str]]:
    """Take a few steps of a study's first run, which also compiles.

    Parameters
    ----------
    study : Study
        The study.

    Returns
    -------
    tuple[Study, dict[str, str]]
        The study with the hashes of the files that determine its rows, and the columns of its table with their units.
    """
    named, opened = input_files(study, {}), dict[str, str]()
    with opened_files(opened):
        units = Runner(study).columns()
    refuse_stale_modules()
    return replace(study, inputs={**input_files((), opened), **named}), units


def take(study: Study, form: Form, chunk: Chunk) -> tuple[Table, dict[str, str]]:
    """Take the runs of one chunk, in any process: only the arguments and the study's files determine the result.

    Parameters
    ----------
    study : Study
        The study.
    form : Form
        Form of its table.
    chunk : Chunk
        First run, and one past the last.

    Returns
    -------
    tuple[Table, dict[str, str]]
        The rows, and the hashes of the opened files beyond the study's.

    Raises
    ------
    RtmmsError
        A file of the study has another content than it has in the study's key.
    """
    global _runner, _cases
    refuse_changed(study.inputs)
    refuse_stale_modules()
    if _runner is None or _runner.study != study:
        _runner, _cases = Runner(study), study.cases()
        _opened.clear()
    cases = _cases[chunk[0] : chunk[1]]
    with opened_files(_opened):
        rows = [_runner.row(case) for case in cases]
    more = {name: digest for name, digest in input_files((), _opened).items() if name not in study.inputs}
    refuse_changed({**study.inputs, **more})
    refuse_stale_modules()
    return rows_table(study, form, chunk[0], cases, rows), more


def on_processes(study: Study, form: Form, parts: Parts, left: list[Chunk], workers: int, done: Done) -> None:
    """Take all remaining chunks on processes of this machine; the kernels are compiled already.

    Parameters
    ----------
    study : Study
        The study.
    form : Form
        Form of its table.
    parts : Parts
        Parts of the table.
    left : list[Chunk]
        Remaining chunks.
    workers : int
        Number of processes.
    done : Done
        Receives the number of runs of each chunk.

    Raises
    ------
    RtmmsError
        A worker ended before its work.
    """
    if workers == 1 or len(left) == 1:
        for chunk in left:
            parts.write(chunk, *take(study, form, chunk))
            done(chunk[1] - chunk[0])
        return
    with process_pool(min(workers, len(left)), {"RTMMS_QUIET": "1"}) as pool:
        going = {pool.submit(take, study, form, chunk): chunk for chunk in left}
        while going:
            for item in wait(going, return_when=FIRST_COMPLETED).done:
                chunk = going.pop(item)
                try:
                    parts.write(chunk, *item.result())
                except BrokenExecutor:
                    raise RtmmsError(
                        "a worker was killed, or memory ran out; run the same command again to continue "
                        "(--threads starts fewer workers)"
                    ) from None
                done(chunk[1] - chunk[0])


def _on_workers(client: Any, function: Any, *values: Any) -> dict[str, Any]:
    """Call a function on each worker; a lost worker is left out, and the others take over its work."""
    result = client.run(function, *values, on_error="return")
    for fault in result.values():
        if isinstance(fault, Exception) and not isinstance(fault, OSError):
            raise fault
    return {worker: item for worker, item in result.items() if not isinstance(item, OSError)}


@dataclass(frozen=True)
class Cluster:
    """A Dask cluster.

    Attributes
    ----------
    address : str
        Address of its scheduler, for example `tls://host:8786`.
    security : Mapping[str, str]
        Files `ca`, `cert` and `key` of TLS; empty for a cluster without.
    """

    address: str
    security: Mapping[str, str] = field(default_factory=dict)


TLS = {"ca": "tls_ca_file", "cert": "tls_client_cert", "key": "tls_client_key"}
"""Keys of a security file, and Dask's names for them."""


def read_cluster(address: str, security: Path | None) -> Cluster:
    """Read the words of --dask and --dask-security. Files are beside the security file.

    Parameters
    ----------
    address : str
        Address of the scheduler.
    security : Path | None
        The security file.

    Returns
    -------
    Cluster
        The cluster.

    Raises
    ------
    ModelError
        TLS without a security file or the reverse, a missing or unknown key, or a missing file.
    """
    secure = address.startswith("tls://")
    if security is None:
        if secure:
            raise ModelError(f"--dask {address}: expected --dask-security FILE.toml with {', '.join(TLS)}")
        return Cluster(address)
    if not secure:
        raise ModelError(f"--dask {address}: expected tls://HOST:PORT with --dask-security, got another scheme")
    toml = read_toml(security)
    for key in toml:
        if key not in TLS:
            raise ModelError(f"{security}: {UnknownNameError('key', key, TLS)}")
    files = {}
    for key in TLS:
        if not isinstance(toml.get(key), str):
            raise ModelError(f'{security}: {key}: expected the name of a PEM file, such as {key} = "{key}.pem"')
        file = security.expanduser().parent / Path(toml[key]).expanduser()
        if not file.is_file():
            raise ModelError(f"{security}: {key}: there is no file '{file}'")
        files[key] = str(file)
    return Cluster(address, files)


def on_dask(study: Study, form: Form, parts: Parts, left: list[Chunk], cluster: Cluster, done: Done) -> None:
    """Take all remaining chunks on a running cluster.

    Parameters
    ----------
    study : Study
        The study.
    form : Form
        Form of its table.
    parts : Parts
        Parts of the table.
    left : list[Chunk]
        Remaining chunks.
    cluster : Cluster
        The cluster.
    done : Done
        Receives the number of runs of each chunk.

    Raises
    ------
    ModelError
        There is no cluster, or its workers have another version of rtmms.
    """
    address = cluster.address
    try:
        from dask.distributed import Client, Security, as_completed
    except ImportError:
        raise ModelError(f"--dask: needs the library dask: {install_command('dask')}") from None
    try:
        keys = {TLS[key]: file for key, file in cluster.security.items()}
        security = Security(require_encryption=True, **keys) if keys else None
        client = Client(address, timeout=10.0, set_as_default=False, security=security)
    except (OSError, ValueError, TypeError) as fault:
        raise ModelError(f"--dask {address}: no scheduler answered within 10 s ({type(fault).__name__})") from None
    with client:
        versions = _on_workers(client, version)
        if not versions:
            raise ModelError(f"--dask {address}: the scheduler has no workers")
        for worker, worker_version in versions.items():
            if worker_version != VERSION:
                raise ModelError(f"--dask {address}: worker {worker} has rtmms {worker_version}, this is {VERSION}")
        permitted = permitted_files()
        _on_workers(client, prepare, permitted, study)
        futures = {
            client.submit(
                take_for, permitted, study, form, chunk, pure=False, retries=3, key=parts.file(chunk).stem
            ): chunk
            for chunk in left
        }
        for future in as_completed(futures, loop=client.loop):
            chunk = futures[future]
            parts.write(chunk, *future.result())
            done(chunk[1] - chunk[0])
            future.release()  # the part is here; a worker that dies loses nothing of it


def version() -> str:
    """Return the version of rtmms in the process of the call.

    Returns
    -------
    str
        As '0.2.0'.
    """
    return VERSION


def prepare(permitted: str | None, study: Study) -> None:
    """Compile the kernels of the study's runs, or load them from the cache: once a worker, before the work.

    Parameters
    ----------
    permitted : str | None
        Files that may run (rtmms.base.trust.permitted_files).
    study : Study
        The study.
    """
    os.environ["RTMMS_QUIET"] = "1"
    with asked_by_process(permitted):
        Runner(study).columns()


def take_for(permitted: str | None, study: Study, form: Form, chunk: Chunk) -> tuple[Table, dict[str, str]]:
    """Call `take` on a worker that did not inherit the files that may run (rtmms.base.trust.permitted_files).

    Parameters
    ----------
    permitted : str | None
        Files that may run.
    study, form, chunk : Study, Form, Chunk
        See `take`.

    Returns
    -------
    tuple[Table, dict[str, str]]
        See `take`.
    """
    with asked_by_process(permitted):
        return take(study, form, chunk)
